"""What belongs to one caller is closed to all others: another user of the workspace, and the same user
of another. Each door is tried in each way: to read, follow, cancel, go on with, and decide."""
import contextlib
import json
import uuid

import harness
import pytest

CONFIG = "agents: [{slug: manager, tools: {pay: ask, look_up: allow}}, {slug: writer}]\n"
OWNER = {"user": "owner", "workspace": "home"}
STRANGERS = {
    "another user": {"user": "stranger", "workspace": "home"},
    "another workspace": {"user": "owner", "workspace": "away"},
}
PATIENCE = 60


@pytest.fixture(scope="module")
def weir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strangers")
    daemon = harness.Daemon(folder, script="test/e2e/scripts/openai.yaml", config=CONFIG).start()
    yield daemon
    daemon.stop()
    assert not daemon.sanitizer_log()


@contextlib.contextmanager
def caller(weir, who):
    headers = {"authorization": "Bearer " + harness.token(**who)}
    with weir.http(headers=headers, timeout=PATIENCE) as http:
        yield http


@pytest.fixture
def owner(weir):
    with caller(weir, OWNER) as http:
        yield http


@pytest.fixture(params=STRANGERS)
def stranger(weir, request):
    with caller(weir, STRANGERS[request.param]) as http:
        yield http


def fresh():
    return "s-" + uuid.uuid4().hex


def say(text):
    return [{"role": "user", "content": text}]


# --- what the owner has -----------------------------------------------------------------------


class Waiting:
    """A run that waits for the owner's decision, in a session of a name that strangers may use too."""

    def __init__(self, owner):
        self.owner, self.session = owner, fresh()
        body = {"model": "manager", "input": "pay"}
        answer = owner.post("/v1/responses", json=body, headers={"x-session-id": self.session})
        self.response, self.run = answer.json(), answer.headers["x-weir-run-id"]
        (asked,) = owner.get("/weir/v1/approvals", params={"session_id": self.session}).json()[
            "approvals"
        ]
        self.approval = asked["id"]
        assert asked["id"].startswith(self.run + "-")

    def untouched(self):
        """It still waits, with the same question."""
        assert self.owner.get(f"/weir/v1/runs/{self.run}").json()["state"] == "waiting"
        asked = self.owner.get(f"/weir/v1/approvals/{self.approval}")
        assert asked.status_code == 200, asked.text
        answer = self.owner.post(f"/weir/v1/approvals/{self.approval}", json={"decision": "refuse"})
        assert answer.is_success, answer.text


class Working:
    """A run of the owner's that goes on for an hour."""

    def __init__(self, owner):
        self.owner, self.session = owner, fresh()
        body = {"model": "manager", "input": "slow", "background": True}
        answer = owner.post("/v1/responses", json=body, headers={"x-session-id": self.session})
        assert answer.is_success, answer.text
        self.response, self.run = answer.json(), answer.headers["x-weir-run-id"]

    def untouched(self):
        state = self.owner.get(f"/weir/v1/runs/{self.run}").json()["state"]
        assert state in ("queued", "asking", "running", "working"), state
        assert self.owner.post(f"/weir/v1/runs/{self.run}/cancel").is_success


@pytest.fixture
def waiting(owner):
    run = Waiting(owner)
    yield run
    run.untouched()


@pytest.fixture
def working(owner):
    run = Working(owner)
    yield run
    run.untouched()


def absent(answer, status=404):
    """As if it did not exist, and without a word of it."""
    assert answer.status_code == status, answer.text
    assert "Begun" not in answer.text and "300" not in answer.text


# --- OpenAI -----------------------------------------------------------------------------------


def test_responses(stranger, waiting, working):
    for run in (waiting, working):
        path = f"/v1/responses/{run.response['id']}"
        absent(stranger.get(path))
        absent(stranger.get(path, params={"stream": "true"}))
        absent(stranger.post(path + "/cancel"))
        more = {"model": "manager", "previous_response_id": run.response["id"]}
        absent(stranger.post("/v1/responses", json={**more, "input": "yes"}))
    (asked,) = [i for i in waiting.response["output"] if i["type"] == "mcp_approval_request"]
    decision = {"type": "mcp_approval_response", "approve": True, "approval_request_id": asked["id"]}
    more = {"model": "manager", "previous_response_id": waiting.response["id"]}
    absent(stranger.post("/v1/responses", json={**more, "input": [decision]}))
    assert not stranger.post("/v1/responses", json={"model": "manager", "input": [decision]}).is_success


def test_chat_completions(stranger, waiting, working):
    body = {"model": "manager", "messages": say("yes")}
    for run in (waiting, working):
        answer = stranger.post(
            "/v1/chat/completions", json=body, headers={"x-session-id": run.session}
        )
        assert answer.json()["choices"][0]["message"]["content"] == "heard: yes"


# --- Anthropic --------------------------------------------------------------------------------


def test_messages(stranger, waiting, working):
    body = {"model": "manager", "max_tokens": 9, "messages": say("yes")}
    for run in (waiting, working):
        answer = stranger.post("/v1/messages", json=body, headers={"x-session-id": run.session})
        assert [block["text"] for block in answer.json()["content"]] == ["heard: yes"]


# --- A2A --------------------------------------------------------------------------------------


def rpc(http, method, params, version="1.0"):
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return http.post("/a2a", json=call, headers={"a2a-version": version})


def unknown_task(answer):
    assert answer.json()["error"]["code"] == -32001, answer.text


def test_a2a(stranger, waiting, working):
    for run in (waiting, working):
        part = {"messageId": "m", "taskId": run.run}
        new = {"message": {**part, "role": "ROLE_USER", "parts": [{"text": "yes"}]}}
        old = {"message": {**part, "role": "user", "parts": [{"kind": "text", "text": "yes"}]}}
        for method in ("GetTask", "CancelTask", "SubscribeToTask"):
            unknown_task(rpc(stranger, method, {"id": run.run}))
        for method in ("tasks/get", "tasks/cancel", "tasks/resubscribe"):
            unknown_task(rpc(stranger, method, {"id": run.run}, "0.3"))
        for method in ("SendMessage", "SendStreamingMessage"):
            unknown_task(rpc(stranger, method, new))
        for method in ("message/send", "message/stream"):
            unknown_task(rpc(stranger, method, old, "0.3"))
        absent(stranger.get(f"/tasks/{run.run}"))
        absent(stranger.post(f"/tasks/{run.run}:cancel"))
        absent(stranger.post(f"/tasks/{run.run}:subscribe"))
        absent(stranger.post("/message:send", json=new))
        absent(stranger.post("/message:stream", json=new))
        for query in ({}, {"contextId": run.session}):
            listed = stranger.get("/tasks", params=query).json()["tasks"]
            assert run.run not in [task["id"] for task in listed]


def test_a2a_context(stranger, waiting):
    """A context of the same name is the stranger's own."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "yes"}]}
    body = {"message": {**message, "contextId": waiting.session}}
    task = stranger.post("/message:send", json=body).json()["task"]
    assert task["artifacts"][0]["parts"] == [{"text": "heard: yes"}]


# --- AG-UI ------------------------------------------------------------------------------------


def agui(thread, messages, **more):
    body = {"threadId": thread, "runId": "r", "messages": messages, "tools": [], "context": []}
    return {**body, "state": {}, "forwardedProps": {}, **more}


def test_agui(stranger, waiting, working):
    said = [{"id": "u", **say("yes")[0]}]
    for run in (waiting, working):
        answer = stranger.post("/agui", json=agui(run.session, said))
        events = [json.loads(x[6:]) for x in answer.text.splitlines() if x.startswith("data: ")]
        assert "".join(event.get("delta", "") for event in events) == "heard: yes"
        assert events[-1]["outcome"] == {"type": "success"}
    payload = {"status": "resolved", "payload": {"approved": True}}
    resume = [{"interruptId": waiting.approval, **payload}]
    for thread in (waiting.session, fresh()):
        absent(stranger.post("/agui", json=agui(thread, [], resume=resume)))


# --- MCP --------------------------------------------------------------------------------------

BOTH = {"accept": "application/json, text/event-stream"}


def open_session(http):
    """The headers of a session of the protocol."""
    about = {"protocolVersion": "2025-11-25", "capabilities": {}}
    about["clientInfo"] = {"name": "test", "version": "1"}
    call = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}
    answer = http.post("/mcp", json=call, headers=BOTH)
    headers = {**BOTH, "mcp-session-id": answer.headers["mcp-session-id"]}
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert http.post("/mcp", json=told, headers=headers).status_code == 202
    return headers


def call_of(arguments, id=1):
    params = {"name": "manager", "arguments": arguments, "_meta": {"progressToken": id}}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def result_of(answer):
    """The last message of the answer, whether it came as a stream or by itself."""
    data = [x[6:] for x in answer.text.splitlines() if x.startswith("data: {")] or [answer.text]
    return json.loads(data[-1])


def test_mcp(stranger, waiting, working):
    headers = open_session(stranger)
    for run in (waiting, working):
        said = {"message": "yes", "session": run.session}
        told = result_of(stranger.post("/mcp", json=call_of(said), headers=headers))
        assert told["result"]["structuredContent"]["answer"] == "heard: yes"
    said = {"message": "yes", "session": waiting.session, "approval": waiting.approval}
    told = result_of(stranger.post("/mcp", json=call_of(said), headers=headers))
    assert told.get("error") or told["result"]["isError"], told


def test_a_session_of_mcp(owner, stranger):
    """Neither the session of another can be used, nor a call of it be cancelled or its stream read."""
    mine, theirs = open_session(owner), open_session(stranger)
    run = None
    with owner.stream("POST", "/mcp", json=call_of({"message": "slow"}, id=7), headers=mine) as open_:
        lines = open_.iter_lines()
        place = next(line[4:] for line in lines if line.startswith("id: "))
        told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        stranger.post("/mcp", json=told, headers=theirs)
        absent(stranger.post("/mcp", json=told, headers=mine))
        absent(stranger.post("/mcp", json=call_of({"message": "yes"}), headers=mine))
        again = {**mine, "last-event-id": place, "accept": "text/event-stream"}
        absent(stranger.get("/mcp", headers=again))
        absent(stranger.get("/mcp", headers={**again, "mcp-session-id": theirs["mcp-session-id"]}))
        absent(stranger.delete("/mcp", headers=mine))
        run = owner.get("/weir/v1/runs").json()["runs"][0]
        assert run["state"] not in ("done", "cancelled", "failed")
        assert owner.post("/mcp", json=told, headers=mine).status_code == 202
    assert owner.delete("/mcp", headers=mine).is_success


# --- weir's own -------------------------------------------------------------------------------


def test_weirs_own_api(stranger, waiting, working):
    for run in (waiting, working):
        absent(stranger.get(f"/weir/v1/runs/{run.run}"))
        absent(stranger.get(f"/weir/v1/runs/{run.run}/events"))
        absent(stranger.post(f"/weir/v1/runs/{run.run}/cancel"))
        listed = stranger.get("/weir/v1/runs", params={"session_id": run.session}).json()["runs"]
        assert run.run not in [one["id"] for one in listed]
    path = f"/weir/v1/approvals/{waiting.approval}"
    absent(stranger.get(path))
    absent(stranger.post(path, json={"decision": "approve"}))
    asked = stranger.get("/weir/v1/approvals").json()["approvals"]
    assert waiting.approval not in [one["id"] for one in asked]
