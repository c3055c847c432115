"""An MCP server over streamable HTTP, without a library, that remembers all it was sent.

    with mcp_http.serve() as server:  {"name": "far", "url": server.url}

server.seen        each request: an object with verb, headers (lower case), body (of a POST)
server.effects     the texts with which `pay` was called
server.tools       the names that it lists; server.tell(method) sends a notification on each stream
server.forget()    it was started again: it knows no session any more, and its streams end
"""
import contextlib
import http.server
import json
import queue
import threading
import time
import types

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
FORM = {"type": "object", "properties": {"name": {"type": "string", "default": "Ada"}}, "required": ["name"]}
END = None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, streams=True, key=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"
        self.streams, self.resumes, self.key = streams, True, key
        self.lock = threading.Lock()
        self.seen, self.effects, self.sessions = [], [], 0
        self.tools = ["pay", "ask", "hang"]
        self.open = {}  # by session: the queue of its stream
        self.known = set()
        self.late = {}  # by event id: the answer that a resumed stream brings
        self.told = {}  # by id: a queue for the client's answer to a question

    def posts(self, method):
        return [s for s in list(self.seen) if s.verb == "POST" and s.body.get("method") == method]

    def gets(self):
        return [s for s in list(self.seen) if s.verb == "GET"]

    def tell(self, method):
        for stream in list(self.open.values()):
            stream.put({"method": method})

    def stream_of(self, session):
        """A busy machine may bring the call before the stream that was opened for it."""
        give_up = time.monotonic() + 20
        while session not in self.open:
            assert time.monotonic() < give_up, f"{session} has no stream"
            time.sleep(0.01)
        return self.open[session]

    def forget(self):
        with self.lock:
            self.known.clear()
            streams, self.open = self.open, {}
        for stream in streams.values():
            stream.put(END)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def answer_json(self, id, result, **headers):
        body = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
        self.answer(200, body, Content_Type="application/json", **headers)

    def begin_events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, data, *fields):
        text = json.dumps({"jsonrpc": "2.0", **data}) if data else ""
        lines = [*fields, f"data: {text}", "", ""]
        self.wfile.write("\n".join(lines).encode())
        self.wfile.flush()

    def session(self):
        return self.headers.get("Mcp-Session-Id")

    def note(self, body=None):
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = types.SimpleNamespace(verb=self.command, headers=headers, body=body)
        self.server.seen.append(request)

    def refused(self):
        """Whether it was: without the key, or with a session that was forgotten."""
        if self.server.key and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            self.answer(401, b"who are you?", WWW_Authenticate="Bearer")
        elif self.session() and self.session() not in self.server.known:
            self.answer(404)
        else:
            return False
        return True

    def do_GET(self):
        self.note()
        late = self.server.late.pop(self.headers.get("Last-Event-ID"), None)
        if self.refused():
            return
        if not self.server.streams and not late:
            self.answer(405)
            return
        self.begin_events()
        if late:
            self.event(late)
            return
        with self.server.lock:
            stream = self.server.open[self.session()] = queue.Queue()
        with contextlib.suppress(OSError):
            self.event(None, f"id: s-{len(self.server.seen)}", "retry: 50")
            while (message := stream.get()) is not END:
                self.event(message)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.note(body)
        method, id = body.get("method"), body.get("id")
        if self.refused():
            return
        if method == "initialize":
            with self.server.lock:
                self.server.sessions += 1
                session = f"session-{self.server.sessions}"
                self.server.known.add(session)
            info = {"name": "far", "version": "1"}
            agreed = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
            self.answer_json(id, agreed, Mcp_Session_Id=session)
        elif method is None:  # an answer of the client
            self.server.told[id].put(body)
            self.answer(202)
        elif id is None:
            self.answer(202)
        elif method == "tools/list":
            tools = [{"name": n, "description": n, "inputSchema": TEXT} for n in self.server.tools]
            self.answer_json(id, {"tools": tools})
        elif method == "tools/call":
            getattr(self, body["params"]["name"])(id, body["params"]["arguments"])
        else:
            error = {"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}
            self.answer(200, json.dumps(error).encode(), Content_Type="application/json")

    def result(self, text):
        return {"content": [{"type": "text", "text": text}]}

    def pay(self, id, args):
        """It has its effect, and breaks off before the answer."""
        self.server.effects.append(args["text"])
        event = f"pay-{args['text']}"
        if self.server.resumes:
            self.server.late[event] = {"id": id, "result": self.result(f"paid {args['text']}")}
        self.begin_events()
        self.event(None, f"id: {event}", "retry: 50")

    def hang(self, _id, _args):
        """It says nothing for longer than anyone waits."""
        self.begin_events()
        self.connection.settimeout(60)
        with contextlib.suppress(OSError):
            self.connection.recv(1)

    def ask(self, id, _args):
        """Asks the user on the stream of the session, and says what it was told."""
        question = f"q-{id}"
        told = self.server.told[question] = queue.Queue()
        params = {"message": "who?", "requestedSchema": FORM}
        asked = {"id": question, "method": "elicitation/create", "params": params}
        self.server.stream_of(self.session()).put(asked)
        answer = told.get(timeout=20)
        self.answer_json(id, self.result(json.dumps(answer.get("result", answer))))


@contextlib.contextmanager
def serve(**options):
    server = Server(**options)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.forget()
        server.shutdown()
        server.server_close()
