"""One run, read at the same time at the door where it began and at /weir/v1: the same texts, in the
same order."""
import contextlib
import json
import queue
import threading

import harness
import pytest

CONFIG = "agents: [{slug: manager, tools: {look: allow}}]\n"
PATIENCE = 60
TEXT = "count"  # it looks something up, and then counts for longer than anybody listens
COUNTED = " ".join(str(number) for number in range(5000))
SCRIPT = f"""
script: 1
model: counting
agents: [{{slug: manager}}]
tools: [{{name: look, description: Looks, result: {{found: a pencil}}}}]
scenes:
  - match: count
    replies:
      - [{{text: "I look. "}}, {{tool_call: {{tool: look}}}}]
      - - text: "{COUNTED}"
          pace: {{every: 20ms, chunk: 4}}
"""
ENOUGH = 5  # texts that each reader has before the run is cancelled


@pytest.fixture(scope="module")
def weir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("same")
    (folder / "script.yaml").write_text(SCRIPT)
    daemon = harness.Daemon(folder, script=folder / "script.yaml", config=CONFIG).start()
    yield daemon
    daemon.stop()
    assert not daemon.sanitizer_log()


# --- the doors: a request, and the texts of an event ----------------------------------------------


def rpc(method, params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def chat(said):
    return [c["delta"].get("content") or "" for c in said.get("choices", [])]


def responses(said):
    return [said["delta"]] if said["type"] == "response.output_text.delta" else []


def anthropic(said):
    delta = said.get("delta", {})
    return [delta["text"]] if delta.get("type") == "text_delta" else []


def a2a(said):
    said = said.get("result", said)
    update = said.get("artifactUpdate") or (said if said.get("kind") == "artifact-update" else None)
    task = said.get("task") or (said if said.get("kind") == "task" else {})
    made = [update["artifact"]] if update else task.get("artifacts", [])
    return [part["text"] for artifact in made for part in artifact["parts"]]


def agui(said):
    return [said["delta"]] if said["type"] == "TEXT_MESSAGE_CONTENT" else []


def mcp(said):
    params = said.get("params", {})
    is_text = params.get("_meta", {}).get("weir/event") == "text"
    return [params["message"]] if is_text else []


def own(said):
    return [said["text"]] if said["type"] == "text" else []


MESSAGES = [{"role": "user", "content": TEXT}]
NEW = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": TEXT}]}
OLD = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": TEXT}]}
AGUI = {"runId": "r", "messages": [{"id": "u", **MESSAGES[0]}], "tools": [], "context": []}
MCP = {"name": "manager", "arguments": {"message": TEXT}, "_meta": {"progressToken": 1}}
DOORS = {
    "chat": ("/v1/chat/completions", {"model": "manager", "messages": MESSAGES}, chat),
    "responses": ("/v1/responses", {"model": "manager", "input": TEXT}, responses),
    "anthropic": ("/v1/messages", {"model": "manager", "max_tokens": 32_000, "messages": MESSAGES}, anthropic),
    "a2a": ("/message:stream", {"message": NEW}, a2a),
    "a2a 1.0": ("/a2a", rpc("SendStreamingMessage", {"message": NEW}), a2a),
    "a2a 0.3": ("/a2a", rpc("message/stream", {"message": OLD}), a2a),
    "agui": ("/agui", {"threadId": "same", **AGUI}, agui),
    "mcp": ("/mcp", rpc("tools/call", MCP), mcp),
}


# --- readers --------------------------------------------------------------------------------------


class Reader(threading.Thread):
    """Reads the texts of an event stream to its end."""

    def __init__(self, weir, method, path, texts_of, **request):
        super().__init__()
        self.weir, self.texts_of = weir, texts_of
        self.method, self.path, self.request = method, path, request
        self.head, self.came = queue.Queue(), queue.Queue()
        self.texts, self.last = [], "nothing"

    def run(self):
        with self.weir.http(headers=harness.bearer(), timeout=PATIENCE) as http:
            with http.stream(self.method, self.path, **self.request) as answer:
                self.head.put(answer)
                if answer.is_success:
                    with contextlib.suppress(json.JSONDecodeError):  # [DONE]
                        self.read(answer)
                else:
                    self.last = answer.read().decode()
        self.came.put(None)

    def read(self, answer):
        for line in answer.iter_lines():
            if not line.startswith("data: "):
                continue
            self.last = line
            for text in self.texts_of(json.loads(line[6:])):
                if text:
                    self.texts.append(text)
                    self.came.put(text)

    def wait(self, count):
        for _ in range(count):
            assert self.came.get(timeout=PATIENCE) is not None, "it ended early, with " + self.last

    def whole(self):
        """What was said. Replies are apart by a blank line at some doors."""
        self.join(PATIENCE)
        assert not self.is_alive()
        return "".join(self.texts).replace("\n", "")


def newest_run(weir):
    with weir.http(headers=harness.bearer()) as http:
        return http.get("/weir/v1/runs").json()["runs"][0]["id"]


@pytest.mark.parametrize("door", DOORS)
def test_both_read_the_same(weir, door):
    path, body, texts_of = DOORS[door]
    if "jsonrpc" not in body:
        body = {**body, "stream": True}
    headers = {"accept": "application/json, text/event-stream"}
    if door == "a2a 1.0":
        headers["a2a-version"] = "1.0"
    if door == "a2a":
        body.pop("stream")
    at_door = Reader(weir, "POST", path, texts_of, json=body, headers=headers)
    at_door.start()
    at_door.wait(ENOUGH)
    run = at_door.head.get(timeout=PATIENCE).headers.get("x-weir-run-id") or newest_run(weir)
    beside = Reader(weir, "GET", f"/weir/v1/runs/{run}/events", own)
    beside.start()
    beside.wait(ENOUGH)
    at_door.wait(ENOUGH)  # both at once
    with weir.http(headers=harness.bearer()) as http:
        assert http.post(f"/weir/v1/runs/{run}/cancel").is_success
    whole = at_door.whole()
    assert whole == beside.whole()
    assert len(whole) > ENOUGH and ("I look. " + COUNTED).startswith(whole)
