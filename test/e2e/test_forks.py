"""POST /weir/v1/sessions/ID/fork: a new session that begins with the conversation of an old one."""
import concurrent.futures
import json
import socket
import time

import harness
import httpx
import pytest
import vendor
from noting_model import ENV, noting_model, said
from test_transfers import Model


@pytest.fixture
def model():
    with noting_model() as one:
        yield one


@pytest.fixture
def weir(start_weir, model):
    return start_weir(script=None, config=model.config(), env={"CRAWBL_MCP_SIGNING_KEY": None, **ENV})


def turn(http, session, text=None, **more):
    """One turn, to its end; the id of its run."""
    asked = {"session_id": session, **({"input": text} if text else {}), **more}
    answer = http.post("/weir/v1/runs", json=asked)
    assert answer.status_code == 202, answer.text
    run = answer.json()["id"]
    end = time.monotonic() + 60
    while (now := http.get(f"/weir/v1/runs/{run}").json()).get("state") not in ("done", "failed", "cancelled"):
        assert time.monotonic() < end, now
        time.sleep(0.01)
    return run


def fork(http, session, run, to, status=201, **whose):
    answer = http.post(f"/weir/v1/sessions/{session}/fork", json={"run": run, "session_id": to}, params=whose)
    assert answer.status_code == status, answer.text
    return answer.json() if status == 201 else answer.json()["error"]["code"]


def send_fork(weir, run, to):
    """The connection on which a fork was asked for."""
    body = json.dumps({"run": run, "session_id": to})
    head = "POST /weir/v1/sessions/old/fork HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    connection = socket.create_connection(("127.0.0.1", httpx.URL(weir.url).port))
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return connection


def test_a_fork_is_shown_all_that_was_said_up_to_its_run_and_nothing_after(weir, model):
    with weir.http() as http:
        turn(http, "old", "one")
        two = turn(http, "old", "two")
        turn(http, "old", "three")
        answer = fork(http, "old", two, "new")
        assert answer == {"session_id": "new", "workspace": "default", "user": "anonymous", "fork_of": two, "turns": 2}
        turn(http, "new", "four")
        assert model.shown[-1] == [*said("one", "two"), ("user", "four")]
        turn(http, "old", "five")  # and the old one goes on as it was
        assert model.shown[-1] == [*said("one", "two", "three"), ("user", "five")]


def test_a_fork_of_a_fork_has_everything(weir, model):
    with weir.http() as http:
        fork(http, "old", turn(http, "old", "one"), "new")
        fork(http, "new", turn(http, "new", "two"), "newer")
        turn(http, "newer", "three")
    assert model.shown[-1] == [*said("one", "two"), ("user", "three")]


def test_messages_that_a_session_began_with_go_along(weir, model):
    with weir.http() as http:
        messages = [{"role": "user", "content": "I am Eve"}, {"role": "assistant", "content": "hello"}, {"role": "user", "content": "hi"}]
        fork(http, "old", turn(http, "old", messages=messages), "new")
        turn(http, "new", "who am I?")
    assert model.shown[-1] == [("user", "I am Eve"), ("assistant", "hello"), *said("hi"), ("user", "who am I?")]


def test_as_many_turns_go_along_as_the_session_itself_would_be_shown(weir, model):
    with weir.http() as http:
        runs = [turn(http, "old", f"fact {i}") for i in range(70)]
        turn(http, "old", "what?")
        before = model.shown[-1]
        fork(http, "old", runs[-1], "new")
        turn(http, "new", "what?")
        assert model.shown[-1] == before and len(before) > 100
        fork(http, "old", runs[24], "short")
        turn(http, "short", "what?")
        assert model.shown[-1] == [*said(*(f"fact {i}" for i in range(25))), ("user", "what?")]


def test_a_refused_first_turn_of_a_fork_takes_nothing_from_it(weir, model):
    with weir.http() as http:
        fork(http, "old", turn(http, "old", "I am Bob"), "new")
        model.refuses = "please"
        turn(http, "new", "please: who am I?")
        turn(http, "new", "please: who am I?")
    assert model.shown[-1][:2] == said("I am Bob")


def test_a_fork_is_there_after_a_kill_and_counts_nothing_twice(weir, model):
    with weir.http() as http:
        run = turn(http, "old", "one")
        used = http.get("/weir/v1/usage").json()["total"]
        fork(http, "old", run, "new")
        assert http.get("/weir/v1/usage").json()["total"] == used
    weir.kill()
    weir.start()
    with weir.http() as http:
        assert http.get("/weir/v1/usage").json()["total"] == used
        (copy,) = http.get("/weir/v1/runs", params={"session_id": "new"}).json()["runs"]
        assert (copy["state"], copy["contract"], copy["text"]) == ("done", "fork", "one")
        turn(http, "new", "two")
        assert model.shown[-1] == [*said("one"), ("user", "two")]
        records = http.get("/weir/v1/audit").json()["records"]
        assert [(r["operation"], r["run"]) for r in records if r.get("contract") == "fork"] == [("done", copy["id"]), ("start", copy["id"])]
        export = [json.loads(line)["event"] for line in http.get("/weir/v1/sessions/new/export").text.splitlines()]
        assert export[0]["extras"] == {"fork_of": run}


def test_what_another_agent_said_is_read_through_the_rules_in_a_fork_after_a_restart(start_weir):
    with Model() as two:
        provider = {"name": "house", "kind": "openai", "base_url": two.url + "/v1", "key_env": "HOUSE_KEY"}
        rule = {"name": "names", "pattern": "(?i)zelda", "replace": "[NAME]", "on": "input"}
        agents = [{"slug": "strict", "model": "house/big", "delegates": ["plain"], "guardrails": ["names"]},
                  {"slug": "plain", "model": "house/big"}]
        config = json.dumps({"providers": [provider], "guardrails": [rule], "agents": agents})
        weir = start_weir(script=None, config=config, env={"CRAWBL_MCP_SIGNING_KEY": None, "HOUSE_KEY": vendor.KEY})
        two.replies = [[("transfer_to_agent", {"agent_name": "plain"})], "It is Zelda.", "One.", "Two."]
        with weir.http() as http:
            fork(http, "old", turn(http, "old", "who?", agent="strict"), "new")
            turn(http, "new", "again?", agent="strict")
        before = two.read()
        assert "It is [NAME]." in before and "Zelda" not in before
        weir.kill()
        weir.start()
        with weir.http() as http:
            turn(http, "new", "and now?", agent="strict")
        assert two.read().startswith(before) and "Zelda" not in two.read()


def test_what_cannot_be_forked_says_why(weir, model):
    with weir.http() as http:
        run, other = turn(http, "old", "one"), turn(http, "other", "two")
        assert fork(http, "old", other, "new", 404) == "RUN_NOT_FOUND"
        assert fork(http, "old", "7", "new", 404) == "RUN_NOT_FOUND"
        assert fork(http, "old", "run", "new", 404) == "RUN_NOT_FOUND"
        assert fork(http, "nothing", run, "new", 404) == "RUN_NOT_FOUND"
        assert fork(http, "old", run, "new", 404, user="ada") == "RUN_NOT_FOUND"
        assert fork(http, "old", run, "other", 409) == "SESSION_EXISTS"
        assert fork(http, "old", run, "old", 409) == "SESSION_EXISTS"
        for body in ({}, {"run": run}, {"session_id": "new"}, {"run": run, "session_id": ""}, {"run": run, "session_id": "a\nb"}, []):
            assert http.post("/weir/v1/sessions/old/fork", json=body).status_code == 422, body
        misspelt = http.post("/weir/v1/sessions/old/fork", json={"run": run, "session": "new"})
        assert misspelt.status_code == 400 and "no member 'session' here" in misspelt.text
        assert http.post("/weir/v1/sessions/old/fork", content='{"run":"1","run":"2","session_id":"new"}',
                         headers={"content-type": "application/json"}).status_code == 400
        model.answers.clear()
        goes_on = http.post("/weir/v1/runs", json={"session_id": "old", "input": "three"}).json()["id"]
        assert fork(http, "old", goes_on, "new", 409) == "RUN_NOT_ENDED"
        model.answers.set()
        assert {one["session_id"] for one in http.get("/weir/v1/sessions").json()["sessions"]} == {"old", "other"}


def test_of_many_forks_to_one_name_at_once_one_is_made(weir, model):
    with weir.http() as http:
        run = turn(http, "old", "one")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: http.post("/weir/v1/sessions/old/fork", json={"run": run, "session_id": "new"}).status_code, range(16)))
        assert sorted(answers) == [201] + [409] * 15
        assert len(http.get("/weir/v1/runs", params={"session_id": "new"}).json()["runs"]) == 1


def test_many_forks_at_once_are_all_made_and_those_whose_caller_leaves_end_nothing(weir, model):
    with weir.http() as http:
        run = turn(http, "old", "word " * 20_000)
        for i in range(40):
            send_fork(weir, run, f"left-{i}").close()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda i: fork(http, "old", run, f"new-{i}"), range(24)))
        assert [one["turns"] for one in made] == [1] * 24
        turn(http, "new-23", "two")
        assert model.shown[-1] == [*said("word " * 20_000), ("user", "two")]
        there = {one["session_id"] for one in http.get("/weir/v1/sessions", params={"limit": 500}).json()["sessions"]}
        for i in range(40):  # each of them was made, or can be made now
            name = f"left-{i}"
            assert name in there or fork(http, "old", run, name)["session_id"] == name


def test_a_daemon_that_stops_in_the_middle_of_a_fork_ends_in_order(start_weir, model):
    """The stop comes at every stage, and mostly while a job reads the long session for a caller who has left."""
    rounds = 12
    weir = start_weir(args=["--threads", "1"], script=None, config=model.config(), env={"CRAWBL_MCP_SIGNING_KEY": None, **ENV})
    with weir.http() as http:
        for _ in range(60):
            run = turn(http, "old", "word " * 40_000)
        turn(http, "old", "and?")
        before = model.shown[-1]
    for i in range(rounds):
        asked = [send_fork(weir, run, f"new-{i}-{n}") for n in range(3)]  # one is made after the other
        assert asked[0].recv(4096).startswith(b"HTTP/1.1 201")
        began = time.monotonic()
        assert asked[1].recv(4096).startswith(b"HTTP/1.1 201")
        time.sleep((time.monotonic() - began) * (0.4 + 0.6 * i / rounds))
        for connection in asked:
            connection.close()
        weir.restart()
    with weir.http() as http:
        there = {one["session_id"] for one in http.get("/weir/v1/sessions", params={"limit": 500}).json()["sessions"]}
        for name in (f"new-{i}-{n}" for i in range(0, rounds, 5) for n in range(3)):
            assert name in there or fork(http, "old", run, name)["session_id"] == name
            turn(http, name, "and?")
            assert model.shown[-1] == before  # each was made as a whole, or can be made now


def test_a_user_forks_what_is_theirs(start_weir, model):
    weir = start_weir(script=None, config=model.config(), env=ENV)
    ada, bob = ({"authorization": "Bearer " + harness.token(name, "ws-1")} for name in ("ada", "bob"))
    with weir.http(headers=ada) as hers, weir.http(headers=bob) as his:
        run = turn(hers, "old", "one")
        turn(his, "old", "other")
        assert fork(his, "old", run, "new", 404) == "RUN_NOT_FOUND"
        assert his.post("/weir/v1/sessions/old/fork", params={"user": "ada"}, json={"run": run, "session_id": "new"}).status_code == 403
        answer = fork(hers, "old", run, "new")
        assert (answer["workspace"], answer["user"]) == ("ws-1", "ada")
        turn(hers, "new", "two")
        assert model.shown[-1] == [*said("one"), ("user", "two")]
        assert [one["session_id"] for one in his.get("/weir/v1/sessions").json()["sessions"]] == ["old"]
