"""Who hangs up: the run ends, or goes on for as long as he said."""
import contextlib
import json
import os
import socket
import subprocess
import sys
import time

import grpc
import harness
import pytest
from agentruntime.v1 import runtime_pb2, runtime_pb2_grpc

SLOW = "test/e2e/scripts/slow.yaml"
BUSY = ("queued", "running")
PATIENCE = 60  # seconds


def http_of(weir, http2=False, **headers):
    headers = {"authorization": "Bearer " + harness.token(), **headers}
    return weir.http(headers=headers, http1=not http2, http2=http2)


def reader(weir):
    """Sees the workspace that callers of the Runtime Contract are in."""
    return http_of(weir, authorization="Bearer " + harness.token("anonymous", "default"))


def state_of(weir, run):
    with reader(weir) as http:
        return http.get(f"/weir/v1/runs/{run}").json()["state"]


def wait_for(weir, run, *states):
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        state = state_of(weir, run)
        if state in states:
            return state
        time.sleep(0.01)
    raise AssertionError(f"run {run} is still {state}")


def leave_a_stream(weir, text="count", http2=False, **headers):
    """Read the first event of a /stream and hang up."""
    with contextlib.closing(http_of(weir, http2, **headers)) as http:
        with http.stream("POST", "/stream", json={"input": text}) as answer:
            assert answer.status_code == 200
            run = answer.headers["x-weir-run-id"]
            assert '"delta"' in next(answer.iter_lines())
    return run


@pytest.mark.weir(script=SLOW)
@pytest.mark.parametrize("http2", [False, True], ids=["http/1.1", "http/2"])
def test_a_caller_who_leaves_has_his_turn_cancelled(weir, http2):
    run = leave_a_stream(weir, http2=http2)
    assert wait_for(weir, run, "cancelled", "done") == "cancelled"


@pytest.mark.weir(script=SLOW)
@pytest.mark.parametrize("http2", [False, True], ids=["http/1.1", "http/2"])
def test_a_turn_that_is_detached_goes_on(weir, http2):
    run = leave_a_stream(weir, http2=http2, **{"x-weir-on-disconnect": "detach"})
    assert state_of(weir, run) in BUSY
    assert wait_for(weir, run, "cancelled", "done") == "done"


@pytest.mark.weir(script=SLOW)
def test_detached_for_a_time_it_ends_with_it(weir):
    begun = time.monotonic()
    run = leave_a_stream(weir, "for ever", **{"x-weir-on-disconnect": "detach-for=300ms"})
    assert wait_for(weir, run, "cancelled", "done") == "cancelled"
    assert time.monotonic() - begun > 0.3


@pytest.mark.weir(script=SLOW)
def test_who_reads_its_events_keeps_it(weir):
    run = leave_a_stream(weir, "for ever", **{"x-weir-on-disconnect": "detach-for=2s"})
    with reader(weir) as http, http.stream("GET", f"/weir/v1/runs/{run}/events") as answer:
        lines = answer.iter_lines()
        assert next(lines).startswith("id:")
        until = time.monotonic() + 3
        for _ in lines:
            if time.monotonic() > until:
                break
        assert state_of(weir, run) in BUSY
    left = time.monotonic()
    assert wait_for(weir, run, "cancelled") == "cancelled"
    assert time.monotonic() - left > 1


@pytest.mark.weir(script=SLOW)
@pytest.mark.parametrize("path", ["/invoke", "/stream"])
def test_another_word_about_leaving_is_refused(weir, path):
    with http_of(weir, **{"x-weir-on-disconnect": "stay"}) as http:
        answer = http.post(path, json={"input": "count"})
    assert answer.status_code == 400
    assert "detach-for=30s" in answer.json()["error"]["message"]


@pytest.mark.weir(script=SLOW, config="http: {on_disconnect: detach}\n")
def test_the_settings_say_what_holds_for_all_and_a_request_for_itself(weir):
    assert wait_for(weir, leave_a_stream(weir), "cancelled", "done") == "done"
    run = leave_a_stream(weir, **{"x-weir-on-disconnect": "cancel"})
    assert wait_for(weir, run, "cancelled", "done") == "cancelled"


@pytest.mark.weir(script=SLOW)
def test_an_invoke_is_left_as_a_stream_is(weir):
    for how, end in (("cancel", "cancelled"), ("detach", "done")):
        body = json.dumps({"input": "count", "session_id": how})
        head = (f"POST /invoke HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {harness.token()}\r\n"
                f"Content-Type: application/json\r\nX-Weir-On-Disconnect: {how}\r\n")
        with reader(weir) as http, socket.create_connection(("127.0.0.1", weir.port("http"))) as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            give_up = time.monotonic() + PATIENCE
            while not (runs := http.get("/weir/v1/runs", params={"session_id": how}).json()["runs"]):
                assert time.monotonic() < give_up
                time.sleep(0.01)
        assert wait_for(weir, runs[-1]["id"], "cancelled", "done") == end


def leave_converse(weir, session):
    channel = grpc.insecure_channel(f"127.0.0.1:{weir.port('grpc')}")
    stub = runtime_pb2_grpc.AgentRuntimeStub(channel)
    request = runtime_pb2.ConverseRequest(
        session_id=session, message="count", workspace_id="ws-1", user_id="user-1"
    )
    metadata = [("authorization", "Bearer " + harness.token())]
    call = stub.Converse(iter([request]), metadata=metadata)
    next(call)
    with http_of(weir) as http:
        runs = http.get("/weir/v1/runs", params={"session_id": session}).json()["runs"]
    call.cancel()
    channel.close()
    return runs[-1]["id"]


def converse_end(weir, run):
    give_up = time.monotonic() + PATIENCE
    with http_of(weir) as http:
        while time.monotonic() < give_up:
            state = http.get(f"/weir/v1/runs/{run}").json()["state"]
            if state not in BUSY:
                return state
            time.sleep(0.01)
    raise AssertionError(f"run {run} is still {state}")


@pytest.mark.weir(script=SLOW)
def test_converse_cancels(weir):
    assert converse_end(weir, leave_converse(weir, "c1")) == "cancelled"


@pytest.mark.weir(script=SLOW, config="converse: {on_disconnect: detach}\n")
def test_converse_detaches_where_the_settings_say_so(weir):
    assert converse_end(weir, leave_converse(weir, "c1")) == "done"


@pytest.mark.weir(script=SLOW)
def test_a_stop_does_not_wait_for_the_detached(weir):
    run = leave_a_stream(weir, "for ever", **{"x-weir-on-disconnect": "detach"})
    begun = time.monotonic()
    weir.restart()
    assert time.monotonic() - begun < 8
    assert state_of(weir, run) == "cancelled"


def test_every_model_is_hung_up_when_its_caller_is_gone():
    """HTTP/1.1, HTTP/2 and Converse, also before the first word; its times are for a person."""
    script = harness.ROOT / "test/proof/leaving.py"
    done = subprocess.run(
        [sys.executable, script, "60", "6"],
        env={**os.environ, "WEIR_CLIENTS_FOUND": "1"},
        capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("0 left open\n")


# --- cancel ---------------------------------------------------------------------------------


def cancel(weir, run, user="anonymous", workspace="default"):
    token = harness.token(user, workspace)
    with http_of(weir, authorization="Bearer " + token) as http:
        return http.post(f"/weir/v1/runs/{run}/cancel")


@pytest.mark.weir(script=SLOW)
def test_a_run_is_cancelled_by_its_id(weir):
    with http_of(weir) as http:
        with http.stream("POST", "/stream", json={"input": "for ever"}) as answer:
            run = answer.headers["x-weir-run-id"]
            lines = answer.iter_lines()
            next(lines)
            said = cancel(weir, run)
            assert said.status_code == 202, said.text
            assert said.json()["id"] == run
            told = [json.loads(line[6:]) for line in lines if line.startswith('data: {"error"')]
    assert len(told) == 1 and "CANCELLED" in told[0]["error"]
    assert wait_for(weir, run, "cancelled")
    assert cancel(weir, run).status_code == 409
    weir.restart()
    again = cancel(weir, run)
    assert again.status_code == 409
    assert again.json()["error"]["code"] == "RUN_ENDED"


@pytest.mark.weir(script=SLOW)
def test_only_who_may_see_a_run_may_cancel_it(weir):
    run = leave_a_stream(weir, "for ever", **{"x-weir-on-disconnect": "detach"})
    for other in (cancel(weir, run, workspace="ws-2"), cancel(weir, 12345), cancel(weir, "x")):
        assert other.status_code == 404
        assert other.json()["error"]["code"] == "RUN_NOT_FOUND"
    assert state_of(weir, run) in BUSY
    assert cancel(weir, run).status_code == 202
    assert wait_for(weir, run, "cancelled")
    assert cancel(weir, run, workspace="ws-2").status_code == 404


@pytest.mark.weir(script=SLOW, args=["--threads", "4"])
def test_a_cancel_reaches_every_loop(weir):
    runs = [
        leave_a_stream(weir, "for ever", **{"x-weir-on-disconnect": "detach"}) for _ in range(12)
    ]
    for run in runs:
        assert cancel(weir, run).status_code == 202
    for run in runs:
        assert wait_for(weir, run, "cancelled")
