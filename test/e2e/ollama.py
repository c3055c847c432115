"""ollama: a local model server as the tests play it: POST /api/pull and nothing else.

    server = ollama.Server()
    pull = server.pull()            # waits for the daemon's request
    pull.say(status="pulling manifest")
    pull.layer("sha256:aa", total=100, completed=40)
    pull.end()                      # the answer is whole; pull.cut() breaks the connection
    pull.left()                     # waits until the daemon has closed it

What was downloaded of a layer is kept, so that a test can go on where it was.
"""
import http.server
import json
import queue
import socket
import threading

PATIENCE = 90


class Pull:
    """One request, answered line by line."""

    def __init__(self, handler, asked):
        self.handler, self.asked = handler, asked
        self.model = asked["model"]
        self.over = threading.Event()

    def raw(self, data):
        self.handler.wfile.write(data)
        self.handler.wfile.flush()

    def say(self, **line):
        self.raw(json.dumps(line).encode() + b"\n")

    def layer(self, digest, total, completed):
        self.handler.server.kept[digest] = completed
        self.say(status=f"pulling {digest[7:19]}", digest=digest, total=total, completed=completed)

    def success(self):
        self.say(status="verifying sha256 digest")
        self.say(status="writing manifest")
        self.say(status="success")
        self.end()

    def end(self):
        self.over.set()

    def cut(self):
        """With a reset: what follows is lost."""
        self.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.end()

    def left(self):
        self.handler.connection.settimeout(PATIENCE)
        try:
            assert self.handler.connection.recv(1) == b""
        except ConnectionError:
            pass
        self.end()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path != "/api/pull" or self.server.refusal:
            status, body = self.server.refusal or (404, b"404 page not found")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.end_headers()
        pull = Pull(self, asked)
        self.server.pulls.put(pull)
        pull.over.wait(60)

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        self.pulls, self.kept, self.refusal = queue.Queue(), {}, None
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def pull(self):
        return self.pulls.get(timeout=PATIENCE)

    def idle(self):
        return self.pulls.empty()

    def handle_error(self, request, client_address):
        pass

    def close(self):
        self.shutdown()
        self.server_close()
