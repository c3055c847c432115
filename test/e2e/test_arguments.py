"""What a model writes as the arguments of a call, also where it is no JSON object."""
import json
import sys

import pytest
import vendor
from sdks import anthropic, openai

RECORDS = (
    "import sys; text = sys.stdin.read(); open(sys.argv[1], 'a').write(text + '\\n'); print('purged')"
)
FUNCTION = {"type": "function", "function": {"name": "look_up"}}


class Model(vendor.Vendor):
    """Says what it is given, one reply after the other: texts, or (tool, arguments)."""

    def __init__(self):
        super().__init__()
        self.replies = []

    def chunks(self, body):
        with self._lock:
            self.asked.append(body)
            reply = self.replies.pop(0)
        delta, reason = {"content": reply}, "stop"
        if isinstance(reply, tuple):
            function = {"name": reply[0], "arguments": reply[1]}
            call = {"index": 0, "id": f"call_{len(self.asked)}", "type": "function"}
            delta, reason = {"tool_calls": [{**call, "function": function}]}, "tool_calls"
        yield {"model": "big-1", "choices": [{"index": 0, "delta": delta}]}
        yield {"model": "big-1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


@pytest.fixture
def model():
    with Model() as model:
        yield model


@pytest.fixture
def weir(model, start_weir, tmp_path):
    return weir_that_purges(model, start_weir, tmp_path)


def weir_that_purges(model, start_weir, tmp_path, policy="allow"):
    script = tmp_path / "purge.py"
    script.write_text(RECORDS)
    config = (
        f"providers: [{{name: house, kind: openai, base_url: {model.url}/v1, key_env: HOUSE_KEY}}]\n"
        "agents: [{slug: manager, description: d, instructions: You help., model: house/big,"
        " tools: [purge]}]\n"
        "tools:\n  purge:\n    description: Deletes rows; without a filter all of them.\n"
        f"    command: [{sys.executable}, {script}, {tmp_path}/purged]\n"
        f"    policy: {policy}\n"
        "    idempotent: false\n    parameters: {type: object, properties: {filter: {type: string}}}\n"
    )
    return start_weir(config=config, env={"HOUSE_KEY": vendor.KEY, "CRAWBL_MCP_SIGNING_KEY": None})


@pytest.mark.parametrize("wrong", ['{"filter":"id=7', "[1]", '{"filter":"a"}{"filter":"b"}', "null"])
def test_a_call_that_the_model_wrote_wrongly_is_not_made(model, weir, tmp_path, wrong):
    model.replies = [("purge", wrong), ("purge", '{"filter":"id=7"}'), "Done."]
    answer = weir.http().post("/invoke", json={"input": "purge row 7"}).json()
    assert answer["output"] == "Done."
    assert (tmp_path / "purged").read_text().split() == ['{"filter":"id=7"}']
    call, result = model.asked[1]["messages"][-2:]
    assert call["tool_calls"][0]["function"]["arguments"] == "{}"
    told = json.loads(result["content"])["error"]
    assert told.startswith("tool 'purge' was not called: its arguments") and wrong in told


def test_half_a_surrogate_pair_is_no_reason_to_lose_the_arguments(model, weir, tmp_path):
    model.replies = [("purge", '{"filter":"caf\\udce9"}'), ("purge", ""), "Done."]
    assert weir.http().post("/invoke", json={"input": "x"}).json()["output"] == "Done."
    read = [json.loads(line) for line in (tmp_path / "purged").read_text().splitlines()]
    assert read == [{"filter": "caf\ufffd"}, {}]


@pytest.mark.parametrize("streams", [False, True])
def test_openais_clients_get_the_arguments_as_they_were_written(model, weir, streams):
    model.replies = [("look_up", '{"q": "half')] + ["I see."]
    client = openai.OpenAI(base_url=weir.url + "/v1", api_key="x", max_retries=0)
    messages = [{"role": "user", "content": "go"}]
    asked = {"model": "manager", "messages": messages, "tools": [FUNCTION]}
    if streams:
        with client.chat.completions.stream(**asked) as stream:
            message = stream.get_final_completion().choices[0].message
    else:
        message = client.chat.completions.create(**asked).choices[0].message
    [call] = message.tool_calls
    assert call.function.arguments == '{"q": "half'
    result = {"role": "tool", "tool_call_id": call.id, "content": "not JSON; once more"}
    messages += [message.model_dump(exclude_none=True, include={"role", "tool_calls"}), result]
    assert client.chat.completions.create(**asked).choices[0].message.content == "I see."
    sent = model.asked[1]["messages"]
    assert sent[-2]["tool_calls"][0]["function"]["arguments"] == '{"q": "half'
    assert "once more" in sent[-1]["content"]


def test_a_response_has_the_arguments_as_they_were_written(model, weir):
    model.replies = [("look_up", '{"q": "half')]
    client = openai.OpenAI(base_url=weir.url + "/v1", api_key="x", max_retries=0)
    tool = {"type": "function", "name": "look_up", "parameters": {"type": "object"}, "strict": False}
    response = client.responses.create(model="manager", input="go", tools=[tool])
    assert [item.arguments for item in response.output] == ['{"q": "half']
    assert client.responses.retrieve(response.id).output[0].arguments == '{"q": "half'


def test_a_client_that_gets_an_object_gets_the_one_that_the_model_wrote_next(model, weir):
    model.replies = [("look_up", '{"q": "half'), ("look_up", '{"q": "whole"}')]
    client = anthropic.Anthropic(base_url=weir.url, api_key="x", max_retries=0)
    answer = client.messages.create(
        model="manager", max_tokens=99, messages=[{"role": "user", "content": "go"}],
        tools=[{"name": "look_up", "input_schema": {"type": "object"}}],
    )
    assert answer.stop_reason == "tool_use"
    assert [part.input for part in answer.content] == [{"q": "whole"}]
    assert '{"q": "half' in json.loads(model.asked[1]["messages"][-1]["content"])["error"]


MULTILINE = '{\n  "filter": "id=7",\r\n  "of": ["a",\n "b\\n"]\n}'


def data_lines(answer):
    """Of each event of a stream."""
    for event in answer.text.split("\n\n"):
        lines = [line[6:] for line in event.split("\n") if line.startswith("data: ")]
        if lines:
            yield lines


def agui(text):
    message = {"id": "1", "role": "user", "content": text}
    body = {"threadId": "s", "runId": "r", "tools": [], "context": [], "state": {}}
    return {**body, "forwardedProps": {}, "messages": [message]}


def a2a(text):
    return {"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": text}]}}


@pytest.mark.parametrize("policy", ["allow", "ask"])
@pytest.mark.parametrize("path", ["/stream", "/agui/manager", "/message:stream"])
def test_a_frame_is_one_line_whatever_a_model_wrote(model, start_weir, tmp_path, path, policy):
    model.replies = [("purge", MULTILINE), "Done."]
    weir = weir_that_purges(model, start_weir, tmp_path, policy)
    bodies = {"/stream": {"input": "x"}, "/agui/manager": agui("x"), "/message:stream": a2a("x")}
    frames = list(data_lines(weir.http().post(path, json=bodies[path])))
    assert frames and all(len(lines) == 1 for lines in frames), frames
    meant = json.loads(MULTILINE)
    shown = [line for [line] in frames if "id=7" in line]
    assert shown and any(holds(json.loads(line), meant) for line in shown)


def test_a_callers_call_in_any_text_is_json_at_every_other_door(model, start_weir, tmp_path):
    """A door that hands over calls as text began the run; another one reads its end."""
    weir = weir_that_purges(model, start_weir, tmp_path, "ask")
    model.replies = [("purge", '{"filter":"id=7"}'), ("look_up", '{"q": "half')]
    with weir.http() as http:
        body = {"model": "manager", "messages": [{"role": "user", "content": "x"}], "tools": [FUNCTION]}
        assert http.post("/v1/chat/completions", json=body, headers={"X-Session-Id": "s"}).status_code == 200
        frames = list(data_lines(http.post("/stream", json={"input": "yes", "session_id": "s"})))
    shown = [json.loads(line) for [line] in frames if "look_up" in line]
    assert [call["args"] for call in shown if call.get("name") == "look_up"] == ['{"q": "half']


def holds(value, wanted):
    """Whether `wanted` is somewhere in it, also as a text."""
    if value == wanted:
        return True
    if isinstance(value, str) and value.startswith("{"):
        return json.loads(value) == wanted
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return any(holds(part, wanted) for part in parts)
