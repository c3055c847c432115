"""rogue: a server that misbehaves as it is told, for tests of agents elsewhere.

The input of a turn names the way. `asked` holds each request: path, headers, body.
"""
import contextlib
import http.server
import json
import threading
import time

PATIENCE = 20


def frame(data, event=None):
    text = data if isinstance(data, str) else json.dumps(data)
    return ((f"event: {event}\n" if event else "") + f"data: {text}\n\n").encode()


DONE = frame("[DONE]")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            self.server.asked.append((self.path, dict(self.headers), body))
        way = body.get("input") or body["messages"][-1]["content"]
        way = getattr(self, way.split()[0])
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            way()

    def whole(self, status, value, kind="application/json", **headers):
        data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def stream(self, *pieces, end=True):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.piece(piece)
        if end:
            self.piece(b"")

    def piece(self, data):
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def leave(self):
        self.close_connection = True

    def wait(self):
        self.server.over.wait(PATIENCE)
        self.leave()

    def halves(self):
        """A smile, cut between two events, and half of one."""
        texts = ("a \ud83d", "\ude00 b", " \ud83d c")
        if "messages" in self.server.asked[-1][2]:
            chunks = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
            chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            self.stream(*map(frame, chunks), DONE)
        else:
            self.stream(*(frame({"delta": text}) for text in texts), DONE)

    # --- before the first byte

    def early(self):
        self.leave()

    def hang(self):
        self.wait()

    def page(self):
        self.whole(200, "<html>welcome</html>", "text/html")

    def broken(self):
        self.whole(500, {"error": {"code": "INTERNAL_ERROR", "message": "a bolt is loose"}})

    def detail(self):
        self.whole(422, {"detail": [{"msg": "no field"}]})

    def busy(self):
        self.whole(503, {"detail": "Agent not loaded yet"}, **{"retry-after": "5"})

    def stranger(self):
        self.whole(403, {"detail": "Invalid bearer token"})

    # --- after it

    def text(self):
        self.stream(frame({"text": "in "}), frame({"delta": "two"}), frame({"is_final": True}), DONE)

    def endless(self):
        """No [DONE], as some servers end."""
        self.stream(frame({"delta": "all"}))

    def late(self):
        """What comes after the end is nobody's."""
        self.stream(frame({"delta": "all"}), DONE, frame({"error": "late"}, "error"), DONE)

    def cut(self):
        self.stream(frame({"delta": "half"}), end=False)
        self.leave()

    def after(self):
        self.stream(frame({"delta": "half"}), frame({"error": "NOT_FOUND: gone"}, "error"), DONE)

    def implicit(self):
        self.stream(frame({"error": "why not"}), DONE)

    def empty(self):
        self.stream()

    def nonsense(self):
        self.stream(frame("this is no JSON"), DONE)

    def stall(self):
        self.stream(frame({"delta": "half"}), end=False)
        self.wait()

    def drip(self):
        self.stream(frame({"delta": "half"}), b"data: ", end=False)
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            self.piece(b"x")
            time.sleep(0.05)

    def comments(self):
        """It is alive, and says nothing."""
        self.stream(end=False)
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            self.piece(b": keep-alive\n\n")
            time.sleep(0.05)

    def blanks(self):
        """The same for an answer that is no stream."""
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            self.piece(b" \n")
            time.sleep(0.05)

    def beats(self):
        """Comments between the pieces of an answer hurt nobody."""
        self.stream(*[b": keep-alive\n\n", frame({"delta": "all"})], end=False)
        for _ in range(4):
            self.piece(b": keep-alive\n\n")
            time.sleep(0.05)
        self.piece(DONE)
        self.piece(b"")

    def line(self):
        self.stream(b"data: ", end=False)
        for _ in range(16384):  # 1 GiB
            self.piece(b"x" * 65536)

    def flood(self):
        self.stream(end=False)
        piece = frame({"delta": "x" * 65000})
        for _ in range(16384):
            self.piece(piece)

    def chatter(self):
        self.stream(end=False)
        piece = b": nothing\n\n" * 6000 + frame({}, "other")  # it is not silent
        for _ in range(16384):
            self.piece(piece)

    def log_message(self, *args):
        pass


class Rogue(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, handler=Handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.asked, self.lock, self.over = [], threading.Lock(), threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass
