"""Runs that wait for a human and have left memory: nobody can tell them from those that stayed.

The tests of approvals once more, with runs that go after a moment without a reader; and what
only such a run could get wrong.
"""
import concurrent.futures
import time

import pytest
import test_approvals
from test_approvals import OPTIONS, client, decide, run_ends, waiting

GONE_S = 0.15  # a run that waits longer than this, unread, is not in memory

pytestmark = pytest.mark.weir(**OPTIONS)
globals().update({name: value for name, value in vars(test_approvals).items() if name[:5] == "test_"})


@pytest.fixture
def start_weir(start_weir):
    def start(**options):
        env = {**options.pop("env", {}), "WEIR_APPROVALS_IN_MEMORY": "20ms"}
        return start_weir(env=env, **options)

    return start


@pytest.fixture(autouse=True)
def asleep(monkeypatch):
    """Whoever asks a human has waited long enough before the test goes on."""
    stays = test_approvals.ask

    def ask(*args, **kwargs):
        approval = stays(*args, **kwargs)
        time.sleep(GONE_S)
        return approval

    monkeypatch.setattr(test_approvals, "ask", ask)
    return ask


def test_the_page_of_a_list_is_the_oldest_and_says_whether_there_is_more(weir, asleep):
    with client(weir) as http:
        for i in range(5):
            asleep(http, session=f"s{i}")
        for limit, more in ((2, True), (4, True), (5, False), (100, False)):
            answer = http.get("/weir/v1/approvals", params={"limit": limit}).json()
            assert [a["session_id"] for a in answer["approvals"]] == [f"s{i}" for i in range(min(limit, 5))]
            assert answer["more"] is more
            time.sleep(GONE_S)
        assert len(waiting(http, session_id="s3")) == 1


GONE, BACK = "leaves memory", "is back in memory"


def log_has(weir, text, times):
    give_up = time.monotonic() + test_approvals.PATIENCE
    while weir.log().count(text) < times and time.monotonic() < give_up:
        time.sleep(0.02)
    return weir.log().count(text) == times


def test_what_sleeps_is_listed_as_it_was_awake_and_sleeps_on(start_weir):
    config = test_approvals.ASKS + "approvals: {deadline: 1h}\n"
    weir = start_weir(**{**OPTIONS, "config": config, "args": ["--log-level", "debug"]})
    with client(weir) as http:
        run = test_approvals.ask(http)["approval_id"].partition("-")[0]
        assert log_has(weir, GONE, 1)
        with http.stream("GET", f"/weir/v1/runs/{run}/events") as events:
            assert any(line == "event: approval" for line in events.iter_lines())
            with client(weir) as other:  # the reader keeps it awake
                awake = waiting(other)
                one = other.get(f"/weir/v1/approvals/{awake[0]['id']}").json()
        assert awake == [one] and one["deadline_unix_ms"] - one["asked_unix_ms"] == 3600_000
        test_approvals.ask(http, "ask", "u")
        assert log_has(weir, GONE, 3)
        second = waiting(http, session_id="u")
        for _ in range(3):
            assert waiting(http) == awake + second
            assert waiting(http, user="anonymous", session_id="u") == second
            assert waiting(http, user="another") == waiting(http, session_id="v") == []
            for approval in awake + second:
                assert http.get(f"/weir/v1/approvals/{approval['id']}").json() == approval
        assert weir.log().count(BACK) == 1  # for its reader
        assert decide(http, second[0]["id"], answer="at last").status_code == 200
        assert run_ends(http, second[0]["run_id"]) == "done"
        assert weir.log().count(BACK) == 2
        assert waiting(http) == awake
        told = http.get(f"/weir/v1/approvals/{second[0]['id']}").json()
        assert told["state"] == "answered" and told["answer"] == {"answer": "at last"}


def test_it_is_told_as_waiting_and_keeps_its_session_from_being_erased(weir, asleep):
    with client(weir) as http:
        run = asleep(http)["approval_id"].partition("-")[0]
        assert http.get(f"/weir/v1/runs/{run}").json()["state"] == "waiting"
        [listed] = http.get("/weir/v1/runs", params={"session_id": "t"}).json()["runs"]
        assert listed["id"] == run and listed["state"] == "waiting"
        assert http.delete("/weir/v1/sessions/t").status_code == 409
        time.sleep(GONE_S)
        refused = http.post("/invoke", json={"input": "hello", "session_id": "t"})
        assert refused.status_code == 409 and refused.json()["error"]["code"] == "SESSION_WAITING"


def test_who_reads_its_events_keeps_it_and_sees_how_it_ends(weir, asleep):
    with client(weir) as http:
        approval = asleep(http)["approval_id"]
        run = approval.partition("-")[0]
        with http.stream("GET", f"/weir/v1/runs/{run}/events") as events:
            lines = events.iter_lines()
            assert any(line == "event: approval" for line in lines)
            time.sleep(GONE_S)
            with client(weir) as other:
                assert decide(other, approval, decision="approve").status_code == 200
            assert any(line == "event: done" for line in lines)


def test_a_repeated_request_with_its_key_hears_the_question_again(weir):
    with client(weir) as http:
        keyed = {"headers": {"idempotency-key": "k"}, "json": {"input": "pay", "session_id": "t"}}
        first = http.post("/invoke", **keyed)
        time.sleep(GONE_S)
        again = http.post("/invoke", **keyed)
        assert again.status_code == 200 and again.json() == first.json()
        assert len(waiting(http)) == 1


def test_many_who_answer_at_once_are_one(weir, asleep):
    with client(weir) as http:
        approval = asleep(http)["approval_id"]

        def say(_):
            with client(weir) as own:
                return decide(own, approval, decision="approve").status_code

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            told = list(pool.map(say, range(8)))
        assert set(told) <= {200, 409} and 200 in told  # the same decision again is no other one
        assert run_ends(http, approval.partition("-")[0]) == "done"
        decision, paid = test_approvals.results(http, approval.partition("-")[0])
        assert decision["decision"] == "approve" and paid == {"paid": "300"}


def test_a_list_is_whole_while_runs_fall_asleep(weir, asleep):
    """Woken runs stay for two seconds. Others wake them at all times, so that they come back and
    fall asleep on several loops in the midst of a list."""
    sessions = {f"s{i}" for i in range(40)}
    over = time.monotonic() + 7

    def wake_one_by_one(http, step):
        number = 0
        while time.monotonic() < over:
            number += step
            run = runs[number % len(runs)]
            assert http.get(f"/weir/v1/runs/{run}").json()["state"] == "waiting"

    def list_all(http):
        while time.monotonic() < over:
            answer = http.get("/weir/v1/approvals", params={"limit": 1000}).json()
            assert {a["session_id"] for a in answer["approvals"]} == sessions
            assert answer["more"] is False

    with client(weir) as http, client(weir) as other, concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = pool.map(lambda name: test_approvals.ask(http, session=name), sorted(sessions))
        runs = [approval["approval_id"].partition("-")[0] for approval in asked]
        work = [pool.submit(wake_one_by_one, http, 7), pool.submit(wake_one_by_one, other, 13)]
        work += [pool.submit(list_all, http), pool.submit(list_all, other)]
        for each in work:
            each.result()
