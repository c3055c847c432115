"""Every effect is accounted for, however its turn ends: called once, and known or said to be unknown.

The first forty of the kills of test/proof/effects.py, and some of the cuts of test/proof/cuts.py.
"""
import concurrent.futures
import contextlib
import json
import pathlib
import sys
import threading
import time

import harness
import httpx
import prompts
import pytest
import speaker as speakers
import vendor
import vendors
import wires
from payments import Payments
from speaker import Reply
from vendors import call, cut, hold

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "proof"))
import cuts  # noqa: E402
import effects  # noqa: E402

KILLS = 40
CUTS = 24


@pytest.mark.timeout(600)
def test_no_effect_is_repeated_silently_however_the_daemon_is_killed(tmp_path):
    proof = effects.Proof(tmp_path, seed=None)
    try:
        for _ in range(KILLS):
            proof.round()
        print(proof.finish())
    finally:
        proof.stop()


@pytest.mark.timeout(300)
def test_every_payment_is_accounted_for_however_its_turn_is_cut(tmp_path):
    proof = cuts.Proof(tmp_path, seed=None)
    try:
        while proof.cuts < CUTS:
            proof.round()
        print(proof.finish())
    finally:
        proof.stop()


# --- a call that was out --------------------------------------------------------------------

PAY = call("pay", {"order": "shoes"}, id="call_pay")
CALLED = ("call", "pay", {"order": "shoes"})


class Shop:
    """A daemon whose manager may pay, a model that asks for it, and a payment that is not
    answered before the test says so."""

    def __init__(self, payments, models, kind, start_weir):
        self.payments, self.models, self.kind = payments, models, kind
        self.model = vendors.KINDS[kind][1]
        self.reached, self.goes_on = threading.Event(), threading.Event()
        self.start_weir = start_weir
        payments.after = self.wait

    def wait(self, _):
        self.reached.set()
        self.goes_on.wait(wires.PATIENCE)

    def open(self, tools=None, **limits):
        agent = {"slug": "manager", "model": f"house/{self.model}"}
        provider = self.models.provider(self.kind, retries=0)
        config = vendors.settings(provider, [agent], limits=limits, tools=tools or {})
        env = {**self.payments.env, "HOUSE_KEY": vendors.KEY}
        self.weir = self.start_weir(config=config, env=env)
        return wires.open("converse", self.weir)

    def said(self, at=-1):
        return prompts.said(self.kind, self.models.asked[at].body)

    def is_unknown(self, talk):
        """The payment was made once, and its effect is unknown to whoever asks."""
        assert self.payments.made == ["shoes"]
        [run] = [run for run in talk.runs() if "buy" in run["text"]]
        is_told_as_unknown(talk.events(run["id"]))
        is_told_as_unknown(talk.export())
        self.models.relay.spoils.clear()
        assert talk.ask("did it work?").output == "I know."
        prompt = self.said()
        assert prompt[:2] == [("user", "buy shoes"), CALLED]
        assert prompt[2][0] == "result" and prompt[2][1]["effect"] == "unknown", prompt[2]
        assert prompt[-1] == ("user", "did it work?")
        assert self.payments.made == ["shoes"]
        return prompt


def is_told_as_unknown(events):
    [made] = [e for e in events if e["type"] == "tool_call"]
    [told] = [e for e in events if e["type"] == "tool_result"]
    assert told["call_id"] == made["call_id"] and told["error"], told
    assert told["result"]["effect"] == "unknown", told


@pytest.fixture
def shop(models, kind, start_weir):
    with Payments() as payments:
        shop = Shop(payments, models, kind, start_weir)
        yield shop
        shop.goes_on.set()


def test_a_payment_that_was_out_when_the_limit_passed_is_unknown(shop, models):
    models.say(shop.model, PAY, "I know.")
    talk = shop.open(turn="1500ms")
    told = talk.ask("buy shoes")
    assert told.turn.code == "DEADLINE_EXCEEDED"
    [result] = told.turn.of("tool_result")
    assert result.error and json.loads(result.result_json)["effect"] == "unknown"
    assert shop.is_unknown(talk)[3:] == [("user", "did it work?")]


def test_a_payment_that_was_out_when_the_caller_left_is_unknown(shop, models):
    models.say(shop.model, PAY, "I know.")
    talk = shop.open()
    with talk.begin("buy shoes", tool="pay"):
        assert shop.reached.wait(wires.PATIENCE)
    assert talk.over()["state"] == "cancelled"
    assert shop.is_unknown(talk)[3:] == [("user", "did it work?")]


def test_a_payment_that_was_out_when_its_turn_was_cancelled_is_unknown(shop, models):
    models.say(shop.model, PAY, "I know.")
    talk = shop.open()
    with talk.begin("buy shoes", tool="pay") as caller:
        assert shop.reached.wait(wires.PATIENCE)
        talk.cancel()
        told = caller.rest()
    assert told.turn.code == "CANCELLED"
    [result] = told.turn.of("tool_result")
    assert result.error and json.loads(result.result_json)["effect"] == "unknown"
    assert shop.is_unknown(talk)[3:] == [("user", "did it work?")]


@pytest.mark.parametrize("death", ["kill", "stop"])
def test_a_payment_that_was_out_when_the_daemon_ended_is_unknown(death, shop, models):
    models.say(shop.model, PAY, "I know.")
    talk = shop.open(shutdown="700ms")
    with talk.begin("buy shoes", tool="pay"):
        assert shop.reached.wait(wires.PATIENCE)
        if death == "kill":
            shop.weir.process.kill()
        else:
            shop.weir.signal(15)
            assert shop.weir.wait() == 0
    wires.killed(shop.weir)
    assert shop.is_unknown(talk)[3:] == [("user", "did it work?")]


def test_a_payment_that_hangs_is_cut_as_unknown_and_the_turn_goes_on(shop, models):
    models.say(shop.model, PAY, "I cannot say.", "I know.")
    talk = shop.open(tools={"pay": {"timeout": "700ms"}})
    told = talk.ask("buy shoes")
    assert told.error is None and told.output == "I cannot say."
    [result] = told.turn.of("tool_result")
    answer = json.loads(result.result_json)
    assert result.error and answer["effect"] == "unknown"
    assert "within 700ms; the setting tools.pay.timeout gives it more" in answer["error"]
    later = shop.is_unknown(talk)
    assert later[3:] == [("assistant", "I cannot say."), ("user", "did it work?")]


def test_a_payment_whose_connection_broke_is_unknown_and_the_turn_goes_on(shop, models):
    models.say(shop.model, PAY, "I cannot say.", "I know.")
    shop.payments.after = lambda _: shop.payments.hang_up()
    talk = shop.open()
    told = talk.ask("buy shoes")
    assert told.error is None and told.output == "I cannot say."
    [result] = told.turn.of("tool_result")
    assert result.error and json.loads(result.result_json)["effect"] == "unknown"
    assert shop.said()[2][1]["effect"] == "unknown"
    later = shop.is_unknown(talk)
    assert later[3:] == [("assistant", "I cannot say."), ("user", "did it work?")]


@pytest.mark.parametrize("kind", ["openai"])
def test_a_payment_whose_used_connection_broke_is_not_sent_again(shop, models, kind):
    """On a connection that was in use before, a client may take a hang-up for an idle timeout."""
    hat = call("pay", {"order": "hat"}, id="call_hat")
    models.say(shop.model, PAY, hat, "I cannot say.")
    shop.payments.after = lambda order: order == "hat" and shop.payments.hang_up()
    talk = shop.open()
    assert talk.ask("buy shoes and a hat").error is None
    assert shop.payments.made == ["shoes", "hat"]


def test_a_payment_that_never_left_is_not_told_as_unknown(shop, models):
    hat = call("pay", {"order": "hat"}, id="call_hat")
    models.say(shop.model, [PAY, hat], "I know.")
    talk = shop.open(turn="1500ms", tools_at_once=1)
    assert talk.ask("buy shoes and a hat").turn.code == "DEADLINE_EXCEEDED"
    assert shop.payments.made == ["shoes"]
    assert talk.ask("did it work?").output == "I know."
    prompt = shop.said()
    kinds = [item[0] for item in prompt]
    assert kinds == ["user", "call", "call", "result", "result", "user"]
    assert prompt[3][1]["effect"] == "unknown"
    assert prompt[4][1].get("effect") != "unknown", "it was not made"
    assert shop.payments.made == ["shoes"]


@pytest.mark.parametrize("end", ["its answer is cut", "its caller leaves", "the daemon dies"])
def test_a_payment_that_was_answered_stays_answered_when(end, shop, models, kind):
    models.say(shop.model, PAY, "It is paid and on its way.", "I know.", chunkSize=6)
    shop.goes_on.set()
    last = cut(ONE_PIECE[kind]) if end == "its answer is cut" else hold(ONE_PIECE[kind])
    models.relay.spoil(None, last)
    talk = shop.open()
    if end == "its answer is cut":
        assert talk.ask("buy shoes").error
    else:
        with talk.begin("buy shoes", shown="It is "):
            wires.on_disk(shop.weir, "paid shoes")
            wires.on_disk(shop.weir, "It is ")
            if end == "the daemon dies":
                shop.weir.process.kill()
        if end == "the daemon dies":
            wires.killed(shop.weir)
    assert talk.ask("did it work?").output == "I know."
    assert shop.said() == [
        ("user", "buy shoes"),
        CALLED,
        ("result", {"output": "paid shoes"}),
        ("assistant", "It is "),
        ("user", "did it work?"),
    ]
    assert shop.payments.made == ["shoes"]


ONE_PIECE = {"anthropic": 3, "gemini": 1, "openai": 2, "openai-responses": 7}  # events


# --- over HTTP ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["openai"])
@pytest.mark.parametrize("wire", ["invoke", "stream"])
@pytest.mark.parametrize("end", ["the limit", "leaving", "cancel", "kill"])
def test_over_http_a_payment_that_was_out_is_unknown_after(end, wire, house, models, kind):
    models.say(house.model, call("pay", {}, id="call_pay"), "I know.")
    script = str(harness.ROOT / "test/e2e/scripts/pay.yaml")
    turn = "1500ms" if end == "the limit" else "1m"
    weir = house([{"tools": ["pay"]}], script=script, limits={"turn": turn})
    talk = wires.open(wire, weir)
    if end == "the limit":
        assert talk.ask("buy shoes").error
    else:
        with talk.begin("buy shoes", tool="pay"):
            if end == "cancel":
                talk.cancel()
                talk.over()
            if end == "kill":
                weir.process.kill()
        if end == "kill":
            wires.killed(weir)
    assert talk.over()["state"] in ("failed", "cancelled")
    is_told_as_unknown(talk.events())
    assert talk.ask("did it work?").output == "I know."
    prompt = prompts.said(kind, models.asked[-1].body)
    assert [item[0] for item in prompt] == ["user", "call", "result", "user"]
    assert prompt[2][1]["effect"] == "unknown"
    is_told_as_unknown(talk.export())


# --- who asks again -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["openai"])
@pytest.mark.parametrize("end", ["the limit", "kill"])
def test_a_keyed_failure_behind_a_payment_names_it(end, house, models, tmp_path):
    """K28: the same failure again, which says what was done and never invites to repeat it."""
    made = tmp_path / "made"
    script = f"read -r order; echo $order >>{made}; case $order in *hat*) sleep 90;; esac; echo paid"
    pay = {"description": "Pays.", "parameters": {"type": "object"}, "command": ["sh", "-c", script]}
    limits = {"turn": "5s" if end == "the limit" else "2m"}
    weir = house([{"tools": ["pay"]}], tools={"pay": pay}, limits=limits)
    models.say(house.model, *[call("pay", {"order": order}, id="call_0") for order in ("shoes", "hat")])

    def post(path="/invoke"):
        with weir.http(headers={"idempotency-key": "order-1"}) as http:
            return http.post(path, json={"input": "buy", "session_id": "s"})

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(post)
        give_up = time.monotonic() + wires.PATIENCE
        while not made.exists() or "hat" not in made.read_text():
            assert time.monotonic() < give_up, "the hat was never paid"
            time.sleep(0.01)
        if end == "kill":
            weir.kill()
            weir.start()
        answers = [post(), post()] if end == "kill" else [first.result(), post(), post()]
    for answer in answers:
        error = answer.json()["error"]
        assert answer.status_code == 500 and "retry-after" not in answer.headers
        assert error["details"]["calls"] == [
            {"name": "pay", "args": {"order": "hat"}, "effect": "unknown"},
            {"name": "pay", "args": {"order": "shoes"}, "effect": "done"},
        ]
        assert "'pay', which may or may not have had its effect" in error["message"]
        assert "; ask again" not in error["message"]
    told = post("/stream").text.split("event: error\ndata: ")[1].split("\n")[0]
    assert json.loads(told)["error"].endswith(error["message"])
    assert len(made.read_text().splitlines()) == 2


@pytest.fixture
def slow_shop(start_weir):
    """A model that searches at once, and then says nothing until `goes_on`."""
    goes_on = threading.Event()

    def answer(_, body):
        if not prompts.of("openai", body).results:
            return Reply(calls=[("web_search_tool", {"query": "shoes"})])
        goes_on.wait(wires.PATIENCE)
        return Reply("Done.")

    with speakers.Speaker("openai", answer) as speaker, vendor.Vendor() as search:
        agent = {"slug": "manager", "model": "house/m", "tools": ["web_search_tool"]}
        tools = {"web_search": {"backend": "searxng", "url": search.url}}
        config = vendors.settings(speaker.provider(), [agent], tools=tools)
        weir = start_weir(config=config, env={"HOUSE_KEY": vendors.KEY})
        weir.goes_on, weir.searches, weir.speaker = goes_on, search.searches, speaker
        yield weir
        goes_on.set()


def test_a_retry_loop_with_one_key_has_one_effect_and_one_answer(slow_shop):
    """K28: three attempts of a second each, as upstream's proxy makes them"""
    answers = []
    for attempt in range(3):
        if attempt == 2:
            slow_shop.goes_on.set()
        with contextlib.suppress(httpx.ReadTimeout), slow_shop.http() as http:
            answers.append(
                http.post(
                    "/invoke",
                    json={"input": "buy shoes", "session_id": "s"},
                    headers={"idempotency-key": "order-1"},
                    timeout=httpx.Timeout(wires.PATIENCE, read=1 if attempt < 2 else None),
                )
            )
    [answer] = answers
    assert answer.status_code == 200 and answer.json()["output"] == "Done."
    assert slow_shop.searches == ["shoes"] and len(slow_shop.speaker.asked) == 2
    assert len(wires.open("invoke", slow_shop, "s").runs()) == 1
