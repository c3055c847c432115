"""HTTP/2 abuse and silent peers against the real daemon (checks.md H, L1).

The counts here show that each limit holds; test/proof/abuse.py tries the full ones and measures
what they cost. After every attack the daemon has no descriptor, stream or thread more than
before, and serves the next request.
"""
import contextlib
import socket
import time

import attack
import crawbl
import pytest

pytestmark = pytest.mark.weir(script="test/e2e/scripts/quick.yaml")

BOTH = pytest.mark.parametrize("listener", ["http", "grpc"])
BLOCK = {
    "http": attack.request(path="/invoke", method="POST"),
    "grpc": attack.request(**attack.GRPC),
}


STORE = 2  # the store may open its second connection, with a thread, when it has much to do


@pytest.fixture
def unharmed(weir):
    """The daemon; when the test is over it must be as it was before."""
    serves(weir)
    before = holds(weir)
    yield weir
    serves(weir)
    give_up = time.monotonic() + attack.PATIENCE
    while any(now > then + STORE for now, then in zip(holds(weir), before)):
        assert time.monotonic() < give_up, f"left behind: {before} became {holds(weir)}"
        time.sleep(0.01)


def holds(weir):
    """Its descriptors and threads."""
    return attack.descriptors(weir.pid), attack.threads(weir.pid)


def serves(weir):
    with weir.http() as http:
        assert http.get("/health").status_code == 200
        assert http.post("/invoke", json={"input": "hello"}).status_code == 200
    with weir.channel() as channel:
        stream = crawbl.Stream(channel, weir.metadata())
        assert stream.ask("hello").error is None
        stream.half_close()


def port(weir, listener):
    return weir.port(listener)


@BOTH
def test_rapid_resets_end_in_goaway_before_1200(unharmed, listener):  # H2
    pieces = attack.rapid_resets(5000, BLOCK[listener])
    ending = attack.attack(port(unharmed, listener), pieces)
    assert ending.closed and ending.goaway
    assert ending.goaway[0] < 2 * 1200


@BOTH
def test_requests_beyond_the_limit_are_refused_and_the_others_served(unharmed, listener):  # G19
    pieces = (
        attack.frame(attack.HEADERS, attack.END_HEADERS, stream, BLOCK[listener])
        for stream in range(1, 2 * 1300, 2)
    )
    ending = attack.attack(port(unharmed, listener), pieces, patience=2)
    refused = sum(1 for kind, _, _, code in ending.frames if kind == attack.RESET and code[3] == 7)
    streams = {"http": 1000, "grpc": 100}[listener]
    assert refused == 1300 - streams or ending.code == attack.ENHANCE_YOUR_CALM


@BOTH
def test_the_ninth_continuation_ends_the_session(unharmed, listener):  # H4
    eight = attack.attack(port(unharmed, listener), attack.continuations(8), patience=1)
    assert not eight.closed
    ending = attack.attack(port(unharmed, listener), attack.continuations(100000))
    assert ending.closed and ending.code == attack.ENHANCE_YOUR_CALM


@BOTH
def test_broken_compression_ends_the_session(unharmed, listener):  # H6
    for what, block in attack.BROKEN_BLOCKS.items():
        piece = attack.frame(attack.HEADERS, attack.END_HEADERS | attack.END_STREAM, 1, block)
        ending = attack.attack(port(unharmed, listener), [piece])
        assert ending.closed and ending.code == attack.COMPRESSION_ERROR, what


FLOODS = {  # H7, H8
    "pings": attack.pings(20000),
    "settings": attack.empty_settings(20000),
    "settings with 10,000 entries": attack.settings_entries(2500),
    "windows that flip below zero": attack.negative_windows(20000, BLOCK["http"]),
    "priorities": attack.priorities(20000),
    "empty data": attack.empty_data(20000, BLOCK["http"]),
}


def test_floods_end_the_session(unharmed):  # H7, H8
    for what, pieces in FLOODS.items():
        ending = attack.attack(port(unharmed, "http"), pieces)
        assert ending.closed and ending.code is not None, what
        assert ending.count(attack.PING) + ending.count(attack.SETTINGS) < 1100, what


def test_floods_whose_acknowledgements_nobody_reads_end_the_session(unharmed):  # H7
    for flood in (attack.pings, attack.empty_settings):
        ending = attack.attack(port(unharmed, "http"), flood(2_000_000), reads=False)
        assert ending.closed and ending.sent < 9 * 2_000_000


def test_frames_that_nobody_knows_are_ignored(unharmed):  # H8
    pieces = [*attack.unknown_frames(5000)]
    pieces.append(attack.frame(attack.HEADERS, 5, 1, attack.request()))
    ending = attack.attack(port(unharmed, "http"), pieces, patience=3)
    assert not ending.closed and ending.count(attack.DATA) == 1


OTHER_LANGUAGES = [
    b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x55" * 500,
    b"\0" * 100,
    b"\xff" * 100,
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
]


def test_other_languages_on_the_grpc_port_are_closed_or_answered_in_http(unharmed):  # H9
    for text in OTHER_LANGUAGES:
        with attack.dial(port(unharmed, "grpc")) as peer:
            peer.settimeout(attack.PATIENCE)
            peer.sendall(text)
            peer.shutdown(socket.SHUT_WR)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while part := peer.recv(4096):
                    answer += part
        assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 505")), text


@pytest.mark.weir(config="limits:\n  header: 500ms\n")
def test_a_preface_that_drips_is_closed(unharmed):  # H9
    with socket.create_connection(("127.0.0.1", port(unharmed, "grpc")), attack.PATIENCE) as peer:
        peer.settimeout(0.1)
        for byte in attack.PREFACE * 40:
            with contextlib.suppress(TimeoutError):
                if not peer.recv(4096):
                    return
            peer.send(bytes([byte]))
    pytest.fail("it was listened to for ever")


@pytest.mark.weir(config="limits:\n  header: 500ms\n  connections: 64\n")
def test_silent_sockets_take_turns_and_are_sent_away(unharmed):  # H9
    peers = [attack.dial(port(unharmed, "grpc")) for _ in range(150)]
    most = 0
    for number, peer in enumerate(peers):
        peer.settimeout(attack.PATIENCE)
        assert peer.recv(1) == b"", number  # 64 after 500 ms, the next after another
        most = max(most, attack.descriptors(unharmed.pid))
        peer.close()
    assert most < 64 + 40


def are_closed(peers):
    closed = 0
    for peer in peers:
        peer.setblocking(False)
        try:
            closed += peer.recv(65536) == b""
        except BlockingIOError:
            pass
        except ConnectionResetError:
            closed += 1
    return closed


@pytest.mark.weir(config="limits:\n  connections: 64\n")
def test_a_peer_keeps_a_quarter_of_the_places_without_a_request_and_all_with_one(unharmed):  # H9
    asking = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    known = [attack.dial(port(unharmed, "http")) for _ in range(12)]
    for peer in known:
        peer.sendall(asking)
        assert peer.recv(65536).startswith(b"HTTP/1.1 200 ")
    silent = [attack.dial(port(unharmed, "http")) for _ in range(40)]
    closed, give_up = 0, time.monotonic() + attack.PATIENCE
    while closed < 24:
        assert time.monotonic() < give_up, f"{closed} of 40 were closed"
        closed = are_closed(silent)
        time.sleep(0.05)
    time.sleep(1)
    assert are_closed(silent) == 24 and are_closed(known) == 0  # 16 are a quarter of 64
    assert unharmed.said("raise that limit").count("raise that limit") == 1
    for peer in known + silent:
        peer.close()


FLOOD = attack.request(path="/stream", method="POST", content_type="application/json")


def stalled_streams(count):
    body = b'{"input":"a flood","session_id":"%d"}'
    for number in range(count):
        stream = 2 * number + 1
        yield attack.frame(attack.HEADERS, attack.END_HEADERS, stream, FLOOD)
        yield attack.frame(attack.DATA, attack.END_STREAM, stream, body % number)


@pytest.mark.weir(
    script="test/e2e/scripts/contract.yaml", config="limits:\n  write_stall: 1s\n"
)
def test_a_peer_with_100_answers_that_reads_nothing_is_dropped(unharmed):  # H11
    wide = attack.frame(attack.WINDOW_UPDATE, 0, 0, b"\x7f\x00\x00\x00")
    with attack.dial(port(unharmed, "http"), narrow=True) as peer:
        peer.sendall(attack.START + wide + b"".join(stalled_streams(100)))
        serves(unharmed)
        give_up = time.monotonic() + attack.PATIENCE
        while time.monotonic() < give_up:
            try:  # reading nothing, only looking whether it is still there
                peer.send(attack.frame(attack.WINDOW_UPDATE, 0, 0, b"\0\0\0\1"))
            except ConnectionError:
                break
            time.sleep(0.02)
        else:
            pytest.fail("it was kept for ever")
