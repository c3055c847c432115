"""raw: HTTP/2 frames by hand, for what no well-behaved client does.

A Connection sends any frame and reads whole ones; it answers nothing by itself but SETTINGS
and PING and only counts the credit it is given, so a test decides about windows, padding and
limits.
"""
import socket
import struct
import subprocess
import time

import hpack

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS, PADDED = 0x1, 0x1, 0x4, 0x8
REFUSED_STREAM, ENHANCE_YOUR_CALM = 7, 11
UNARY = "/grpc.testing.TestService/UnaryCall"
DUPLEX = "/grpc.testing.TestService/FullDuplexCall"


class Frame:
    def __init__(self, kind, flags, stream, body):
        self.kind, self.flags, self.stream, self.body = kind, flags, stream, body

    @property
    def code(self):  # of RST_STREAM, GOAWAY
        return struct.unpack(">I", self.body[4:8] if self.kind == GOAWAY else self.body[:4])[0]


def frame(kind, flags=0, stream=0, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


class Connection:
    def __init__(self, port, window=65535):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.buffer = b""
        self.next_stream = 1
        self.settings = {}
        self.credit = {0: 65535}  # bytes that we may send: in all, and on a stream
        self.kept = []  # frames read while we waited for credit
        settings = struct.pack(">HI", 4, window)
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, body=settings))

    def send(self, data):
        self.socket.sendall(data)

    def headers(self, path, *more):
        """The bytes that open one more call; returns its stream, too."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        fields = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "t")]
        fields += [("content-type", "application/grpc"), ("te", "trailers"), *more]
        self.credit[stream] = self.settings.get(4, 65535)
        return stream, frame(HEADERS, END_HEADERS, stream, self.encoder.encode(fields))

    def send_body(self, stream, body):
        """All of it, as fast as credit comes; less when the answer comes first."""
        while True:
            part = min(len(body), 16384, self.credit[0], self.credit[stream])
            if part or not body:
                self.send(frame(DATA, END_STREAM if part == len(body) else 0, stream, body[:part]))
                body = body[part:]
                self.credit[0] -= part
                self.credit[stream] -= part
                if not body:
                    return
                continue
            got = self.read()
            assert got is not None, "the connection was closed"
            if got.stream == stream and got.kind in (HEADERS, RST_STREAM):
                self.kept.append(got)
                return

    def read(self, within=20.0):
        """The next frame, or None when the peer has closed. TimeoutError after `within`."""
        give_up = time.monotonic() + within
        if self.kept:
            return self.kept.pop(0)
        while True:
            if len(self.buffer) >= 9:
                length = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) >= 9 + length:
                    return self._take(length)
            left = give_up - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self.socket.settimeout(left)
            try:
                more = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return None
            except socket.timeout:
                raise TimeoutError from None
            if not more:
                return None
            self.buffer += more

    def _take(self, length):
        head, body = self.buffer[:9], self.buffer[9 : 9 + length]
        self.buffer = self.buffer[9 + length :]
        got = Frame(head[3], head[4], int.from_bytes(head[5:9], "big") & 0x7FFFFFFF, body)
        if got.kind == SETTINGS and not got.flags & ACK:
            for at in range(0, len(body), 6):
                name, value = struct.unpack(">HI", body[at : at + 6])
                if name == 4:
                    more = value - self.settings.get(4, 65535)
                    self.credit.update((n, c + more) for n, c in self.credit.items() if n)
                self.settings[name] = value
            self.send(frame(SETTINGS, ACK))
        if got.kind == PING and not got.flags & ACK:
            self.send(frame(PING, ACK, 0, body))
        if got.kind == WINDOW_UPDATE and got.stream in self.credit:
            self.credit[got.stream] += struct.unpack(">I", body)[0]
        if got.kind == HEADERS:
            got.fields = dict(self.decoder.decode(body))
        return got

    def close(self):
        self.socket.close()


def message(body, compressed=False):
    return bytes([compressed]) + struct.pack(">I", len(body)) + body


def call(connection, path, body, *more):
    """One call with these body bytes: (status, messages as (flag, bytes), head)."""
    stream, opening = connection.headers(path, *more)
    connection.send(opening)
    connection.send_body(stream, body)
    data, head = b"", None
    while True:
        got = connection.read()
        assert got is not None, "the connection was closed"
        if got.kind == RST_STREAM and got.stream == stream:
            return f"reset {got.code}", [], head
        if got.kind == DATA and got.stream == stream:
            data += got.body
            for which in (0, stream):
                if got.body:
                    connection.send(frame(WINDOW_UPDATE, 0, which, struct.pack(">I", len(got.body))))
        if got.kind == HEADERS and got.stream == stream:
            head = head or got.fields
            if "grpc-status" in got.fields:
                break
    messages = []
    while data:
        length = struct.unpack(">I", data[1:5])[0]
        messages.append((data[0], data[5 : 5 + length]))
        data = data[5 + length :]
    return got.fields["grpc-status"], messages, head


class Server:
    """interop_server with these settings, ended with the block."""

    def __init__(self, build, prefix=(), **settings):
        self.command = [*prefix, f"{build}/test/interop/interop_server"]
        self.command += [f"{name}={value}" for name, value in settings.items()]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        return self

    def __exit__(self, *failure):
        if self.process.poll() is None:
            self.process.terminate()
        self.last_words = self.process.stdout.read().split()
        status = self.process.wait(timeout=30)
        assert failure[0] or status == 0, f"the server ended with {status}"
