"""One run on both wires: a turn over Converse, read as server-sent events of our own routes."""
import json
import threading

import grpc
import harness
import httpx
from agentruntime.v1 import runtime_pb2, runtime_pb2_grpc


def parse(text):
    """(id, event, data) of each event."""
    events = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        fields = dict(line.split(": ", 1) for line in lines)
        if fields:
            events.append((fields.get("id"), fields.get("event"), json.loads(fields["data"])))
    return events


def client(weir, **kwargs):
    headers = {"authorization": "Bearer " + harness.token(**kwargs)}
    return httpx.Client(
        base_url=f"http://127.0.0.1:{weir.port('http')}", headers=headers, timeout=30
    )


def converse(weir, session, text="hello"):
    channel = grpc.insecure_channel(f"127.0.0.1:{weir.port('grpc')}")  # outlives a kill
    stub = runtime_pb2_grpc.AgentRuntimeStub(channel)
    request = runtime_pb2.ConverseRequest(
        session_id=session, message=text, workspace_id="ws-1", user_id="user-1"
    )
    metadata = [("authorization", "Bearer " + harness.token())]
    return stub.Converse(iter([request]), metadata=metadata)


def run_of(http, session):
    runs = http.get("/weir/v1/runs", params={"session_id": session}).json()["runs"]
    return runs[-1]


def watch(http, run, **kwargs):
    answer = http.get(f"/weir/v1/runs/{run}/events", **kwargs)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/event-stream"
    return parse(answer.text)


def without_ids(events):
    return [event[1:] for event in events]


def a_finished_turn(weir, http, session):
    """The run's id, its events as Converse told them, and as SSE told them meanwhile."""
    call = converse(weir, session)
    told = [next(call)]
    run = run_of(http, session)["id"]
    live = []
    reader = threading.Thread(target=lambda: live.extend(watch(http, run)))
    reader.start()
    told.extend(call)
    reader.join()
    return run, told, live


def test_a_run_reads_the_same_live_afterwards_and_after_a_restart(weir):
    http = client(weir)
    run, told, live = a_finished_turn(weir, http, "c1")
    chunks = [e.chunk.text for e in told if e.WhichOneof("event") == "chunk"]
    assert chunks == [data["text"] for _, name, data in live if name == "text"]
    calls = [e.tool_call.tool for e in told if e.WhichOneof("event") == "tool_call"]
    assert calls == [data["tool"] for _, name, data in live if name == "tool_call"]
    assert [data["seq"] for _, _, data in live] == list(range(1, len(live) + 1))
    assert live[0][1] == "started" and live[-1][1] == "done"
    assert watch(http, run) == live
    weir.restart()
    assert without_ids(watch(client(weir), run)) == without_ids(live)


def test_a_reader_comes_back_by_id_and_goes_on_behind_it(weir):
    http = client(weir)
    run, _, live = a_finished_turn(weir, http, "c1")
    for place in (0, 1, 20, len(live) - 2):
        rest = live[place + 1 :]
        assert watch(http, run, headers={"last-event-id": live[place][0]}) == rest
        assert watch(http, run, params={"after": live[place][0]}) == rest
    over = http.get(f"/weir/v1/runs/{run}/events", headers={"last-event-id": live[-1][0]})
    assert over.status_code == 204
    weir.restart()
    back = watch(client(weir), run, headers={"last-event-id": live[20][0]})
    assert without_ids(back) == without_ids(live[21:])


def test_a_place_beyond_the_end_is_reset_to_the_end(weir):
    http = client(weir)
    run, _, live = a_finished_turn(weir, http, "c1")
    epoch = live[0][0].split("-")[0]
    end = live[-1][0]
    assert watch(http, run, params={"after": f"{epoch}-9999"}) == [(end, "reset", {"after": end})]
    assert watch(http, run, headers={"last-event-id": "who knows"})[0][1] == "reset"
    assert http.get(f"/weir/v1/runs/{run}/events", params={"after": "7"}).status_code == 400


def test_prose_that_a_crash_took_is_reset_and_the_run_ends_interrupted(weir):
    http = client(weir)
    call = converse(weir, "c1")
    for _ in range(10):
        next(call)
    run = run_of(http, "c1")["id"]
    seen = []
    try:
        with http.stream("GET", f"/weir/v1/runs/{run}/events") as answer:
            for line in answer.iter_lines():
                if line.startswith("id: "):
                    seen.append(line[4:])
                if len(seen) == 25:
                    weir.kill()
    except httpx.HTTPError:
        pass
    weir.start()
    http = client(weir)
    back = watch(http, run, headers={"last-event-id": seen[-1]})
    epoch, place = back[0][0].split("-")
    assert int(epoch) > int(seen[-1].split("-")[0])
    if back[0][1] == "reset":
        assert int(place) < int(seen[-1].split("-")[1])
    assert back[-1][1] == "failed" and back[-1][2]["reason"] == "INTERRUPTED"
    whole = watch(http, run)
    assert [data["seq"] for _, _, data in whole] == list(range(1, len(whole) + 1))
    assert run_of(http, "c1")["state"] == "failed" and run_of(http, "c1")["interrupted"]


def test_runs_are_shown_only_to_their_own_user_and_workspace(weir):
    http = client(weir)
    run, _, _ = a_finished_turn(weir, http, "c1")
    assert http.get(f"/weir/v1/runs/{run}").json()["state"] == "done"
    for stranger in (client(weir, user="user-2"), client(weir, workspace="ws-2")):
        for path in (f"/weir/v1/runs/{run}", f"/weir/v1/runs/{run}/events"):
            assert stranger.get(path).status_code == 404
        asked = {"session_id": "c1", "user": "user-1", "workspace": "ws-1"}
        assert stranger.get("/weir/v1/runs", params=asked).status_code == 403
        assert stranger.get("/weir/v1/runs", params={"session_id": "c1"}).json()["runs"] == []
    with weir.http() as nobody:
        assert nobody.get(f"/weir/v1/runs/{run}").status_code == 401


def test_questions_without_an_answer_are_refused_with_words(weir):
    http = client(weir)
    assert http.get("/weir/v1/runs").status_code == 400
    for run in ("0", "x", "123", "99999999999999999999999"):
        answer = http.get(f"/weir/v1/runs/{run}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "RUN_NOT_FOUND")
    assert http.post("/weir/v1/runs/1").status_code == 405
