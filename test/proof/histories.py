#!/usr/bin/env python3
"""histories: what the model is shown, while everything happens at once (rows M1, M3, R-1).

    test/proof/histories.py [SECONDS [SEED]]        600 without a number

Twelve people talk at once, each in two sessions whose names all of them use, over Converse and
HTTP. Every message carries a mark that stands nowhere else. The model is a server of this test:
it notes the marks of the user messages that each request shows it, and answers with them, in
pieces of many sizes. Beside this

    callers       hang up in the middle of a reply
    keys          of idempotency are used twice, at once and one after the other
    sessions      are erased, and gone on with
    readers       read runs of their own from the start, and try those of others
    memory        is so scarce that idle sessions are dropped and read again
    the daemon    is killed and started again on its data

What must hold: a request shows the marks of its own session since it was last erased, in the order
in which they were said, each once, every one of a turn that had been acknowledged, and the new
one last; only the oldest may be missing, where the turns since then fill the room of a history.
A caller reads exactly what the model said to it. No run can be read by another.
"""
import collections
import http.server
import json
import random
import re
import sys
import tempfile
import threading
import time
import uuid

import clients  # first: it finds the others
import grpc
import harness
import httpx
from agentruntime.v1 import runtime_pb2 as pb
from agentruntime.v1 import runtime_pb2_grpc

MARK = re.compile(r"<<([a-z0-9.-]+)>>")
PEOPLE, SESSIONS = 12, ("morning", "evening")
KILLS_A_MINUTE = 3
HISTORY_BYTES, HISTORY_TURNS = 192 * 1024, 48  # what is left after a drop: session/history.h


def reply(marks):
    """(pieces, seconds between them) of the answer to a request that shows these marks."""
    chance = random.Random(marks[-1])
    pieces = ["I saw " + " ".join(f"({mark})" for mark in marks)]
    pieces += [f"[{marks[-1]}-{n}]".ljust(chance.choice((20, 90, 401, 1500)), "x")
               for n in range(chance.randrange(1, 30))]
    return pieces, chance.choice((0, 0, 0.002, 0.01))


class Model(http.server.ThreadingHTTPServer):
    """Answers each request with the marks that it shows, and remembers them by the last mark."""

    daemon_threads, request_queue_size = True, 256

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.shown = collections.defaultdict(list)  # last mark: the marks of each request
        self.said = collections.defaultdict(list)  # last mark: replies
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = [m["content"] for m in body["messages"] if m["role"] == "user"]
        said = [t if isinstance(t, str) else "".join(p.get("text", "") for p in t) for t in said]
        marks = [MARK.findall(text) for text in said]
        assert all(len(found) == 1 for found in marks), said
        marks = [found[0] for found in marks]
        pieces, pause = reply(marks)
        self.server.shown[marks[-1]].append(marks)
        self.server.said[marks[-1]].append("".join(pieces))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            for piece in pieces:
                self.event({"delta": {"content": piece}})
                time.sleep(pause)
            self.event({"delta": {}, "finish_reason": "stop"})
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            pass  # the daemon hung up, or was killed
        self.close_connection = True

    def event(self, choice):
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                 "choices": [{"index": 0, "finish_reason": None, **choice}]}
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, *args):
        pass


class Session:
    """What was said in one session since it was erased, and which of it was acknowledged."""

    def __init__(self):
        self.said, self.acknowledged = [], set()
        self.in_doubt = False  # a kill came before it was known whether it was erased
        self.runs = []  # (run id, text) of whole turns
        self.sizes = collections.Counter()  # of a turn, by its mark: at most so many bytes

    def may_be_forgotten(self, mark):
        after = self.said[self.said.index(mark):]
        return sum(self.sizes[m] for m in after) > HISTORY_BYTES or len(after) > HISTORY_TURNS

    def problem_with(self, marks):
        """What is wrong with what the model was shown, or None. The last mark is the new one."""
        if len(set(marks)) != len(marks):
            return "a mark twice"
        places = [self.said.index(m) if m in self.said else None for m in marks]
        if None in places:
            return f"foreign or erased: {[m for m in marks if m not in self.said]}"
        if places != sorted(places):
            return "not in order"
        before = [m for m in self.said[:places[-1]] if m in self.acknowledged]
        missing = [m for m in before if m not in marks]
        if missing and (missing != before[:len(missing)] or not self.may_be_forgotten(missing[-1])):
            return f"missing {missing}"
        return None


class Field:
    def __init__(self, weir, model, seed):
        self.weir, self.model, self.seed = weir, model, seed
        self.over = threading.Event()
        self.gate = threading.Condition()  # callers stop at it while the daemon is killed
        self.inside, self.shut = 0, False
        self.counts, self.problems = collections.Counter(), []
        self.known = []  # (owner, run, text): for those who try to read it

    def wrong(self, *what):
        self.problems.append(what)
        self.over.set()


class Person(threading.Thread):
    def __init__(self, field, number):
        super().__init__(daemon=True)
        self.field, self.number = field, number
        self.user, self.workspace = f"user-{number % 6}", f"ws-{number // 6}"
        self.chance = random.Random(f"{field.seed}-{number}")
        self.sessions = {name: Session() for name in SESSIONS}
        self.over_http = {name: Session() for name in SESSIONS}
        self.count = 0

    def token(self):
        return harness.token(self.user, self.workspace)

    def http(self):
        return self.field.weir.http(headers={"authorization": "Bearer " + self.token()}, timeout=120)

    def run(self):
        try:
            while not self.field.over.is_set():
                with self.field.gate:
                    self.field.gate.wait_for(lambda: not self.field.shut)
                    self.field.inside += 1
                try:
                    self.step()
                except (grpc.RpcError, httpx.HTTPError, OSError, ValueError) as failure:
                    if isinstance(failure, ValueError) and "Channel closed" not in str(failure):
                        raise  # grpcio says so of a channel that a kill has closed
                    self.field.counts[f"broken by a kill: {type(failure).__name__}"] += 1
                    if not self.field.shut:
                        self.field.wrong("a call broke without a kill", repr(failure)[:600])
                finally:
                    with self.field.gate:
                        self.field.inside -= 1
                        self.field.gate.notify_all()
        except Exception as failure:  # a fault of this test counts too
            self.field.wrong("the test itself", repr(failure))
            raise

    def step(self):
        name = self.chance.choice(SESSIONS)
        deed = self.chance.choices(
            (self.turn, self.hang_up, self.turn_twice, self.erase, self.read_own, self.read_other),
            (60, 10, 8, 3, 10, 9))[0]
        if self.sessions[name].in_doubt:
            deed = self.erase
        deed(name, self.sessions[name])
        self.field.counts[deed.__name__] += 1

    # --- turns ------------------------------------------------------------------------------

    def new_mark(self, session):
        self.count += 1
        mark = f"p{self.number}.{self.count}.{uuid.UUID(int=self.chance.getrandbits(128)).hex[:8]}"
        session.said.append(mark)
        return mark

    def message(self, session, mark):
        filler = self.chance.choice((0, 0, 10, 10, 300, 300, 5000, 60000))
        text = "y" * filler + f" <<{mark}>> " + "z" * self.chance.choice((0, 3, 70))
        session.sizes[mark] = len(text) + sum(map(len, reply(session.said)[0]))
        return text

    def open(self, name, text):
        metadata = [("authorization", "Bearer " + self.token())]
        request = pb.ConverseRequest(session_id=name, message=text, user_id=self.user,
                                     workspace_id=self.workspace)
        stub = runtime_pb2_grpc.AgentRuntimeStub(self.field.weir.channel())
        return stub.Converse(iter([request]), metadata=metadata, timeout=120)

    def invoke(self, name, text, key):
        """A turn of the user of all callers over HTTP, in a session of this person."""
        body = {"input": text, "session_id": f"{name}-{self.number}"}
        with self.field.weir.http(timeout=120) as http:
            return http.post("/invoke", json=body, headers={"idempotency-key": key})

    def judge(self, session, mark, text):
        """The turn is over and was acknowledged; `text` is what the caller read."""
        for marks in self.field.model.shown[mark]:
            if problem := session.problem_with(marks):
                self.field.wrong(problem, self.user, self.workspace, marks, session.said)
        if text not in self.field.model.said[mark]:
            self.field.wrong("not what the model said", mark, text[:300], self.field.model.said[mark])
        session.acknowledged.add(mark)

    def turn(self, name, session):
        mark = self.new_mark(session)
        events = list(self.open(name, self.message(session, mark)))
        done = events[-1].done
        text = "".join(e.chunk.text for e in events if e.WhichOneof("event") == "chunk")
        if done.model.startswith("ERROR:"):
            self.field.wrong("a turn failed", done.model)
            return
        if done.turns[0].text != text:
            self.field.wrong("its end has another text", mark)
        self.judge(session, mark, text)
        with self.http() as http:
            runs = http.get("/weir/v1/runs", params={"session_id": name}).json()["runs"]
        session.runs.append((runs[-1]["id"], text))
        self.field.known.append((self, runs[-1]["id"]))

    def hang_up(self, name, session):
        call = self.open(name, self.message(session, self.new_mark(session)))
        for _ in range(self.chance.randrange(0, 6)):
            if next(call, None) is None:
                break
        call.cancel()

    def turn_twice(self, name, _):
        """The same request with the same key, at once and once more: one turn, and all read it."""
        session = self.over_http[name]
        mark = self.new_mark(session)
        message, texts = self.message(session, mark), []

        def ask():
            try:
                answer = self.invoke(name, message, f"key-{mark}")
            except httpx.HTTPError as failure:
                self.field.counts[f"twice: {type(failure).__name__}"] += 1
                if not self.field.shut:
                    self.field.wrong("a call broke without a kill", repr(failure))
                return
            if answer.status_code == 200:
                texts.append(answer.json()["output"])
            else:
                self.field.counts[f"twice: {answer.status_code} {answer.text[:60]}"] += 1

        beside = threading.Thread(target=ask)
        beside.start()
        ask()
        beside.join()
        if self.field.shut:
            return
        ask()
        if len(texts) != 3 or len(self.field.model.shown[mark]) != 1:
            if not self.field.shut:
                self.field.wrong("a key", mark, texts, self.field.model.shown[mark])
        for told in texts:
            self.judge(session, mark, told)

    # --- reading and erasing ----------------------------------------------------------------

    def erase(self, name, session):
        before, session.in_doubt = session.in_doubt, True
        with self.http() as http:
            answer = http.delete(f"/weir/v1/sessions/{name}")
        if answer.status_code in (409, 503):  # it is busy: a turn that was left is ending
            session.in_doubt = before
            self.field.counts[f"erase: {answer.status_code}"] += 1
            return
        if answer.status_code not in (200, 204, 404):
            self.field.wrong("erase", answer.status_code, answer.text)
        session.in_doubt = False
        session.said.clear()
        session.acknowledged.clear()
        session.runs.clear()

    def read(self, run):
        with self.http() as http:
            answer = http.get(f"/weir/v1/runs/{run}/events")
        if answer.status_code != 200:
            return answer.status_code, None
        events = [json.loads(line[6:]) for line in answer.text.split("\n") if line.startswith("data: ")]
        return 200, "".join(event["text"] for event in events if event["type"] == "text")

    def read_own(self, name, session):
        if session.runs:
            run, text = self.chance.choice(session.runs)
            status, read = self.read(run)
            if (status, read) != (200, text):
                self.field.wrong("a run reads differently", run, status, text[:200], (read or "")[:200])

    def read_other(self, *_):
        if self.field.known:
            owner, run = self.chance.choice(self.field.known)
            status, _ = self.read(run)
            same = (owner.user, owner.workspace) == (self.user, self.workspace)
            if not same and status != 404:
                self.field.wrong("a run of another can be read", run, status)


def kill(field):
    """Kill the daemon with calls under way, and start it again when all of them know."""
    with field.gate:
        field.shut = True
    field.weir.kill()
    with field.gate:
        field.gate.wait_for(lambda: field.inside == 0, timeout=120)
    field.weir.start()
    with field.gate:
        field.shut = False
        field.gate.notify_all()
    field.counts["kills"] += 1


def settings(model):
    return f"""\
providers:
  - name: house
    kind: openai
    base_url: http://127.0.0.1:{model.server_address[1]}/v1
    key_env: HOUSE_KEY
agents:
  - slug: manager
    model: house/m
limits: {{memory: 64MiB}}
threads: 2
"""


def main(seconds=600, seed=1):
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        weir = harness.Daemon(folder=folder, config=settings(model), env={"HOUSE_KEY": "k"})
        weir.start()
        field = Field(weir, model, seed)
        people = [Person(field, number) for number in range(PEOPLE)]
        for person in people:
            person.start()
        every = min(60 / KILLS_A_MINUTE, seconds / 2.5)  # two of them even in a short run
        ends, next_kill = time.monotonic() + seconds, time.monotonic() + every
        while time.monotonic() < ends and not field.over.wait(0.1):
            if time.monotonic() > next_kill:
                kill(field)
                next_kill = time.monotonic() + every
        field.over.set()
        for person in people:
            person.join(130)
        for what, count in sorted(field.counts.items()):
            print(f"{count:8} {what}")
        for problem in field.problems[:5]:
            print("WRONG", *problem, sep="\n   ")
        stuck = [person.number for person in people if person.is_alive()]
        weir.stop()
    print("histories:", "ok" if not field.problems and not stuck else f"wrong; stuck: {stuck}")
    return 1 if field.problems or stuck else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
