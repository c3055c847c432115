"""A run is replayed from the recordings of its calls: POST /weir/v1/runs/ID/replay."""
import json
import time

import crawbl
import harness
import pytest

TOKEN = "replay-secret"
SCRIPT = """
script: 1
model: replay-script
pace: {every: 0ms, chunk: 0}
agents:
  - {slug: manager, description: Does it., delegates: [writer]}
  - {slug: writer, description: Writes.}
tools:
  - name: look
    description: Looks it up.
    parameters: {type: object, properties: {what: {type: string}}}
    result: {found: "%(found)s"}
  - name: pay
    description: Pays.
    parameters: {type: object, properties: {eur: {type: integer}}}
    result: {paid: "%(found)s {args.eur}"}
scenes:
  - match: look
    replies:
      - - thinking: "Hm."
        - tool_call: {tool: look, args: {what: weirs}}
        - usage: {prompt: 5, completion: 3}
      - - text: "It says {result}, %(found)s."
        - usage: {prompt: 9, completion: 2}
  - match: pay
    replies:
      - - tool_call: {tool: pay, args: {eur: 300}}
      - - text: "Done: {result}"
  - match: list
    reply:
      - text: "%(found)s, the second"
        pace: {every: 1ms, chunk: 3}
      - text: "END and the third"
      - repeat: {text: ", and more", times: 1000}
        pace: {every: 30ms}
  - match: forever
    reply:
      - repeat: {text: "tick ", times: 100000}
        pace: {every: 30ms}
  - reply:
      - text: "%(found)s heard {input}"
"""
ASKS = "agents: [{slug: manager, tools: {pay: ask, look: allow}, delegates: [writer]}, {slug: writer}]\n"


class Weir(harness.Daemon):
    """One that records; says() makes its models and tools say something else from the next start on."""

    def __init__(self, folder, config=ASKS, args=("--record", "calls"), env=None):
        self.script_file = folder / "script.yaml"
        self.says("the first")
        args = [folder / "calls" if arg == "calls" else arg for arg in args]
        super().__init__(folder, script=self.script_file, config=config, args=args,
                         env={"CRAWBL_MCP_SIGNING_KEY": None} if env is None else env)

    def says(self, found):
        self.script_file.write_text(SCRIPT % {"found": found})

    def ask(self, method, path, token=None, **more):
        headers = {"authorization": "Bearer " + token} if token else {}
        with self.http(headers=headers) as http:
            return http.request(method, "/weir/v1" + path, **more)

    def run(self, text, session, **more):
        answer = self.ask("POST", "/runs", json={"input": text, "session_id": session, **more})
        assert answer.status_code == 202, answer.text
        return answer.json()["id"]

    def events(self, run):
        text = self.ask("GET", f"/runs/{run}/events").text
        return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]

    def replay(self, run, pace=""):
        answer = self.ask("POST", f"/runs/{run}/replay{pace}")
        assert answer.status_code == 202, answer.text
        assert answer.json()["replay_of"] == run
        return answer.json()["id"]

    def becomes(self, run, state):
        for _ in range(3000):
            if (now := self.ask("GET", f"/runs/{run}").json())["state"] == state:
                return now
            time.sleep(0.01)
        raise AssertionError((now, self.events(run)[-1]))


@pytest.fixture
def weir(tmp_path):
    one = Weir(tmp_path).start()
    yield one
    one.stop()
    assert not one.sanitizer_log(), one.sanitizer_log()


def heard(events):
    """What was said and done, without what may differ: times, ids, and the messages that a replay is given."""
    drop = {"seq", "at_ms", "unix_ms", "session", "contract", "call_id", "cost_nano_usd", "text_id"}
    kept = [{k: v for k, v in event.items() if k not in drop} for event in events if event["type"] != "item"]
    joined = []
    for event in kept:
        if joined and event["type"] == "text" == joined[-1]["type"] and event["agent"] == joined[-1]["agent"]:
            joined[-1]["text"] += event["text"]
        else:
            joined.append(event)
    return joined


def test_a_reply_that_was_ended_at_a_stop_sequence_is_heard_again(weir):
    """weir ends it, for the script knows none: the recording is there when its caller has the answer."""
    asked = {"model": "manager", "stop": ["END"], "messages": [{"role": "user", "content": "list"}]}
    with weir.http() as http:
        answer = http.post("/v1/chat/completions", json=asked)
    assert answer.json()["choices"][0]["message"]["content"] == "the first, the second"
    run = answer.headers["x-weir-run-id"]
    again = weir.replay(run)
    weir.becomes(again, "done")
    assert heard(weir.events(again))[1:] == heard(weir.events(run))[1:]
    weir.says("another")
    weir.restart()
    later = weir.replay(run)
    weir.becomes(later, "done")
    assert heard(weir.events(later))[1:] == heard(weir.events(run))[1:]
    (kept,) = (json.loads(file.read_text()) for file in (weir.folder / "calls").glob("model-*.json"))
    assert "END" in kept["heard"][-2]["text"] and kept["heard"][-1]["kind"] == "done"


def test_a_run_is_heard_again_whatever_models_and_tools_would_say_now(weir):
    runs = []
    for text in ("hello", "look it up", "and now?"):
        runs.append(weir.run(text, "s"))
        weir.becomes(runs[-1], "done")
    originals = [weir.events(run) for run in runs]
    weir.says("the second")
    weir.restart()
    for run, original in list(zip(runs, originals))[::-1]:
        again = weir.replay(run)
        weir.becomes(again, "done")
        events = weir.events(again)
        assert heard(events) == heard(original)
        assert events[0]["contract"] == "replay" and original[0]["contract"] == "weir"
        assert events[0]["session"].startswith(f"replay-{run}-")
    assert "the first heard and now?" in str(originals[2])
    other = weir.run("and now?", "s")  # and the session goes on as if nothing had been replayed
    weir.becomes(other, "done")
    assert "the second heard and now?" in str(weir.events(other))


def test_the_callers_options_are_a_part_of_what_was_asked(weir):
    body = {"model": "manager", "messages": [{"role": "user", "content": "hello"}],
            "temperature": 0.5, "max_tokens": 40, "seed": 7}
    with weir.http() as http:
        answer = http.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    original = answer.headers["x-weir-run-id"]
    weir.says("the second")
    weir.restart()
    again = weir.replay(original)
    weir.becomes(again, "done")
    assert heard(weir.events(again)) == heard(weir.events(original))


def test_runs_that_asked_the_same_are_told_apart(weir):
    one = weir.run("hello", "a")
    weir.becomes(one, "done")
    weir.says("the second")
    weir.restart()
    two = weir.run("hello", "b")
    weir.becomes(two, "done")
    for run, says in ((two, "the second heard hello"), (one, "the first heard hello"), (two, "the second heard hello")):
        again = weir.replay(run, "?pace=real")
        weir.becomes(again, "done")
        assert says in str(heard(weir.events(again)))


def test_a_conversation_that_the_caller_brought_is_brought_again(weir):
    messages = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}, {"role": "user", "content": "three"}]
    with weir.http() as http:
        run = http.post("/weir/v1/runs", json={"messages": messages, "session_id": "m"}).json()["id"]
    weir.becomes(run, "done")
    again = weir.replay(run)
    assert weir.becomes(again, "done")
    assert heard(weir.events(again)) == heard(weir.events(run))


def test_a_turn_of_converse_is_replayed_by_an_operator_and_by_no_user(tmp_path):
    weir = Weir(tmp_path, ASKS + f"http: {{workspace: {crawbl.WORKSPACE}}}\n", env={"AGENT_AUTH_TOKEN": TOKEN}).start()
    try:
        crawbl.one_turn(weir, "look it up")
        (run,) = weir.ask("GET", "/runs", TOKEN).json()["runs"]
        path = f"/runs/{run['id']}/replay"
        assert weir.ask("POST", path).status_code == 401
        assert weir.ask("POST", path, "guess").status_code == 403
        assert weir.ask("POST", path, harness.token()).status_code == 403
        begun = weir.ask("POST", path, TOKEN)
        assert begun.status_code == 202 and begun.json()["user"] == crawbl.USER
        for _ in range(1000):
            if weir.ask("GET", f"/runs/{begun.json()['id']}", TOKEN).json()["state"] == "done":
                break
            time.sleep(0.01)
        events = weir.ask("GET", f"/runs/{begun.json()['id']}/events", TOKEN).text
        assert "the first" in events and "event: done" in events
        elsewhere = weir.ask("POST", "/runs/12345/replay", TOKEN)
        assert (elsewhere.status_code, elsewhere.json()["error"]["code"]) == (404, "RUN_NOT_FOUND")
    finally:
        weir.stop()


def refused(answer):
    return answer.status_code, answer.json()["error"]["code"]


def test_what_cannot_be_replayed_says_why(weir, tmp_path):
    run = weir.run("hello", "s")
    weir.becomes(run, "done")
    assert refused(weir.ask("POST", f"/runs/{run}/replay?pace=slow")) == (422, "INVALID_INPUT")
    assert refused(weir.ask("POST", f"/runs/{run}/replay?speed=2")) == (400, "INVALID_INPUT")
    assert refused(weir.ask("POST", "/runs/7/replay")) == (404, "RUN_NOT_FOUND")
    endless = weir.run("forever", "e")
    weir.becomes(endless, "running")
    assert refused(weir.ask("POST", f"/runs/{endless}/replay")) == (409, "RUN_NOT_ENDED")
    weir.ask("POST", f"/runs/{endless}/cancel")
    weir.becomes(endless, "cancelled")
    assert refused(weir.ask("POST", f"/runs/{endless}/replay")) == (409, "NOT_RECORDED")  # its call never ended
    again = weir.replay(run)
    weir.becomes(again, "done")
    assert refused(weir.ask("POST", f"/runs/{again}/replay")) == (409, "NOT_RECORDED")
    (tmp_path / "calls" / "broken.json").write_text(f"{{{run}")
    assert refused(weir.ask("POST", f"/runs/{run}/replay")) == (500, "RECORDING_UNREADABLE")
    weir.said("cannot be replayed")
    (tmp_path / "calls" / "broken.json").unlink()
    weir.becomes(weir.replay(run), "done")


def test_without_recordings_there_is_no_replay(tmp_path):
    weir = Weir(tmp_path, args=()).start()
    try:
        run = weir.run("hello", "s")
        weir.becomes(run, "done")
        answer = weir.ask("POST", f"/runs/{run}/replay")
        assert refused(answer) == (409, "NO_RECORDINGS") and "--record" in answer.text
    finally:
        weir.stop()


def test_other_instructions_are_a_loud_miss_and_no_model_is_asked(weir):
    run = weir.run("look it up", "s")
    weir.becomes(run, "done")
    weir.script_file.write_text(weir.script_file.read_text().replace("Looks it up.", "Looks elsewhere."))
    weir.restart()
    again = weir.replay(run)
    weir.becomes(again, "failed")
    (failed,) = [event for event in weir.events(again) if event["type"] == "failed"]
    assert failed["reason"] == "REPLAY_MISS" and "tools[" in failed["message"]
    assert not [event for event in weir.events(again) if event["type"] in ("text", "tool_result")]


def test_a_question_is_asked_again_and_dies_with_the_process(weir):
    def answer(run):
        (asked,) = [one for one in weir.ask("GET", "/approvals").json()["approvals"] if one["run_id"] == run]
        assert weir.ask("POST", f"/approvals/{asked['id']}", json={"decision": "approve"}).status_code == 200

    run = weir.run("pay it", "p")
    weir.becomes(run, "waiting")
    answer(run)
    weir.becomes(run, "done")
    weir.says("the second")
    weir.restart()
    again = weir.replay(run)
    weir.becomes(again, "waiting")
    answer(again)
    weir.becomes(again, "done")
    assert "the first 300" in str(weir.events(again))
    waits = weir.replay(run)
    weir.becomes(waits, "waiting")
    weir.restart()
    assert weir.becomes(waits, "failed")["interrupted"]
    assert weir.ask("GET", "/approvals").json()["approvals"] == []


def test_many_at_once_each_hear_their_own(weir):
    runs = [weir.run(f"look up {i}", f"s{i}") for i in range(12)]
    for run in runs:
        weir.becomes(run, "done")
    replays = [(run, weir.replay(run)) for run in runs * 3]
    for run, again in replays:
        weir.becomes(again, "done")
        assert heard(weir.events(again)) == heard(weir.events(run))
    assert len({again for _, again in replays}) == 36
