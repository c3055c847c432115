"""vendors: real providers' APIs, for a test to play.

What a model says is told to @copilotkit/aimock (test/e2e/node), an independent mock of the vendors'
APIs. Between it and the daemon stands a Relay of ours: it keeps each request as it came, and can do
to an answer on its way what networks and vendors do: cut it, hold it, replace it.

    vendors.say("m", "Hello", call("calculator", {"expression": "6*7"}, id="c1"))
    vendors.relay.spoil(cut(after=2))          # the next answer only
    vendors.asked[0].body["messages"]          # as the vendor got it

Each model name has its own list of replies, played in order; asked more often, it answers 503.
"""
import collections
import contextlib
import dataclasses
import http.client
import http.server
import json
import pathlib
import select
import shutil
import socket
import subprocess
import threading

import crawbl
import harness
import httpx

NODE = pathlib.Path(__file__).parent / "node"
PATIENCE = 90
CANARY = "canary5ecre7"
KEY = f"sk-{CANARY}"

# kind of provider -> path of its API below the vendor's address, and the model's own name
KINDS = {
    "openai": ("/v1", "gpt-5-mini"),
    "openai-responses": ("/v1", "gpt-5-mini"),
    "anthropic": ("", "claude-sonnet-4-5"),
    "gemini": ("/v1beta", "gemini-2.5-flash"),
}


# --- what a model says ---------------------------------------------------------------------


def call(name, arguments, id=None):
    """One call of a tool; a reply is a text, a call, a list of calls, or a fixture's response."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"name": name, "arguments": text, **({"id": id} if id else {})}


def response(reply):
    if isinstance(reply, str):
        return {"content": reply}
    if isinstance(reply, list):
        reply = {"toolCalls": reply}
    if "arguments" in reply:
        reply = {"toolCalls": [reply]}
    return reply


def refuse(status, message="no", type="error", **fields):
    return {"error": {"message": message, "type": type}, "status": status, **fields}


class Aimock:
    """The process of the mock; one serves all tests of a module."""

    def __init__(self):
        script = [shutil.which("node"), str(NODE / "aimock.js")]
        self.process = subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())
        self.control = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}/__aimock", trust_env=False, timeout=PATIENCE, verify=harness.NO_TLS
        )

    def stop(self):
        self.control.close()
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE)
        self.process.stdout.close()


# --- what happens to an answer on its way -------------------------------------------------


class Gone(Exception):
    """Whoever asked has closed the connection."""


def cut(after):
    """The stream ends in order after so many events."""

    def play(answer):
        answer.start()
        for event in answer.events(after):
            answer.send(event)
        answer.end()

    return play


def reset(after):
    """The connection breaks after so many events."""

    def play(answer):
        answer.start()
        for event in answer.events(after):
            answer.send(event)
        answer.reset()

    return play


def hold(after=None):
    """After so many events nothing more comes; without a number not even a status."""

    def play(answer):
        if after is not None:
            answer.start()
            for event in answer.events(after):
                answer.send(event)
        answer.wait_until_gone()

    return play


def insert(text, after):
    """This text, then the end of the stream, instead of what comes after so many events."""

    def play(answer):
        answer.start()
        for event in answer.events(after):
            answer.send(event)
        answer.send(text.encode())
        answer.end()

    return play


def rewrite(old, new):
    """The answer with other bytes in its events."""

    def play(answer):
        answer.start()
        changed = 0
        for event in answer.events():
            changed += event.count(old)
            answer.send(event.replace(old, new))
        answer.end()
        assert changed, "nothing to rewrite"

    return play


def instead(status, text, kind="application/json", **headers):
    """Another answer altogether."""

    def play(answer):
        answer.whole(status, text, {"content-type": kind, **headers})

    return play


@dataclasses.dataclass
class Asked:
    """A request as the vendor got it."""

    path: str
    headers: dict
    raw: bytes
    gone: threading.Event  # set once whoever asked left before the answer was over

    @property
    def body(self):
        return json.loads(self.raw)


class Answer:
    """An answer between the vendor and whoever asked."""

    def __init__(self, handler, upstream, stop):
        self.handler, self.upstream, self.stop = handler, upstream, stop

    def start(self):
        self.handler.send_response(self.upstream.status)
        for name, value in self.upstream.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection", "date"):
                self.handler.send_header(name, value)
        self.handler.send_header("transfer-encoding", "chunked")
        self.handler.end_headers()

    def events(self, count=None):
        """The vendor's events, each with the empty line that ends it."""
        found, event = 0, b""
        while count is None or found < count:
            line = self.upstream.readline()
            if not line:
                break
            event += line
            if line == b"\n":
                yield event
                found, event = found + 1, b""
        if event:
            yield event

    def send(self, data):
        try:
            self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.handler.wfile.flush()
        except OSError:
            raise Gone from None

    def end(self):
        with contextlib.suppress(OSError):
            self.handler.wfile.write(b"0\r\n\r\n")

    def whole(self, status, text, headers):
        self.handler.send_response(status)
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.send_header("content-length", str(len(text.encode())))
        self.handler.end_headers()
        self.handler.wfile.write(text.encode())

    def reset(self):
        linger = b"\1\0\0\0\0\0\0\0"  # on, 0 s: closing sends RST
        self.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.handler.close_connection = True
        self.handler.connection.close()

    def is_gone(self):
        readable, _, _ = select.select([self.handler.connection], [], [], 0.05)
        try:
            return bool(readable) and not self.handler.connection.recv(1, socket.MSG_PEEK)
        except ConnectionResetError:  # something that was sent had not been read
            return True

    def wait_until_gone(self):
        while not self.stop.is_set():
            if self.is_gone():
                raise Gone

    def through(self):
        self.start()
        for event in self.events():
            self.send(event)
        self.end()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.do_POST()

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.path, headers, raw, threading.Event())
        with self.server.lock:
            self.server.asked.append(asked)
            play = self.server.spoils.popleft() if self.server.spoils else Answer.through
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.upstream, timeout=PATIENCE)
        try:
            upstream.request(self.command, self.path, raw, {**headers, "connection": "close"})
            play(Answer(self, upstream.getresponse(), self.server.stop))
        except Gone:
            asked.gone.set()
            self.close_connection = True
        finally:
            upstream.close()

    def handle_one_request(self):
        with contextlib.suppress(OSError, ValueError):
            return super().handle_one_request()
        self.close_connection = True

    def log_message(self, *args):
        pass


class Relay(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream, self.asked, self.spoils = upstream, [], collections.deque()
        self.lock, self.stop = threading.Lock(), threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def spoil(self, *plays):
        """What happens to the next answers, one each; None leaves one as it is."""
        self.spoils.extend(play or Answer.through for play in plays)

    def close(self):
        self.stop.set()
        self.shutdown()
        self.server_close()


class Vendors:
    """All vendors at one address, for one test."""

    def __init__(self, aimock):
        self.aimock = aimock
        self.aimock.control.post("/reset").raise_for_status()
        self.relay = Relay(aimock.port)

    @property
    def asked(self):
        return self.relay.asked

    @property
    def url(self):
        return f"http://127.0.0.1:{self.relay.server_port}"

    def say(self, model, *replies, **options):
        """The replies of a model, in order; options are aimock's (chunkSize, latency, ...)."""
        fixtures = [
            {
                "match": {"model": model, "sequenceIndex": at},
                "response": response(reply),
                **options,
            }
            for at, reply in enumerate(replies)
        ]
        answer = self.aimock.control.post("/fixtures", json={"fixtures": fixtures})
        assert answer.status_code == 200, answer.text

    def provider(self, kind, name="house", **settings):
        """One entry of `providers:`."""
        path, _ = KINDS[kind]
        entry = {"name": name, "kind": kind, "base_url": self.url + path, "key_env": "HOUSE_KEY"}
        return {**entry, **settings}


def settings(provider, agents, **more):
    """A weir.yaml: JSON is YAML."""
    providers = provider if isinstance(provider, list) else [provider]
    return json.dumps({"providers": providers, "agents": agents, **more}, indent=1)


# --- callers of the Runtime Contract --------------------------------------------------------


@dataclasses.dataclass
class Sse:
    status: int
    events: list  # (event, data), without the terminator

    def of(self, kind):
        return [data for name, data in self.events if name == kind]

    @property
    def text(self):
        return "".join(data["delta"] for data in self.of("message") if "delta" in data)


def stream(weir, text, **body):
    """POST /stream, up to its end: exactly one [DONE], and last."""
    with weir.http() as http:
        answer = http.post("/stream", json={"input": text, **body})
    assert answer.headers["content-type"] == "text/event-stream", answer.text
    found = []
    for frame in answer.text.split("\n\n")[:-1]:
        lines = dict(line.split(": ", 1) for line in frame.split("\n") if line[:1] != ":")
        if lines:
            found.append((lines.get("event", "message"), lines["data"]))
    assert [data for _, data in found].count("[DONE]") == 1, answer.text
    assert found.pop() == ("message", "[DONE]"), answer.text
    return Sse(answer.status_code, [(name, json.loads(data)) for name, data in found])


def invoke(weir, text, **body):
    with weir.http() as http:
        return http.post("/invoke", json={"input": text, **body})


def journal(weir, session):
    """The events of the last run of a session that came over Converse."""
    name = {"authorization": "Bearer " + harness.token(crawbl.USER, crawbl.WORKSPACE)}
    with weir.http(headers=name) as http:
        runs = http.get("/weir/v1/runs", params={"session_id": session}).json()["runs"]
        return http.get(f"/weir/v1/runs/{runs[-1]['id']}/events").text


def no_key_in(weir, *things):
    """The canary stands nowhere: not in what a caller saw, the log, nor the store's files."""
    for thing in things:
        assert CANARY not in str(thing)
    for path in weir.folder.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes(), path
