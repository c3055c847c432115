"""Budgets admit what can finish (K33): many turns at once against one cap.

The vendor bills what it likes. What it billed, what `weir usage` books and what finished must
agree, and nothing that was begun may be cut.
"""
import concurrent.futures
import threading
import time

import httpx
import pytest
import vendor

SECRET = "agent-secret"
NANO_A_TOKEN = 10_000  # $10 a million, in both directions
CENT = 10_000_000
TURNS = 100


class Bank(vendor.Vendor):
    """Answers `answer` and bills `bill(how many were answered before)`, streamed or not."""

    def __init__(self, answer, bill):
        super().__init__()
        self.answer_text, self.bill = answer, bill
        self.billed, self.out, self.out_most = [], 0, 0
        self.gate = threading.Semaphore(0)
        self.gate_from = 1 << 30  # calls from this one on wait for the gate
        self._counting = threading.Lock()

    def chunks(self, body):
        with self._counting:
            number = len(self.asked)
            self.asked.append(body)
            self.out += 1
            self.out_most = max(self.out_most, self.out)
        if number >= self.gate_from:
            self.gate.acquire(timeout=20)
        prompt, completion = self.bill(number)
        step = 1000
        for at in range(0, len(self.answer_text), step):
            delta = {"content": self.answer_text[at : at + step]}
            yield {"model": "big-1", "choices": [{"index": 0, "delta": delta}]}
        yield {"model": "big-1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        with self._counting:
            self.out -= 1
            self.billed.append(prompt + completion)
        yield {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}

    def settings(self, budget, agent=""):
        return (
            "prices:\n  - {model: big*, input: 10, output: 10}\n"
            f"budgets:\n  - {{day: {budget}}}\n"
            f"providers:\n  - name: house\n    kind: openai\n    base_url: {self.url}/v1\n"
            "    key_env: HOUSE_KEY\n"
            "agents:\n  - slug: manager\n    instructions: You help.\n    model: house/big\n" + agent
        )


@pytest.fixture
def bank():
    banks = []

    def start(*args):
        banks.append(Bank(*args))
        return banks[-1]

    yield start
    for one in banks:
        for _ in range(1000):
            one.gate.release()
        one.stop()


def start(start_weir, bank, budget, agent=""):
    env = {"AGENT_AUTH_TOKEN": SECRET, "HOUSE_KEY": vendor.KEY}
    return start_weir(config=bank.settings(budget, agent), env=env)


def client(weir):
    return weir.http(
        headers={"authorization": "Bearer " + SECRET},
        timeout=90,
        limits=httpx.Limits(max_connections=200),
    )


def ask_at_once(weir, count, text="hello", name="s"):
    """Status codes of so many turns, each a session of its own."""
    with client(weir) as http, concurrent.futures.ThreadPoolExecutor(count) as pool:
        def ask(nth):
            return http.post("/invoke", json={"input": text, "session_id": f"{name}-{nth}"})

        answers = list(pool.map(ask, range(count)))
    for answer in answers:
        if answer.status_code != 200:
            assert "budget" in answer.text, answer.text
    return [answer.status_code for answer in answers]


def usage_of(weir):
    with client(weir) as http:
        answer = http.get("/weir/v1/usage")
    assert answer.status_code == 200, answer.text
    return answer.json()["total"]


# name: budget, how many fit, answer, tokens billed, settings of the agent
ROWS = {
    "honest": ("$0.40", 20, "x" * 4000, (1000, 1000), ""),
    "honest, with a longest answer": ("$0.40", 20, "x" * 4000, (1000, 1000), "    max_tokens: 1500\n"),
    "hidden reasoning": ("$0.40", 8, "ok", (1000, 4000), "    max_tokens: 5000\n"),
    "short text": ("$0.40", 20, "ok", (1000, 1000), ""),
    "tokens": ("50000 tokens", 25, "ok", (1000, 1000), ""),
}


@pytest.mark.parametrize("row", ROWS)
def test_as_many_turns_finish_as_can_be_paid(start_weir, bank, row):
    budget, fit, answer, bill, agent = ROWS[row]
    vendor_of = bank(answer, lambda number: bill)
    weir = start(start_weir, vendor_of, budget, agent)
    text = "y" * 4000 if answer != "ok" else "hello"
    codes = ask_at_once(weir, TURNS, text)
    assert codes.count(200) == fit == len(vendor_of.asked) == len(vendor_of.billed)
    total = usage_of(weir)
    assert total["calls"] == fit and total["calls_tokens_unknown"] == 0
    assert total["total_tokens"] == sum(vendor_of.billed)
    assert total["cost_nano_usd"] == sum(vendor_of.billed) * NANO_A_TOKEN


def test_one_call_may_cost_more_than_all_and_no_other_follows(start_weir, bank):
    """Nobody knows what it costs, so it is alone; after a kill that is still known."""
    vendor_of = bank("ok", lambda number: (1000, 99_000))
    weir = start(start_weir, vendor_of, "$0.40")
    assert ask_at_once(weir, TURNS).count(200) == 1 == len(vendor_of.asked)
    weir.kill()
    weir.start()
    assert ask_at_once(weir, 10, name="later").count(200) == 0
    assert len(vendor_of.asked) == 1


def test_the_worst_overshoot_is_that_of_the_formula(start_weir, bank):
    """A reasoning model that was cheap suddenly bills what it does not stream, to its limit."""
    cheap, longest = 1000, 10_000
    prompt = 100

    def bill(number):
        return (prompt, cheap - prompt) if number < 20 else (prompt, longest)

    vendor_of = bank("ok", bill)
    weir = start(start_weir, vendor_of, "$0.50", f"    max_tokens: {longest}\n")
    assert ask_at_once(weir, 20).count(200) == 20
    vendor_of.out_most, vendor_of.gate_from = 0, 20
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        rest = pool.submit(ask_at_once, weir, TURNS, "hello", "dear")
        deadline = time.monotonic() + 20
        while vendor_of.out < 30:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        for _ in range(TURNS):
            vendor_of.gate.release()
        codes = rest.result()
    assert codes.count(200) == 30 == vendor_of.out_most
    cap, reservation = 50_000, cheap
    assert sum(vendor_of.billed) <= cap + vendor_of.out_most * (prompt + longest - reservation)
    assert usage_of(weir)["total_tokens"] == sum(vendor_of.billed)
