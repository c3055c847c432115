#!/usr/bin/env python3
"""cuts: turns cut in every way while they pay (checks.md K27; effects.py has kills alone).

    test/proof/cuts.py [COUNT [SEED]]        2,000 without a number

A model on loopback has each turn call `pay`, a tool of an MCP server on loopback that is not
idempotent: every call there is an effect outside of the daemon. Six clients ask over Converse,
each in a session of its own, and each turn is cut at a random moment around the payment: the
turn's limit passes, its caller leaves, it is cancelled by its id, the tool's connection breaks,
or the daemon is killed. Then

    no order is paid twice                                                  (doubled)
    each payment stands in the session's export as answered or as unknown,
    and in the next request to the model of that session in the same way    (unaccounted)
    nothing that was not paid is told as paid                               (invented)

The counts are printed at the end; each must be 0.
"""
import asyncio
import collections
import json
import random
import sys
import tempfile
import threading
import time

import clients  # first: it finds the others
import grpc
import harness
import httpx
import prompts
import speaker as speakers
import vendors
from agentruntime.v1 import runtime_pb2 as pb
from agentruntime.v1 import runtime_pb2_grpc
from payments import Payments
from speaker import Reply

CLIENTS = 6
ROUNDS_OF_A_SESSION = 4
CUTS = ("limit", "leave", "cancel", "break", "kill")
SLOWEST_PAYMENT_S = 0.02
TURN_LIMIT_S = 1.0  # what is cut by it hangs for longer
PATIENCE_S = 30
ENOUGH_TO_EXPECT_ALL = 200  # cuts: then each end of a call was seen


class Session:
    def __init__(self, name):
        self.name = name
        self.orders = []  # what was asked for, oldest first

    def order(self, cut):
        self.orders.append(f"{self.name}/{len(self.orders)}/{cut}")
        return self.orders[-1]


def cut_of(order):
    return order.rpartition("/")[2]


def outcome(result):
    """What a result says of its payment: answered, unknown, or not made."""
    if not isinstance(result, dict):
        return "not made"
    if result.get("effect") == "unknown":
        return "unknown"
    return "answered" if str(result.get("output", "")).startswith("paid ") else "not made"


class Proof:
    def __init__(self, folder, seed):
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self._over = threading.Event()  # nothing hangs any longer
        self.payments = Payments()
        self.payments.before, self.payments.after = self._before_payment, self._after_payment
        self.speaker = speakers.Speaker("openai", self._answer)
        agent = {"slug": "manager", "model": "house/m"}
        limits = {"turn": f"{TURN_LIMIT_S * 1000:.0f}ms"}
        config = vendors.settings(self.speaker.provider(retries=0), [agent], limits=limits)
        env = {**self.payments.env, "HOUSE_KEY": vendors.KEY}
        self.weir = harness.Daemon(folder, config=config, env=env).start()
        self._loop = asyncio.new_event_loop()  # one for all rounds: grpc.aio keeps to its first
        self._sessions = []
        self._rounds = 0
        self._lead_s = 0.05  # from the question to the payment, as it was lately
        self._prompts = {}  # order -> the first request to the model of the turn that asks for it
        self.cuts = 0
        self.ends = collections.Counter()  # by cut and outcome
        self.wrong = collections.defaultdict(list)  # doubled, unaccounted, invented

    def stop(self):
        self._over.set()
        self.weir.kill()
        self.payments.stop()
        self.speaker.__exit__()
        self._loop.close()

    # --- the model and the payment ----------------------------------------------------------

    def _answer(self, _, body):
        """It pays for what the last message of the user orders, once."""
        said = prompts.said("openai", body)
        at = max(i for i, item in enumerate(said) if item[0] == "user")
        order = said[at][1]
        with self._lock:
            self._prompts.setdefault(order, body)
        if "/" not in order or len(said) > at + 1:
            return Reply("That is all ", "I know.")
        return Reply("A moment.", calls=[("pay", {"order": order})])

    def _before_payment(self, order):
        time.sleep(self._chance.random() * SLOWEST_PAYMENT_S)
        if cut_of(order) == "break" and self._chance.random() < 0.3:
            self.payments.hang_up()

    def _after_payment(self, order):
        if cut_of(order) == "break":
            self.payments.hang_up()
        if cut_of(order) == "limit":
            self._over.wait(TURN_LIMIT_S * 2)
        time.sleep(self._chance.random() * SLOWEST_PAYMENT_S)

    # --- one round --------------------------------------------------------------------------

    def round(self):
        if self._rounds % ROUNDS_OF_A_SESSION == 0:
            self._sessions = [Session(f"p{self._rounds}-{i}") for i in range(CLIENTS)]
        self._rounds += 1
        kill = self._chance.random() < 1 / len(CUTS)
        ways = [cut for cut in CUTS if cut != "kill"]
        orders = [
            session.order("kill" if kill else self._chance.choice(ways))
            for session in self._sessions
        ]
        self._loop.run_until_complete(self._ask_and_cut(orders, kill))
        self.cuts += len(orders)
        if kill:
            self.weir.kill()
            self.weir.start()
        if self._rounds % ROUNDS_OF_A_SESSION == 0:
            self._loop.run_until_complete(self._ask_on())
        self._look()

    async def _ask_and_cut(self, orders, kill):
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
            turns = [self._turn(*pair, http) for pair in zip(self._sessions, orders)]
            tasks = [asyncio.create_task(turn) for turn in turns]
            if kill:
                await asyncio.sleep(self._moment())
                self.weir.process.kill()
            await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE_S)
            await asyncio.gather(*(self._over_of(s, http) for s in self._sessions if not kill))

    def _moment(self):
        return self._lead_s * self._chance.uniform(0.2, 2.5)

    async def _turn(self, session, order, http):
        """Ask, and cut it as the order says; whoever reads on reads to the end."""
        options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(self.weir.target, options=options) as channel:
            call = runtime_pb2_grpc.AgentRuntimeStub(channel).Converse(
                metadata=harness.Daemon.metadata()
            )
            reading = asyncio.create_task(self._read(call, session, order))
            if cut_of(order) in ("leave", "cancel"):
                await asyncio.wait([reading], timeout=self._moment())
                await self._cut(session, order, call, http)
            if cut_of(order) == "leave":
                reading.cancel()  # what was not even sent yet would wait for ever
            await asyncio.wait([reading])

    async def _cut(self, session, order, call, http):
        if cut_of(order) == "leave":
            call.cancel()
            return
        runs = (await self._get(http, "/runs", session_id=session.name)).json()["runs"]
        if runs and runs[-1]["text"] == order:
            url = f"{self.weir.url}/weir/v1/runs/{runs[-1]['id']}/cancel"
            await http.post(url, headers=self._headers())

    async def _read(self, call, session, text):
        """Read one turn to its end, whatever that is."""
        begun = time.monotonic()
        try:
            ids = {"workspace_id": "ws-1", "user_id": "user-1", "session_id": session.name}
            await call.write(pb.ConverseRequest(message=text, **ids))
            while (event := await call.read()) is not grpc.aio.EOF:
                kind = event.WhichOneof("event")
                if kind == "tool_call":
                    self._lead_s += (time.monotonic() - begun - self._lead_s) / 8
                if kind == "done":
                    return
        except (grpc.RpcError, asyncio.InvalidStateError, asyncio.CancelledError):
            pass  # it was left, or the daemon is dead

    @staticmethod
    def _headers():
        return {"authorization": "Bearer " + harness.token()}

    async def _get(self, http, path, **params):
        return await http.get(
            f"{self.weir.url}/weir/v1{path}", params=params, headers=self._headers()
        )

    async def _over_of(self, session, http):
        """Wait until no run of the session is under way: a leaving is noticed a moment later."""
        give_up = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up:
            runs = (await self._get(http, "/runs", session_id=session.name)).json()["runs"]
            if all(run["state"] not in ("queued", "running") for run in runs):
                return
            await asyncio.sleep(0.005)
        raise AssertionError(f"a turn of {session.name} does not end\n{self.weir.log()[-2000:]}")

    async def _ask_on(self):
        """The last word in each session: its request holds whatever was paid there."""

        async def ask(session):
            session.orders.append(f"what came of it, {session.name}?")
            await self._turn(session, session.orders[-1], None)

        await asyncio.wait_for(asyncio.gather(*map(ask, self._sessions)), PATIENCE_S)

    # --- what must hold ---------------------------------------------------------------------

    def _look(self):
        for session in self._sessions:
            exported = self._exported(session)
            newest = [order for order in session.orders if "/" in order][-1]
            for order in session.orders:
                paid = self.payments.made.count(order)
                if paid > 1:
                    self._note("doubled", order, f"was paid {paid} times")
                if "/" in order:
                    self._compare(order, paid, exported.get(order, "nothing"), "the export says")
            self.ends[cut_of(newest), exported.get(newest, "nothing")] += 1
            self._look_at_prompts(session)

    def _look_at_prompts(self, session):
        """Each request after an order tells what became of it."""
        asked = [order for order in session.orders if order in self._prompts]
        if asked:
            told = told_by(self._prompts[asked[-1]])
            for order in session.orders[: session.orders.index(asked[-1])]:
                paid = self.payments.made.count(order)
                self._compare(order, paid, told.get(order, "nothing"), "the model is told")

    def _compare(self, order, paid, said, who):
        if paid and said not in ("answered", "unknown"):
            self._note("unaccounted", order, f"was paid, and {who} {said}")
        if not paid and said == "answered":
            self._note("invented", order, f"was not paid, and {who} {said}")

    def _note(self, kind, order, words):
        line = f"{order} {words}"
        if line not in self.wrong[kind]:
            self.wrong[kind].append(line)

    def _exported(self, session):
        """What the session's export says of each order."""
        with httpx.Client(base_url=self.weir.url, trust_env=False, timeout=PATIENCE_S) as http:
            answer = http.get(
                f"/weir/v1/sessions/{session.name}/export", headers=self._headers()
            )
        if answer.status_code == 404:
            return {}
        calls, told = {}, {}
        for line in answer.text.splitlines():
            event = json.loads(line)["event"]
            if event["type"] == "tool_call":
                calls[event["call_id"]] = event["args"]["order"]
            if event["type"] == "tool_result":
                told[calls[event["call_id"]]] = outcome(event["result"])
        return told

    def finish(self):
        self.weir.stop()
        kinds = ("doubled", "unaccounted", "invented")
        counts = ", ".join(f"{len(self.wrong[kind])} {kind}" for kind in kinds)
        lines = [line for kind in kinds for line in self.wrong[kind]]
        assert not lines, f"of {self.cuts} cuts: {counts}\n" + "\n".join(lines[:20])
        seen = {end for _, end in self.ends}
        if self.cuts >= ENOUGH_TO_EXPECT_ALL:
            assert {"answered", "unknown"} <= seen, f"the cuts were too early or late: {self.ends}"
        ends = collections.Counter()
        for (_, end), count in self.ends.items():
            ends[end] += count
        shares = ", ".join(f"{count} {end}" for end, count in ends.most_common())
        return f"{self.cuts} cuts, {len(self.payments.made)} payments, {counts}; orders: {shares}"


def told_by(body):
    """What a request to the model says of each order: order -> outcome."""
    orders, told = {}, {}
    for message in body["messages"]:
        for made in message.get("tool_calls", []):
            orders[made["id"]] = json.loads(made["function"]["arguments"]).get("order")
        if message["role"] == "tool":
            told[orders[message["tool_call_id"]]] = outcome(prompts.value(message["content"]))
    return told


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"cuts: {count} cuts, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="weir-cuts-") as folder:
        proof = Proof(folder, seed)
        try:
            while proof.cuts < count:
                proof.round()
                if proof._rounds % 50 == 0:
                    print(f"cuts: {proof.cuts}, {len(proof.payments.made)} payments", flush=True)
            print("cuts: " + proof.finish())
        finally:
            proof.stop()


if __name__ == "__main__":
    main()
