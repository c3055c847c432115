#!/usr/bin/env python3
"""kills: a daemon killed again and again at random moments under fifty clients (rows R-1, R-6).

    test/proof/kills.py [COUNT [SEED]]        1,000 without a number

Fifty clients hold a Converse stream each and ask numbered questions in a session of their own
until the daemon is killed. After each kill it is started again on the same data and asked over
HTTP what it knows: every turn whose done event had come is there once and with its whole text,
none is there twice, a turn that was under way is done with its whole text or failed as
interrupted, and what was found after an earlier kill is as it was. It is ready within a second,
and neither that time nor the write-ahead log grows with the number of kills. At the end SQLite
checks every page.
"""
import asyncio
import contextlib
import http.client
import json
import os
import pathlib
import random
import sqlite3
import statistics
import sys
import tempfile
import time

import clients  # first: it finds the others
import grpc
import harness
from agentruntime.v1 import runtime_pb2 as pb
from agentruntime.v1 import runtime_pb2_grpc

CLIENTS = 50
CONNECTIONS = 5  # the clients' streams share them
ROUNDS_OF_A_SESSION = 4
LISTED_RUNS = 100  # of a session, at most
READY_S = float(os.environ.get("WEIR_SLACK", 1))  # more for a machine that is busy otherwise
ENOUGH_TO_COMPARE = 50  # starts
WAL_MAX_BYTES = 12 << 20  # it is folded at 8 MiB
LONGEST_LIFE_S = 0.4

SCRIPT = """\
script: 1
pace: {every: 4ms, chunk: 12}
agents:
  - slug: manager
tools:
  - name: look_up
    after: 20ms
    result: {found: "it"}
scenes:
  - match: with a tool
    replies:
      - - tool_call: {tool: look_up, args: {}}
      - - text: "You said: {input}. It found {result.found}."
  - reply: "You said: {input}. That was all there is to say, and it is said in pieces."
"""


def question(session, number):
    return f"{session} {number}" + (" with a tool" if number % 2 == 0 else "")


def whole_answer(session, number):
    said = question(session, number)
    if number % 2 == 0:
        return f"You said: {said}. It found it."
    return f"You said: {said}. That was all there is to say, and it is said in pieces."


class Session:
    """What one client asked, and what it was told."""

    def __init__(self, name):
        self.name = name
        self.asked = 0
        self.acknowledged = set()
        self.found = []  # (id, number, state) as the daemon said after the last kill

    async def talk(self, channel):
        """Ask until nobody answers any more."""
        stub = runtime_pb2_grpc.AgentRuntimeStub(channel)
        call = stub.Converse(metadata=harness.Daemon.metadata())
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
            while True:
                await self._one_turn(call)

    async def _one_turn(self, call):
        self.asked += 1
        number = self.asked
        await call.write(
            pb.ConverseRequest(
                workspace_id="ws-1",
                user_id="user-1",
                session_id=self.name,
                message=question(self.name, number),
            )
        )
        text = ""
        while True:
            event = await call.read()
            if event is grpc.aio.EOF:
                raise asyncio.InvalidStateError
            if event.WhichOneof("event") == "chunk":
                text += event.chunk.text
            if event.WhichOneof("event") == "done":
                break
        assert not event.done.model.startswith("ERROR"), event.done.model
        assert text == whole_answer(self.name, number), text
        self.acknowledged.add(number)


class Witness:
    """Asks the daemon over HTTP, on one connection."""

    def __init__(self, weir):
        self._peer = http.client.HTTPConnection("127.0.0.1", weir.port("http"), timeout=10)
        self._headers = {"authorization": "Bearer " + harness.token()}

    def _get(self, path):
        self._peer.request("GET", path, headers=self._headers)
        answer = self._peer.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body)
        return body

    def runs(self, session):
        return json.loads(self._get(f"/weir/v1/runs?session_id={session}"))["runs"]

    def events(self, run):
        """(name, data) of each event of a run that is over."""
        found = []
        for block in self._get(f"/weir/v1/runs/{run}/events").decode().split("\n\n"):
            lines = [line for line in block.split("\n") if line and not line.startswith(":")]
            fields = dict(line.split(": ", 1) for line in lines)
            if "data" in fields:
                found.append((fields["event"], json.loads(fields["data"])))
        return found

    def close(self):
        self._peer.close()


def check_run(witness, session, run, number):
    """A run that the last kill left: done and whole, or interrupted."""
    events = witness.events(run["id"])
    assert [data["seq"] for _, data in events] == list(range(1, len(events) + 1)), events
    text = "".join(data["text"] for name, data in events if name == "text")
    whole = whole_answer(session.name, number)
    ends = [name for name, _ in events if name in ("done", "failed", "cancelled")]
    assert len(ends) == 1 and events[-1][0] == ends[0], events
    if run["state"] == "done":
        assert ends == ["done"] and text == whole, (text, whole)
        return
    assert run["state"] == "failed" and run["interrupted"], run
    assert number not in session.acknowledged, f"turn {number} was acknowledged: {run}"
    assert ends == ["failed"] and whole.startswith(text), (text, whole)


def check_session(witness, session):
    """Returns how many of its turns a kill interrupted this time."""
    runs = witness.runs(session.name)
    assert len(runs) < LISTED_RUNS, "older turns would not be listed"
    numbers = [int(run["text"].split()[1]) for run in runs]
    assert [run["text"] for run in runs] == [question(session.name, n) for n in numbers]
    assert numbers == sorted(set(numbers)), f"{session.name}: {numbers}"
    missing = session.acknowledged - set(numbers)
    assert not missing, f"{session.name}: {missing} were acknowledged and are gone"
    assert not numbers or numbers[-1] <= session.asked
    found = [(run["id"], number, run["state"]) for run, number in zip(runs, numbers)]
    settled = len(session.found)
    assert found[:settled] == session.found, f"{session.name}: what was settled has changed"
    for run, number in zip(runs[settled:], numbers[settled:]):
        check_run(witness, session, run, number)
    session.found = found
    return sum(run["interrupted"] for run in runs[settled:])


class Proof:
    """One data folder, and what happened on it so far."""

    def __init__(self, folder, seed):
        folder = pathlib.Path(folder)
        play = folder / "play.yaml"
        play.write_text(SCRIPT)
        self.weir = harness.Daemon(folder, config=f"script: {play}\n").start()
        self._chance = random.Random(seed)
        self._sessions = []
        self.kills = self.acknowledged = self.interrupted = 0
        self.starts, self.wals = [], []

    def round(self):
        if self.kills % ROUNDS_OF_A_SESSION == 0:
            name = f"k{self.kills}"
            self._sessions = [Session(f"{name}-{i}") for i in range(CLIENTS)]
        before = sum(len(s.acknowledged) for s in self._sessions)
        asyncio.run(self._load_and_kill())
        self.acknowledged += sum(len(s.acknowledged) for s in self._sessions) - before
        self.kills += 1
        self.wals.append((self.weir.data / "weir.db-wal").stat().st_size)
        began = time.monotonic()
        self.weir.start()
        self.starts.append(time.monotonic() - began)
        witness = Witness(self.weir)
        self.interrupted += sum(check_session(witness, s) for s in self._sessions)
        witness.close()

    async def _load_and_kill(self):
        options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
        channels = [
            grpc.aio.insecure_channel(self.weir.target, options=options)
            for _ in range(CONNECTIONS)
        ]
        clients = [
            asyncio.create_task(session.talk(channels[i % CONNECTIONS]))
            for i, session in enumerate(self._sessions)
        ]
        await asyncio.sleep(self._chance.random() * LONGEST_LIFE_S)
        self.weir.kill()
        await asyncio.wait_for(asyncio.gather(*clients), 20)
        for channel in channels:
            await channel.close()

    def finish(self, ready_s=READY_S):
        """What holds for all rounds together."""
        self.weir.stop()
        slowest, largest = max(self.starts), max(self.wals)
        assert self.acknowledged > 0 and self.interrupted > 0
        assert slowest < ready_s, f"ready only after {slowest:.2f} s"
        assert largest < WAL_MAX_BYTES, f"the write-ahead log has {largest} bytes"
        tenth = max(len(self.starts) // 10, 1)
        first = statistics.median(self.starts[:tenth])
        last = statistics.median(self.starts[-tenth:])
        few = self.kills < ENOUGH_TO_COMPARE
        assert few or last < 2 * first + 0.1, f"a start took {first:.3f} s at first, now {last:.3f} s"
        uri = f"file:{self.weir.data}/weir.db?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as store:
            assert store.execute("pragma integrity_check").fetchall() == [("ok",)]
            assert store.execute("select count(*) from run where state = 0").fetchone() == (0,)
        return (
            f"{self.kills} kills, {self.acknowledged} acknowledged turns, none lost or doubled; "
            f"{self.interrupted} interrupted; ready in {statistics.median(self.starts) * 1e3:.0f} "
            f"ms, at most {slowest * 1e3:.0f} (first tenth {first * 1e3:.0f}, last "
            f"{last * 1e3:.0f}); write-ahead log at most {largest / 2**20:.1f} MiB"
        )


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"kills: {count} of them, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="weir-kills-") as folder:
        proof = Proof(folder, seed)
        try:
            while proof.kills < count:
                proof.round()
                if proof.kills % 50 == 0:
                    print(f"kills: {proof.kills}, {proof.acknowledged} turns", flush=True)
            print("kills: " + proof.finish())
        finally:
            proof.weir.kill()


if __name__ == "__main__":
    main()
