"""What a restart, or the death of the process, leaves of runs and sessions."""
import contextlib
import os
import sqlite3
import time

import crawbl
import grpc
import pytest
from replicas import eventually
from test_converse import states

pytestmark = pytest.mark.weir(script="test/e2e/scripts/contract.yaml")


def rows(weir, question):
    """Ask the store of a daemon that has stopped."""
    assert weir.process is None, "its owner still runs"
    uri = f"file:{weir.data}/weir.db?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as store:
        return store.execute(question).fetchall()


def whole(weir):
    return rows(weir, "pragma integrity_check") == [("ok",)]


def runs_of(weir, session):
    """The runs that the session's history leads through, newest first."""
    found = []
    newest = rows(weir, f"select newest_run from session where name = cast('{session}' as blob)")
    run = newest[0][0] if newest else None
    while run:
        found.append(run)
        run = rows(weir, f"select previous from run where id = {run}")[0][0]
    return found


def unfinished(weir):
    return rows(weir, "select count(*) from run where state = 0")[0][0]


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        user, system = stat.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def test_a_session_goes_on_after_a_restart(weir):
    """R-1: every acknowledged turn is there, in order, once"""
    with crawbl.open_stream(weir) as stream:
        for number in range(3):
            assert stream.ask(f"before {number}", session_id="s").error is None
    weir.restart()
    for number in range(2):
        turn = crawbl.one_turn(weir, f"after {number}", session_id="s")
        assert turn.text == f"manager heard: after {number}"
    weir.stop()
    assert whole(weir)
    assert len(runs_of(weir, "s")) == 5


def test_a_kill_right_after_the_last_event_loses_no_turn(weir):
    """R-1: what was acknowledged is on disk"""
    for round_ in range(5):
        with crawbl.open_stream(weir) as stream:
            for number in range(4):
                assert stream.ask(f"{round_}.{number}", session_id="s").error is None
            weir.process.kill()
        weir.kill()
        weir.start()
        weir.stop()
        assert whole(weir)
        assert len(runs_of(weir, "s")) == 4 * (round_ + 1)
        weir.start()


def test_a_kill_right_after_an_answer_loses_no_turn(weir):
    """R-1: the same for /invoke and for [DONE]"""
    for number, path in enumerate(("/invoke", "/stream") * 3):
        with weir.http() as http:
            body = {"input": "hello", "session_id": "s"}
            assert http.post(path, json=body).status_code == 200
        weir.kill()
        weir.start()
        weir.stop()
        assert len(runs_of(weir, "s")) == number + 1
        weir.start()


@pytest.mark.parametrize(
    "message", ["long while", "stay silent", "endless tool", "slow tool", "fail stall"]
)
def test_a_turn_that_was_running_at_a_kill_is_over_and_its_session_usable(weir, message):
    """K26: failed `interrupted` at the next start"""
    assert crawbl.one_turn(weir, "hello", session_id="s").error is None
    with crawbl.open_stream(weir) as stream:
        stream.send(message, session_id="s")
        eventually(lambda: states(weir, "s") == ["done", "running"])
        weir.process.kill()
        assert stream.status() == grpc.StatusCode.UNAVAILABLE
    weir.kill()
    weir.start()
    assert crawbl.one_turn(weir, "hello", session_id="s").text == "manager heard: hello"
    assert states(weir, "s") in (["done", "failed", "done"], ["done", "done"])  # had it been written?
    weir.stop()
    assert whole(weir) and unfinished(weir) == 0


def test_a_killed_run_is_recorded_as_interrupted(weir):
    """K26"""
    with crawbl.open_stream(weir) as stream:
        stream.send("endless tool", session_id="s")
        while stream.next().WhichOneof("event") != "tool_call":
            pass
        weir.process.kill()
    weir.kill()
    weir.start()
    weir.stop()
    said = b"".join(row[0] for row in rows(weir, "select bytes from log order by id"))
    assert b"interrupted" in said.lower()


def test_nested_turns_that_a_kill_interrupts_leave_a_usable_session(weir):
    """K11, K26"""
    with crawbl.open_stream(weir) as parent, crawbl.open_stream(weir) as child:
        parent.send("slow tool", session_id="s")
        while parent.next().WhichOneof("event") != "tool_call":
            pass
        child.send("long while", session_id="s", agent_id="wally")
        child.next()
        weir.process.kill()
    weir.kill()
    weir.start()
    assert crawbl.one_turn(weir, "hello", session_id="s").error is None
    weir.stop()
    assert whole(weir) and unfinished(weir) == 0


def test_ten_kills_in_a_row_do_not_make_the_start_slower(weir):
    """R-6"""
    for number in range(10):
        with crawbl.open_stream(weir) as stream:
            assert stream.ask("hello", session_id="s").error is None
            stream.send("long while", session_id=f"lost-{number}")
            stream.next()
            weir.process.kill()
        weir.kill()
        weir.start()
        assert processor_seconds(weir.process.pid) < 1 or crawbl.is_sanitized()
    assert crawbl.one_turn(weir, "hello", session_id="s").error is None
    weir.stop()
    assert whole(weir) and len(runs_of(weir, "s")) == 11


def test_a_kill_under_load_loses_nothing_that_was_acknowledged(weir):
    """R-1, in small"""
    acknowledged = [0] * 8

    def talk(number):
        with contextlib.suppress(grpc.RpcError), crawbl.open_stream(weir) as stream:
            while stream.ask("hello", session_id=f"load-{number}").kinds[-1:] == ["done"]:
                acknowledged[number] += 1

    clients = [crawbl.in_background(talk, number) for number in range(8)]
    time.sleep(0.5)
    weir.process.kill()
    for client in clients:
        client()
    weir.kill()
    weir.start()
    weir.stop()
    assert whole(weir) and min(acknowledged) > 0
    for number, count in enumerate(acknowledged):
        assert len(runs_of(weir, f"load-{number}")) in (count, count + 1)


def test_usage_is_counted_once_across_kills(weir):
    """O5: in the store's own account"""
    for _ in range(3):
        assert crawbl.one_turn(weir, "hello", session_id="s").error is None
        weir.kill()
        weir.start()
    weir.stop()
    counted = rows(weir, "select sum(calls), sum(prompt), sum(completion) from usage")
    assert counted == [(3, 21, 15)]


def test_a_turn_is_stored_whole_or_not_at_all_wherever_its_stream_is_dropped(weir):
    """O5: as the store has it: every run ended, none with two ends, the session's chain whole"""
    events = len(crawbl.one_turn(weir, "three tools", session_id="s").events)
    for index in range(events):
        stream = crawbl.open_stream(weir)
        stream.send("three tools", session_id="s")
        for _ in range(index):
            stream.next()
        stream.call.cancel()
    assert crawbl.one_turn(weir, "hello", session_id="s").error is None
    weir.stop()
    assert whole(weir) and unfinished(weir) == 0
    chain = runs_of(weir, "s")
    assert len(chain) == len(set(chain)) and 2 <= len(chain) <= events + 2


def test_a_message_that_was_denied_is_not_stored(weir):
    """K8: nothing stored"""
    denied = "a-message-that-was-denied"
    assert crawbl.one_turn(weir, denied, user_id="user-2").code == "PERMISSION_DENIED"
    assert crawbl.one_turn(weir, "hello", session_id="s").error is None
    weir.stop()
    assert rows(weir, "select count(*) from session") == [(1,)]
    said = b"".join(row[0] for row in rows(weir, "select bytes from log"))
    assert denied.encode() not in said


def test_the_store_is_nobody_else_s_to_read(weir):
    """O6"""
    assert weir.data.stat().st_mode & 0o077 == 0
    for file in weir.data.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file


def test_a_damaged_store_is_refused_by_name_and_left_as_it_is(weir):
    """T3"""
    assert crawbl.one_turn(weir, "hello").error is None
    weir.stop()
    store = weir.data / "weir.db"
    damaged = b"not a database at all" + store.read_bytes()[21:]
    store.write_bytes(damaged)
    with pytest.raises(AssertionError, match="weir.db"):
        weir.start()
    assert store.read_bytes() == damaged


@pytest.mark.weir(config="converse:\n  sticky: true\n")
@pytest.mark.parametrize("death", ["stop", "kill"])
def test_who_spoke_last_is_remembered_across(weir, death):
    """R-1, 2.6: history, seen from outside through the sticky setting"""
    assert crawbl.one_turn(weir, "hand over", session_id="s").error is None
    getattr(weir, death)()
    weir.start()
    assert crawbl.one_turn(weir, "who?", session_id="s").text == "wally heard: who?"


@pytest.mark.parametrize("death", ["stop", "kill"])
def test_a_question_to_a_person_waits_across(weir, death):
    """K26: waiting runs go on; the next message answers it"""
    asked = crawbl.one_turn(weir, "ask me", session_id="hitl")
    assert asked.error is None
    getattr(weir, death)()
    weir.start()
    assert crawbl.one_turn(weir, "yes", session_id="hitl").text.endswith("Booked.")
    assert crawbl.one_turn(weir, "hello", session_id="hitl").text == "manager heard: hello"
