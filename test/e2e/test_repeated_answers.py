"""A person's answer that is sent again with its key gets the first one's answer, at every door."""
import json
import sys

import pytest
import vendor
from test_arguments import RECORDS, Model

KEYED = {"idempotency-key": "k-1"}


class Purging(Model):
    """Calls purge, and says what it gave."""

    def chunks(self, body):
        purged = any(message["role"] == "tool" for message in body["messages"])
        self.replies.append("Done." if purged else ("purge", "{}"))
        yield from super().chunks(body)


@pytest.fixture
def weir(start_weir, tmp_path):
    script = tmp_path / "purge.py"
    script.write_text(RECORDS)
    with Purging() as model:
        yield start_weir(
            config=f"""
providers: [{{name: house, kind: openai, base_url: {model.url}/v1, key_env: HOUSE_KEY}}]
agents: [{{slug: manager, description: d, instructions: You help., model: house/big, tools: [purge]}}]
tools:
  purge:
    description: Deletes rows.
    command: [{sys.executable}, {script}, {tmp_path}/purged]
    policy: ask
    idempotent: false
    parameters: {{type: object}}
""",
            env={"HOUSE_KEY": vendor.KEY, "CRAWBL_MCP_SIGNING_KEY": None},
        )


def lines(text):
    return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: {")]


def message(text, **more):
    parts = more.pop("parts", [{"text": text}])
    return {"message": {"messageId": "1", "role": "ROLE_USER", "parts": parts, **more}}


def a2a(http, path="/message:send"):
    task = http.post("/message:send", json=message("go")).json()["task"]
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    return path, message("yes", taskId=task["id"])


def a2a_after_other_words(http):
    path, body = a2a(http)
    task = body["message"]["taskId"]
    asked = http.post(path, json=message("hm, which ones?", taskId=task)).json()["task"]
    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    return path, body


def a2a_stream(http):
    return a2a(http, "/message:stream")


def invoke(http, path="/invoke"):
    http.post("/invoke", json={"input": "go", "session_id": "s"})
    return path, {"input": "yes", "session_id": "s"}


def stream(http):
    return invoke(http, "/stream")


def resume(http):
    http.post("/invoke", json={"input": "go", "session_id": "s"})
    return "/resume", {"thread_id": "s", "human_input": "yes"}


def chat(http, path="/v1/chat/completions", **more):
    body = {"model": "manager", "messages": [{"role": "user", "content": "go"}], **more}
    http.headers["x-session-id"] = "s"
    assert http.post(path, json=body).status_code == 200
    return path, {**body, "messages": [{"role": "user", "content": "yes"}]}


def messages(http):
    return chat(http, "/v1/messages", max_tokens=99)


def responses(http):
    asked = http.post("/v1/responses", json={"model": "manager", "input": "go"}).json()
    [request] = [item["id"] for item in asked["output"] if item["type"] == "mcp_approval_request"]
    answer = {"type": "mcp_approval_response", "approval_request_id": request, "approve": True}
    return "/v1/responses", {
        "model": "manager", "previous_response_id": asked["id"], "input": [answer],
    }


def agui(http):
    body = {"threadId": "s", "runId": "r", "tools": [], "context": [], "state": {}}
    body |= {"forwardedProps": {}, "messages": [{"id": "1", "role": "user", "content": "go"}]}
    asked = lines(http.post("/agui/manager", json=body).text)[-1]
    [interrupt] = asked["outcome"]["interrupts"]
    answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}
    return "/agui/manager", {**body, "resume": [answer]}


DOORS = [a2a, a2a_after_other_words, a2a_stream, invoke, stream, resume, chat, messages, responses]


def same(one, other):
    """Times and the ids of single answers are each answer's own."""
    own = {"x-request-id", "x-latency-ms", "date", "content-length", "x-trace-id", "traceparent"}
    heads = [{k: v for k, v in a.headers.items() if k not in own} for a in (one, other)]
    assert (one.status_code, heads[0]) == (other.status_code, heads[1])
    for text in ("session", "contextId", "Done.", "INPUT_REQUIRED"):
        assert one.text.count(text) == other.text.count(text), (one.text, other.text)


@pytest.mark.parametrize("door", [*DOORS, agui], ids=lambda door: door.__name__)
def test_the_same_answer_again_gets_what_the_first_got(weir, tmp_path, door):
    with weir.http() as http:
        path, body = door(http)
        first = http.post(path, json=body, headers=KEYED)
        assert first.status_code == 200 and "Done." in first.text
        again = [http.post(path, json=body, headers=KEYED) for _ in range(2)]
        for repeat in again:
            same(first, repeat)
            assert '"session_id":""' not in repeat.text.replace(" ", "")
    weir.restart()
    with weir.http(headers=http.headers) as http:
        same(first, http.post(path, json=body, headers=KEYED))
    assert (tmp_path / "purged").read_text().split() == ["{}"]


# --- one key, two messages ------------------------------------------------------------------


def picture(url):
    return [{"text": "what is this?"}, {"url": url, "mediaType": "image/png"}]


@pytest.mark.parametrize(
    "other",
    [
        {"parts": picture("https://x.example/dog.png")},
        {"parts": picture("https://x.example/cat.png") + [{"text": "or that?"}]},
        {"parts": picture("https://x.example/cat.png"), "metadata": {"tenant": "b"}},
        {"parts": [{"text": "what is this?"}]},
    ],
)
def test_a_key_stands_for_all_of_a_message(weir, other):
    with weir.http(headers=KEYED) as http:
        asked = {"parts": picture("https://x.example/cat.png")}
        first = http.post("/message:send", json=message("", **asked)).json()["task"]["id"]
        refused = http.post("/message:send", json=message("", **other))
        assert refused.status_code == 400 and "used for another message" in refused.text
        again = http.post("/message:send", json=message("", **asked))
        assert again.json()["task"]["id"] == first
