"""Several daemons on one store in PostgreSQL (T5 to T7). They run in `make check` and not in
`make test`: WEIR_WITH_POSTGRES=1 scripts/e2e test/e2e/test_replicas.py."""
import base64
import collections
import concurrent.futures
import json
import os
import random
import signal
import threading
import time

import grpc
import harness
import httpx
import pytest
from replicas import (  # noqa: F401  fixtures
    HEADERS,
    NEED_POSTGRES,
    SCRIPT,
    Replicas,
    eventually,
    exported,
    replicas,
    server,
    size,
    turn,
)

pytestmark = NEED_POSTGRES


FOR_EVER = {"input": "for ever", "session_id": "s"}


def kept(replicas):
    """The first turn of all is on disk."""
    eventually(lambda: replicas.sql("SELECT count(*) FROM log WHERE run <> 0") != "0")


def test_a_conversation_goes_on_at_any_replica(replicas):
    replicas.start(3)
    for i in range(12):
        assert turn(replicas.all[i % 3], "s", f"turn {i}").status_code == 200
    begun = [e["event"]["text"] for e in exported(replicas.all[0], "s")
             if e["event"]["type"] == "started"]
    assert begun == [f"turn {i}" for i in range(12)]
    assert replicas.sql("SELECT count(*) FROM lease") == "0"


def test_a_dead_replica_s_sessions_are_taken_over_and_its_turns_ended(replicas):
    replicas.start(2, script="test/e2e/scripts/slow.yaml")
    first, second = replicas.all
    with first.http(headers=HEADERS) as http, \
            http.stream("POST", "/stream", json=FOR_EVER):
        kept(replicas)
        first.kill()
    assert turn(second, "s", "again").status_code == 200
    kinds = [e["event"]["type"] for e in exported(second, "s")]
    assert kinds.count("started") == 2 and kinds.count("failed") == 1 and kinds.count("done") == 1
    assert kinds.index("failed") < kinds.index("started", 1)  # the next turn sees what was said
    second.said("1 turn was interrupted")


def test_a_replica_that_stood_still_writes_nothing_any_more_and_ends(replicas):
    replicas.start(2, script="test/e2e/scripts/slow.yaml")
    first, second = replicas.all
    with first.http(headers=HEADERS) as http, \
            http.stream("POST", "/stream", json=FOR_EVER):
        kept(replicas)
        first.signal(signal.SIGSTOP)
        assert turn(second, "s", "again").status_code == 200  # waits for the lease to be over
        before = exported(second, "s")
        first.signal(signal.SIGCONT)
        assert first.wait() != 0
    assert "silent for longer than store.lease" in first.log()
    assert exported(second, "s") == before
    kinds = [e["event"]["type"] for e in before]
    assert kinds.count("started") == 2 and kinds.count("failed") == 1 and kinds.count("done") == 1


def test_a_turn_that_another_replica_runs_is_waited_for(replicas):
    replicas.start(2, script="test/e2e/scripts/slow.yaml")
    first, second = replicas.all
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        one = pool.submit(turn, first, "s", "one")
        eventually(lambda: replicas.sql("SELECT count(*) FROM lease") == "1")
        two = pool.submit(turn, second, "s", "two")
        assert one.result().status_code == two.result().status_code == 200
    kinds = [e["event"]["type"] for e in exported(second, "s")]
    assert [kind for kind in kinds if kind in ("started", "done")] == ["started", "done"] * 2


def test_a_replica_gives_all_back_when_it_stops(replicas):
    """Also the session of a turn that is cut short, an hour before its lease is over."""
    replicas.start(2, script="test/e2e/scripts/slow.yaml", WEIR_STORE_LEASE="1h")
    first, second = replicas.all
    with first.http(headers=HEADERS) as http, \
            http.stream("POST", "/stream", json=FOR_EVER):
        kept(replicas)
        assert replicas.sql("SELECT count(*) FROM lease") == "1"
        first.stop()
    assert turn(second, "s", "quick").status_code == 200
    eventually(lambda: replicas.sql("SELECT count(*) FROM replica WHERE id > 0") == "1")
    eventually(lambda: replicas.sql("SELECT count(*) FROM lease") == "0")


def test_a_session_that_waits_is_not_free_when_its_replica_stops(replicas):
    """Its lease stays until another replica has the run that waits."""
    replicas.start(script="test/e2e/scripts/slow.yaml", WEIR_STORE_LEASE="60s")
    first = replicas.all[0]
    turn(first, "s", "ask")
    eventually(lambda: waiting(first))
    approval = waiting(first)[0]["id"]
    first.stop()
    assert replicas.sql("SELECT count(*) FROM lease WHERE holder > 0") == "1"
    second = replicas.start(script="test/e2e/scripts/slow.yaml", WEIR_STORE_LEASE="60s")
    eventually(lambda: waiting(second))
    assert decide(second, approval).status_code == 200
    eventually(lambda: [e["event"]["type"] for e in exported(second, "s")][-1:] == ["done"])
    eventually(lambda: replicas.sql("SELECT count(*) FROM lease") == "0")


def test_a_run_that_waits_moves_at_once_when_its_replica_stops(replicas):
    replicas.start(2, script="test/e2e/scripts/slow.yaml", WEIR_STORE_LEASE="60s")
    first, second = replicas.all
    turn(first, "s", "ask")
    eventually(lambda: waiting(first))
    first.stop()
    eventually(lambda: waiting(second), seconds=10)


def test_one_daemon_and_replicas_exclude_each_other(replicas, start_weir):
    alone = {**replicas.env, "WEIR_STORE_REPLICA": None}
    replicas.start()
    with pytest.raises(AssertionError, match="store.replica"):
        start_weir(script=SCRIPT, env=alone)
    replicas.all[0].stop()
    weir = start_weir(script=SCRIPT, env=alone)
    assert turn(weir, "s").status_code == 200
    with pytest.raises(AssertionError, match="another weir has it"):
        replicas.start()
    weir.kill()
    assert turn(replicas.start(), "s").status_code == 200


def test_usage_that_a_lone_daemon_left_behind_is_counted_once(replicas, start_weir):
    """Its sums may wait when it dies, while the other tables are filled."""
    weir = start_weir(script=SCRIPT, env={**replicas.env, "WEIR_STORE_REPLICA": None})
    for i in range(3):
        assert turn(weir, f"c{2 * i}").status_code == 200
        exported(weir, f"c{2 * i}")  # fills the tables
    weir.kill()
    replicas.sql("UPDATE usage SET calls = 0, prompt = 0, completion = 0")  # as if none was kept
    replicas.sql("UPDATE meta SET value = 0 WHERE name = 'usage'")
    replicas.start(2)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(turn, replicas.all, ["c0", "c2"]))
    assert [answer.status_code for answer in answers] == [200, 200]
    check_usage(replicas, range(0, 5, 2))
    assert replicas.sql("SELECT sum(calls) FROM usage") == "5"


def run_of(replica, session):
    with replica.http(headers=HEADERS) as http:
        runs = http.get("/weir/v1/runs", params={"session_id": session}).json()["runs"]
    return runs[-1]["id"] if runs else None


def events(lines):
    """The ids and kinds of server-sent events, as they come."""
    seq = None
    for line in lines:
        if line.startswith("id:"):
            seq = int(line.rsplit("-", 1)[1])
        if line.startswith("event:"):
            kind = line.split(":", 1)[1].strip()
        if not line and seq:
            yield seq, kind
            seq = None


def read(replica, run, after=None, headers=HEADERS):
    headers = {**headers, **({"Last-Event-ID": after} if after else {})}
    with replica.http(headers=headers) as http, \
            http.stream("GET", f"/weir/v1/runs/{run}/events") as answer:
        assert answer.status_code == 200
        yield from events(answer.iter_lines())


def test_a_run_is_read_at_any_replica_while_it_goes_on_at_another(replicas):
    replicas.start(2, script="test/e2e/scripts/slow.yaml")
    first, second = replicas.all
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(turn, first, "s", "take your time")
        kept(replicas)
        seen = list(read(second, run_of(first, "s")))
        assert asked.result().status_code == 200
    assert [seq for seq, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[0][1] == "started" and seen[-1][1] == "done"


def test_a_reader_goes_on_at_another_replica_when_its_own_dies(replicas):
    replicas.start(3, script="test/e2e/scripts/slow.yaml")
    first, second, third = replicas.all
    with first.http(headers=HEADERS) as http, http.stream("POST", "/stream", json=FOR_EVER):
        kept(replicas)
        run = run_of(first, "s")
        reading = read(second, run)
        for _ in range(5):
            last, _ = next(reading)
        second.kill()
        begun = time.monotonic()
        resumed = read(third, run, f"1-{last}")
        seq, _ = next(resumed)
        print(f"resumed after {time.monotonic() - begun:.3f} s")
        assert seq == last + 1
        first.kill()  # the run's own: it is ended by another, and the reader hears of it
        rest = list(resumed)
    assert rest[-1][1] == "failed"


def test_a_key_stands_for_one_run_at_all_replicas(replicas):
    replicas.start(3)
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        for i in range(5):
            asked = [pool.submit(turn, replicas.all[n % 3], f"k{i}", "once", f"key-{i}")
                     for n in range(9)]
            answers = {(a.result().status_code, a.result().json()["output"]) for a in asked}
            assert len(answers) == 1 and answers.pop()[0] == 200
            kinds = [e["event"]["type"] for e in exported(replicas.all[0], f"k{i}")]
            assert kinds.count("started") == kinds.count("done") == 1
    eventually(lambda: replicas.sql("SELECT count(*) FROM lease") == "0")


def waiting(replica):
    with replica.http(headers=HEADERS) as http:
        return http.get("/weir/v1/approvals").json()["approvals"]


def decide(replica, approval, answer="yes"):
    with replica.http(headers=HEADERS) as http:
        return http.post(f"/weir/v1/approvals/{approval}", json={"answer": answer})


def ask(replica, session="s"):
    """A turn that asks a question; the id of its approval."""
    turn(replica, session, "ask")
    eventually(lambda: waiting(replica))
    return waiting(replica)[-1]["id"]


def check_answered_once(replicas, replica, session="s"):
    """The run went on, with one decision, and nothing of the answers is left."""
    eventually(lambda: exported(replica, session)[-1]["event"]["type"] == "done")
    kinds = [e["event"]["type"] for e in exported(replica, session)]
    assert kinds.count("started") == kinds.count("tool_result") == kinds.count("done") == 1
    eventually(lambda: replicas.sql("SELECT count(*) FROM posted") == "0")
    sessions = "SELECT count(*) FROM lease WHERE get_byte(key, 0) = ascii('s')"
    eventually(lambda: replicas.sql(sessions) == "0")


def test_an_approval_is_answered_at_any_replica(replicas):
    replicas.start(3, script="test/e2e/scripts/slow.yaml", WEIR_APPROVALS_IN_MEMORY="0s")
    for asked, answered in [(0, 1), (2, 1), (1, 0)]:
        session = f"s{asked}{answered}"
        at, other = replicas.all[asked], replicas.all[answered]
        approval = ask(at, session)
        with other.http(headers=HEADERS) as http:
            refused = http.post(f"/weir/v1/approvals/{approval}",
                                json={"decision": "edit", "args": {}})
            assert refused.status_code == 422 and "no" in refused.text
            assert http.get(f"/weir/v1/approvals/{approval}").json()["state"] == "waiting"
        assert decide(other, approval).status_code == 200
        assert decide(other, approval).status_code == 200  # the same answer again
        assert decide(other, approval, "no").status_code == 409
        check_answered_once(replicas, other, session)


def test_the_approvals_of_all_replicas_are_listed_at_each(replicas):
    """Of the caller's workspace alone, and the lowest first."""
    replicas.start(3, script="test/e2e/scripts/slow.yaml", WEIR_APPROVALS_IN_MEMORY="1h")
    turn(replicas.all[1], "going on")
    for i, replica in enumerate(replicas.all * 2):
        turn(replica, f"s{i}", "ask")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        other = harness.token(workspace="other")
        with replicas.all[0].http(headers={"Authorization": f"Bearer {other}"}) as http:
            pool.submit(http.post, "/v1/messages", json=in_session("ask")).result()
        lists = [waiting(replica) for replica in replicas.all]
    for listed in lists:
        assert [a["session_id"] for a in listed] == [f"s{i}" for i in range(6)]
        assert [a["question"] for a in listed] == ["May I?"] * 6
        assert all(a["state"] == "waiting" and a["asked_unix_ms"] for a in listed)
    assert [[a["id"] for a in listed] for listed in lists] == [[a["id"] for a in lists[0]]] * 3
    with replicas.all[2].http(headers=HEADERS) as http:
        first = http.get("/weir/v1/approvals?limit=4").json()
        assert first["more"] and first["approvals"] == lists[2][:4]
        one = http.get("/weir/v1/approvals?session_id=s0").json()
        assert not one["more"] and one["approvals"] == lists[2][:1]
    assert decide(replicas.all[2], lists[2][0]["id"]).status_code == 200
    eventually(lambda: [a["session_id"] for a in waiting(replicas.all[1])] == [
        f"s{i}" for i in range(1, 6)])


def test_of_answers_at_several_replicas_at_once_one_counts(replicas):
    replicas.start(3, script="test/e2e/scripts/slow.yaml")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for i in range(4):
            approval = ask(replicas.all[i % 3], f"s{i}")
            words = ["yes", "no", "perhaps"]
            codes = [answer.status_code for answer in
                     pool.map(decide, replicas.all, [approval] * 3, words)]
            assert sorted(codes) == [200, 409, 409]
            check_answered_once(replicas, replicas.all[0], f"s{i}")
            said = [e["event"]["result"] for e in exported(replicas.all[1], f"s{i}")
                    if e["event"]["type"] == "tool_result"]
            assert said == [{"answer": words[codes.index(200)]}]


def test_an_answer_outlives_the_replica_that_has_the_run(replicas):
    """It was posted, and not given yet."""
    replicas.start(3, script="test/e2e/scripts/slow.yaml")
    first, second, third = replicas.all
    approval = ask(first)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first.signal(signal.SIGSTOP)
        answers = [pool.submit(decide, replica, approval) for replica in (second, third)]
        eventually(lambda: replicas.sql("SELECT count(*) FROM posted") == "2")
        first.kill()
        assert [answer.result().status_code for answer in answers] == [200, 200]
    check_answered_once(replicas, second)


def test_the_next_words_of_a_session_are_the_answer_at_any_replica(replicas):
    replicas.start(2, script="test/e2e/scripts/slow.yaml")
    first, second = replicas.all
    ask(first)
    refused = turn(second, "s", "what?")
    assert refused.status_code == 409 and "SESSION_WAITING" in refused.text
    answers = [turn(second, "s", "yes", key="k") for _ in range(2)]  # the second is repeated
    for answer in answers:
        assert answer.status_code == 200 and answer.json()["output"] == "Then I did."
    check_answered_once(replicas, second)
    assert turn(second, "s", "quick").json()["output"] == "Here you are."


def converse(replica, session, words):
    """The kinds of events of one turn over Converse, and its text."""
    from agentruntime.v1 import runtime_pb2, runtime_pb2_grpc

    request = runtime_pb2.ConverseRequest(session_id=session, message=words,
                                          workspace_id="ws-1", user_id="user-1")
    with grpc.insecure_channel(replica.target) as channel:
        call = runtime_pb2_grpc.AgentRuntimeStub(channel).Converse(
            iter([request]), metadata=replica.metadata(), timeout=60)
        events = list(call)
    return ([event.WhichOneof("event") for event in events],
            "".join(event.chunk.text for event in events if event.HasField("chunk")))


def asides(replica):
    """What was said beside the question, as the session's events have it: once each, for the model."""
    events = [entry["event"] for entry in exported_by_any(replica)]
    return [base64.b64decode(event["bytes"]).decode() for event in events
            if event.get("content_type") == "application/vnd.weir.aside"]


def test_the_next_message_of_converse_is_the_answer_at_any_replica(replicas):
    replicas.start(2, script="test/e2e/scripts/slow.yaml")
    first, second = replicas.all
    kinds, text = converse(first, "s", "ask")
    print(kinds, text)
    kinds, text = converse(second, "s", "yes")
    assert kinds[-1] == "done" and "Then I did." in text
    begun, done = [], 0
    with second.http(headers={"Authorization": f"Bearer {harness.token()}"}) as http:
        for line in http.get("/weir/v1/sessions/s/export").text.splitlines():
            event = json.loads(line)["event"]
            begun += [event["text"]] if event["type"] == "started" else []
            done += event["type"] == "done"
    assert begun == ["ask"] and done == 1
    kinds, text = converse(second, "s", "quick")
    assert kinds[-1] == "done" and text == "Here you are."


def test_what_decides_nothing_on_converse_is_kept_for_the_model_at_any_replica(replicas):
    config = "agents: [{slug: manager, description: Pays., tools: {pay: ask}}]\n"
    replicas.start(2, script="test/e2e/scripts/openai.yaml", config=config)
    first, second = replicas.all
    converse(first, "s", "pay")
    for words in ("why?", "what for?"):
        kinds, text = converse(second, "s", words)
        assert kinds[-1] == "done" and "Paid 300." not in text
    kinds, text = converse(second, "s", "yes")
    assert kinds[-1] == "done" and "Paid 300." in text
    assert asides(second) == ["why?", "what for?"]


def test_a_resume_reaches_the_run_at_any_replica(replicas):
    replicas.start(2, script="test/e2e/scripts/slow.yaml")
    first, second = replicas.all
    approval = ask(first)
    with second.http(headers=HEADERS) as http:
        for answer in ["maybe", "maybe", "no"]:  # the same again, and another one
            body = {"thread_id": "s", "approval_id": approval, "human_input": answer}
            resumed = http.post("/resume", json=body)
            assert resumed.status_code == (409 if answer == "no" else 200), resumed.text
            assert answer == "no" or "Then I did." in resumed.text
    check_answered_once(replicas, second)


def in_session(text, **more):
    return {"model": "manager", "max_tokens": 100, "messages": [{"role": "user", "content": text}], **more}


def by_messages(replica, text, approval):
    with replica.http(headers={**HEADERS, "x-session-id": "s"}) as http:
        said = http.post("/v1/messages", json=in_session(text)).json()
    return said["content"][-1]["text"], said["weir"].get("approval", {}).get("id")


def by_ag_ui(replica, text, approval):
    resume = [{"interruptId": approval, "status": "resolved", "payload": text}] if approval else []
    asked = {"threadId": "s", "runId": "r", "state": {}, "tools": [], "context": [],
             "forwardedProps": {}, "messages": [{"id": "m", "role": "user", "content": text}]}
    with replica.http(headers=HEADERS) as http:
        answer = http.post("/agui", json={**asked, **({"resume": resume} if resume else {})})
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    ended = events[-1].get("outcome") or {}
    return ("".join(e.get("delta", "") for e in events),
            next((i["id"] for i in ended.get("interrupts", [])), None))


def by_mcp(replica, text, approval):
    from test_mcp_server import over_http, run

    named = {"approval": approval} if approval else {}

    async def work(session):
        return await session.call_tool("manager", {"message": text, "session": "s", **named})

    result = run(over_http(replica, work))
    return result.content[0].text, result.structured_content.get("approval", {}).get("id")


@pytest.mark.parametrize("by", (by_messages, by_ag_ui, by_mcp))
@pytest.mark.parametrize("doze", ("0s", "1h"))
def test_a_guest_s_answer_reaches_the_run_at_any_replica(replicas, by, doze):
    """Its session is named, or its question, and the words that decide nothing get it again."""
    script = "test/e2e/scripts/openai.yaml"
    config = "agents: [{slug: manager, description: Pays., tools: {pay: ask}}]\n"
    replicas.start(2, script=script, config=config, WEIR_APPROVALS_IN_MEMORY=doze)
    first, second = replicas.all
    for _ in range(2):
        _, approval = by(first, "pay", None)
        assert approval
        assert by(second, "what for?", None if by is not by_ag_ui else approval)[1] == approval
        text, waits = by(second, "yes", approval)
        assert "Paid 300." in text and waits is None
        first, second = second, first
    assert asides(second) == ([] if by is by_mcp else ["what for?"] * 2)
    export = [e["event"]["type"] for e in exported_by_any(second)]
    assert export.count("started") == export.count("done") == 2
    eventually(lambda: replicas.sql("SELECT count(*) FROM posted") == "0")


def test_a_message_to_a_task_of_a2a_is_the_answer_at_any_replica(replicas):
    from test_a2a import CONFIG, Agent, Seen, run

    replicas.start(2, script="test/e2e/scripts/a2a.yaml", config=CONFIG)
    first, second = replicas.all

    async def work():
        async with Agent(first) as agent:
            task = Seen(await agent.ask("pay")).task
        async with Agent(second) as agent:
            again = Seen(await agent.ask("perhaps", task=task.id))
            done = Seen(await agent.ask("", task=task.id, data={"decision": "approve"}))
        return task, again, done

    task, again, done = run(work())
    assert again.states[-1] == "INPUT_REQUIRED"
    assert done.states[-1] == "COMPLETED" and done.task.id == task.id
    assert done.answer.startswith("Done: ")


def exported_by_any(replica):
    """As the caller of `turn` and as that of a signed token have it."""
    for headers in (HEADERS, {"Authorization": f"Bearer {harness.token()}"}):
        with replica.http(headers=headers) as http:
            answer = http.get("/weir/v1/sessions/s/export")
        if answer.status_code == 200:
            return [json.loads(line) for line in answer.text.splitlines()]
    return []


def test_an_answer_that_was_not_taken_is_never_given(replicas):
    """Its sender was told so: the replica that has the run stood still, and goes on later."""
    replicas.start(3, script="test/e2e/scripts/slow.yaml")
    first, second, _ = replicas.all
    approval = ask(first)
    replicas.sql("UPDATE replica SET until = 'infinity' WHERE name = 'a'")
    first.signal(signal.SIGSTOP)
    refused = decide(second, approval)
    assert refused.status_code == 503 and "not taken" in refused.text
    assert replicas.sql("SELECT count(*) FROM posted") == "0"
    first.signal(signal.SIGCONT)
    with second.http(headers=HEADERS) as http:
        assert http.get(f"/weir/v1/approvals/{approval}").json()["state"] == "waiting"
    assert decide(second, approval, "no").status_code == 200
    check_answered_once(replicas, second)


def test_a_run_that_waits_moves_when_its_replica_dies(replicas):
    replicas.start(2, script="test/e2e/scripts/slow.yaml")
    first, second = replicas.all
    approval = ask(first)
    first.kill()
    eventually(lambda: waiting(second))
    assert decide(second, approval).status_code == 200
    check_answered_once(replicas, second)


def test_a_budget_is_that_of_all_replicas(replicas):
    """Each reads what the others have spent a second later."""
    replicas.start(2, config="budgets:\n  - {day: 180 tokens}\n")
    first, second = replicas.all
    assert turn(second, "s").status_code == 200  # it has read that nothing was spent
    begun, sessions = time.monotonic(), (f"s{n}" for n in range(100000))
    while turn(first, next(sessions)).status_code == 200:
        pass
    spent = "SELECT coalesce(sum(prompt + completion), 0) FROM usage"
    eventually(lambda: 90 <= int(replicas.sql(spent)) <= 180)
    while time.monotonic() < begun + 1.1:
        assert "budget" in turn(first, next(sessions)).text
    refused = turn(second, next(sessions))
    assert refused.status_code != 200 and "budget" in refused.text


def test_a_workspace_s_turns_are_counted_over_all_replicas(replicas):
    """And those of a replica that dies do not count any more."""
    replicas.start(3, script="test/e2e/scripts/slow.yaml",
                   config="limits: {workspace_turns: 2}\n")
    first, second, third = replicas.all
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        asked = [pool.submit(turn, replicas.all[n % 3], f"s{n}", "take your time")
                 for n in range(9)]
        assert [a.result().status_code for a in asked] == [200] * 9
    eventually(lambda: replicas.sql("SELECT count(*) FROM run WHERE ended_ms > 0") == "9")
    at_once = replicas.sql(
        "SELECT max((SELECT count(*) FROM run b WHERE b.started_ms <= a.started_ms"
        " AND a.started_ms < b.ended_ms)) FROM run a")
    assert at_once == "2"
    eventually(lambda: replicas.sql("SELECT count(*) FROM place") == "0")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for n in range(2):
            pool.submit(turn_that_is_cut, first, f"for-ever-{n}")
        eventually(lambda: replicas.sql("SELECT count(*) FROM place") == "2")
        waits = pool.submit(turn, second, "later", "quick")
        first.kill()
        assert waits.result().status_code == 200
    assert turn(third, "last", "quick").status_code == 200


def turn_that_is_cut(replica, session):
    try:
        turn(replica, session, "for ever")
    except httpx.HTTPError:
        pass


class Talk:
    """Callers that each hold a conversation, by HTTP or Converse, at whatever replica answers.

    A turn that fails in a way that leaves its outcome open is repeated with its key, elsewhere.
    """

    def __init__(self, replicas, callers):
        self.replicas, self.over, self.done = replicas, threading.Event(), {}
        self.threads = [threading.Thread(target=self.hold, args=(n,)) for n in range(callers)]
        for thread in self.threads:
            thread.start()

    def hold(self, n):
        name, count = f"c{n}", 0
        ask = self.converse if n % 2 else self.invoke
        self.done[name] = 0
        while not self.over.is_set():
            for attempt in range(200):
                replica = self.replicas.all[(n + count + attempt) % len(self.replicas.all)]
                if ask(replica, name, f"turn {count}"):
                    self.done[name] += 1
                    break
                if not n % 2:
                    time.sleep(0.05)
                    continue
                break  # Converse has no key: the turn may be there
            count += 1

    @staticmethod
    def invoke(replica, name, text):
        try:
            answer = turn(replica, name, text, key=f"{name} {text}", timeout=20)
        except httpx.HTTPError:
            return False
        return answer.status_code == 200

    @staticmethod
    def converse(replica, name, text):
        from agentruntime.v1 import runtime_pb2, runtime_pb2_grpc

        request = runtime_pb2.ConverseRequest(session_id=name, message=text, workspace_id="ws-1",
                                              user_id="user-1")
        try:
            with grpc.insecure_channel(replica.target) as channel:
                call = runtime_pb2_grpc.AgentRuntimeStub(channel).Converse(
                    iter([request]), metadata=replica.metadata(), timeout=20)
                return any(event.WhichOneof("event") == "done" and
                           not event.done.model.startswith("ERROR:") for event in call)
        except (grpc.RpcError, ValueError):
            return False

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def events_of(replica, n):
    """The events of a conversation, as the store has them."""
    headers = HEADERS if not n % 2 else {"Authorization": f"Bearer {harness.token()}"}
    give_up = time.monotonic() + 30
    with replica.http(headers=headers) as http:
        while (answer := http.get(f"/weir/v1/sessions/c{n}/export")).status_code == 503:  # just cut
            assert time.monotonic() < give_up, answer.text
            time.sleep(0.1)
    assert answer.status_code == 200, answer.text
    lines = answer.text.splitlines()
    return [json.loads(line)["event"] for line in lines]


def turns_of(replica, n):
    """The texts of a conversation's turns, and of those that ended well."""
    begun, done = [], []
    for event in events_of(replica, n):
        if event["type"] == "started":
            begun.append(event["text"])
        if event["type"] == "done":
            done.append(begun[-1])
    return begun, done


def check_usage(replicas, conversations):
    """Each call is in the sums once, whoever has written them."""
    kinds = [e["type"] for n in conversations for e in events_of(replicas.all[-1], n)]
    calls = kinds.count("usage")
    assert calls >= kinds.count("done") > 0
    expected = {"calls": calls, "prompt_tokens": calls * 7, "completion_tokens": calls * 11}
    for replica in replicas.all:  # each has its own view of how far the sums are
        seen = collections.Counter()
        for headers in (HEADERS, {"Authorization": f"Bearer {harness.token()}"}):
            with replica.http(headers=headers) as http:  # of this caller's workspace
                total = http.get("/weir/v1/usage").json()["total"]
            seen.update({key: total[key] for key in expected})
        assert {key: seen[key] for key in expected} == expected, replica.name
    sums = replicas.sql("SELECT sum(calls), sum(prompt), sum(completion) FROM usage")
    assert sums == f"{calls}|{calls * 7}|{calls * 11}"  # of quick.yaml
    marks = "SELECT count(DISTINCT value) FROM meta WHERE name IN ('usage', 'projected')"
    assert replicas.sql(marks) == "1"


def check_talk(replicas, talk, callers):
    """No acknowledged turn lost or doubled; each turn saw the one before."""
    for n in range(callers):
        begun, done = turns_of(replicas.all[-1], n)
        assert talk.done[f"c{n}"] > 0
        assert len(done) >= talk.done[f"c{n}"], f"c{n}: {done}"
        assert len(set(done)) == len(done), f"c{n}: {done}"
        order = [int(text.split()[1]) for text in done]
        assert order == sorted(order)
    overlaps = replicas.sql(
        "SELECT count(*) FROM run a JOIN run b ON a.session = b.session AND a.id < b.id"
        " AND b.first_log < a.first_log")
    assert overlaps == "0"
    check_usage(replicas, range(callers))


def test_no_turn_is_lost_or_doubled_when_replicas_die_are_cut_off_or_stand_still(replicas):
    replicas.start(3)
    callers, rounds = 6, size("WEIR_REPLICA_ROUNDS", 2)
    talk = Talk(replicas, callers)
    try:
        for i in range(rounds):
            killed, cut, still = (replicas.all[(i + n) % 3] for n in range(3))
            time.sleep(0.5)
            killed.kill()
            time.sleep(0.5)
            replicas.cut(cut)
            killed.start()
            time.sleep(0.5)
            still.signal(signal.SIGSTOP)
            time.sleep(3.5)  # longer than its lease
            still.signal(signal.SIGCONT)
            assert still.wait() != 0
            still.start()
    finally:
        talk.end()
    print(f"turns acknowledged: {sum(talk.done.values())}")
    check_talk(replicas, talk, callers)


def test_a_reader_goes_on_by_its_cursor_whichever_replica_dies_under_load(replicas):
    """In make proof within two seconds, each time."""
    replicas.start(3, script="test/e2e/scripts/slow.yaml")
    first, *others = replicas.all
    rounds, over, took, last = size("WEIR_REPLICA_ROUNDS", 2), threading.Event(), [], 0

    def load(n):
        while not over.is_set():
            try:
                turn(replicas.all[n % 3], f"l{n}", "quick", timeout=20)
            except httpx.HTTPError:
                time.sleep(0.05)

    callers = [threading.Thread(target=load, args=(n,)) for n in range(6)]
    try:
        with first.http(headers=HEADERS) as http, http.stream("POST", "/stream", json=FOR_EVER):
            kept(replicas)
            run = run_of(first, "s")
            for caller in callers:
                caller.start()
            for i in range(rounds):
                dies, stays = others[i % 2], others[1 - i % 2]
                reading = read(dies, run, f"1-{last}" if last else None)
                for _ in range(5):
                    seq, _ = next(reading)
                    assert seq == last + 1
                    last = seq
                dies.kill()
                begun = time.monotonic()
                seq, _ = next(read(stays, run, f"1-{last}"))
                took.append(time.monotonic() - begun)
                assert seq == last + 1
                last = seq
                dies.start()
    finally:
        over.set()
        for caller in callers:
            if caller.ident:
                caller.join()
    print(f"resumed after {max(took):.3f} s at most, {sorted(took)[len(took) // 2]:.3f} s as a rule")
    assert "WEIR_REPLICA_ROUNDS" not in os.environ or max(took) < 2


def test_a_commit_whose_answer_was_lost_counts_once(replicas):
    """T6: connections are cut at any moment, often while COMMIT is under way."""
    replicas.start(2)
    callers, cuts = 4, size("WEIR_REPLICA_CUTS", 20)
    talk = Talk(replicas, callers)
    try:
        for _ in range(cuts):
            time.sleep(random.uniform(0.05, 0.25))
            replicas.cut(random.choice([None, *replicas.all]))
    finally:
        talk.end()
    print(f"turns acknowledged: {sum(talk.done.values())}")
    check_talk(replicas, talk, callers)
