"""Who asks twice gets one run (K28): retries with a key, and a decision that is sent again."""
import time

import harness
import httpx
import pytest
import vendor as vendors
from test_leaving import http_of, reader, wait_for

SCRIPT = "test/e2e/scripts/payments.yaml"
ASKS = "agents: [{slug: manager, tools: {pay: ask}}]\n"
KEY = {"idempotency-key": "k-1"}

pytestmark = pytest.mark.weir(script=SCRIPT)


def post(weir, path, body, timeout=30, **headers):
    with http_of(weir, **headers) as http:
        return http.post(path, json=body, timeout=timeout)


def retry(weir, path, body, attempts=3, patience=1.0, **headers):
    """As upstream's async_retry: the same request again when it took too long."""
    for attempt in range(attempts):
        try:
            return post(weir, path, body, timeout=patience, **headers)
        except httpx.ReadTimeout:
            assert attempt + 1 < attempts, "no answer in all attempts"


def runs_of(weir, session="s", user=None):
    params = {"session_id": session, **({"user": user} if user else {})}
    token = harness.token(user or "anonymous", "default")
    with http_of(weir, authorization="Bearer " + token) as http:
        return http.get("/weir/v1/runs", params=params).json()["runs"]


def payments(weir, session="s"):
    """How often the tool answered in all runs of the session."""
    with reader(weir) as http:
        events = [
            http.get(f"/weir/v1/runs/{run['id']}/events", timeout=30).text
            for run in runs_of(weir, session)
        ]
    return sum(text.count('{"paid":') for text in events)


# --- a key ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/invoke", "/stream"])
def test_a_retry_loop_of_three_with_one_key_pays_once_and_is_answered(weir, path):
    answer = retry(weir, path, {"input": "pay", "session_id": "s"}, patience=1.0, **KEY)
    assert answer.status_code == 200 and "paid paid" in answer.text.replace('"}\n\ndata: {"delta":"', "")
    [run] = runs_of(weir)
    assert answer.headers["x-weir-run-id"] == run["id"] and run["state"] == "done"
    assert payments(weir) == 1
    weir.restart()
    again = post(weir, path, {"input": "pay", "session_id": "s"}, **KEY)
    assert again.text == answer.text
    assert payments(weir) == 1


def test_a_retry_loop_has_one_effect_outside(start_weir):
    """The search is somebody else's: it counts who asked, and is slower than a caller's patience."""
    with vendors.Vendor() as vendor:
        vendor.search_gate = lambda _: time.sleep(2.2)
        weir = start_weir(config=vendor.config(), env={"HOUSE_KEY": vendors.KEY})
        body = {"input": "find it with a search", "session_id": "s"}
        answer = retry(weir, "/invoke", body, **KEY)
        assert answer.status_code == 200 and "You said: find it" in answer.json()["output"]
        assert vendor.searches == ["find it with a search"]
        assert len(vendor.asked) == 2  # the question, and the result
        [run] = runs_of(weir)
        assert run["id"] == answer.headers["x-weir-run-id"]


def leave(weir, body, path="/invoke", patience=0.4, **headers):
    with pytest.raises(httpx.ReadTimeout):
        post(weir, path, body, timeout=patience, **headers)


@pytest.mark.weir(config="http: {on_disconnect: cancel}\n")
def test_a_request_with_a_key_outlives_its_connection(weir):
    leave(weir, {"input": "pay", "session_id": "s"}, **KEY)
    [run] = runs_of(weir)
    assert wait_for(weir, run["id"], "done", "cancelled") == "done"


def test_one_without_a_key_does_not_nor_one_that_says_cancel(weir):
    leave(weir, {"input": "pay", "session_id": "s"})
    leave(weir, {"input": "pay", "session_id": "t"}, **KEY, **{"x-weir-on-disconnect": "cancel"})
    for session in "st":
        [run] = runs_of(weir, session)
        assert wait_for(weir, run["id"], "done", "cancelled") == "cancelled"


def test_a_failure_that_left_no_effect_gives_its_key_back(weir):
    first = post(weir, "/invoke", {"input": "fail", "session_id": "s"}, **KEY)
    assert first.status_code == 503
    for _ in range(2):
        wait_for(weir, first.headers["x-weir-run-id"], "failed")
        again = post(weir, "/invoke", {"input": "fail", "session_id": "s"}, **KEY)
        assert again.status_code == 503
        assert again.headers["x-weir-run-id"] != first.headers["x-weir-run-id"]
        weir.restart()


def test_a_failure_behind_a_payment_is_the_answer_from_then_on(weir):
    body = {"input": "pay and fail", "session_id": "s"}
    first = post(weir, "/invoke", body, **KEY)
    assert first.status_code == 503
    wait_for(weir, first.headers["x-weir-run-id"], "failed")
    for _ in range(2):
        again = post(weir, "/invoke", body, **KEY)
        assert again.headers["x-weir-run-id"] == first.headers["x-weir-run-id"]
        assert again.text == first.text
        weir.restart()
    assert payments(weir) == 1


@pytest.mark.weir(config="limits: {shutdown: 200ms}\n")
def test_a_turn_that_the_daemons_stop_cut_gives_its_key_back(weir):
    leave(weir, {"input": "talk", "session_id": "s"}, **KEY)
    weir.restart()
    [cut] = runs_of(weir)
    assert cut["state"] == "cancelled"
    answer = post(weir, "/invoke", {"input": "talk", "session_id": "s"}, **KEY)
    assert answer.status_code == 200 and answer.headers["x-weir-run-id"] != cut["id"]


# --- /resume --------------------------------------------------------------------------


def ask(weir, text="pay", session="s", **more):
    answer = post(weir, "/invoke", {"input": text, "session_id": session, **more})
    assert answer.json()["metadata"]["interrupted"] is True, answer.text
    return answer.json()["metadata"]["approval"]


def resume(weir, words="yes", thread="s", timeout=30, headers=(), **more):
    body = {"thread_id": thread, "human_input": words, **more}
    return post(weir, "/resume", body, timeout=timeout, **dict(headers))


@pytest.mark.weir(config=ASKS)
@pytest.mark.parametrize("key", [{}, KEY], ids=["no key", "key"])
def test_the_same_decision_again_gets_the_same_outcome(weir, key):
    ask(weir)
    first = resume(weir, headers=key)
    assert first.status_code == 200 and "paid paid" in first.json()["output"]
    for _ in range(2):
        again = resume(weir, headers=key)
        assert (again.status_code, again.text) == (200, first.text)
        assert again.headers["x-weir-run-id"] == first.headers["x-weir-run-id"]
        weir.restart()
    assert payments(weir) == 1


@pytest.mark.weir(config=ASKS)
def test_another_decision_is_a_conflict(weir):
    named = ask(weir)["approval_id"]
    assert resume(weir).status_code == 200
    for words in ("no", {"decision": "edit", "args": {"eur": 1}}, "why?"):
        again = resume(weir, words)
        assert again.status_code == 409, again.text
        assert again.json()["error"]["code"] == "ALREADY_DECIDED"
        assert resume(weir, words, approval_id=named).status_code == 409
        weir.restart()
    assert resume(weir, "ok, go ahead").status_code == 200  # as a person says it, the same
    assert payments(weir) == 1


@pytest.mark.weir(config=ASKS)
@pytest.mark.parametrize("key", [{}, KEY], ids=["no key", "key"])
def test_an_answer_whose_connection_broke_is_reachable(weir, key):
    ask(weir)
    with pytest.raises(httpx.ReadTimeout):
        resume(weir, timeout=0.4, headers=key)
    answer = resume(weir, headers=key)
    assert answer.status_code == 200 and "paid paid" in answer.json()["output"]
    assert payments(weir) == 1
    [run] = runs_of(weir)
    assert run["state"] == "done"


@pytest.mark.weir(config=ASKS)
def test_who_says_cancel_has_a_resumed_run_cancelled(weir):
    ask(weir)
    with pytest.raises(httpx.ReadTimeout):
        resume(weir, timeout=0.4, headers={"x-weir-on-disconnect": "cancel"})
    [run] = runs_of(weir)
    assert wait_for(weir, run["id"], "done", "cancelled") == "cancelled"


@pytest.mark.weir(config=ASKS)
def test_a_retried_yes_with_a_key_never_answers_the_next_question(weir):
    ask(weir, "pay twice")
    first = resume(weir, headers=KEY)
    assert first.json()["metadata"]["interrupted"] is True
    assert first.json()["metadata"]["approval"]["args"] == {"eur": 2}
    for _ in range(2):
        again = resume(weir, headers=KEY)
        assert again.text == first.text
        weir.restart()
    assert resume(weir, "no").status_code == 200
    assert payments(weir) == 1


@pytest.mark.weir(config=ASKS)
def test_a_question_can_be_named(weir):
    first = ask(weir, "pay twice")["approval_id"]
    second = resume(weir, approval_id=first).json()["metadata"]["approval"]["approval_id"]
    again = resume(weir, approval_id=first)
    assert again.json()["metadata"]["approval"]["approval_id"] == second
    assert resume(weir, approval_id="1-1").status_code == 404
    for name in ("x", "1", "-", "0-1"):
        assert resume(weir, approval_id=name).status_code == 404
    assert resume(weir, approval_id=5).status_code == 422
    assert resume(weir, "no", approval_id=second).json()["metadata"]["interrupted"] is False
    assert payments(weir) == 1


@pytest.mark.weir(config=ASKS)
def test_a_question_that_is_named_is_answered_again_when_its_thread_has_gone_on(weir):
    named = ask(weir)["approval_id"]
    first = resume(weir, approval_id=named)
    assert "paid paid" in first.json()["output"]
    post(weir, "/invoke", {"input": "hello", "session_id": "s"})
    for another in (False, True):  # the second time, another question of the thread waits
        if another:
            ask(weir)
        for _ in range(2):
            again = resume(weir, approval_id=named)
            assert (again.status_code, again.text) == (200, first.text)
            assert resume(weir, "no", approval_id=named).status_code == 409
            assert resume(weir, thread="t", approval_id=named).status_code == 404
            weir.restart()
    assert resume(weir, "no").status_code == 200
    assert payments(weir) == 1


@pytest.mark.weir(config=ASKS)
def test_another_request_with_the_key_of_a_decision_is_refused(weir):
    ask(weir)
    resume(weir, headers=KEY)
    for answer in (resume(weir, "no", headers=KEY), resume(weir, thread="t", headers=KEY)):
        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "IDEMPOTENCY_KEY_REUSED"


def test_a_plain_question_is_answered_again_with_the_same_words(weir):
    ask(weir, "ask")
    first = resume(weir, "the blue one")
    assert first.json()["output"] == "Answered: the blue one"
    assert resume(weir, "the blue one").text == first.text
    assert resume(weir, "the red one").status_code == 409


def test_a_thread_that_asked_nothing_is_unknown(weir):
    post(weir, "/invoke", {"input": "hello", "session_id": "s"})
    for thread in ("s", "t", ""):
        assert resume(weir, thread=thread).status_code == 404


@pytest.mark.weir(config=ASKS)
def test_the_refusal_says_whether_the_thread_is_unknown_or_its_question_was_settled(weir):
    named = ask(weir)["approval_id"]
    first = resume(weir, headers=KEY)
    post(weir, "/invoke", {"input": "hello", "session_id": "s"})
    for _ in range(2):
        settled = resume(weir)
        assert settled.status_code == 404
        message = settled.json()["error"]["message"]
        assert "answered already" in message and "approval_id" in message
        # What the words advise brings the first answer.
        assert resume(weir, approval_id=named).text == first.text
        assert resume(weir, headers=KEY).text == first.text
        other = resume(weir, approval_id="1-1")
        assert other.status_code == 404 and "this approval_id" in other.json()["error"]["message"]
        for unknown in (resume(weir, thread="t"), resume(weir, **user("carol"))):
            assert unknown.status_code == 404
            message = unknown.json()["error"]["message"]
            assert "no turn of it is known" in message and "answered" not in message
        weir.restart()
    assert payments(weir) == 1


@pytest.mark.weir(config=ASKS)
def test_a_run_that_was_cancelled_while_it_waited_is_not_resumed(weir):
    ask(weir)
    [run] = runs_of(weir)
    with reader(weir) as http:
        http.post(f"/weir/v1/runs/{run['id']}/cancel")
    wait_for(weir, run["id"], "cancelled")
    for _ in range(2):
        assert resume(weir).status_code == 404
        weir.restart()


# --- whose thread ---------------------------------------------------------------------


def user(name):
    return {"config": {"configurable": {"user_id": name}}}


@pytest.mark.weir(config=ASKS)
def test_a_thread_of_two_users_is_ambiguous_until_one_is_named(weir):
    for name in ("alice", "bob"):
        ask(weir, session="shared", **user(name))
    answer = resume(weir, thread="shared")
    assert answer.status_code == 409
    error = answer.json()["error"]
    assert error["code"] == "AMBIGUOUS_THREAD"
    assert [q["user"] for q in error["details"]["questions"]] == ["alice", "bob"]
    assert resume(weir, thread="shared", **user("bob")).status_code == 200
    [bobs] = runs_of(weir, "shared", "bob")
    [alices] = runs_of(weir, "shared", "alice")
    assert (bobs["state"], alices["state"]) == ("done", "waiting")
    assert resume(weir, thread="shared", **user("carol")).status_code == 404
    assert resume(weir, thread="shared").status_code == 200  # only alice's waits
    for _ in range(2):
        assert resume(weir, thread="shared").status_code == 409
        assert resume(weir, thread="shared", **user("alice")).status_code == 200
        weir.restart()


# --- approvals ------------------------------------------------------------------------


def decide(weir, named, **body):
    with reader(weir) as http:
        return http.post(f"/weir/v1/approvals/{named}", json=body)


@pytest.mark.weir(config=ASKS)
def test_an_approval_sent_again_is_answered_the_same_and_another_one_is_a_conflict(weir):
    named = ask(weir)["approval_id"]
    assert decide(weir, named, decision="approve").status_code == 200
    for _ in range(2):
        again = decide(weir, named, decision="approve")
        assert again.status_code == 200 and again.json()["id"] == named
        assert decide(weir, named, answer="yes").status_code == 200
        assert decide(weir, named, decision="refuse").status_code == 409
        assert decide(weir, named, decision="edit", args={"eur": 1}).status_code == 409
        wait_for(weir, again.json()["run_id"], "done")
        weir.restart()
    assert decide(weir, named, decision="approve").json()["state"] == "done"
    assert payments(weir) == 1


# --- a decision in an /invoke ---------------------------------------------------------


@pytest.mark.weir(config=ASKS)
@pytest.mark.parametrize("path", ["/invoke", "/stream"])
def test_a_retried_yes_of_the_dashboard_pays_once_and_is_answered(weir, path):
    """Its proxy sends one key with all attempts, and knows no other route."""
    ask(weir)
    yes = {"input": "Yes!", "session_id": "s"}
    answer = retry(weir, path, yes, patience=1.0, **{"idempotency-key": "k-yes"})
    assert answer.status_code == 200, answer.text
    assert answer.text.count("paid paid") or answer.text.count('"paid "') > 1, answer.text
    assert payments(weir) == 1
    [run] = runs_of(weir)
    assert run["state"] == "done" and answer.headers["x-weir-run-id"] == run["id"]
    weir.restart()
    again = post(weir, path, yes, **{"idempotency-key": "k-yes"})
    assert again.headers["x-weir-run-id"] == run["id"]
    other = post(weir, path, {"input": "no", "session_id": "s"}, **{"idempotency-key": "k-yes"})
    assert other.status_code == 409
    assert payments(weir) == 1


@pytest.mark.weir(config=ASKS)
def test_a_key_that_was_stored_before_the_decision_was_lost_settles_it_after_all(weir):
    """Kills around the moment in which a keyed decision is stored: never twice, never lost."""
    for moment in range(6):
        session, key = f"s{moment}", {"idempotency-key": f"k{moment}"}
        ask(weir, session=session)
        with pytest.raises(httpx.HTTPError):
            resume(weir, thread=session, headers=key, timeout=0.002 + moment * 0.004)
        weir.kill()
        weir.start()
        answer = resume(weir, thread=session, headers=key)
        assert answer.status_code in (200, 409, 500), answer.text
        if answer.status_code == 500:
            assert "INTERRUPTED" in answer.text
        assert payments(weir, session) <= 1
        time.sleep(0)
