"""A reply that hands the turn to another agent beside other calls: those are calls of its own agent."""
import http.server
import json
import threading

import pytest
import vendor

PATIENCE = 20
TO_CLERK = ("transfer_to_agent", {"agent_name": "clerk"})
PAY = ("pay", {"cents": 100})


class Model(vendor.Vendor):
    """Says what it is given, one reply after the other: a text, or a list of calls."""

    def __init__(self):
        super().__init__()
        self.replies = []

    def chunks(self, body):
        with self._lock:
            self.asked.append(body)
            reply = self.replies.pop(0)
        delta, reason = {"content": reply}, "stop"
        if not isinstance(reply, str):
            delta = {"tool_calls": [
                {"index": at, "id": f"c{at}", "type": "function",
                 "function": {"name": name, "arguments": json.dumps(args)}}
                for at, (name, args) in enumerate(reply)]}
            reason = "tool_calls"
        yield {"model": "big-1", "choices": [{"index": 0, "delta": delta}]}
        yield {"model": "big-1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}

    def read(self):
        """What the newest question shows the model, as one text: of another agent's calls it is told
        in words."""
        return "\n".join(m["content"] or "" for m in self.asked[-1]["messages"])


class Bank(http.server.ThreadingHTTPServer):
    """POST /pay; holds each payment until `goes_on`, if it is told to."""

    daemon_threads = True

    def __init__(self):
        self.paid, self.reached, self.goes_on = [], threading.Event(), threading.Event()
        self.goes_on.set()
        super().__init__(("127.0.0.1", 0), Teller)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/pay"

    def handle_error(self, request, client_address):
        pass  # who asked was killed


class Teller(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.paid.append(body)
        self.server.reached.set()
        self.server.goes_on.wait(PATIENCE)
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"paid":true}')

    def log_message(self, *args):
        pass


@pytest.fixture
def model():
    with Model() as model:
        yield model


@pytest.fixture
def bank():
    bank = Bank()
    yield bank
    bank.goes_on.set()
    bank.shutdown()
    bank.server_close()


def settings(model, bank, manager, clerk):
    provider = {"name": "house", "kind": "openai", "base_url": model.url + "/v1", "key_env": "HOUSE_KEY"}
    pay = {"description": "Pays.", "method": "POST", "url": bank.url, "policy": "ask",
           "parameters": {"type": "object", "properties": {"cents": {"type": "integer"}}}}
    agents = [{"slug": "manager", "model": "house/big", "tools": manager, "delegates": ["clerk"]},
              {"slug": "clerk", "model": "house/big", "tools": clerk}]
    return json.dumps({"providers": [provider], "agents": agents, "tools": {"pay": pay}})


@pytest.fixture
def start(start_weir, model, bank):
    def begin(manager, clerk):
        return start_weir(config=settings(model, bank, manager, clerk), env={"HOUSE_KEY": vendor.KEY})

    return begin


def ask(weir, text, key=None):
    headers = {"X-Idempotency-Key": key} if key else {}
    return weir.http().post("/invoke", json={"input": text, "session_id": "s"}, headers=headers)


@pytest.mark.parametrize("calls", [[TO_CLERK, PAY], [PAY, TO_CLERK]], ids=["before", "after"])
def test_the_other_agents_tool_is_not_called_without_its_approval(start, model, bank, calls):
    weir = start(["calculator"], ["pay"])
    model.replies = [calls, [PAY], "Paid."]
    answer = ask(weir, "pay").json()
    assert bank.paid == [], "nobody was asked"
    assert "tool 'pay' not found" in model.read() and len(model.asked) == 2
    assert answer["metadata"]["approval"]["question"].startswith("May 'clerk' use the tool 'pay'")
    assert ask(weir, "yes").json()["output"] == "Paid."
    assert bank.paid == [{"cents": 100}]


@pytest.mark.parametrize("restarts", [False, True])
def test_its_own_call_is_asked_about_and_made_for_the_agent_that_requested_it(start, model, bank, restarts):
    weir = start(["pay"], ["calculator"])
    model.replies = [[TO_CLERK, PAY], "The clerk is glad."]
    answer = ask(weir, "pay").json()
    assert answer["metadata"]["approval"]["question"].startswith("May 'manager' use the tool 'pay'")
    if restarts:
        weir.kill()
        weir.start()
    assert ask(weir, "yes").json()["output"] == "The clerk is glad."
    assert bank.paid == [{"cents": 100}]
    [system] = [m for m in model.asked[1]["messages"] if m["role"] == "system"]
    assert "You are the agent 'clerk'" in system["content"]
    assert '"paid":true' in model.read()


def test_a_payment_that_was_out_is_unknown_and_its_key_pays_once(start, model, bank):
    weir = start({"pay": "allow"}, ["calculator"])
    model.replies = [[TO_CLERK, PAY], "I know.", "I know."]
    bank.goes_on.clear()

    def pay():
        with pytest.raises(Exception):
            ask(weir, "pay", key="k1")

    caller = threading.Thread(target=pay)
    caller.start()
    assert bank.reached.wait(PATIENCE)
    weir.kill()
    caller.join()
    weir.start()
    ask(weir, "did it work?")
    assert '"effect":"unknown"' in model.read()
    asked = len(model.asked)
    again = ask(weir, "pay", key="k1")
    assert bank.paid == [{"cents": 100}] and len(model.asked) == asked, again.text
