"""Every kind of call, against the test service that gRPC implementations share.

A quick round with the Python client; `make proof` has the official one and hundreds of rounds.
"""
import os
import subprocess
import sys

import grpc
import harness
import pytest

PROOF = harness.ROOT / "test" / "proof" / "grpc"
TREE = harness.BINARY.parent
sys.path.insert(0, str(PROOF))
import raw  # noqa: E402

pytestmark = pytest.mark.skipif(
    not (TREE / "test" / "interop" / "interop_server").exists(),
    reason="the test service is not built: make test builds it",
)

SIZES = [31415, 9, 2653, 58979]
INITIAL, TRAILING = "x-grpc-test-echo-initial", "x-grpc-test-echo-trailing-bin"


@pytest.fixture(scope="module")
def pb(tmp_path_factory):
    """The messages and stubs of test/interop/testing.proto."""
    from grpc_tools import protoc

    folder = tmp_path_factory.mktemp("stubs")
    command = ["protoc", f"-I{harness.ROOT}/test/interop", f"--python_out={folder}"]
    assert protoc.main([*command, f"--grpc_python_out={folder}", "testing.proto"]) == 0
    sys.path.insert(0, str(folder))
    import testing_pb2
    import testing_pb2_grpc

    testing_pb2.Stub = testing_pb2_grpc.TestServiceStub
    return testing_pb2


@pytest.fixture
def stub(pb):
    with raw.Server(TREE) as server:
        options = [("grpc.enable_http_proxy", 0)]
        with grpc.insecure_channel(f"127.0.0.1:{server.port}", options=options) as channel:
            yield pb.Stub(channel)


def wanted(pb, *sizes, **more):
    parameters = [pb.ResponseParameters(size=size) for size in sizes]
    return pb.StreamingOutputCallRequest(response_parameters=parameters, **more)


def sizes_of(responses):
    return [len(response.payload.body) for response in responses]


def test_one_message_each_way(pb, stub):
    assert stub.EmptyCall(pb.Empty(), timeout=20) == pb.Empty()
    request = pb.SimpleRequest(response_size=314159, payload=pb.Payload(body=bytes(271828)))
    for compression in (None, grpc.Compression.Gzip):
        response = stub.UnaryCall(request, timeout=20, compression=compression)
        assert response.payload.body == bytes(314159)


def test_a_compressed_answer_is_read_by_the_client(pb, stub):
    request = pb.SimpleRequest(response_size=314159)
    request.response_compressed.value = True
    assert stub.UnaryCall(request, timeout=20).payload.body == bytes(314159)


def test_many_messages_up(pb, stub):
    pieces = [pb.StreamingInputCallRequest(payload=pb.Payload(body=bytes(n))) for n in SIZES]
    assert stub.StreamingInputCall(iter(pieces), timeout=20).aggregated_payload_size == sum(SIZES)


def test_many_messages_down(pb, stub):
    assert sizes_of(stub.StreamingOutputCall(wanted(pb, *SIZES), timeout=20)) == SIZES


def test_messages_to_and_fro(pb, stub):
    requests = [wanted(pb, size) for size in SIZES]
    assert sizes_of(stub.FullDuplexCall(iter(requests), timeout=20)) == SIZES
    assert sizes_of(stub.HalfDuplexCall(iter(requests), timeout=20)) == SIZES
    assert sizes_of(stub.FullDuplexCall(iter([]), timeout=20)) == []


def test_a_client_may_leave_after_the_first_answer(pb, stub):
    call = stub.StreamingOutputCall(wanted(pb, *SIZES * 100), timeout=20)
    assert len(next(call).payload.body) == SIZES[0]
    call.cancel()
    assert call.code() == grpc.StatusCode.CANCELLED


def test_the_clients_deadline_ends_a_call_that_waits(pb, stub):
    slow = pb.StreamingOutputCallRequest()
    slow.response_parameters.add(size=1, interval_us=60_000_000)
    call = stub.FullDuplexCall(iter([slow]), timeout=0.2)
    with pytest.raises(grpc.RpcError):
        next(call)
    assert call.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_metadata_comes_back_at_both_ends(pb, stub):
    metadata = ((INITIAL, "a value"), (TRAILING, b"\xab\xab\xab\0"))
    call = stub.FullDuplexCall(iter([wanted(pb, 1)]), timeout=20, metadata=metadata)
    assert (INITIAL, "a value") in [tuple(pair) for pair in call.initial_metadata()]
    assert sizes_of(call) == [1]
    assert (TRAILING, b"\xab\xab\xab\0") in [tuple(pair) for pair in call.trailing_metadata()]


@pytest.mark.parametrize(
    "text",
    ["test status message", "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"],
)
def test_a_status_arrives_with_its_message(pb, stub, text):
    request = pb.SimpleRequest(response_status=pb.EchoStatus(code=2, message=text))
    with pytest.raises(grpc.RpcError) as refused:
        stub.UnaryCall(request, timeout=20)
    assert (refused.value.code(), refused.value.details()) == (grpc.StatusCode.UNKNOWN, text)


def test_a_method_that_nobody_wrote_is_unimplemented(pb, stub):
    with pytest.raises(grpc.RpcError) as refused:
        stub.UnimplementedCall(pb.Empty(), timeout=20)
    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("case", ["compressed", "streams"])
def test_frames_by_hand(case):
    environment = {**os.environ, "BUILD": str(TREE)}
    subprocess.run([sys.executable, str(PROOF / "frames.py"), case], env=environment, check=True)
