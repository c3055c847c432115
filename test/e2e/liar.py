"""liar: a gRPC server that sends what it is told, frame by frame, whether or not it is right.

    with liar.Liar(liar.message(b"..."), liar.trailers(0)) as server: ... server.port

It answers each call with the same pieces, once the request has ended. A piece is a function of
the stream's number that returns the bytes of HTTP/2 frames; None ends the connection. With
`bytewise` each byte of a message is a DATA frame of its own, and a write of its own.
"""
import contextlib
import socket
import struct
import threading

import hpack

PREFACE = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
DATA, HEADERS, RST, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PATIENCE = 20


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def fields(**values):
    pairs = [(name.replace("_", "-"), str(value)) for name, value in values.items()]
    return hpack.Encoder().encode(pairs, huffman=False)


def head():
    block = hpack.Encoder().encode([(":status", "200"), ("content-type", "application/grpc")])
    return lambda stream: frame(HEADERS, END_HEADERS, stream, block)


def message(body, promised=None):
    """A message; `promised` is the length that its prefix claims."""
    framed = struct.pack(">BI", 0, len(body) if promised is None else promised) + body
    return lambda stream: frame(DATA, 0, stream, framed)


def trailers(status, text=""):
    block = fields(grpc_status=status, grpc_message=text)
    return lambda stream: frame(HEADERS, END_HEADERS | END_STREAM, stream, block)


def no_trailers():
    return lambda stream: frame(DATA, END_STREAM, stream, b"")


def reset(code):
    return lambda stream: frame(RST, 0, stream, struct.pack(">I", code))


def goaway(last, code=0):
    return lambda stream: frame(GOAWAY, 0, 0, struct.pack(">II", last, code))


def hang_up():
    return lambda stream: None


def in_bytes(framed):
    """DATA frames of one byte each, for what is one DATA frame."""
    kind, flags, stream = struct.unpack(">BBI", framed[3:9])
    if kind != DATA or len(framed) == 9:
        return [framed]
    last = len(framed) - 1
    return [
        frame(DATA, flags if i == last else flags & ~END_STREAM, stream, framed[i : i + 1])
        for i in range(9, len(framed))
    ]


class Liar:
    def __init__(self, *pieces, bytewise=False):
        self.pieces, self.bytewise = pieces, bytewise
        self.resets = threading.Semaphore(0)  # of calls, by the client
        self.heard = {}  # stream: its request's bytes, prefix and all
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._peers = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *failure):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE)
        for peer in self._peers:
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
            peer.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._peers.append(peer)
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        with contextlib.suppress(OSError, EOFError):
            read = peer.makefile("rb").read
            read(PREFACE)
            peer.sendall(frame(SETTINGS, 0, 0, b""))
            while True:
                start = read(9)
                if len(start) < 9:
                    return
                size, kind, flags, stream = struct.unpack(">I", b"\0" + start[:3])[0], *struct.unpack(
                    ">BBI", start[3:]
                )
                payload = read(size)
                if kind == SETTINGS and not flags & ACK:
                    peer.sendall(frame(SETTINGS, ACK, 0, b""))
                elif kind == PING and not flags & ACK:
                    peer.sendall(frame(PING, ACK, 0, payload))
                elif kind == RST:
                    self.resets.release()
                if kind == DATA:
                    self.heard[stream] = self.heard.get(stream, b"") + payload
                if kind in (DATA, HEADERS) and flags & END_STREAM:
                    self._answer(peer, stream)

    def _answer(self, peer, stream):
        for piece in self.pieces:
            framed = piece(stream)
            if framed is None:
                peer.shutdown(socket.SHUT_RDWR)
                return
            for part in in_bytes(framed) if self.bytewise else [framed]:
                peer.sendall(part)
