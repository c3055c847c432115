"""One key, one turn: asked again it is answered again, and never made a second time."""
import concurrent.futures
import json
import random
import threading
import time

import httpx
import pytest
from test_leaving import SLOW, http_of, leave_a_stream, reader, wait_for

KEYED = {"idempotency-key": "k-1"}


def invoke(weir, key="k-1", name="idempotency-key", path="/invoke", http2=False, **body):
    with http_of(weir, http2, **{name: key}) as http:
        return http.post(path, json={"input": "count", "session_id": "s", **body})


def runs_of(weir, session="s", user=None):
    params = {"session_id": session, **({"user": user} if user else {})}
    with reader(weir) as http:
        return http.get("/weir/v1/runs", params=params).json()["runs"]


def same(one, other):
    assert one.status_code == other.status_code
    assert one.headers["x-weir-run-id"] == other.headers["x-weir-run-id"]
    assert one.text == other.text


@pytest.mark.weir(script=SLOW)
@pytest.mark.parametrize("http2", [False, True], ids=["http/1.1", "http/2"])
@pytest.mark.parametrize("path", ["/invoke", "/stream"])
def test_asked_again_it_is_answered_again_also_after_a_restart(weir, path, http2):
    first = invoke(weir, path=path, http2=http2)
    assert first.status_code == 200 and "on on" in first.text.replace('"}\n\ndata: {"delta":"', "")
    same(first, invoke(weir, path=path, http2=http2))
    same(first, invoke(weir, path=path, name="x-idempotency-key"))
    weir.restart()
    same(first, invoke(weir, path=path, http2=http2))
    assert len(runs_of(weir)) == 1


@pytest.mark.weir(script=SLOW)
def test_a_stream_can_be_asked_again_as_an_invoke(weir):
    told = invoke(weir, path="/stream").text
    result = json.loads(told.split("event: result\ndata: ")[1].split("\n")[0])
    assert invoke(weir).json() == result


@pytest.mark.weir(script=SLOW)
def test_a_session_that_was_made_up_is_the_same_again(weir):
    with http_of(weir, **KEYED) as http:
        first, again = (http.post("/invoke", json={"input": "count"}) for _ in range(2))
    same(first, again)
    assert len(first.json()["session_id"]) == 36


@pytest.mark.weir(script=SLOW)
def test_a_question_is_asked_again(weir):
    first = invoke(weir, input="ask")
    assert first.json()["metadata"]["interrupted"] is True
    same(first, invoke(weir, input="ask"))
    weir.restart()
    same(first, invoke(weir, input="ask"))


@pytest.mark.weir(script=SLOW)
def test_another_request_with_the_key_is_refused(weir):
    first = invoke(weir)
    for other in (
        {"input": "count!"},
        {"session_id": "t"},
        {"config": {"temperature": 1}},
        {"input": ["count"]},
    ):
        answer = invoke(weir, **other)
        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "IDEMPOTENCY_KEY_REUSED"
    same(first, invoke(weir, metadata={"trace": "another"}))


@pytest.mark.weir(script=SLOW)
def test_a_key_is_its_users_own(weir):
    of = [{"config": {"configurable": {"user_id": user}}} for user in ("ann", "bob")]
    ids = [invoke(weir, **config).headers["x-weir-run-id"] for config in of + of]
    assert ids[0] != ids[1] and ids[:2] == ids[2:]


@pytest.mark.weir(script=SLOW)
@pytest.mark.parametrize("key", [b"", b"k" * 256, b"k\xc3\xa9", b"a\tb"])
def test_a_key_that_is_none_is_refused(weir, key):
    answer = invoke(weir, key=key)
    assert answer.status_code == 400
    assert "255 printable" in answer.json()["error"]["message"]


@pytest.mark.weir(script=SLOW)
def test_two_keys_that_differ_are_refused(weir):
    with http_of(weir, **KEYED, **{"x-idempotency-key": "k-2"}) as http:
        assert http.post("/invoke", json={"input": "count"}).status_code == 400


@pytest.mark.weir(script=SLOW, args=["--threads", "4"])
def test_of_many_at_the_same_moment_one_starts_a_turn(weir):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for moment in range(4):
            key = f"moment {moment}"
            asked = [
                pool.submit(
                    invoke,
                    weir,
                    key,
                    path="/stream" if caller % 3 == 0 else "/invoke",
                    http2=caller % 2 == 0,
                    session_id=key,
                )
                for caller in range(16)
            ]
            answers = [future.result() for future in asked]
            assert {answer.status_code for answer in answers} == {200}
            assert len({answer.headers["x-weir-run-id"] for answer in answers}) == 1
            assert len({answer.text for answer in answers}) == 2  # one a path
            assert len(runs_of(weir, key)) == 1


SAID = [{"role": "user", "content": "count"}]
GUESTS = {
    "chat": ("/v1/chat/completions", {"model": "manager", "messages": SAID}),
    "responses": ("/v1/responses", {"model": "manager", "input": "count"}),
    "messages": ("/v1/messages", {"model": "manager", "max_tokens": 99, "messages": SAID}),
}


@pytest.mark.weir(script=SLOW, args=["--threads", "2"])
@pytest.mark.parametrize("named", [True, False], ids=["named", "made up"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("door", GUESTS)
def test_a_joined_request_is_answered_with_the_session_of_its_run(weir, door, stream, named):
    """Also when they come at once, and from a later process."""
    path, body = GUESTS[door]
    headers = {**KEYED, **({"x-session-id": "s"} if named else {})}

    def ask(_):
        with http_of(weir, **headers) as http:
            return http.post(path, json={**body, "stream": stream})

    def facts(answer):
        assert answer.status_code == 200, answer.text
        return answer.headers["x-weir-run-id"], *answer.headers.get_list("x-session-id")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = {facts(answer) for answer in pool.map(ask, range(8))}
    assert len(found) == 1
    run, session = found.pop()
    assert session == "s" if named else session
    assert facts(ask(0)) == (run, session)
    weir.restart()
    assert facts(ask(0)) == (run, session)
    with http_of(weir) as http:
        runs = http.get("/weir/v1/runs", params={"session_id": session}).json()["runs"]
    assert [each["id"] for each in runs] == [run]


@pytest.mark.weir(script=SLOW)
def test_who_comes_back_finds_the_running_turn(weir):
    how = {"x-weir-on-disconnect": "detach-for=10s", **KEYED}
    run = leave_a_stream(weir, **how)
    with http_of(weir, **how) as http:
        answer = http.post("/stream", json={"input": "count"})
    assert answer.headers["x-weir-run-id"] == run
    assert answer.text.count('{"delta"') == 10
    assert answer.text.endswith("data: [DONE]\n\n")
    assert wait_for(weir, run, "done")


@pytest.mark.weir(script=SLOW)
@pytest.mark.parametrize("how", ["cancel", "detach-for=100ms"])
def test_who_left_a_cancelled_turn_may_ask_for_it_again(weir, how):
    left = leave_a_stream(weir, **{"x-weir-on-disconnect": how}, **KEYED)
    assert wait_for(weir, left, "cancelled")
    with http_of(weir, **KEYED) as http:
        first = http.post("/invoke", json={"input": "count"})
    assert first.status_code == 200 and first.headers["x-weir-run-id"] != left
    weir.restart()
    with http_of(weir, **KEYED) as http:
        same(first, http.post("/invoke", json={"input": "count"}))


@pytest.mark.weir(script=SLOW)
def test_who_comes_back_at_once_has_no_cancelled_turn_either(weir):
    """Whatever is done first: he finds the turn that still runs, or begins anew."""
    for moment in range(8):
        key = {"idempotency-key": f"moment {moment}"}
        leave_a_stream(weir, **key)
        with http_of(weir, **key) as http:
            answer = http.post("/invoke", json={"input": "count"})
        assert answer.status_code == 200, answer.text


@pytest.mark.weir(script=SLOW)
def test_a_turn_that_was_cancelled_by_request_keeps_its_key(weir):
    run = leave_a_stream(weir, "for ever", **{"x-weir-on-disconnect": "detach"}, **KEYED)
    with reader(weir) as http:
        assert http.post(f"/weir/v1/runs/{run}/cancel").status_code == 202
    assert wait_for(weir, run, "cancelled")
    for _ in range(2):
        with http_of(weir, **KEYED) as http:
            answer = http.post("/invoke", json={"input": "for ever"})
        assert answer.headers["x-weir-run-id"] == run
        assert answer.status_code == 500
        assert answer.json()["error"]["details"]["status"] == "CANCELLED"
        weir.restart()


@pytest.mark.weir(script=SLOW)
def test_a_second_listener_keeps_what_the_first_would_cancel(weir):
    with http_of(weir, **KEYED) as http:
        with http.stream("POST", "/stream", json={"input": "count"}) as first:
            run = first.headers["x-weir-run-id"]
            words = first.iter_lines()
            next(words)
            again = httpx.Client(base_url=weir.url, headers=KEYED, timeout=30)
            second = again.send(
                again.build_request("POST", "/stream", json={"input": "count"}), stream=True
            )
            lines = second.iter_lines()
            next(lines)
    assert [line for line in lines if line][-1] == "data: [DONE]"
    assert wait_for(weir, run, "done")


@pytest.mark.weir(script=SLOW, config="limits: {idempotency: 1s}\n")
def test_a_key_is_free_again_when_its_time_is_over(weir):
    first = invoke(weir).headers["x-weir-run-id"]
    time.sleep(1.2)
    second = invoke(weir, input="something else")
    assert second.status_code == 200
    assert second.headers["x-weir-run-id"] != first


@pytest.mark.weir(script=SLOW)
def test_a_turn_that_a_crash_cut_before_it_did_anything_is_made_anew(weir):
    """K28: it left no effect, so its key is free again."""
    run = leave_a_stream(weir, **KEYED)
    time.sleep(0.3)  # a store tick: it is on disk
    weir.kill()
    weir.restart()
    with http_of(weir, **KEYED) as http:
        answer = http.post("/invoke", json={"input": "count"})
        assert answer.status_code == 200 and answer.headers["x-weir-run-id"] != run
        same(answer, http.post("/invoke", json={"input": "count"}))


def ask_until_it_dies(weir, name, keys):
    """Keyed turns, one after the other, each in a session that is called like its key."""
    while True:
        keys.append(f"{name} {len(keys)}")
        try:
            answer = invoke(weir, keys[-1], input="quick", session_id=keys[-1])
        except httpx.HTTPError:
            return
        assert answer.status_code == 200, answer.text


@pytest.mark.weir(script=SLOW)
def test_kills_double_no_turn_that_has_a_key(weir):
    """Row R-1: what was under way is asked for again, as a careful caller does; what was cut
    had no effect, and is made anew."""
    for moment in range(4):
        keys = [[] for _ in range(6)]
        callers = [
            threading.Thread(target=ask_until_it_dies, args=(weir, f"{moment} {i}", keys[i]))
            for i in range(len(keys))
        ]
        for caller in callers:
            caller.start()
        time.sleep(random.uniform(0.1, 0.6))
        weir.kill()
        for caller in callers:
            caller.join()
        weir.restart()
        for mine in keys:
            for key in mine[-3:]:  # the last one was cut, or never came
                answer = invoke(weir, key, input="quick", session_id=key)
                assert answer.status_code == 200, answer.text
                *cut, done = runs_of(weir, key)
                assert done["id"] == answer.headers["x-weir-run-id"]
                assert done["state"] == "done"
                assert all(run["interrupted"] for run in cut) and len(cut) <= 1


@pytest.mark.weir(script="test/e2e/scripts/quick.yaml", config="")
def test_calls_whose_keys_are_looked_up_at_once_keep_their_words_apart(weir):
    """Each waits for the store with its own body, key and session."""

    def ask(number):
        said = f"note of caller {number:03} " + f"{number:03} " * (number * 7 % 97)
        headers = {"idempotency-key": f"k-{number}", "x-session-id": f"s-{number}"}
        with weir.http(headers=headers) as http:
            answer = http.post("/invoke", json={"input": said})
        return said, answer

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        for number, (said, answer) in enumerate(pool.map(ask, range(200))):
            assert answer.json()["output"] == f"You said: {said}. Grüße, and that was all."
            assert answer.json()["session_id"] == f"s-{number}"


# --- POST /weir/v1/runs -----------------------------------------------------------------------


def start(weir, name="idempotency-key", key="k-1", **body):
    with reader(weir) as http:
        http.headers[name] = key
        return http.post("/weir/v1/runs", json={"input": "count", "session_id": "s", **body})


@pytest.mark.weir(script=SLOW)
def test_a_key_begins_one_run_also_after_a_restart(weir):
    first = start(weir)
    assert first.status_code == 202
    again = start(weir), start(weir, "x-idempotency-key")
    weir.said(f"turn {first.json()['id']} ended")
    weir.restart()
    for answer in (*again, start(weir)):
        assert answer.status_code == 202 and answer.json() == first.json()
    assert [run["id"] for run in runs_of(weir)] == [first.json()["id"]]


@pytest.mark.weir(script=SLOW)
def test_a_key_of_a_run_is_one_requests(weir):
    first = start(weir)
    for other in ({"input": "other"}, {"session_id": "t"}, {"agent": "manager"}):
        refused = start(weir, **other)
        assert refused.status_code == 409
        assert refused.json()["error"]["code"] == "IDEMPOTENCY_KEY_REUSED"
    assert invoke(weir).status_code == 409, "a key of /weir/v1/runs is no key of /invoke"
    assert start(weir, key="k-2").json()["id"] != first.json()["id"]
    assert start(weir, key="").status_code == 400
    assert len(runs_of(weir)) == 2 and not runs_of(weir, "t")


@pytest.mark.weir(script=SLOW)
def test_runs_that_are_begun_at_once_with_one_key_are_one(weir):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: start(weir), range(16)))
    assert {(answer.status_code, answer.json()["id"]) for answer in answers} == {
        (202, runs_of(weir)[0]["id"])
    }
    assert len(runs_of(weir)) == 1


@pytest.mark.parametrize("name", ["session_id", "user", "workspace"])
@pytest.mark.parametrize("wrong", ["a\nb", "a\u0000", "a" * 257, "a\u0085"])
def test_ids_of_a_run_are_checked(weir, name, wrong):
    refused = start(weir, **{name: wrong})
    assert refused.status_code == 422 and name in refused.json()["error"]["message"]
    assert not runs_of(weir)
