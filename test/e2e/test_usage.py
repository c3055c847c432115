"""Accounting: what model calls came to, by whichever wire they came, and what budgets refuse."""
import datetime
import http.server
import json
import subprocess
import threading
import time

import crawbl
import harness
import httpx
import pytest

SECRET = "agent-secret"
PRICES = "prices:\n  - {model: priced-1, input: 1, output: 2}\n"
ONE_WORKSPACE = f"http:\n  workspace: {crawbl.WORKSPACE}\n"
MONEY = dict(
    script="test/e2e/scripts/money.yaml",
    config=PRICES + ONE_WORKSPACE,
    env={"AGENT_AUTH_TOKEN": SECRET},
)
ONE_TURN = 7 * 1000 + 11 * 2000  # nano-dollars


def client(weir, token=None):
    headers = {"authorization": "Bearer " + (token or harness.token())}
    return weir.http(headers=headers)


def usage(weir, token=None, **asked):
    answer = client(weir, token).get("/weir/v1/usage", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def stream(weir, text, session="sse-1"):
    """A turn over server-sent events, to its end."""
    body = {"input": text, "session_id": session}
    answer = client(weir, SECRET).post("/stream", json=body)
    assert answer.status_code == 200 and answer.text.rstrip().endswith("data: [DONE]")
    return answer.text


def today():
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


@pytest.fixture
def not_at_midnight():
    """Calls of one test belong to one day."""
    now = datetime.datetime.now(datetime.timezone.utc)
    left = 86400 - (now.hour * 3600 + now.minute * 60 + now.second)
    if left < 60:
        time.sleep(left + 1)


@pytest.mark.weir(**MONEY)
def test_turns_of_both_wires_add_up(weir, not_at_midnight):
    crawbl.one_turn(weir, "hello")
    crawbl.one_turn(weir, "hand it over")
    stream(weir, "hello")
    answer = usage(weir)
    assert answer["by"] == "day" and answer["to"] == today()
    assert answer["from"] == today()[:8] + "01"
    (day,) = answer["usage"]
    assert day.pop("day") == today()
    assert day == answer["total"]
    prompt, completion = 7 + 10 + 20 + 7, 11 + 1 + 2 + 11
    nano = prompt * 1000 + completion * 2000
    assert day == {
        "calls": 4,
        "calls_tokens_unknown": 0,
        "calls_cost_unknown": 0,
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "tool_use_tokens": 0,
        "thoughts_tokens": 0,
        "cached_tokens": 0,
        "calls_estimated": 0,
        "estimated_tokens": 0,
        "estimated_cost_nano_usd": 0,
        "cost_nano_usd": nano,
        "cost_usd": "0.000094",
        "cost": "$0.000094",
    }
    by_agent = usage(weir, by="agent")["usage"]
    assert [(row["agent"], row["calls"]) for row in by_agent] == [("manager", 3), ("wally", 1)]
    assert usage(weir, agent="wally")["total"]["prompt_tokens"] == 20
    (whole,) = usage(weir, by="workspace")["usage"]
    assert whole["workspace"] == crawbl.WORKSPACE and whole["calls"] == 4


@pytest.mark.weir(**MONEY)
def test_what_is_unknown_is_said(weir):
    crawbl.one_turn(weir, "free of charge")
    assert usage(weir)["total"]["cost"] == "unknown"
    crawbl.one_turn(weir, "hello")
    assert usage(weir)["total"]["cost"] == "at least $0.000029; 1 call of unknown cost"
    crawbl.one_turn(weir, "uncounted")
    total = usage(weir)["total"]
    known, estimate = total["cost"].split(", about $")
    assert known == "at least $0.000029; 2 calls of unknown cost"
    assert estimate.endswith(" by estimate") and total["calls_estimated"] == 1
    assert total["estimated_cost_nano_usd"] > 0
    assert total["calls_tokens_unknown"] == 1 and total["total_tokens"] == 10 + 18
    models = {row["model"]: row["cost"] for row in usage(weir, by="model")["usage"]}
    assert models["mystery-1"] == "unknown"
    assert usage(weir, model="mystery-1")["total"]["calls"] == 1


@pytest.mark.weir(**MONEY)
def test_totals_outlive_a_restart_and_a_kill(weir, not_at_midnight):
    crawbl.one_turn(weir, "hello")
    before = usage(weir)
    weir.restart()
    assert usage(weir) == before
    crawbl.one_turn(weir, "hello")
    weir.kill()
    weir.start()
    assert usage(weir)["total"]["cost_nano_usd"] == 2 * ONE_TURN


@pytest.mark.weir(**MONEY)
def test_another_workspace_sees_nothing(weir):
    """M3, K23"""
    crawbl.one_turn(weir, "hello")
    other = harness.token(user="user-1", workspace="ws-2")
    assert usage(weir, other)["usage"] == []
    assert usage(weir, other)["total"]["calls"] == 0
    asked = client(weir, other).get("/weir/v1/usage", params={"workspace": crawbl.WORKSPACE})
    assert asked.status_code == 403 and "29000" not in asked.text
    colleague = harness.token(user="user-2")
    assert usage(weir, colleague)["total"]["calls"] == 1  # sums are the workspace's
    nobody = httpx.get(f"http://127.0.0.1:{weir.port('http')}/weir/v1/usage")
    assert nobody.status_code == 401


@pytest.mark.weir(**MONEY)
@pytest.mark.parametrize(
    "asked",
    [
        {"from": "2026-02-30"},
        {"from": "yesterday"},
        {"to": "2026-1-1"},
        {"from": "2026-02-02", "to": "2026-02-01"},
        {"by": "user"},
        {"days": "3"},
    ],
    ids=str,
)
def test_wrong_questions_are_refused(weir, asked):
    answer = client(weir).get("/weir/v1/usage", params=asked)
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["error"]["message"]


@pytest.mark.weir(**MONEY)
def test_days_are_those_that_were_asked_for(weir, not_at_midnight):
    crawbl.one_turn(weir, "hello")
    assert usage(weir, **{"from": today(), "to": today()})["total"]["calls"] == 1
    assert usage(weir, **{"from": "1970-01-01", "to": "1999-12-31"})["usage"] == []
    assert usage(weir, **{"from": "2999-01-01", "to": "2999-12-31"})["usage"] == []
    assert usage(weir, to="2000-02-10")["from"] == "2000-02-10"


# The offline provider is asked for no model, so its price must be everybody's.
ANY_MODEL = PRICES.replace("priced-1", '"*"') + ONE_WORKSPACE


def turns_until_refused(weir):
    for turns in range(200):
        turn = crawbl.one_turn(weir, "hello")
        if turn.error:
            return turns, turn
        assert turn.text == "Heard: hello"
    raise AssertionError("nothing was refused")


@pytest.mark.weir(**{**MONEY, "config": ANY_MODEL + "budgets:\n  - {day: $0.0015}\n"})
def test_a_budget_refuses_on_every_wire_and_after_a_restart(weir, not_at_midnight):
    turns, refused = turns_until_refused(weir)
    assert turns > 3
    assert refused.code == "RESOURCE_EXHAUSTED"
    assert "this workspace for the day, $0.0015," in refused.error
    assert "usage" not in refused.kinds  # the model was not asked
    assert "event: error" in stream(weir, "hello")
    assert usage(weir)["total"]["cost_nano_usd"] == turns * ONE_TURN <= 1500000
    weir.restart()
    more, _ = turns_until_refused(weir)
    assert more == 0  # the store is asked first what was spent before
    assert usage(weir)["total"]["calls"] == turns + more


@pytest.mark.weir(**{**MONEY, "config": MONEY["config"] + "budgets:\n  - {day: 700 tokens}\n"})
def test_a_budget_stops_no_reply_that_has_begun(weir):
    turn = crawbl.one_turn(weir, "a long one")
    assert not turn.error and turn.kinds[-1] == "done"
    refused = crawbl.one_turn(weir, "a long one")
    assert refused.code == "RESOURCE_EXHAUSTED" and "700 tokens" in refused.error
    assert "usage" not in refused.kinds


@pytest.mark.weir(**MONEY)
def test_a_caller_who_leaves_has_his_call_counted(weir):
    with crawbl.open_stream(weir) as stream:
        stream.send("go on")
        assert stream.next().WhichOneof("event") == "chunk"
    deadline = time.monotonic() + 20
    while usage(weir)["total"]["calls"] == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    total = usage(weir)["total"]
    assert total["cost"] == "unknown"  # the script names its model at the end
    assert total["calls_estimated"] == total["calls_tokens_unknown"] == 1
    assert total["estimated_tokens"] > 0 == total["total_tokens"]


def cli(weir, *args):
    """`weir usage` beside a daemon, with the settings that say where it listens."""
    address = f"127.0.0.1:{weir.port('http')}"
    return subprocess.run(
        [str(harness.BINARY), "usage", "--http", address, *args],
        env=harness.clean_environment({"AGENT_AUTH_TOKEN": SECRET}),
        cwd=weir.folder,
        capture_output=True,
        text=True,
        timeout=30,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.weir(**MONEY)
def test_the_command_shows_what_the_daemon_says(weir, not_at_midnight):
    crawbl.one_turn(weir, "hello")
    crawbl.one_turn(weir, "uncounted")
    shown = cli(weir, "--by", "agent")
    assert shown.returncode == 0, shown.stderr
    head, manager, whole, note = shown.stdout.splitlines()
    assert head.split() == ["agent", "calls", "in", "out", "cost"]
    assert manager.split()[:4] == ["manager", "2", "7", "11"]
    assert whole.split()[0] == "all"
    assert "at least $0.000029; 1 call of unknown cost, about $0.000" in whole
    assert note == "(tokens of 1 call are not known)"
    asked = cli(weir, "--json", "--model", "priced-1", "--from", today(), "--to", today())
    assert json.loads(asked.stdout) == usage(
        weir, model="priced-1", **{"from": today(), "to": today()}
    )
    wrong = cli(weir, "--by", "moon")
    assert wrong.returncode == 1 and "day, agent, model or workspace" in wrong.stderr
    assert cli(weir, "--workspace", "ws-2").returncode == 1
    assert cli(weir, "now").returncode == 2
    assert cli(weir, "--by").returncode == 2
    weir.stop()
    assert cli(weir).returncode == 1


def test_an_answer_of_another_server_is_no_table_and_does_no_harm(tmp_path):
    """`by` names a column: one that is too long for a name is none."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"by": "x" * 70000, "usage": [{"calls": 3}], "total": {"calls": 3}}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        done = subprocess.run([str(harness.BINARY), "usage", "--url", url], cwd=tmp_path, text=True, timeout=60,
                              env=harness.clean_environment({"HOME": str(tmp_path)}), capture_output=True)
        server.shutdown()
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["calls", "in", "out", "cost"], ["-", "3", "-", "-", "-"], ["all", "3", "-", "-", "-"]]
