"""frames: what a client can do to a gRPC server frame by frame.

    frames.py [NAME ...]        all without a name; MINUTES=10 for the patient one

    compressed   the four compression cases of gRPC's interop tests
    encodings    encodings and flags nobody agreed on, and a bomb (rows G2, G3)
    trickle      300 KiB in frames of one byte and 255 of padding, both ways (row G12)
    pings        too many pings, and just not too many (row G15)
    streams      more streams at once than were allowed (row G19)
"""
import gzip
import os
import pathlib
import struct
import sys
import tempfile
import threading
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from grpc_tools import protoc  # noqa: E402
from raw import *  # noqa: E402,F403

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = os.environ.get("BUILD", "build")
MINUTES = float(os.environ.get("MINUTES", 10))
GZIP = [("grpc-encoding", "gzip"), ("grpc-accept-encoding", "identity,gzip")]
SIZE, ANSWER = 271828, 314159
INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL = "3", "8", "12", "13"
INPUT = "/grpc.testing.TestService/StreamingInputCall"
OUTPUT = "/grpc.testing.TestService/StreamingOutputCall"


def load_messages():
    folder = tempfile.mkdtemp()
    command = ["protoc", f"-I{ROOT}/test/interop", f"--python_out={folder}", "testing.proto"]
    assert protoc.main(command) == 0
    sys.path.insert(0, folder)
    import testing_pb2

    return testing_pb2


pb = load_messages()


def squeezed(request):
    return message(gzip.compress(request.SerializeToString()), True)


def plain(request):
    return message(request.SerializeToString())


def memory_mib(server):
    """The most that the server ever had in memory."""
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


# --- compression ---------------------------------------------------------------------------


def unary(wants=None, answers=None):
    request = pb.SimpleRequest(response_size=ANSWER, payload=pb.Payload(body=bytes(SIZE)))
    if wants is not None:
        request.expect_compressed.value = wants
    if answers is not None:
        request.response_compressed.value = answers
    return request


def check_unary(outcome, compressed=False):
    status, messages, head = outcome
    assert status == "0" and len(messages) == 1, (status, head)
    flag, body = messages[0]
    assert flag == compressed, f"flag {flag}"
    body = gzip.decompress(body) if flag else body
    assert pb.SimpleResponse.FromString(body).payload.body == bytes(ANSWER)


def client_compressed_unary(connection):
    status, _, _ = call(connection, UNARY, plain(unary(wants=True)), *GZIP)  # the probe
    assert status == INVALID_ARGUMENT, status
    check_unary(call(connection, UNARY, squeezed(unary(wants=True)), *GZIP))
    check_unary(call(connection, UNARY, plain(unary(wants=False)), *GZIP))


def server_compressed_unary(connection):
    check_unary(call(connection, UNARY, plain(unary(answers=True)), *GZIP), compressed=True)
    check_unary(call(connection, UNARY, plain(unary(answers=False)), *GZIP))
    check_unary(call(connection, UNARY, plain(unary(answers=True))))  # takes no gzip


def client_compressed_streaming(connection):
    def piece(size, wants):
        request = pb.StreamingInputCallRequest(payload=pb.Payload(body=bytes(size)))
        request.expect_compressed.value = wants
        return request

    status, _, _ = call(connection, INPUT, plain(piece(27182, True)), *GZIP)  # the probe
    assert status == INVALID_ARGUMENT, status
    body = squeezed(piece(27182, True)) + plain(piece(45904, False))
    status, messages, _ = call(connection, INPUT, body, *GZIP)
    answer = pb.StreamingInputCallResponse.FromString(messages[0][1])
    assert status == "0" and answer.aggregated_payload_size == 73086


def server_compressed_streaming(connection):
    request = pb.StreamingOutputCallRequest()
    for size, compressed in ((31415, True), (92653, False)):
        wanted = request.response_parameters.add(size=size)
        wanted.compressed.value = compressed
    status, messages, head = call(connection, OUTPUT, plain(request), *GZIP)
    assert status == "0" and [flag for flag, _ in messages] == [1, 0]
    assert head["grpc-encoding"] == "gzip"
    bodies = [gzip.decompress(messages[0][1]), messages[1][1]]
    sizes = [len(pb.StreamingOutputCallResponse.FromString(b).payload.body) for b in bodies]
    assert sizes == [31415, 92653], sizes


def compressed():
    cases = [client_compressed_unary, server_compressed_unary]
    cases += [client_compressed_streaming, server_compressed_streaming]
    with Server(BUILD) as server:
        connection = Connection(server.port)
        for case in cases:
            case(connection)
        connection.close()


def bomb():
    """A gibibyte of zeros, as small as gzip makes it."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    pieces = [squeeze.compress(bytes(1 << 20)) for _ in range(1024)]
    return b"".join(pieces) + squeeze.flush()


def encodings():
    small = unary(wants=None)
    small.response_size = 0
    hello = gzip.compress(small.SerializeToString())
    rows = [
        ("snappy", message(hello, True), UNIMPLEMENTED),
        (None, message(hello, True), INTERNAL),
        ("identity", message(hello, True), INTERNAL),
        ("gzip", b"\x02" + message(hello)[1:], INTERNAL),
        ("gzip", b"\xff" + message(hello)[1:], INTERNAL),
        ("gzip", message(hello[:-5], True), INTERNAL),
        ("gzip", message(b"no gzip at all", True), INTERNAL),
        ("gzip", message(hello, True), "0"),
        ("identity", plain(small), "0"),
        ("gzip", message(bomb(), True), RESOURCE_EXHAUSTED),
    ]
    with Server(BUILD) as server:
        connection = Connection(server.port)  # one for all: it stays
        before = memory_mib(server)
        for encoding, body, expected in rows:
            fields = [("grpc-encoding", encoding)] if encoding else []
            status, _, head = call(connection, UNARY, body, *fields)
            assert status == expected, (encoding, status, expected)
            assert head["grpc-accept-encoding"] == "identity,gzip"
        grown = memory_mib(server) - before
        assert grown < 24, f"a bomb cost {grown} MiB"
        connection.close()


# --- flow control --------------------------------------------------------------------------


def trickle():
    size = 300 * 1024
    request = pb.SimpleRequest(response_size=size, payload=pb.Payload(body=bytes(size)))
    body = plain(request)
    with Server(BUILD) as server:
        connection = Connection(server.port, window=1000)
        while not connection.settings:
            connection.read()
        stream, opening = connection.headers(UNARY)
        connection.send(opening)
        cost = 1 + 1 + 255  # what a frame takes from the windows
        left = {0: 65535, stream: connection.settings[4]}
        given, sent = {0: 0, stream: 0}, 0
        while sent < len(body):
            batch = min(len(body) - sent, *(room // cost for room in left.values()))
            out = b""
            for at in range(sent, sent + batch):
                flags = PADDED | (END_STREAM if at + 1 == len(body) else 0)
                out += frame(DATA, flags, stream, b"\xff" + body[at : at + 1] + bytes(255))
            connection.send(out)
            sent += batch
            left = {which: room - batch * cost for which, room in left.items()}
            if sent < len(body) and min(left.values()) < cost:
                got = connection.read()
                assert got.kind in (WINDOW_UPDATE, SETTINGS, PING), f"frame {got.kind}"
                if got.kind == WINDOW_UPDATE:
                    credit = struct.unpack(">I", got.body)[0]
                    left[got.stream] += credit
                    given[got.stream] += credit
        # All but what one window still holds was given back, padding included.
        assert given[0] >= sent * cost - 2 * (1 << 20), given
        assert given[stream] >= sent * cost - 2 * connection.settings[4], given

        # Now the answer, of which we let through a thousand bytes at a time.
        answer, status, window = b"", None, {0: 65535, stream: 1000}
        while status is None:
            got = connection.read()
            if got.kind == DATA:
                window = {which: room - len(got.body) for which, room in window.items()}
                assert min(window.values()) >= 0, "more came than we allowed"
                answer += got.body
                for which in window:
                    connection.send(frame(WINDOW_UPDATE, 0, which, struct.pack(">I", len(got.body))))
                    window[which] += len(got.body)
            if got.kind == HEADERS and "grpc-status" in got.fields:
                status = got.fields["grpc-status"]
        assert status == "0"
        assert len(pb.SimpleResponse.FromString(answer[5:]).payload.body) == size
        connection.close()


# --- pings ---------------------------------------------------------------------------------


def impatient(port):
    connection = Connection(port)
    goaway = None
    for _ in range(3):
        connection.send(frame(PING, 0, 0, b"12345678"))
        time.sleep(1)
    while (got := connection.read()) is not None:
        goaway = got if got.kind == GOAWAY else goaway
    assert goaway and goaway.code == ENHANCE_YOUR_CALM
    assert goaway.body[8:] == b"too_many_pings", goaway.body


def patient(port, failures):
    """A ping every 15 s and an idle stream."""
    try:
        connection = Connection(port)
        stream, opening = connection.headers(DUPLEX)
        connection.send(opening)
        next_ping = time.monotonic() + 15
        end = time.monotonic() + MINUTES * 60
        while time.monotonic() < end:
            try:
                got = connection.read(within=max(0.01, next_ping - time.monotonic()))
                assert got is not None and got.kind not in (GOAWAY, RST_STREAM), "disturbed"
            except TimeoutError:
                connection.send(frame(PING, 0, 0, b"12345678"))
                next_ping += 15
        connection.send(frame(DATA, END_STREAM, stream))
        while (got := connection.read()).kind != HEADERS:
            pass
        assert got.fields["grpc-status"] == "0"
        connection.close()
    except Exception as failure:  # noqa: BLE001
        failures.append(failure)


def pings():
    with Server(BUILD) as server:
        failures = []
        other = threading.Thread(target=patient, args=(server.port, failures))
        other.start()
        impatient(server.port)
        other.join()
        assert not failures, failures


# --- streams -------------------------------------------------------------------------------


def streams():
    allowed, excess = 100, 50
    with Server(BUILD, streams=allowed, opened=1) as server:
        connection = Connection(server.port)
        opened = [connection.headers(DUPLEX) for _ in range(allowed + excess)]
        connection.send(b"".join(opening for _, opening in opened))
        refused = set()
        while len(refused) < excess:
            got = connection.read()
            assert got is not None and got.kind != GOAWAY, "the connection must stay"
            if got.kind == RST_STREAM:
                assert got.code == REFUSED_STREAM, got.code
                refused.add(got.stream)
        assert refused == {stream for stream, _ in opened[allowed:]}
        for stream, _ in opened[:allowed]:
            connection.send(frame(DATA, END_STREAM, stream))
        ended = 0
        while ended < allowed:
            got = connection.read()
            ended += got.kind == HEADERS and got.fields.get("grpc-status") == "0"
        connection.close()
    assert server.last_words == ["opened", str(allowed)], server.last_words


for case in sys.argv[1:] or ["compressed", "encodings", "trickle", "pings", "streams"]:
    began = time.monotonic()
    globals()[case]()
    print(f"{case}: ok ({time.monotonic() - began:.0f} s)", flush=True)
