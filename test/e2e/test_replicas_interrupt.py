"""session.busy: interrupt where several replicas share a store in PostgreSQL: a newer message takes the
place of a turn at another replica, as at home. They run in `make check` and not in `make test`:
WEIR_WITH_POSTGRES=1 scripts/e2e test/e2e/test_replicas_interrupt.py."""
import concurrent.futures
import json
import signal

import pytest
from replicas import (  # noqa: F401  fixtures
    HEADERS,
    NEED_POSTGRES,
    eventually,
    exported,
    replicas,
    server,
    turn,
)

pytestmark = NEED_POSTGRES

SCRIPT = "test/e2e/scripts/interrupt.yaml"
BUSY = "session: {busy: interrupt}\n"
WHY = "a newer message of the session took its place"


def start(replicas, count=2, busy=BUSY, **more):
    replicas.start(count, script=SCRIPT, config=busy, **more)
    return replicas.all


def leases(replicas):
    return int(replicas.sql("SELECT count(*) FROM lease"))


def begin(replicas, replica, text="for ever", session="s"):
    """A turn that goes on by itself; it has its session, which was free."""
    before = leases(replicas)
    with replica.http(headers=HEADERS) as http:
        begun = http.post("/weir/v1/runs", json={"input": text, "session_id": session})
    assert begun.status_code == 202, begun.text
    eventually(lambda: leases(replicas) == before + 1)
    return begun.json()["id"]


def endings(replica, session="s"):
    """How its turns ended, in their order."""
    events = [line["event"] for line in exported(replica, session)]
    return [event["message"] if event["type"] == "cancelled" else event["type"]
            for event in events if event["type"] in ("done", "failed", "cancelled")]


def kinds(replica, session="s"):
    with replica.http(headers=HEADERS) as http:
        answer = http.get(f"/weir/v1/sessions/{session}/export")
    return [json.loads(line)["event"]["type"] for line in answer.text.splitlines()] \
        if answer.is_success else []


def nothing_is_left(replicas):
    eventually(lambda: replicas.sql("SELECT count(*) FROM kept") == "0")
    eventually(lambda: leases(replicas) == 0)


@pytest.mark.parametrize("text", ["for ever", "say nothing"])
def test_a_newer_message_takes_the_place(replicas, text):
    """Of one that talks, of one that has not said a word yet."""
    first, second = start(replicas, WEIR_STORE_LEASE="1h")
    for one, other in ((first, second), (second, first)):
        begin(replicas, one, text)
        answer = turn(other, "s", "newer")
        assert answer.status_code == 200 and answer.json()["output"] == "heard: newer"
        nothing_is_left(replicas)
    assert endings(first) == [WHY, "done"] * 2


def test_a_turn_whose_tool_is_at_work_makes_way_when_the_tool_has_answered(replicas):
    first, second = start(replicas)
    begin(replicas, first, "work")
    eventually(lambda: "tool_call" in kinds(second))
    assert turn(second, "s", "newer").json()["output"] == "heard: newer"
    assert kinds(second).index("tool_result") < kinds(second).index("cancelled")
    assert endings(first) == [WHY, "done"]
    nothing_is_left(replicas)


def test_those_that_wait_make_way_as_well(replicas):
    """The one that has the session stands still, until the others have come."""
    first, second, third = start(replicas, 3, WEIR_STORE_LEASE="1h")
    begin(replicas, first, session="other")
    begin(replicas, first)
    first.signal(signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        older = pool.submit(turn, second, "s", "older")
        eventually(lambda: replicas.sql("SELECT count(*) FROM kept") == "1")
        newest = pool.submit(turn, third, "s", "newest")
        assert older.result().json()["error"]["details"]["status"] == "CANCELLED"
        assert not newest.done()
        first.signal(signal.SIGCONT)
        assert newest.result().json()["output"] == "heard: newest"
    assert endings(third) == [WHY, "done"]
    with first.http(headers=HEADERS) as http:  # another session's turn goes on
        states = [run["state"] for run in http.get("/weir/v1/runs").json()["runs"]]
    assert sorted(states) == ["cancelled", "done", "running"]
    eventually(lambda: replicas.sql("SELECT count(*) FROM kept") == "0")


def test_a_turn_that_waits_for_a_person_stays(replicas):
    first, second = start(replicas)
    begin(replicas, first, "ask")
    eventually(lambda: turn(second, "s", "what?").status_code == 409)
    answer = turn(second, "s", "yes")
    assert answer.status_code == 200 and answer.json()["output"] == "Then I did."
    assert endings(second) == ["done"]
    nothing_is_left(replicas)


def test_without_it_a_newer_message_waits(replicas):
    first, second = start(replicas, busy="")
    begin(replicas, first)
    answer = turn(second, "s", "newer")
    assert answer.status_code == 503 and "replica 'a' has this session" in answer.text
    assert endings(second) == []


def test_who_waits_and_dies_leaves_no_wish(replicas):
    """The one that has the session stands still, so that the wish stays."""
    first, second, third = start(replicas, 3)
    begin(replicas, first)
    replicas.sql("UPDATE replica SET until = 'infinity' WHERE name = 'a'")
    first.signal(signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        cut = pool.submit(turn, second, "s", "newer")
        eventually(lambda: replicas.sql("SELECT count(*) FROM kept") == "1")
        second.kill()
        assert cut.exception()
    eventually(lambda: replicas.sql("SELECT count(*) FROM kept") == "0")
    first.signal(signal.SIGCONT)
    assert turn(third, "s", "newest").json()["output"] == "heard: newest"
    nothing_is_left(replicas)
