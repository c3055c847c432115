"""orchestrator: the other side of a blueprint and of MCP, as the tests play it.

    with Orchestrator() as orchestrator:
        orchestrator.agents["ws-1"] = [agent("manager", role="manager", prompt="You manage.")]
        orchestrator.tools["greet"] = lambda args, headers: "hello " + args["name"]

It answers `GET /v1/internal/agents` and MCP calls on one port of the loopback, refuses tokens that
are not valid, and remembers every request. With `sessions` it hands out a session and wants it
back, as servers that keep state do; with `events` it answers as server-sent events. Each answer
waits for `slow_seconds`.
"""
import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import socket
import threading
import time
import urllib.parse

import harness


def agent(slug, role="sub-agent", prompt="", tools=None, model="auto", description=""):
    return {
        "slug": slug,
        "role": role,
        "system_prompt": prompt,
        "description": description,
        "allowed_tools": tools,
        "model": model,
    }


def open_token(header):
    """(user, workspace, unix seconds) of an authorization header, or an AssertionError."""
    scheme, _, text = header.partition(" ")
    assert scheme == "Bearer"
    payload, _, signature = text.partition(".")
    key = harness.SIGNING_KEY.encode()
    assert hmac.new(key, payload.encode(), hashlib.sha256).hexdigest() == signature
    plain = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)).decode()
    user, workspace, at = plain.split(":")
    assert abs(time.time() - int(at)) <= 300
    return user, workspace, int(at)


class Request:
    def __init__(self, handler, body):
        self.path = handler.path
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        self.body = json.loads(body) if body else None
        self.token = self.headers.get("authorization", "")
        self.user, self.workspace, self.at = open_token(self.token)

    @property
    def method(self):
        return self.body["method"] if self.body else self.path.split("?")[0]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        request = self.server.double.note(self, b"")
        asked = urllib.parse.parse_qs(self.path.partition("?")[2])["workspace_id"][0]
        if asked != request.workspace:
            return self.answer(403, "text/plain", "")
        agents = self.server.double.agents.get(asked)
        if agents is None:
            return self.answer(404, "text/plain", "")
        named = self.server.double.named or asked
        body = {"workspace_id": named, "agents": agents}
        return self.answer(200, "application/json", json.dumps(body))

    def do_POST(self):
        double = self.server.double
        request = double.note(self, self.rfile.read(int(self.headers["content-length"])))
        if request.method != "initialize" and double.sessions:
            if request.headers.get("mcp-session-id") not in double.open_sessions:
                return self.answer(404, "text/plain", "session not found")
        if "id" not in request.body:
            return self.answer(202, "", "")
        text = json.dumps({"jsonrpc": "2.0", "id": request.body["id"], **self.result(request)})
        if double.events and request.method != "initialize":
            return self.answer(200, "text/event-stream", f"event: message\ndata: {text}\n\n")
        return self.answer(200, "application/json", text)

    def result(self, request):
        double, params = self.server.double, request.body.get("params", {})
        if request.method == "initialize":
            return {"result": {"protocolVersion": params["protocolVersion"], "capabilities": {}}}
        if request.method == "tools/list":
            page = int(params.get("cursor", 0))
            names = sorted(double.tools)
            tools = [{"name": n, "inputSchema": {"type": "object"}} for n in names[page : page + 1]]
            more = {"nextCursor": str(page + 1)} if page + 1 < len(names) else {}
            return {"result": {"tools": tools, **more}}
        said = double.tools[params["name"]](params["arguments"], request)
        return {"result": {"content": [{"type": "text", "text": said}]}}

    def answer(self, status, kind, text):
        body = text.encode()
        self.send_response(status)
        if kind:
            self.send_header("content-type", kind)
        if self.server.double.sessions and self.command == "POST":
            self.send_header("mcp-session-id", self.server.double.new_session())
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 512

    def process_request(self, request, client_address):
        self.connections.append(request)
        super().process_request(request, client_address)

    def hang_up(self):
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request, client_address):
        self.double.broken.append(client_address)


class Orchestrator:
    def __init__(self, sessions=False, events=False):
        self.agents, self.tools, self.requests = {}, {}, []
        self.sessions, self.events, self.named = sessions, events, None
        self.open_sessions, self.broken = [], []
        self.slow_seconds = 0  # before each answer
        self.port = 0
        self.server = None
        self.start()

    def start(self):
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.server.double, self.server.connections = self, []
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.hang_up()
            self.server.server_close()
            self.server = None

    def new_session(self):
        self.open_sessions.append(f"session-{len(self.open_sessions)}")
        return self.open_sessions[-1]

    def note(self, handler, body):
        request = Request(handler, body)
        self.requests.append(request)
        time.sleep(self.slow_seconds)
        return request

    def of(self, method):
        return [request for request in self.requests if request.method == method]

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}/mcp/v1"

    @property
    def env(self):
        return {"CRAWBL_MCP_ENDPOINT": self.endpoint}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
