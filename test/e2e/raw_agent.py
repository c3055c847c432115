"""An agent on a bare socket that does exactly as it is told, for tests of the sidecar.

A test sets `way`: a function of the connection, which writes bytes, waits, or leaves. `asked` holds each
request as it came: method, target, headers (names in lower case), body. After an answer it closes the
connection without having said so, unless it is made to keep them.
"""
import contextlib
import json
import queue
import socket
import threading

PATIENCE = 30


class Asked:
    def __init__(self, head, body):
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = lines[0].split(" ")
        self.headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            self.headers.setdefault(name.lower(), []).append(value.strip())
        self.body = body

    def header(self, name):
        return ", ".join(self.headers[name]) if name in self.headers else None

    @property
    def json(self):
        return json.loads(self.body)


class Link:
    """One connection, and the request that came on it."""

    def __init__(self, sock):
        self.sock = sock
        self.kept = b""
        self.closed = threading.Event()  # the peer has closed it
        self.requests = 0

    def _more(self):
        data = self.sock.recv(65536)
        if not data:
            raise ConnectionError("the peer left")
        self.kept += data

    def _take(self, count):
        while len(self.kept) < count:
            self._more()
        taken, self.kept = self.kept[:count], self.kept[count:]
        return taken

    def _line(self):
        while b"\r\n" not in self.kept:
            self._more()
        line, self.kept = self.kept.split(b"\r\n", 1)
        return line

    def head(self):
        while b"\r\n\r\n" not in self.kept:
            self._more()
        head, self.kept = self.kept.split(b"\r\n\r\n", 1)
        return head

    def pieces(self, asked):
        """The body, as its pieces arrive."""
        if asked.header("transfer-encoding") == "chunked":
            while size := int(self._line(), 16):
                yield self._take(size)
                self._take(2)
            self._line()
        elif left := int(asked.header("content-length") or 0):
            while left:
                if not self.kept:
                    self._more()
                piece = self._take(min(left, len(self.kept)))
                left -= len(piece)
                yield piece

    def send(self, *pieces):
        for piece in pieces:
            self.sock.sendall(piece if isinstance(piece, bytes) else piece.encode())

    def answer(self, value, status="200 OK", kind="application/json", **headers):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {text}" for name, text in headers.items()]
        self.send("\r\n".join(lines) + "\r\n\r\n", body)

    def stream(self, *pieces, kind="text/event-stream; charset=utf-8", end=True):
        self.send(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in pieces:
            self.piece(piece)
        if end:
            self.send("0\r\n\r\n")

    def piece(self, data):
        data = data if isinstance(data, bytes) else data.encode()
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def reset(self):
        """Close it so that the peer gets RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()

    def wait_closed(self):
        """Until the peer closes its end."""
        self.sock.settimeout(PATIENCE)
        with contextlib.suppress(ConnectionError):
            while self.sock.recv(65536):
                pass
        self.closed.set()


def event(data, name=None):
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "") + f"data: {text}\n\n"


DONE = event("[DONE]")


def say(link):
    """As an agent that knows its manners."""
    said = None
    with contextlib.suppress(ValueError):
        said = link.asked.json.get("input")
    if link.asked.target == "/stream":
        link.stream(event({"delta": f"you said: {said}"}), event({"output": said}, "result"), DONE)
    else:
        link.answer({"output": f"you said: {said}", "session_id": "s"})


class Agent:
    """keeps   connections stay open after an answer, until `way` returns True"""

    def __init__(self, keeps=False):
        self.keeps = keeps
        self.asked = []
        self.links = queue.Queue()  # of turns, as they come
        self.way = say
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(PATIENCE)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
                self.threads.append(thread)
                thread.start()

    def _serve(self, sock):
        with sock, contextlib.suppress(ConnectionError, BrokenPipeError, OSError):
            link = Link(sock)
            while not self._serve_one(link) and self.keeps:
                pass

    def _serve_one(self, link):
        asked = Asked(link.head(), b"")
        if asked.target == "/health":
            link.answer({"status": "healthy", "agent_name": "raw", "version": "1.0.0"})
            return False
        link.asked = asked
        link.requests += 1
        asked.on_connection = link.requests
        if not getattr(self.way, "reads_itself", False):
            asked.body = b"".join(link.pieces(asked))
        self.asked.append(asked)
        self.links.put(link)
        return self.way(link)

    @property
    def last(self):
        return self.asked[-1]

    def link(self):
        """The next turn's connection."""
        return self.links.get(timeout=PATIENCE)
