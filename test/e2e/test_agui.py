"""The agents over AG-UI, as its JavaScript client and Python types meet them."""
import json
import pathlib
import subprocess

import harness
import pytest
from ag_ui.core import Event
from pydantic import TypeAdapter

CONFIG = """
agents:
  - slug: manager
    description: Answers.
    thinking: true
    tools: {pay: ask, look_up: allow, state_write: allow}
    delegates: [writer]
  - {slug: writer, description: Writes.}
"""
PATIENCE = 60
NODE = pathlib.Path(__file__).parent / "node"
WEATHER = {"name": "weather", "description": "The weather.", "parameters": {"type": "object"}}


@pytest.fixture(scope="module")
def weir(tmp_path_factory):
    """One daemon for all tests here: each has a thread of its own."""
    daemon = harness.Daemon(
        tmp_path_factory.mktemp("agui"), script="test/e2e/scripts/openai.yaml", config=CONFIG
    ).start()
    yield daemon
    daemon.stop()
    assert not daemon.sanitizer_log()


def user(text, name="u1"):
    return {"id": name, "role": "user", "content": text}


def run(weir, thread, messages, path="/agui", **more):
    body = {"threadId": thread, "runId": "run-1", "messages": messages, "tools": [], "context": []}
    body |= {"state": {}, "forwardedProps": {}} | more
    with weir.http() as http:
        answer = http.post(path, headers=harness.bearer(), json=body, timeout=PATIENCE)
    if answer.status_code != 200:
        return answer, []
    data = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    for text in data:  # each is of the protocol's own types
        TypeAdapter(Event).validate_json(text)
    return answer, [json.loads(text) for text in data]


def kinds(events):
    return [event["type"] for event in events]


def text_of(events):
    return "".join(e["delta"] for e in events if e["type"] == "TEXT_MESSAGE_CONTENT")


def test_a_run_in_its_order_and_as_its_journal_says(weir):
    answer, events = run(weir, "order", [user("count")])
    assert [k for k in kinds(events) if k != "TEXT_MESSAGE_CONTENT"] == [
        "RUN_STARTED",
        "STEP_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_END",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ]
    assert (events[0]["threadId"], events[0]["runId"]) == ("order", "run-1")
    with weir.http() as http:
        run_id = answer.headers["x-weir-run-id"]
        body = http.get(f"/weir/v1/runs/{run_id}/events", headers=harness.bearer()).text
    told = [json.loads(x[6:]) for x in body.splitlines() if x.startswith("data: ")]
    assert text_of(events) == "".join(e["text"] for e in told if e["type"] == "text")
    assert events[-1]["outcome"] == {"type": "success"}
    (usage,) = events[-1]["usage"]
    assert (usage["inputTokens"], usage["outputTokens"]) == (12, 20)


def test_the_agents_tools_come_with_their_results(weir):
    _, events = run(weir, "own", [user("look")])
    shown = [k for k in kinds(events) if not k.startswith(("TEXT", "STEP"))]
    assert shown == [
        "RUN_STARTED",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
        "RUN_FINISHED",
    ]
    (result,) = (e for e in events if e["type"] == "TOOL_CALL_RESULT")
    assert json.loads(result["content"]) == {"found": "42"}
    starts = [e["messageId"] for e in events if e["type"] == "TEXT_MESSAGE_START"]
    assert len(set(starts)) == 2 and text_of(events) == "I look.Found 42."


def test_no_transfer_is_shown_as_a_call(weir):
    """A model may ask for two in one reply: one of them is refused, and neither is the page's."""
    answer, events = run(weir, "twice", [user("hand over twice")])
    with weir.http() as http:
        run_id = answer.headers["x-weir-run-id"]
        body = http.get(f"/weir/v1/runs/{run_id}/events", headers=harness.bearer()).text
    told = [json.loads(x[6:]) for x in body.splitlines() if x.startswith("data: ")]
    calls = [e for e in told if e["type"] == "tool_call"]
    assert [e["tool"] for e in calls] == ["transfer_to_agent"] * 2
    assert len([e for e in told if e["type"] == "tool_result"]) == 2
    assert not [k for k in kinds(events) if k.startswith("TOOL_CALL")]
    assert text_of(events).endswith("written: hand over twice")


def test_an_agent_changes_the_state(weir):
    answer, events = run(weir, "state", [user("paint")], state={"size": 7, "a/b~c": 0})
    (delta,) = (e["delta"] for e in events if e["type"] == "STATE_DELTA")
    assert delta == [
        {"op": "add", "path": "/color", "value": {"name": "red"}},
        {"op": "add", "path": "/a~1b~0c", "value": None},
    ]
    assert "STATE_SNAPSHOT" not in kinds(events)
    (result,) = (e for e in events if e["type"] == "TOOL_CALL_RESULT")
    assert json.loads(result["content"]) == {"written": ["color", "a/b~c"]}
    _, events = run(weir, "stateless", [user("paint")], state=None)
    (snapshot,) = (e["snapshot"] for e in events if e["type"] == "STATE_SNAPSHOT")
    assert snapshot == {"color": {"name": "red"}, "a/b~c": None}


def test_a_change_that_a_person_allows_is_shown_where_the_run_goes_on(tmp_path):
    """The answer to the resume has not seen the call; the person changed what it says."""
    config = CONFIG.replace("state_write: allow", "state_write: ask")
    daemon = harness.Daemon(tmp_path, script="test/e2e/scripts/openai.yaml", config=config).start()
    _, events = run(daemon, "t", [user("paint")], state={"size": 7})
    (interrupt,) = events[-1]["outcome"]["interrupts"]
    assert not [k for k in kinds(events) if k.startswith("STATE")]
    payload = {"decision": "edit", "args": {"state": {"color": "blue"}}}
    answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
    _, events = run(daemon, "t", [], state={"size": 7}, resume=[answer])
    (delta,) = (e["delta"] for e in events if e["type"] == "STATE_DELTA")
    assert delta == [{"op": "add", "path": "/color", "value": "blue"}], events
    assert kinds(events).index("TOOL_CALL_RESULT") < kinds(events).index("STATE_DELTA")
    _, events = run(daemon, "u", [user("paint")], state={})
    (interrupt,) = events[-1]["outcome"]["interrupts"]
    answer = {"interruptId": interrupt["id"], "status": "cancelled"}
    _, events = run(daemon, "u", [], state={}, resume=[answer])
    assert not [k for k in kinds(events) if k.startswith("STATE")]
    daemon.stop()
    assert not daemon.sanitizer_log()


def test_a_change_that_fails_changes_nothing(weir):
    _, events = run(weir, "spill", [user("spill")], state={"size": 7})
    assert "TOOL_CALL_RESULT" in kinds(events)
    assert not [k for k in kinds(events) if k.startswith("STATE")]


def test_reasoning_is_shown_apart(weir):
    _, events = run(weir, "thinking", [user("think")])
    assert kinds(events)[2:8] == [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TEXT_MESSAGE_START",
    ]


def test_the_clients_own_tool_ends_the_run_and_its_result_goes_on(weir):
    messages = [user("weather")]
    _, events = run(weir, "tools", messages, tools=[WEATHER])
    calls = [e["toolCallId"] for e in events if e["type"] == "TOOL_CALL_START"]
    assert events[-1]["outcome"] == {"type": "success", "pendingToolCallIds": calls}
    assert "TOOL_CALL_RESULT" not in kinds(events)
    asked = [
        {"id": call, "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        for call in calls
    ]
    messages.append({"id": "a1", "role": "assistant", "content": "I ask you.", "toolCalls": asked})
    messages += [
        {"id": f"t{call}", "role": "tool", "toolCallId": call, "content": "sunny"} for call in calls
    ]
    _, events = run(weir, "tools", messages, tools=[WEATHER])
    assert text_of(events) == "It is sunny."


@pytest.mark.parametrize("payload, text", (({"approved": True}, "Paid 300."), ("yes", "Paid 300.")))
def test_an_interrupt_is_answered_by_resume(weir, payload, text):
    thread = f"pay-{text}-{payload}"
    _, events = run(weir, thread, [user("pay")])
    (interrupt,) = events[-1]["outcome"]["interrupts"]
    assert interrupt["metadata"] == {"tool": "pay", "args": {"eur": 300}}
    assert interrupt["toolCallId"] == next(
        e["toolCallId"] for e in events if e["type"] == "TOOL_CALL_START"
    )
    answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
    _, events = run(weir, thread, [], resume=[answer])
    assert (text_of(events), events[-1]["outcome"]["type"]) == (text, "success")
    again, _ = run(weir, thread, [], resume=[answer])
    assert again.status_code == 404, again.text


def test_words_that_decide_nothing_interrupt_again(weir):
    _, events = run(weir, "words", [user("pay")])
    (first,) = events[-1]["outcome"]["interrupts"]
    _, events = run(weir, "words", [user("pay"), user("what for?", "u2")])
    assert [i["id"] for i in events[-1]["outcome"]["interrupts"]] == [first["id"]]
    answer = {"interruptId": first["id"], "status": "cancelled"}
    _, events = run(weir, "words", [], resume=[answer])
    (result,) = (e for e in events if e["type"] == "TOOL_CALL_RESULT")
    assert "refused" in result["content"]


def test_another_thread_cannot_answer(weir):
    _, events = run(weir, "mine", [user("pay")])
    (interrupt,) = events[-1]["outcome"]["interrupts"]
    answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": True}
    refused, _ = run(weir, "other", [], resume=[answer])
    assert refused.status_code == 404


def test_a_failure_is_the_last_event(weir):
    _, events = run(weir, "broken", [user("broken")])
    assert kinds(events)[-1] == "RUN_ERROR"
    assert "away" in events[-1]["message"]


def test_the_path_names_the_agent(weir):
    _, events = run(weir, "writer", [user("a poem")], path="/agui/writer")
    assert text_of(events) == "written: a poem"
    unknown, _ = run(weir, "none", [user("x")], path="/agui/none")
    assert unknown.status_code == 404
    assert "manager, writer" in unknown.json()["error"]["message"]


@pytest.mark.parametrize(
    "change, place",
    (
        ({"threadId": ""}, "threadId"),
        ({"runId": 7}, "runId"),
        ({"messages": "x"}, "messages"),
        ({"messages": []}, "messages"),
        ({"tools": [{"description": "x"}]}, "tools[0].name"),
        ({"resume": [{"interruptId": "1-1", "status": "resolved"}]}, "resume[0].payload"),
        ({"resume": [{}, {}]}, "one answer"),
    ),
)
def test_what_is_wrong_is_said(weir, change, place):
    refused, _ = run(weir, "wrong", change.pop("messages", [user("x")]), **change) if (
        "threadId" not in change
    ) else run(weir, "", [user("x")])
    assert 400 <= refused.status_code < 500
    assert place in refused.json()["error"]["message"], refused.text


def test_the_javascript_client_meets_the_same(weir):
    done = subprocess.run(
        ["node", NODE / "agui.mjs", weir.url, harness.token()],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "count": ["user", "assistant: One, two, three, four."],
        "tool": "assistant: It is sunny.",
        "interrupted": "pay",
        "paid": "assistant: Paid 300.",
        "state": {"size": 7, "color": {"name": "red"}, "a/b~c": None},
        "failed": True,
    }
