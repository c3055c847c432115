"""weir usage --from nats: published usage, counted once, by user, agent, model and day.
WEIR_WITH_POSTGRES=1 scripts/e2e test/e2e/test_orchestrate_usage.py."""
import concurrent.futures
import itertools
import json
import os
import random
import socket
import subprocess
import time

import harness
import httpx
import nats
import pytest
from test_orchestrate_tools import post_tool
from test_orchestrate import NO_OPENSSL, database, eventually, orchestrate, rows, runtime  # noqa: F401

pytestmark = pytest.mark.skipif(not os.environ.get("WEIR_WITH_POSTGRES"),
                                reason="needs PostgreSQL and nats-server: WEIR_WITH_POSTGRES=1")


@pytest.fixture
def server(tmp_path):
    with nats.Server(tmp_path) as running:
        yield running


@pytest.fixture
def weir(orchestrate, runtime, server):  # noqa: F811
    return orchestrate(driver="address", runtime_address=runtime.address, nats=server.url, env=NO_OPENSSL)


def start(weir, server, *args):
    env = {"WEIR_ORCHESTRATOR_DATABASE": weir.database.url, "WEIR_ORCHESTRATOR_SCHEMA": weir.schema,
           "CRAWBL_NATS_URL": server.url, **NO_OPENSSL}
    command = [str(harness.BINARY), "usage", "--from", "nats", *args]
    return subprocess.Popen(command, env=harness.clean_environment(env), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ask(weir, server, *args):
    process = start(weir, server, "--json", *args)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return json.loads(out)


def publish(server, workspace, payloads):
    """As somebody else might, without a message id: the stream keeps what comes twice."""
    with socket.create_connection(("127.0.0.1", server.port)) as peer:
        lines = [b'CONNECT {"verbose":false}\r\n']
        for payload in payloads:
            body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
            lines.append(b"PUB crawbl.usage.v1.%s %d\r\n%s\r\n" % (workspace.encode(), len(body), body))
        peer.sendall(b"".join(lines) + b"PING\r\n")
        seen = b""
        while b"PONG" not in seen:
            seen += peer.recv(4096)


def event(number, **more):
    return {"event_id": f"e-{number}", "event_time": "2026-03-01T23:59:59.5+00:00", "user_id": "user-1",
            "workspace_id": "ws-1", "conversation_id": "c", "message_id": "m", "agent_id": "manager",
            "agent_db_id": "a", "model": "m-1", "provider": "", "prompt_tokens": 10, "completion_tokens": 1,
            "total_tokens": 11, "tool_use_prompt_tokens": 0, "thoughts_tokens": 0, "cached_tokens": 5,
            "cost_usd": 0.25, "call_sequence": 0, "turn_id": "t", "session_id": "c", **more}


MARCH = ("--since", "2026-03-01", "--to", "2026-03-31")


def test_usage_is_answered_by_user_agent_model_and_day(weir, server):
    for user in ("user-1", "user-2"):
        weir.say("tools", user=user, workspace="ws-" + user)
    server.heard(4)
    eventually(lambda: server.stored() == 4)
    everything = ask(weir, server, "--by", "user,agent,model,day,workspace")
    [[today]] = rows(weir, "SELECT (now() AT TIME ZONE 'UTC')::date")
    assert everything["usage"] == [
        {"day": today, "user_id": user, "workspace_id": "ws-" + user, "agent_id": "manager",
         "model": "far-model", "calls": 2, "prompt_tokens": 30, "completion_tokens": 3, "total_tokens": 33,
         "tool_use_prompt_tokens": 0, "thoughts_tokens": 0, "cached_tokens": 15, "cost_usd": 0}
        for user in ("user-1", "user-2")]
    assert everything["total"]["calls"] == 4 and everything["total"]["total_tokens"] == 66
    one = ask(weir, server, "--by", "agent", "--user", "user-2")["usage"]
    assert [(line["agent_id"], line["calls"]) for line in one] == [("manager", 2)] and "day" not in one[0]
    assert rows(weir, "SELECT user_id, total_tokens FROM llm_usage_daily ORDER BY 1") == \
        rows(weir, "SELECT user_id, tokens_used FROM usage_counters ORDER BY 1")
    table, _ = start(weir, server, "--by", "user").communicate(timeout=60)
    assert [line.split() for line in table.splitlines()] == [
        ["user", "calls", "in", "out", "cost"], ["user-1", "2", "30", "3", "0.000000"],
        ["user-2", "2", "30", "3", "0.000000"], ["-", "4", "60", "6", "0.000000"]]


def test_usage_with_a_name_beyond_any_limit_is_counted_and_holds_up_no_other(weir, server):
    weir.say("longname", user="user-1", workspace="ws-1")
    weir.say("hello", user="user-2", workspace="ws-2")
    server.heard(2)
    eventually(lambda: server.stored() == 2)
    found = ask(weir, server, "--by", "user,model")["usage"]
    assert {row["user_id"]: len(row["model"]) for row in found} == {"user-1": 128, "user-2": len("far-model")}


def test_what_comes_twice_counts_once_and_what_is_no_usage_not_at_all(weir, server):
    weir.say("hello")
    server.heard(1)
    publish(server, "ws-1", [
        event(1), event(1), event(2, model="m-2"), event(1, prompt_tokens=999), b"no json", b"[]", b"",
        {"event_id": "d", "drawer_id": "d-1", "event_time": "2026-03-01T00:00:00Z"},
        event(3, prompt_tokens=-1), event(4, prompt_tokens=2**40), event(5, event_time="soon"),
        event(6, user_id={"a": 1}), event(7, user_id="a\0b"), event("", event_id=""),
        event(8, cost_usd="free"), event(9, model="x" * 2000), event(10, event_time="0000-01-01T00:00:00Z")])
    eventually(lambda: server.stored() >= 18)
    for _ in range(2):
        answer = ask(weir, server, "--by", "model,day", *MARCH)
        assert [(x["day"], x["model"], x["calls"], x["prompt_tokens"], x["cost_usd"]) for x in answer["usage"]] \
            == [("2026-03-01", "m-1", 1, 10, 0.25), ("2026-03-01", "m-2", 1, 10, 0.25)]
    assert rows(weir, "SELECT count(*) FROM llm_usage") == [["3"]]


def test_killed_at_any_moment_each_event_is_counted_once(weir, server):
    weir.say("hello")
    server.heard(1)
    count = 3000
    publish(server, "ws-1", [event(n, user_id=f"u-{n % 7}", model=f"m-{n % 3}") for n in range(count)])
    eventually(lambda: server.stored() == count + 1)
    for _ in range(8):
        followers = [start(weir, server, "--follow") for _ in range(2)]
        time.sleep(random.uniform(0.02, 0.3))
        for process in followers:
            process.kill()
            process.communicate()
    answer = ask(weir, server, "--by", "user,model", *MARCH)
    assert answer["total"]["calls"] == count and answer["total"]["prompt_tokens"] == 10 * count
    assert len(answer["usage"]) == 21 and len(answer["usage"][0]) == 10
    assert rows(weir, "SELECT count(*) FROM llm_usage") == [[str(count + 1)]]


KILLS = int(os.environ.get("WEIR_ORCHESTRATOR_KILLS", 4))  # 300 in scripts/proof
CONVERSATIONS = 20


def test_killed_under_20_conversations_each_message_is_once_and_all_counters_agree(  # noqa: F811
        orchestrate, runtime, server):
    """Tools, hand-overs and agents who ask each other; each message is sent until it is answered."""
    weir = orchestrate(driver="address", runtime_address=runtime.address, nats=server.url, stale="400ms",
                       turn_wait="5s", env=NO_OPENSSL)
    names = [(f"ws-{n}", f"user-{n}") for n in range(CONVERSATIONS)]
    swarms = {workspace: weir.swarm(workspace, user) for workspace, user in names}
    sent, answered, stop = set(), {}, []

    def tool(request, name, arguments):
        try:
            return post_tool(weir, request.session_id, name, arguments, request.user_id, request.workspace_id)
        except (httpx.HTTPError, KeyError, AssertionError) as lost:
            return {"error": repr(lost)}

    def talk(workspace, user):
        for turn in itertools.count():
            if stop:
                return
            local, text = f"{workspace}-{turn}", ["tools", "asks eve hello you", "delegate"][turn % 3]
            sent.add(local)
            while local not in answered:
                try:
                    answer = weir.post(text, swarms[workspace], workspace, user, local_id=local)
                    if answer.status_code == 201:
                        answered[local] = answer.json()["data"]["id"]
                except (httpx.HTTPError, KeyError):
                    time.sleep(0.05)

    runtime.tool = tool
    with concurrent.futures.ThreadPoolExecutor(CONVERSATIONS) as pool:
        talking = [pool.submit(talk, *who) for who in names]
        for _ in range(KILLS):
            time.sleep(random.uniform(0.05, 0.8))
            weir.kill()
            weir.start()
            weir.ready()
        time.sleep(0.5)
        stop.append(True)
        for done in talking:
            done.result(60)
    eventually(lambda: rows(weir, "SELECT (SELECT count(*) FROM messages WHERE status = 'pending'), "
                                  "(SELECT count(*) FROM agent_messages WHERE status = 'running')") == [["0", "0"]])
    stored = rows(weir, "SELECT local_id, count(*) FROM messages WHERE role = 'user' GROUP BY 1")
    assert {local for local, _ in stored} == sent == set(answered) and {n for _, n in stored} == {"1"}
    kept = {row[0] for row in rows(weir, "SELECT id FROM messages")}
    assert set(answered.values()) <= kept and len(answered) > CONVERSATIONS
    assert rows(weir, "SELECT count(*) FROM (SELECT turn_id, agent_id FROM messages WHERE role = 'agent' AND "
                      "content->>'type' <> 'tool_status' GROUP BY 1, 2 HAVING count(*) > 1) t") == [["0"]]
    assert rows(weir, "SELECT count(*) FROM messages WHERE content->>'state' = 'running'") == [["0"]]
    sums = "sum(total_tokens), sum(prompt_tokens), sum(completion_tokens), count(*)"
    counted = "tokens_used, prompt_tokens_used, completion_tokens_used, request_count"
    by_user = rows(weir, f"SELECT user_id, {sums} FROM usage_events GROUP BY 1 ORDER BY 1")
    assert by_user == rows(weir, f"SELECT user_id, {counted} FROM usage_counters ORDER BY 1")
    assert rows(weir, f"SELECT agent_db_id, {sums} FROM usage_events GROUP BY 1 ORDER BY 1") == \
        rows(weir, f"SELECT agent_id, {counted} FROM agent_usage_counters ORDER BY 1")
    eventually(lambda: not rows(weir, "SELECT 1 FROM usage_events WHERE published_at IS NULL LIMIT 1"), seconds=60)
    ask(weir, server)
    daily = sums.replace("count(*)", "sum(calls)")
    assert by_user == rows(weir, f"SELECT user_id, {daily} FROM llm_usage_daily GROUP BY 1 ORDER BY 1")


def test_without_nats_or_tables_it_says_what_to_do(weir, server):
    process = start(weir, server)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "no stream CRAWBL_USAGE" in err
    weir.say("hello")
    server.heard(1)
    rows(weir, "DROP TABLE llm_usage_daily, llm_usage")
    process = start(weir, server)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "weir orchestrate --migrate" in err
    process = start(weir, server, "--by", "colour")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2 and "knows no 'colour'" in err
    server.stop()
    process = start(weir, server)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "NATS" in err
