"""A small server of the Runtime Contract v1 that can break one rule at a time.

    python wrong_runtime.py --port 8080 [--fault ID] [--loading PATH...]

Without a fault it keeps every rule of the contract. A fault is a row of FAULTS, named for the
check of `weir validate` that must find it: a function that changes one reply of the good server.
Nothing here is ours but the faults: the server is Python's own http.server.
"""
import argparse
import http.server
import json
import os
import select
import socket
import socketserver
import threading
import time
import uuid

VERSION = "X-Runtime-Contract-Version"
STREAM = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
STREAM |= {"X-Accel-Buffering": "no", "Connection": "keep-alive"}
RESERVED = {
    "trace_id": "t",
    "tokens": {"input": 1, "output": 2, "total": 3},
    "cost_usd": 0.5,
    "model": "m",
    "latency_ms": 4,
}


class Ask:
    """One request, read."""

    def __init__(self, method, path, headers, body):
        self.method, self.path, self.headers, self.body = method, path, headers, body
        try:
            self.json = json.loads(body)
        except ValueError:
            self.json = None

    @property
    def input(self):
        return self.json.get("input") if isinstance(self.json, dict) else None

    def is_turn(self, path="/invoke"):
        """A good request to run the agent, on this path."""
        good = self.method == "POST" and self.path == path and self.input is not None
        return good and not isinstance(self.json.get("session_id", ""), int)


class Reply:
    """status and headers; `body` is a JSON value, or `events` the texts of a stream."""

    def __init__(self, status, body=None, events=None):
        self.status, self.body, self.events = status, body, events
        self.headers = {VERSION: "1"}
        self.headers |= STREAM if events is not None else {"Content-Type": "application/json"}
        self.raw = None  # bytes instead of the body
        self.hang = False  # never answer
        self.close = False  # hang up without an answer
        self.drip = False  # send a body that never ends, a byte at a time


def error(status, code, message):
    return Reply(status, {"error": {"code": code, "message": message}})


def refusal(status, code, message):
    reply = error(status, code, message)
    reply.body["detail"] = message
    if status == 401:
        reply.headers["WWW-Authenticate"] = "Bearer"
    return reply


def event(value, name=None):
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(value)}\n\n"


END = "data: [DONE]\n\n"


class Agent:
    """The contract, kept.

    It loads until the paths of `loading` were answered, in this order.
    """

    def __init__(self, token="", loading=(), sidecar=False):
        self.token, self.loading, self.sidecar = token, list(loading), sidecar
        self.threads = set()

    def answer(self, ask):
        reply = self.choose(ask)
        if self.loading and self.loading[0] == ask.path:
            self.loading.pop(0)
        return reply

    def choose(self, ask):
        open_paths = {
            "/health": self.health,
            "/openapi.json": self.openapi,
            "/.well-known/agent.json": self.card,
        }
        closed = {"/invoke": self.invoke, "/stream": self.stream, "/resume": self.resume}
        if ask.path in open_paths:
            if ask.method != "GET":
                return error(405, "METHOD_NOT_ALLOWED", "GET it")
            return open_paths[ask.path]()
        if ask.path not in closed:
            return error(404, "NOT_FOUND", "there is nothing here")
        if ask.method != "POST":
            return error(405, "METHOD_NOT_ALLOWED", "POST it")
        return self.refuse(ask) or closed[ask.path](ask)

    def refuse(self, ask):
        """What is wrong with a request, or None."""
        wanted = ask.headers.get(VERSION, "1").strip()
        given = ask.headers.get_all("Authorization") or []
        if self.token and (not given or not given[0].startswith("Bearer ")):
            return refusal(401, "UNAUTHORIZED", "Missing bearer token")
        if self.token and given != ["Bearer " + self.token]:
            return refusal(403, "FORBIDDEN", "Invalid bearer token")
        if wanted != "1":
            return error(400, "UNSUPPORTED_CONTRACT_VERSION", "only 1")
        if self.loading:
            reply = error(503, "AGENT_NOT_LOADED", "Agent not loaded yet")
            reply.headers["Retry-After"] = "5"
            return reply
        if ask.headers.get_content_type() != "application/json":
            return error(400, "INVALID_INPUT", "send JSON")
        if ask.json is None:
            return error(400, "INVALID_INPUT", "malformed JSON")
        if not isinstance(ask.json, dict):
            return error(422, "INVALID_INPUT", "an object is needed")
        if ask.path == "/resume":
            return None
        if "input" not in ask.json:
            return error(400, "INVALID_INPUT", "input is missing")
        if not isinstance(ask.json.get("session_id", ""), str):
            return error(422, "INVALID_INPUT", "session_id must be a string")
        return None

    def health(self):
        status = "loading" if self.loading else "healthy"
        return Reply(200, {"status": status, "agent_name": "small", "version": "1.0.0"})

    def openapi(self):
        info = {"title": "small", "version": "1", "x-agentbreeder-runtime-contract": "1"}
        paths = {path: {} for path in ("/health", "/invoke", "/stream")}
        return Reply(200, {"openapi": "3.1.0", "info": info, "paths": paths})

    def card(self):
        endpoints = {"invoke": "/invoke", "stream": "/stream", "health": "/health"}
        return Reply(200, {"name": "small", "version": "1.0.0", "endpoints": endpoints})

    def session(self, ask):
        return ask.json.get("session_id") or ask.headers.get("X-Session-Id") or str(uuid.uuid4())

    def output(self, ask):
        return ask.input if isinstance(ask.input, str) else json.dumps(ask.input)

    def invoke(self, ask):
        if ask.input == "boom":
            return error(500, "INTERNAL_ERROR", "it broke")
        session = self.session(ask)
        body = {"output": self.output(ask), "session_id": session, "metadata": {}}
        if ask.input == "human":
            self.threads.add(session)
            body |= {"metadata": {"interrupted": True}, "thread_id": session}
        return Reply(200, body | (RESERVED if self.sidecar else {}))

    def stream(self, ask):
        if ask.input == "boom":
            events = [event({"delta": "it "}), event({"error": "broke"}, "error"), END]
            return Reply(200, events=events)
        text = self.output(ask)
        events = [event({"description": "thinks"}, "step")]
        events += [event({"name": "look", "args": {"at": "it"}}, "tool_call")]
        events += [event({"delta": text[:2]}), event({"delta": text[2:]})]
        events += [event({"output": text}, "result")]
        events += [event(RESERVED, "done")] if self.sidecar else []
        return Reply(200, events=events + [END])

    def resume(self, ask):
        thread = ask.json.get("thread_id")
        if thread not in self.threads:
            return error(404, "THREAD_NOT_FOUND", "no run waits under this name")
        self.threads.remove(thread)
        return Reply(200, {"output": "resumed", "session_id": thread, "metadata": {}})


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port, agent, fault=None):
        super().__init__(("127.0.0.1", port), Handler)
        self.agent, self.fault = agent, (FAULTS | ODD)[fault] if fault else None
        self.turns, self.dead = 0, False
        self.left = threading.Event()  # no client is being listened for
        self.left.set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *ignored):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass  # a client that hung up


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *ignored):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def respond(self):
        server = self.server
        ask = Ask(self.command, self.path, self.headers, self.body())
        reply = server.agent.answer(ask)
        if server.fault:
            server.fault(server, ask, reply)
        if reply.hang:
            time.sleep(30)
        if reply.hang or reply.close:
            self.close_connection = True
            return
        if reply.raw is not None:
            self.wfile.write(reply.raw)
            self.close_connection = True
            return
        self.send_response_only(reply.status)
        body = None if reply.events is not None else json.dumps(reply.body).encode()
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header(*(("Content-Length", len(body) + 999999 * reply.drip) if body is not None else ("Transfer-Encoding", "chunked")))
        self.end_headers()
        while reply.drip:
            self.wfile.write(b" ")
            time.sleep(0.05)
        if body is not None:
            self.wfile.write(body)
            return
        for text in reply.events:
            if callable(text):
                text(self)
                continue
            piece = text.encode(errors="surrogateescape")  # "\udcff" is the byte 0xFF
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_HEAD = do_PUT = respond


# --- the faults -----------------------------------------------------------------------------

FAULTS = {}
ODD = {}  # what a server may do


def fault(name):
    def keep(function):
        FAULTS[name] = function
        return function

    return keep


def on(name, when, change):
    """The fault `name` changes the replies to requests for which `when` holds."""

    def apply(server, ask, reply):
        if when(ask, reply):
            change(reply)

    FAULTS[name] = apply


def path(wanted):
    return lambda ask, reply: ask.path == wanted


def good(wanted):
    return lambda ask, reply: ask.path == wanted and reply.status == 200


def set_body(**values):
    return lambda reply: reply.body.update(values)


def drop_body(*names):
    return lambda reply: [reply.body.pop(name, None) for name in names]


def set_status(status):
    def change(reply):
        reply.status = status

    return change


def become(status, body=None, code="NO"):
    """Another reply, with the envelope or with this body."""

    def change(reply):
        reply.status, reply.events, reply.raw = status, None, None
        reply.body = body if body is not None else {"error": {"code": code, "message": "no"}}
        reply.headers["Content-Type"] = "application/json"

    return change


def set_header(name, value):
    return lambda reply: reply.headers.update({name: value})


def drop_header(name):
    return lambda reply: reply.headers.pop(name, None)


def served(body=None):
    """A turn where there should be a refusal."""

    def change(reply):
        reply.status, reply.body = 200, body or {"output": "in", "session_id": "s", "metadata": {}}
        reply.headers["Content-Type"] = "application/json"

    return change


def header(ask, name):
    return ask.headers.get(name)


def status(wanted, at="/invoke"):
    return lambda ask, reply: reply.status == wanted and ask.path == at


# /health
on("HLTH-01", path("/health"), set_status(404))
on("HLTH-02", path("/health"), set_body(status="fine"))
on("HLTH-02 no object", path("/health"), become(200, ["healthy"]))
on("HLTH-03", path("/health"), drop_body("version"))
on("HLTH-03 legacy", path("/health"), lambda reply: reply.body.update(agent=reply.body.pop("agent_name")))
on("HLTH-04", path("/health"), set_body(status="ok"))
on("HLTH-05", lambda a, r: a.path == "/health" and header(a, "Authorization"), become(403))
on("HLTH-06", lambda a, r: a.path in ("/health", "/.well-known/agent.json"), set_body(version="newest"))
on("HLTH-07", lambda a, r: a.path == "/health" and header(a, VERSION) == "2", become(400))
# The agent is loading, and this is its first answer; see Agent.loading.
on("LOAD-01", status(503), served())
on("LOAD-01 stream", status(503, "/stream"), served())
on("LOAD-02", lambda a, r: r.status == 503, drop_header("Retry-After"))

# Documents
on("OAPI-01", path("/openapi.json"), set_body(openapi="2.0"))
on("OAPI-01 closed", path("/openapi.json"), become(401))
on("OAPI-02", path("/openapi.json"), lambda r: r.body["info"].pop("x-agentbreeder-runtime-contract"))
on("OAPI-03", path("/openapi.json"), lambda r: r.body["paths"].pop("/stream"))
on("CARD-01", path("/.well-known/agent.json"), set_body(endpoints={"invoke": {"path": "/invoke"}}))
on("CARD-02", path("/.well-known/agent.json"), set_body(name="another"))
on("CARD-02 path", path("/.well-known/agent.json"), lambda r: r.body["endpoints"].update(a2a="/a2a"))

# Authentication
on("AUTH-01", lambda a, r: r.status == 401 and a.path == "/invoke" and not header(a, "Authorization"), served())
on("AUTH-02", status(401, "/resume"), become(400))
on("AUTH-03", lambda a, r: r.status == 403 and "wrong" in header(a, "Authorization") and len(a.headers.get_all("Authorization")) == 1, lambda r: (set_status(401)(r), set_header("WWW-Authenticate", "Bearer")(r)))
on("AUTH-04", lambda a, r: header(a, "Authorization") in ("Bearer", "Bearer "), served())
on("AUTH-05", lambda a, r: (header(a, "Authorization") or "").startswith("Basic"), set_status(403))
for guarded in ("stream", "resume"):
    at = path("/" + guarded)
    on(f"AUTH-03 {guarded}", lambda a, r, at=at: at(a, r) and "wrong" in (header(a, "Authorization") or ""), become(404))
    on(f"AUTH-04 {guarded}", lambda a, r, at=at: at(a, r) and header(a, "Authorization") in ("Bearer", "Bearer "), served() if guarded == "stream" else become(404))
    on(f"AUTH-05 {guarded}", lambda a, r, at=at: at(a, r) and (header(a, "Authorization") or "").startswith("Basic"), become(404))
on("AUTH-07", lambda a, r: r.status in (401, 403), lambda r: r.__setattr__("body", {"problem": "no"}))
on("AUTH-09", lambda a, r: r.status == 401, drop_header("WWW-Authenticate"))


@fault("AUTH-06")
def _(server, ask, reply):
    """It takes the right token only where nothing else is judged: everywhere but on /invoke."""
    if ask.path == "/invoke" and reply.status not in (401, 403, 404, 405):
        become(403)(reply)


@fault("AUTH-09 prefix")
def _(server, ask, reply):
    given = header(ask, "Authorization") or ""
    if ask.path == "/invoke" and len(given) > 10 and server.agent.token.startswith(given[7:]) and reply.status == 403:
        served()(reply)


@fault("AUTH-09 twice")
def _(server, ask, reply):
    given = ask.headers.get_all("Authorization") or []
    if len(given) == 2 and given[0] == "Bearer " + server.agent.token:
        served()(reply)


# /invoke
def turn(when=lambda ask: True, at="/invoke"):
    return lambda ask, reply: ask.is_turn(at) and reply.status == 200 and when(ask)


plain = turn(lambda ask: set(ask.json) == {"input"} and ask.input == "ping" and not ask.headers.get("X-Session-Id"))
on("INVK-01", turn(), become(500))
on("INVK-01 hangs", turn(), lambda r: r.__setattr__("hang", True))
on("INVK-02", turn(), set_body(output=None))
on("INVK-03", turn(lambda a: isinstance(a.input, dict)), become(400))
on("INVK-04", turn(lambda a: a.input == "ping"), set_body(metadata=[]))
on("INVK-05", turn(lambda a: a.json.get("session_id") and not header(a, "X-Session-Id") and "thread_id" not in a.json), set_body(session_id="another"))
on("INVK-06", turn(lambda a: not a.json.get("session_id") and not header(a, "X-Session-Id")), set_body(session_id="the same"))
on("INVK-06 none", turn(lambda a: not a.json.get("session_id") and not header(a, "X-Session-Id")), drop_body("session_id"))
on("INVK-07", turn(lambda a: header(a, "X-Session-Id") and not a.json.get("session_id")), set_body(session_id="another"))
on("INVK-07 beaten", turn(lambda a: header(a, "X-Session-Id") and a.json.get("session_id")), set_body(session_id="another"))
on("INVK-08", turn(), set_body(latency_ms=3))
on("INVK-09", turn(lambda a: "config" in a.json), become(422))
on("INVK-10", turn(lambda a: isinstance(a.input, str) and "\0" in a.input), become(500))
on("INVK-10 long", turn(lambda a: len(str(a.input)) > 1000000), lambda r: r.__setattr__("close", True))
on("INVK-11", turn(), set_body(output={"text": "ping"}))

# Errors
is_bad_json = lambda ask: ask.json is None and header(ask, "Content-Type") == "application/json"
on("ERRS-01", lambda a, r: a.path == "/invoke" and r.status == 400 and is_bad_json(a), become(404))
on("ERRS-02", lambda a, r: a.path == "/invoke" and r.status == 400 and a.json == {}, become(404))
on("ERRS-03", lambda a, r: a.path == "/invoke" and r.status == 422, become(404))
on("ERRS-04", lambda a, r: header(a, "Content-Type") == "text/plain", become(415))
on("ERRS-05", lambda a, r: a.path == "/invoke" and r.status == 400 and a.json == {}, become(400, {"detail": "no"}))
on("ERRS-05 stream", lambda a, r: a.path == "/stream" and r.status == 400 and a.json is None, become(400, {"detail": "no"}))
on("ERRS-06", turn(lambda a: True), lambda r: None)
on("ERRS-06", lambda a, r: r.status == 500, become(500, {"detail": "it broke"}))
on("ERRS-06 status", lambda a, r: r.status == 500, served())
on("ERRS-07", lambda a, r: r.status == 405, become(404))
on("ERRS-08", turn(lambda a: "tokens" in str(a.json) or header(a, "X-Trace-Id")), lambda r: None)
on("ERRS-08", turn(lambda a: a.input != "ping" and isinstance(a.input, str) and "\0" in a.input), become(429))


# /stream
def stream(change, at="ping"):
    def apply(server, ask, reply):
        if ask.path == "/stream" and reply.events is not None and ask.input == at:
            change(reply)

    return apply


def events(change):
    return stream(lambda reply: reply.__setattr__("events", change(reply.events)))


ODD["lines end in CR"] = events(lambda all: [text.replace("\n", "\r") for text in all])
ODD["lines end in CR LF"] = events(lambda all: [text.replace("\n", "\r\n") for text in all])
ODD["byte order mark"] = events(lambda all: ["\ufeff"] + all)
ODD["a byte at a time"] = events(lambda all: list("".join(all)))

FAULTS["STRM-01"] = stream(set_header("Content-Type", "text/plain"))
FAULTS["STRM-01 longer"] = stream(set_header("Content-Type", "text/event-streams"))
FAULTS["STRM-01 501"] = stream(become(501))
FAULTS["STRM-02"] = events(lambda all: all[:1] + ["delta: x\n\n"] + all[1:])
FAULTS["STRM-02 bytes"] = events(lambda all: all[:1] + [": \udcff\n\n"] + all[1:])
FAULTS["STRM-02 CR"] = events(lambda all: all[:1] + ["data: {\"delta\":\"\"}\rdelta: x\n\n"] + all[1:])
FAULTS["STRM-03"] = events(lambda all: all[:-1])
FAULTS["STRM-03 twice"] = events(lambda all: all + [END])
FAULTS["STRM-03 follows"] = events(lambda all: all + [event({"delta": "ping"})])
FAULTS["STRM-03 cut"] = events(lambda all: all[:-1] + ["data: [DONE]\n"])
FAULTS["STRM-03 endless"] = events(lambda all: all + [lambda handler: time.sleep(20)])
FAULTS["STRM-04"] = events(lambda all: all[:1] + ["data: {delta\n\n"] + all[1:])
FAULTS["STRM-04 key"] = events(lambda all: all[:1] + [event({"content": "x"})] + all[1:])
FAULTS["STRM-05"] = events(lambda all: [text.replace('"delta"', '"text"') if callable(getattr(text, "replace", None)) else text for text in all])
FAULTS["STRM-06"] = events(lambda all: all[:1] + [event({"text": "x"}, "step")] + all[1:])
FAULTS["STRM-06 unknown"] = events(lambda all: all[:1] + [event({}, "thought")] + all[1:])
FAULTS["STRM-07"] = stream(drop_header("Cache-Control"))
FAULTS["STRM-08"] = stream(drop_header("X-Accel-Buffering"))
FAULTS["STRM-07 twice"] = stream(set_header("Cache-Control", "no-cache\r\nCache-Control: max-age=60"))
FAULTS["STRM-08 twice"] = stream(set_header("X-Accel-Buffering", "no\r\nX-Accel-Buffering: yes"))
FAULTS["STRM-08 connection"] = stream(drop_header("Connection"))
FAULTS["STRM-09"] = stream(lambda r: r.__setattr__("events", r.events[:-1]), "boom")
FAULTS["STRM-09 JSON"] = stream(become(200, {"error": "it broke"}), "boom")
FAULTS["STRM-13"] = events(lambda all: [text.replace('"output": "ping"', '"output": "pong"') for text in all])
on("STRM-10", lambda a, r: a.path == "/stream" and r.status == 401, set_header("Content-Type", "text/plain"))
FAULTS["STRM-11"] = events(lambda all: [lambda handler: time.sleep(1.3)] + all)


@fault("STRM-12")
def _(server, ask, reply):
    """A client that hangs up on a stream ends it."""

    def look(handler):
        readable, _, _ = select.select([handler.connection], [], [], 0.3)
        if readable and handler.connection.recv(1, socket.MSG_PEEK) == b"":
            server.dead = True
        server.left.set()

    if ask.path == "/health":
        server.left.wait(5)
        reply.close, server.dead = server.dead, False
    if ask.is_turn("/stream") and reply.events:
        server.left.clear()
        reply.events = reply.events[:1] + [look] + reply.events[1:]


# /resume
on("RSME-01", lambda a, r: a.path == "/resume" and (a.json or {}).get("thread_id") == "" and r.status == 404, become(422))
on("RSME-02", lambda a, r: r.status == 404 and str((a.json or {}).get("thread_id")).endswith("-nobody"), become(422))
on("RSME-02 served", lambda a, r: r.status == 404 and str((a.json or {}).get("thread_id")).endswith("-nobody"), served())
on("RSME-04", lambda a, r: a.path == "/resume" and r.status == 404, become(404, {"detail": "no"}))
on("RSME-05", lambda a, r: a.path == "/resume" and r.status == 200, become(500))
on("RSME-05 pause", turn(lambda a: a.input == "human"), set_body(metadata={}))


@fault("RSME-03")
def _(server, ask, reply):
    """An empty thread is one that it knows, and its reply has no output."""
    if ask.path == "/resume" and (ask.json or {}).get("thread_id") == "" and reply.status == 404:
        served({"session_id": ""})(reply)


# Headers
on("VERS-01", good("/health"), set_header(VERSION, "2"))
on("VERS-01 twice", good("/invoke"), set_header(VERSION, f"1\r\n{VERSION}: 2"))
on("VERS-02", lambda a, r: r.status == 401, drop_header(VERSION))
on("VERS-03", lambda a, r: r.status == 400 and header(a, VERSION) == "2" and a.path == "/invoke", served())
on("VERS-03 stream", lambda a, r: r.status == 400 and header(a, VERSION) == "2" and a.path == "/stream", served())
on("HDRS-01", path("/health"), set_header("Content-Type", "text/html"))
on("HDRS-01 longer", path("/health"), set_header("Content-Type", "application/json5"))
on("HDRS-02", turn(lambda a: header(a, "X-Trace-Id")), become(400))
on("HDRS-02 chunked", turn(lambda a: header(a, "Transfer-Encoding")), become(411))
on("HDRS-02 expect", turn(lambda a: header(a, "Expect")), become(417))


@fault("HDRS-02 closes")
def _(server, ask, reply):
    if ask.is_turn() and reply.status == 200:
        reply.headers["Connection"] = "close"


# Behind a sidecar
on("SIDE-01", turn(), lambda reply: reply.body.pop("cost_usd", None))
FAULTS["SIDE-01 done"] = events(lambda all: [text for text in all if "event: done" not in text])


# Of a server that `weir validate` starts
@fault("BOOT-01")
def _(server, ask, reply):
    """It never says that it is ready."""
    if ask.path == "/health":
        reply.body["status"] = "loading"


@fault("BOOT-02")
def _(server, ask, reply):
    if ask.path == "/health" and not server.turns:
        server.turns = 1
        become(500)(reply)


@fault("BOOT-03")
def _(server, ask, reply):
    pass  # see main()


@fault("AUTH-08")
def _(server, ask, reply):
    if not server.agent.token and ask.path == "/stream" and not header(ask, "Authorization"):
        become(401)(reply)


@fault("SIDE-02")
def _(server, ask, reply):
    """It exports a span of each turn, although the sidecar does."""
    collector = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if ask.is_turn() and collector and os.environ.get("AGENTBREEDER_SIDECAR_ACTIVE") == "1":
        host, port = collector.removeprefix("http://").split(":")
        socket.create_connection((host, int(port)), 5).close()


# Servers that no check in particular is for
on("garbage", path("/health"), lambda r: r.__setattr__("raw", b"SSH-2.0-OpenSSH_9.2\r\n"))
on("silent", lambda a, r: True, lambda r: r.__setattr__("hang", True))
on("drips", turn(), lambda r: r.__setattr__("drip", True))
FAULTS["STRM-03 flood"] = events(lambda all: (event({"delta": "x" * 100000}) for _ in range(100)))
on("closes", lambda a, r: a.path != "/health", lambda r: r.__setattr__("close", True))
on("head without end", lambda a, r: a.path == "/invoke", lambda r: r.__setattr__("raw", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 60000))
on("leaks", lambda a, r: r.status == 404, lambda r: r.__setattr__("body", {"error": {"code": "no", "message": "\x1b[2J sk-proj-abcdefghijklmnopqrstuvwxyz0123456789 \x9b"}}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=int(os.environ.get("PORT") or 8080))
    parser.add_argument("--fault")
    parser.add_argument("--loading", nargs="*", default=[])
    told = parser.parse_args()
    agent = Agent(os.environ.get("AGENT_AUTH_TOKEN", ""), told.loading)
    Server(told.port, agent, told.fault).serve_forever()


if __name__ == "__main__":
    main()
