"""Results that a caller brings: each reaches the model, or the request is refused."""
import json

import pytest
import vendor
from sdks import openai
from test_arguments import FUNCTION, Model

RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "20 C"}


@pytest.fixture
def model():
    with Model() as model:
        yield model


@pytest.fixture
def weir(model, start_weir):
    config = (
        f"providers: [{{name: house, kind: openai, base_url: {model.url}/v1, key_env: HOUSE_KEY}}]\n"
        "agents: [{slug: manager, description: d, instructions: You help., model: house/big,"
        " tools: [calculator]}]\n"
    )
    return start_weir(config=config, env={"HOUSE_KEY": vendor.KEY, "CRAWBL_MCP_SIGNING_KEY": None})


def chat(content):
    messages = [{**RESULT, "content": content}]
    return "/v1/chat/completions", {"model": "manager", "messages": messages}


def response(content):
    output = {"type": "function_call_output", "call_id": "call_1", "output": content}
    return "/v1/responses", {"model": "manager", "input": [output]}


@pytest.mark.parametrize("door", [chat, response], ids=lambda door: door.__name__)
def test_another_result_of_a_call_is_refused_and_the_same_is_no_harm(model, weir, door):
    model.replies = [("look_up", "{}"), "It is warm.", "Still warm."]
    with weir.http(headers={"x-session-id": "s"}) as http:
        asked = {"model": "manager", "messages": [{"role": "user", "content": "go"}]}
        assert http.post("/v1/chat/completions", json={**asked, "tools": [FUNCTION]}).is_success
        path, body = door("20 C")
        assert "It is warm." in http.post(path, json=body).text
        assert "Still warm." in http.post(path, json=body).text, "the caller was cut off, say"
        path, body = door("-5 C")
        refused = http.post(path, json=body)
    assert refused.status_code == 400 and "another result already" in refused.text
    assert len(model.asked) == 3
    for prompt in model.asked[1:]:
        [result] = [m for m in prompt["messages"] if m["role"] == "tool"]
        assert "20 C" in result["content"]


def test_a_response_that_is_sent_back_brings_the_agents_own_calls(model, weir):
    model.replies = [("calculator", '{"expression":"6*7"}'), ("calculator", '{"expression":"("}')]
    model.replies += ["42.", "84."]
    client = openai.OpenAI(base_url=weir.url + "/v1", api_key="x", max_retries=0)
    kept = [{"role": "user", "content": "6*7?"}]
    first = client.responses.create(model="manager", input=kept)
    assert [item.type for item in first.output] == ["mcp_call", "mcp_call", "message"]
    kept += first.output + [{"role": "user", "content": "and doubled?"}]
    assert client.responses.create(model="manager", input=kept).output_text == "84."
    said = model.asked[-1]["messages"][1:]
    assert [m["role"] for m in said] == ["user", *["assistant", "tool"] * 2, "assistant", "user"]
    call, result, wrong, error = said[1:5]
    assert call["tool_calls"][0]["function"]["arguments"] == '{"expression":"6*7"}'
    assert result["tool_call_id"] == call["tool_calls"][0]["id"] and "42" in result["content"]
    assert error["tool_call_id"] == wrong["tool_calls"][0]["id"]
    assert json.loads(error["content"])


def test_a_response_that_is_sent_back_to_its_session_brings_nothing_twice(model, weir):
    model.replies = [("calculator", '{"expression":"6*7"}'), "42.", "84."]
    client = openai.OpenAI(base_url=weir.url + "/v1", api_key="x", max_retries=0)
    kept = [{"role": "user", "content": "6*7?"}]
    session = {"x-session-id": "s"}
    first = client.responses.create(model="manager", input=kept, extra_headers=session)
    kept += first.output + [{"role": "user", "content": "and doubled?"}]
    client.responses.create(model="manager", input=kept, extra_headers=session)
    roles = [m["role"] for m in model.asked[-1]["messages"][1:]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
