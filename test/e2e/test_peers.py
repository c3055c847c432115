"""What one peer may cost the others: resets that it provokes, turns that it never reads, answers
that it takes byte by byte. The ids are rows of the fault table."""
import contextlib
import select
import socket
import struct

import attack
import crawbl
import pytest

QUICK = {"script": "test/e2e/scripts/quick.yaml"}

pytestmark = pytest.mark.weir(**QUICK)


def overflow(count):
    """Each stream begins and then breaks the rules of flow control, so that we reset it."""
    block = attack.request("/invoke", "POST")
    for stream in range(1, 2 * count, 2):
        yield attack.frame(attack.HEADERS, attack.END_HEADERS, stream, block)
        yield attack.frame(attack.WINDOW_UPDATE, 0, stream, struct.pack(">I", 0x7FFFFFFF))


def test_resets_that_a_peer_provokes_end_its_session_at_200(weir):  # H3
    ending = attack.attack(weir.port("http"), overflow(2000))
    assert ending.closed and ending.code == attack.ENHANCE_YOUR_CALM
    assert ending.count(attack.RESET) <= 200
    with weir.http() as http:
        assert http.post("/invoke", json={"input": "hello"}).status_code == 200


class Converse:
    """A Converse call on a connection of its own, of frames made by hand: nothing is read, and no
    window opens, unless the test says so."""

    def __init__(self, weir, session):
        self.session = session
        self.peer = socket.create_connection(("127.0.0.1", weir.port("grpc")), 20)
        no_window = struct.pack(">HI", 4, 0)
        token = dict(weir.metadata())["authorization"]
        block = attack.request(**attack.GRPC, authorization=token)
        self.peer.sendall(
            attack.PREFACE
            + attack.frame(attack.SETTINGS, payload=no_window)
            + attack.frame(attack.HEADERS, attack.END_HEADERS, 1, block)
        )

    def ask(self, text):
        request = crawbl.first(text, session_id=self.session)
        payload = crawbl.frame(request.SerializeToString())
        self.peer.sendall(attack.frame(attack.DATA, 0, 1, payload))

    def half_close(self):
        self.peer.sendall(attack.frame(attack.DATA, attack.END_STREAM, 1))

    def open_window(self):
        for stream in (0, 1):
            grown = struct.pack(">I", 1 << 24)
            self.peer.sendall(attack.frame(attack.WINDOW_UPDATE, 0, stream, grown))

    def read(self):
        """The data of the stream, up to its trailers; pings and the like are left alone."""
        received, data, heads = b"", b"", 0
        while heads < 2:
            while len(received) < 9 or len(received) < 9 + int.from_bytes(received[:3], "big"):
                received += self.peer.recv(65536)
            size = int.from_bytes(received[:3], "big")
            kind, payload = received[3], received[9 : 9 + size]
            received = received[9 + size :]
            heads += kind == attack.HEADERS
            data += payload if kind == attack.DATA else b""
        return data


def runs_of(weir, http, session):
    headers = {"authorization": dict(weir.metadata())["authorization"]}
    answer = http.get("/weir/v1/runs", params={"session_id": session}, headers=headers)
    return len(answer.json()["runs"])


def test_a_client_that_never_reads_gets_sixteen_turns(weir):  # B5
    call = Converse(weir, "deaf")
    with weir.http() as http, contextlib.closing(call.peer):
        for number in range(100):
            call.ask(f"say {number}")
        while runs_of(weir, http, "deaf") < 16:
            pass
        for _ in range(20):  # turns of others go on meanwhile, its own do not
            assert http.post("/invoke", json={"input": "hello"}).status_code == 200
        assert runs_of(weir, http, "deaf") == 16
        call.open_window()
        call.half_close()
        replies = call.read()
        assert runs_of(weir, http, "deaf") == 100
    messages = [crawbl.pb.ConverseEvent.FromString(m[5:]) for m in crawbl.frames(replies)]
    assert sum(m.WhichOneof("event") == "done" for m in messages) == 100


@pytest.mark.weir(**QUICK, config="limits: {write_stall: 500ms, keepalive: 0}\n")
def test_a_reader_that_drips_is_cut_and_its_neighbour_is_not(weir):  # H5
    block = attack.request("/openapi.json")
    with socket.create_connection(("127.0.0.1", weir.port("http")), 20) as peer:
        peer.sendall(
            attack.PREFACE
            + attack.frame(attack.SETTINGS, payload=struct.pack(">HI", 4, 0))
            + attack.frame(attack.HEADERS, attack.END_HEADERS | attack.END_STREAM, 1, block)
        )
        peer.settimeout(0.05)
        ending = attack.Ending()
        for _ in range(300):  # each byte is progress
            peer.sendall(attack.frame(attack.WINDOW_UPDATE, 0, 1, struct.pack(">I", 1)))
            with contextlib.suppress(TimeoutError):
                while True:
                    ending.received += peer.recv(65536)
            if ending.count(attack.RESET):
                break
        assert ending.count(attack.RESET) == 1 and not ending.goaway
        flags = attack.END_HEADERS | attack.END_STREAM
        peer.sendall(attack.frame(attack.HEADERS, flags, 3, attack.request("/health")))
        peer.settimeout(20)
        while ending.count(attack.HEADERS) < 2:
            ending.received += peer.recv(65536)


def dial(weir, source="127.0.0.1"):
    address = ("127.0.0.1", weir.port("http"))
    return socket.create_connection(address, 20, source_address=(source, 0))


def works(peer):
    peer.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return peer.recv(4096).startswith(b"HTTP/1.1 200")


def ended(peers):
    """Those that were closed: they say nothing by themselves."""
    return select.select(peers, [], [], 0.05)[0]


@pytest.mark.weir(**QUICK, config="limits: {connections: 64}\n")
def test_silent_connections_of_one_peer_hold_a_quarter_of_the_places(weir):  # H9
    with contextlib.ExitStack() as stack:
        working = [stack.enter_context(dial(weir)) for _ in range(24)]
        assert all(works(peer) for peer in working)
        elsewhere = [stack.enter_context(dial(weir, "127.0.0.2")) for _ in range(8)]
        silent = [stack.enter_context(dial(weir)) for _ in range(40)]
        while len(ended(silent)) < 40 - 16:  # the last 8 waited until others were sent away
            assert works(working[0])
        assert all(works(peer) for peer in working + elsewhere)
        left = [peer for peer in silent if peer not in ended(silent)]
        assert len(left) == 16 and all(works(peer) for peer in left)
