"""One rule at every door: what may come once, what an id is, which keys may stand twice, and
what every answer carries. The ids are rows of the fault table."""
import json
import socket

import crawbl
import grpc
import httpx
import pytest
from agentruntime.v1 import memory_pb2 as pb
from agentruntime.v1 import memory_pb2_grpc

from harness import Daemon

TOKEN = {"Authorization": "Bearer s3cret"}
VERSION = "x-runtime-contract-version"
CLIENT = httpx.Client(timeout=30, trust_env=False, verify=False)
CLIENT2 = httpx.Client(timeout=30, trust_env=False, verify=False, http1=False, http2=True)


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    daemon = Daemon(
        tmp_path_factory.mktemp("doors"),
        script="test/e2e/scripts/quick.yaml",
        env={"AGENT_AUTH_TOKEN": "s3cret"},
    ).start()
    yield daemon
    daemon.stop()


def invoke(daemon, body, headers=(), client=CLIENT):
    fields = [*TOKEN.items(), ("Content-Type", "application/json"), *headers]
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post(daemon.url + "/invoke", content=content, headers=fields)


@pytest.mark.parametrize("client", [CLIENT, CLIENT2], ids=["http1", "http2"])
def test_a_field_that_may_come_once_and_comes_twice_is_400(door, client):
    for name, value in [
        ("Authorization", "Bearer s3cret"),
        ("Authorization", "Bearer bad"),
        ("X-Session-Id", "a"),
        ("Idempotency-Key", "k"),
        ("Content-Type", "application/json"),
    ]:
        once = [] if name in ("Authorization", "Content-Type") else [(name, value)]
        answer = invoke(door, {"input": "hi"}, [*once, (name, value)], client)
        assert answer.status_code == 400, name
        assert name.lower() in answer.json()["error"]["message"].lower()
    assert invoke(door, {"input": "hi"}, [("X-Other", "a"), ("X-Other", "b")], client).is_success


BAD_IDS = ["a\u0000b", "a\nb", "\u007f", "a\u0085", "x" * 257, "\u00fc" * 129]


@pytest.mark.parametrize("bad", BAD_IDS, ids=range(len(BAD_IDS)))
def test_an_id_is_at_most_256_bytes_without_controls(door, bad):
    for body in (
        {"session_id": bad},
        {"thread_id": bad},
        {"config": {"thread_id": bad}},
        {"config": {"configurable": {"user_id": bad}}},
    ):
        assert invoke(door, {"input": "hi", **body}).status_code == 422, body
    answer = CLIENT.post(
        door.url + "/resume", json={"thread_id": bad, "human_input": "yes"}, headers=TOKEN
    )
    assert answer.status_code == 404  # nobody has such a thread


def test_ids_at_the_limit_and_in_any_script_are_fine(door):
    for good in ("x" * 256, "\u00fc" * 128, "\U0001f419", "a:b"):
        answer = invoke(door, {"input": "hi", "session_id": good})
        assert answer.status_code == 200 and answer.json()["session_id"] == good


def test_a_session_header_that_is_no_text_names_nobody(door):
    for bad in (b"\xff\xfe", b"a\xc3", b"x" * 257):
        answer = invoke(door, {"input": "hi"}, [(b"X-Session-Id", bad)])
        assert answer.status_code == 422, bad


def test_converse_knows_the_same_ids(door):
    with crawbl.open_stream(door) as stream:
        for bad in ("a\nb", "x" * 257, "a\u0085"):
            turn = stream.ask("hi", session_id=bad, workspace_id="ws-1", user_id="user-1")
            assert turn.code == "INVALID_ARGUMENT"
    assert crawbl.one_turn(door, "hi", session_id="x" * 256).code is None


def test_a_key_that_the_door_reads_stands_once(door):
    for body in (
        b'{"input":"a","input":"b"}',
        b'{"input":"a","inp\\u0075t":"b"}',
        b'{"input":"a","session_id":"x","session_id":"x"}',
        b'{"input":"a","config":{"thread_id":"a","thread_id":"b"}}',
        b'{"input":"a","config":{"configurable":{"user_id":"a","user_id":"b"}}}',
    ):
        answer = invoke(door, body)
        assert answer.status_code == 400 and "more than once" in answer.text, body
    for body in (b'{"input":{"a":1,"a":2}}', b'{"input":"a","x":1,"x":2}'):
        assert invoke(door, body).status_code == 200, body
    for path, body in [
        ("/weir/v1/memories", b'{"key":"a","key":"b","content":"c"}'),
        ("/resume", b'{"thread_id":"a","thread_id":"b","human_input":"yes"}'),
    ]:
        assert CLIENT.post(door.url + path, content=body, headers=TOKEN).status_code == 400


def test_every_answer_carries_the_version(door):
    for method, path in [
        ("GET", "/weir/v1/sessions"),
        ("GET", "/weir/v1/runs/7"),
        ("GET", "/weir/v1/nothing"),
        ("PUT", "/weir/v1/sessions"),
        ("POST", "/weir/v1/memories"),
        ("GET", "/health"),
        ("QUERY", "/invoke"),
    ]:
        for headers in (TOKEN, {}):
            answer = CLIENT.request(method, door.url + path, headers=headers)
            assert answer.headers.get_list(VERSION) == ["1"], (method, path)


def test_a_method_nobody_knows_is_405_on_both_protocols(door):
    for client in (CLIENT, CLIENT2):
        for method in ("QUERY", "FROB", "PROPFIND", "get"):
            request = client.build_request("GET", door.url + "/health")
            request.method = method
            answer = client.send(request)
            assert answer.status_code == 405, (method, answer.text)
            assert answer.headers["allow"] == "GET, HEAD"
    assert CLIENT.request("QUERY", door.url + "/nothing").status_code == 404


def test_a_token_does_not_come_as_a_trailer(door):
    head = b"POST /invoke HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    head += b"Authorization: Bearer s3cret\r\n\r\n"
    body = b'{"input":"hi"}'
    for name, status in [
        (b"Authorization", b"400"),
        (b"content-length", b"400"),
        (b"X-Session-Id", b"400"),
        (b"X-Checksum", b"200"),
    ]:
        with socket.create_connection(("127.0.0.1", door.port("http")), 10) as peer:
            chunk = b"%x\r\n%s\r\n0\r\n%s: 5\r\n\r\n" % (len(body), body, name)
            peer.sendall(head + chunk)
            assert peer.recv(4000).startswith(b"HTTP/1.1 " + status), name


def test_a_memory_request_names_its_workspace(door, tmp_path):
    """K36; `lenient` takes the token's instead."""
    empty = pb.ListMemoriesRequest()
    stub = memory_pb2_grpc.MemoryStub(door.channel())
    with pytest.raises(grpc.RpcError) as refusal:
        stub.ListMemories(empty, metadata=door.metadata(), timeout=20)
    assert refusal.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert refusal.value.details() == "memory: workspace_id is required"
    stub.ListMemories(pb.ListMemoriesRequest(workspace_id="ws-1"), metadata=door.metadata())
    lenient = Daemon(tmp_path, config="converse: {lenient: true}\n").start()
    try:
        memory_pb2_grpc.MemoryStub(lenient.channel()).ListMemories(
            empty, metadata=lenient.metadata(), timeout=20
        )
    finally:
        lenient.stop()
