"""wires: one conversation over Converse, /invoke or /stream, used the same way.

    talk = wires.open("stream", weir)
    assert talk.ask("hello").output == "Hi."
    with talk.begin("hello", shown="One mom"):     # until so much of the answer is out
        weir.process.kill()

Each wire has a session of its own; what the daemon keeps of it is asked over /weir/v1.
"""
import contextlib
import dataclasses
import http.client
import json
import time

import crawbl
import harness

PATIENCE = 90
NAMES = ("converse", "invoke", "stream")


@dataclasses.dataclass
class Told:
    """What a caller was told of one turn."""

    text: str  # all deltas; of /invoke the output
    output: str  # the reply that ended the turn
    error: str = None  # "CODE: message" of a turn that failed
    history: list = None  # the tools, where the wire names them
    turn: crawbl.Turn = None  # the events, on Converse


class Talk:
    """One session on one wire."""

    user, workspace = "anonymous", "default"

    def __init__(self, weir, session):
        self.weir, self.session = weir, session or crawbl.new_session()
        self.headers = {"authorization": "Bearer " + harness.token(self.user, self.workspace)}

    def body(self, text):
        return {"input": text, "session_id": self.session}

    # --- what the daemon keeps ----------------------------------------------------------

    def get(self, path, **params):
        with self.weir.http(headers=self.headers) as http:
            return http.get("/weir/v1" + path, params=params)

    def runs(self):
        """The runs of the session, the newest last."""
        return self.get("/runs", session_id=self.session).json()["runs"]

    def events(self, run=None):
        """The events of a run that is over, the newest one unless it is named."""
        text = self.get(f"/runs/{run or self.runs()[-1]['id']}/events").text
        return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]

    def export(self):
        """The events of the session, oldest first."""
        answer = self.get(f"/sessions/{self.session}/export")
        assert answer.status_code == 200, answer.text
        return [json.loads(line)["event"] for line in answer.text.splitlines()]

    def running(self):
        """The run that is under way, once it is."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            newest = self.runs()[-1:]
            if newest and newest[0]["state"] in ("queued", "running"):
                return newest[0]["id"]
            time.sleep(0.005)
        raise AssertionError(f"no run of {self.session} is under way: {newest}")

    def over(self):
        """The newest run, once it has ended."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            newest = self.runs()[-1:]
            if newest and newest[0]["state"] in ("done", "failed", "cancelled"):
                return newest[0]
            time.sleep(0.005)
        raise AssertionError(f"a run of {self.session} does not end: {newest}")

    def watch(self, run, enough):
        """Read the events of a run under way until there are enough of them."""
        found = []
        with self.weir.http(headers=self.headers) as http:
            with http.stream("GET", f"/weir/v1/runs/{run}/events") as answer:
                for line in answer.iter_lines():
                    if line.startswith("data: "):
                        found.append(json.loads(line[6:]))
                        if enough(found):
                            return found
        raise AssertionError(f"run {run} ended before: {found}")

    def cancel(self):
        """Cancel the run that is under way, by its id."""
        with self.weir.http(headers=self.headers) as http:
            answer = http.post(f"/weir/v1/runs/{self.running()}/cancel")
        assert answer.status_code == 202, answer.text

    # --- how a turn is begun --------------------------------------------------------------

    @contextlib.contextmanager
    def begin(self, text, shown=None, tool=None):
        """A turn under way: of its answer so much is shown, or this tool is called. Leaving the
        block hangs up."""

        def enough(events):
            if tool:
                return any(e["type"] == "tool_call" and e["tool"] == tool for e in events)
            return "".join(e["text"] for e in events if e["type"] == "text") == shown

        with self.opened(text) as caller:
            self.watch(self.running(), enough)
            if shown and caller.shows:
                caller.wait_for(shown)
            yield caller


class Converse(Talk):
    user, workspace = crawbl.USER, crawbl.WORKSPACE

    def ask(self, text, **fields):
        turn = crawbl.one_turn(self.weir, text, session_id=self.session, **fields)
        output = turn.done.turns[-1].text if turn.done.turns else ""
        return Told(turn.text, output, turn.error, turn=turn)

    @contextlib.contextmanager
    def opened(self, text):
        stream = crawbl.open_stream(self.weir)
        stream.send(text, session_id=self.session)
        try:
            yield ConverseCaller(stream)
        finally:
            stream.call.cancel()


class ConverseCaller:
    shows = True

    def __init__(self, stream):
        self.stream, self.events = stream, []

    def wait_for(self, text):
        while crawbl.Turn(self.events).text != text:
            self.events.append(self.stream.next())

    def rest(self):
        """What the caller is told of a turn that ends by itself."""
        turn = crawbl.Turn(self.events + self.stream.turn().events)
        return Told(turn.text, "", turn.error, turn=turn)


class Invoke(Talk):
    path = "/invoke"

    def ask(self, text):
        with self.opened(text) as caller:
            return caller.rest()

    @contextlib.contextmanager
    def opened(self, text):
        port = self.weir.port("http")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        body = json.dumps(self.body(text))
        connection.request("POST", self.path, body, {"content-type": "application/json"})
        with contextlib.closing(connection):
            yield self.caller(connection)

    def caller(self, connection):
        return InvokeCaller(connection)


class InvokeCaller:
    shows = False

    def __init__(self, connection):
        self.connection = connection

    def rest(self):
        said = json.loads(self.connection.getresponse().read())
        if "error" in said:
            return Told("", "", f"{said['error']['code']}: {said['error']['message']}")
        return Told(said["output"], said["output"], history=said["history"])


class Stream(Invoke):
    path = "/stream"

    def caller(self, connection):
        return StreamCaller(connection)


class StreamCaller(InvokeCaller):
    shows = True

    def __init__(self, connection):
        super().__init__(connection)
        self.answer, self.text, self.error, self.result = None, "", None, {}

    def read(self):
        """One event; False after the last."""
        self.answer = self.answer or self.connection.getresponse()
        name = None
        for line in iter(self.answer.readline, b""):
            if line == b"data: [DONE]\n":
                assert self.answer.read() == b"\n", "something came after [DONE]"
                return False
            if line.startswith(b"event: "):
                name = line[7:].strip()
            if line.startswith(b"data: "):
                self.take(name, json.loads(line[6:]))
                return True
        raise AssertionError("the stream ended without [DONE]")

    def take(self, name, data):
        if name is None:
            self.text += data["delta"]
        if name == b"error":
            self.error = data["error"]
        if name == b"result":
            self.result = data

    def wait_for(self, text):
        while self.text != text:
            assert self.read(), f"the stream ended after {self.text!r}"

    def rest(self):
        self.answer = self.answer or self.connection.getresponse()
        if self.answer.status != 200:  # refused before it began
            error = json.loads(self.answer.read())["error"]
            return Told("", "", f"{error['code']}: {error['message']}")
        while self.read():
            pass
        result = self.result
        return Told(self.text, result.get("output", ""), self.error, result.get("history"))


WIRES = {"converse": Converse, "invoke": Invoke, "stream": Stream}


def open(name, weir, session=None):
    """A conversation of its own over this wire."""
    return WIRES[name](weir, session)


def on_disk(weir, words):
    """Wait until what was said is in the store: what a kill may take is over then."""
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        if any(words.encode() in file.read_bytes() for file in weir.data.iterdir()):
            return
        time.sleep(0.01)
    raise AssertionError(f"{words!r} is not on disk")


def killed(weir):
    """kill -9, and started again on the same data."""
    weir.kill()
    weir.start()
