#!/usr/bin/env python3
"""effects: a daemon killed again and again while its tools are out (design.md, "The run").

    test/proof/effects.py [COUNT [SEED]]        2,000 without a number

A model on loopback has each turn call a search on loopback, and every GET there is an effect
outside of the daemon: the search counts who was asked what. Six clients ask over Converse, each
in a session of its own, and the daemon is killed at a random moment around the time at which
the search is reached: before the call is recorded, before it is made, while it is out, before
its answer is recorded, after. Then it is started again, and

    no question reached the search more often than calls of it were recorded as made,
    each recorded call has one result: the search's, or that its effect is unknown,
    the next request to the model in that session says so for each unknown one,
    and nothing is called again by itself, now or later.
"""
import asyncio
import collections
import json
import random
import sys
import tempfile
import time

import clients  # first: it finds the others
import grpc
import harness
import kills
import vendor as vendors
from agentruntime.v1 import runtime_pb2 as pb
from agentruntime.v1 import runtime_pb2_grpc

CLIENTS = 6
ROUNDS_OF_A_SESSION = 4
SLOWEST_SEARCH_S = 0.006
PATIENCE_S = 20
ENOUGH_TO_EXPECT_ALL = 50  # kills: then each kind of moment was hit


# What is recorded of a call whose answer is lost: a search may be made again, others may not.
LOST = ("unknown", "harmless")


class Call:
    """One call of the search as the daemon recorded it."""

    def __init__(self, data):
        self.id = data["call_id"]
        self.question = data["args"]["query"]
        self.results = []

    @property
    def unknown(self):
        return any(result.get("effect") in LOST for result in self.results)


def calls_of(events):
    """The calls of a run by their ids, each with what was recorded as its result."""
    calls = {}
    for name, data in events:
        if name == "tool_call":
            assert data["call_id"] not in calls, f"{data['call_id']} was recorded twice"
            calls[data["call_id"]] = Call(data)
        if name == "tool_result":
            calls[data["call_id"]].results.append(data["result"])
            assert data["error"] == (data["result"].get("effect") in LOST), data
    return calls


class Session:
    def __init__(self, name):
        self.name = name
        self.runs = set()  # those that were looked at
        self.unknown = {}  # call id -> question, of all rounds
        self.told = set()  # ids of those that the model has been told

    def look(self, witness):
        """The calls of the runs that are new since the last kill."""
        found = []
        for run in witness.runs(self.name):
            if run["id"] in self.runs:
                continue
            self.runs.add(run["id"])
            assert run["state"] in ("done", "failed"), run
            events = witness.events(run["id"])
            calls = list(calls_of(events).values())
            for call in calls:
                assert len(call.results) == 1, f"{run['id']}: {call.id} has {call.results}"
                if call.unknown:
                    assert run["interrupted"], run
                    self.unknown[call.id] = call.question
            found += calls
        return found


def tool_messages(body):
    """What a request to the model says of each call."""
    return {m["tool_call_id"]: m["content"] for m in body["messages"] if m["role"] == "tool"}


class Proof:
    def __init__(self, folder, seed):
        self._chance = random.Random(seed)
        self.vendor = vendors.Vendor()
        self.vendor.search_gate = self._on_search
        self.weir = harness.Daemon(
            folder, config=self.vendor.config(), env={"HOUSE_KEY": vendors.KEY}
        ).start()
        self._sessions = []
        self._lead_s = 0.05  # from the first question to the search, as it was lately
        self._asked_at = self._reached_at = None
        self.kills = 0
        self.recorded = collections.Counter()  # calls, by question
        self.outcomes = collections.Counter()

    def stop(self):
        self.weir.kill()
        self.vendor.stop()

    def _on_search(self, _):
        self._reached_at = self._reached_at or time.monotonic()
        time.sleep(self._chance.random() * SLOWEST_SEARCH_S)

    # --- one round --------------------------------------------------------------------

    def round(self):
        if self.kills % ROUNDS_OF_A_SESSION == 0:
            self._sessions = [Session(f"e{self.kills}-{i}") for i in range(CLIENTS)]
        asyncio.run(self._ask_and_kill())
        self.kills += 1
        self.vendor.drain()
        before = len(self.vendor.searches)
        self.weir.start()
        witness = kills.Witness(self.weir)
        for session in self._sessions:
            for call in session.look(witness):
                self.recorded[call.question] += 1
                self._count(call)
        witness.close()
        self._check_effects()
        asyncio.run(self._ask_on())
        self.vendor.drain()
        assert len(self.vendor.searches) == before, "a call was made by itself"

    def _count(self, call):
        had = "had" if call.question in self.vendor.searches else "did not have"
        kind = f"unknown, {had} its effect" if call.unknown else "answered"
        assert call.unknown or had == "had", f"{call.question} was answered by nobody"
        self.outcomes[kind] += 1

    def _check_effects(self):
        for question, count in collections.Counter(self.vendor.searches).items():
            recorded = self.recorded[question]
            assert count <= recorded, f"'{question}': {count} effects of {recorded} calls"

    async def _ask_and_kill(self):
        self._asked_at, self._reached_at = time.monotonic(), None
        clients = [
            asyncio.create_task(self._turn(session, f"{session.name} {self.kills} with a search"))
            for session in self._sessions
        ]
        await asyncio.sleep(self._lead_s * self._chance.uniform(0.3, 2.2))
        self.weir.kill()
        answers = await asyncio.wait_for(asyncio.gather(*clients), PATIENCE_S)
        self.outcomes["turns that were over"] += sum(answers)
        if self._reached_at:
            self._lead_s += (self._reached_at - self._asked_at - self._lead_s) / 4
        else:
            self._lead_s *= 1.1

    async def _turn(self, session, text):
        """Whether the turn came to its end."""
        options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(self.weir.target, options=options) as channel:
            stub = runtime_pb2_grpc.AgentRuntimeStub(channel)
            call = stub.Converse(metadata=harness.Daemon.metadata())
            request = pb.ConverseRequest(
                workspace_id="ws-1", user_id="user-1", session_id=session.name, message=text
            )
            try:
                await call.write(request)
                while True:
                    event = await call.read()
                    if event is grpc.aio.EOF:
                        return False
                    if event.WhichOneof("event") == "done":
                        assert not event.done.model.startswith("ERROR"), event.done.model
                        return True
            except (grpc.RpcError, asyncio.InvalidStateError):
                return False

    # --- asking on --------------------------------------------------------------------

    async def _ask_on(self):
        """Whatever became unknown is told to the model with the next question of its session."""
        waiting = [s for s in self._sessions if set(s.unknown) - s.told]
        texts = [f"{session.name} {self.kills} what came of it?" for session in waiting]
        turns = asyncio.gather(*map(self._turn, waiting, texts))
        done = await asyncio.wait_for(turns, PATIENCE_S)
        assert all(done), f"a session could not go on\n{self.weir.log()[-2000:]}"
        asked = {vendors.text_of(body["messages"][-1]): body for body in self.vendor.asked}
        for session, text in zip(waiting, texts):
            told = tool_messages(asked[text])
            for call_id, question in session.unknown.items():
                content = told.get(call_id, "nothing")
                known = json.loads(content) if content.startswith("{") else {}
                assert known.get("effect") in LOST, f"'{question}' was told as {content}"
            session.told |= set(session.unknown)
        self.vendor.asked.clear()

    def finish(self):
        self.weir.stop()
        self._check_effects()
        effects = len(self.vendor.searches)
        kinds = ("answered", "unknown, had its effect", "unknown, did not have its effect")
        if self.kills >= ENOUGH_TO_EXPECT_ALL:
            missed = [kind for kind in kinds if not self.outcomes[kind]]
            assert not missed, f"no kill left a call '{missed[0]}': {self.outcomes}"
        shares = ", ".join(f"{self.outcomes[kind]} {kind}" for kind in kinds)
        return (
            f"{self.kills} kills, {sum(self.recorded.values())} calls recorded, {effects} effects, "
            f"none repeated; {shares}; {self.outcomes['turns that were over']} turns were over"
        )


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"effects: {count} kills, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="weir-effects-") as folder:
        proof = Proof(folder, seed)
        try:
            while proof.kills < count:
                proof.round()
                if proof.kills % 50 == 0:
                    print(f"effects: {proof.kills}, {len(proof.vendor.searches)} effects", flush=True)
            print("effects: " + proof.finish())
        finally:
            proof.stop()


if __name__ == "__main__":
    main()
