"""Answers that must be JSON: what the model's vendor is asked, through each door.

OpenAI and Anthropic refuse a request that has them enforce a schema which they cannot, and the
caller of one vendor's API may be served by another's model."""
import json

import harness
import prompts
import pytest
import vendors
from sdks import anthropic, openai

OPEN = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
CLOSED = {**OPEN, "required": ["a", "b"], "additionalProperties": False}
ANY = {"type": "object"}
LIST = {"type": "array", "items": {"type": "integer"}}
GIVEN = {"a": 1, "b": "x"}


def said_by_vendor(kind, body):
    """(form, strict, schema) as the vendor reads it."""
    if kind == "anthropic":
        form = body.get("output_config", {}).get("format")
        return (form["type"], True, form["schema"]) if form else (None, None, None)
    if kind == "gemini":
        config = body.get("generationConfig", {})
        kind = "json_object" if config.get("responseMimeType") == "application/json" else None
        schema = config.get("responseJsonSchema")
        return ("json_schema" if schema else kind, None, schema)
    form = body.get("response_format") or body.get("text", {}).get("format") or {}
    held = form.get("json_schema", form)
    return (form.get("type"), held.get("strict"), held.get("schema"))


def is_told(body):
    return "Your final answer is" in json.dumps(body)


def wanted(kind, schema, strict):
    """What each vendor takes: (form, strict, schema), and whether the words must be there."""
    if kind == "gemini":
        return (("json_object", None, None) if schema == ANY else ("json_schema", None, schema)), False
    if kind == "anthropic":
        if schema == CLOSED:
            return ("json_schema", True, CLOSED), False
        return (None, None, None), True
    if schema == ANY:
        return ("json_object", None, None), True
    if schema == LIST:
        return (None, None, None), True
    return ("json_schema", strict and schema == CLOSED, schema), False


def assert_asked(models, kind, schema, strict):
    asked = models.asked[-1].body
    form, told = wanted(kind, schema, strict)
    assert said_by_vendor(kind, asked) == form, (schema, strict)
    assert is_told(asked) == told, (schema, strict)


def chat_format(schema, strict):
    if schema == ANY:
        return {"type": "json_object"}
    held = {"name": "n", "schema": schema, **({} if strict is None else {"strict": strict})}
    return {"type": "json_schema", "json_schema": held}


def response_format(schema, strict):
    form = chat_format(schema, strict)
    return {"type": form["type"], **form.get("json_schema", {})}


def open_door(house, client):
    path = "/v1" if client is openai.OpenAI else ""
    url = house(env={"CRAWBL_MCP_SIGNING_KEY": None}).url + path
    return client(base_url=url, api_key="x", max_retries=0)


SAY = [{"role": "user", "content": "q"}]
CASES = [(OPEN, None), (OPEN, False), (OPEN, True), (CLOSED, None), (CLOSED, True), (CLOSED, False), (ANY, None)]


def test_a_chat_completion_asks_what_the_vendor_takes(house, models, kind):
    models.say(house.model, *[json.dumps(GIVEN)] * len(CASES))
    client = open_door(house, openai.OpenAI)
    for schema, strict in CASES:
        form = chat_format(schema, strict)
        said = client.chat.completions.create(model="manager", messages=SAY, response_format=form)
        assert json.loads(said.choices[0].message.content) == GIVEN
        assert_asked(models, kind, schema, strict is True)
    assert len(models.asked) == len(CASES)


def test_a_response_asks_what_the_vendor_takes(house, models, kind):
    models.say(house.model, *[json.dumps(GIVEN)] * len(CASES))
    client = open_door(house, openai.OpenAI)
    for schema, strict in CASES:
        form = response_format(schema, strict)
        said = client.responses.create(model="manager", input="q", text={"format": form})
        assert json.loads(said.output_text) == GIVEN
        assert_asked(models, kind, schema, strict is True)
    assert len(models.asked) == len(CASES)


def test_a_message_asks_what_the_vendor_takes(house, models, kind):
    models.say(house.model, *[json.dumps(GIVEN)] * 6)
    client = open_door(house, anthropic.Anthropic)
    for schema in (OPEN, CLOSED, ANY):
        form = {"type": "json_schema", "schema": schema}
        for member in ({"output_config": {"format": form}}, {"output_format": form}):
            said = client.messages.create(model="manager", max_tokens=100, messages=SAY, extra_body=member)
            assert json.loads(said.content[0].text) == GIVEN
            assert_asked(models, kind, schema, True)
    assert len(models.asked) == 6


def test_an_output_schema_asks_what_the_vendor_takes(house, models, kind):
    schemas = [OPEN, CLOSED, ANY, LIST]
    answers = [[1, 2] if schema == LIST else GIVEN for schema in schemas]
    models.say(house.model, *map(json.dumps, answers))
    weir = house(env={"CRAWBL_MCP_SIGNING_KEY": None})
    with weir.http() as http:
        for schema, answer in zip(schemas, answers):
            said = http.post("/invoke", json={"input": "q", "config": {"output_schema": schema}})
            assert said.status_code == 200, said.text
            output = said.json()["output"]
            assert (json.loads(output) if isinstance(output, str) else output) == answer
            assert_asked(models, kind, schema, True)
    assert len(models.asked) == len(schemas)


@pytest.mark.parametrize("kind", ["anthropic"])
def test_a_schema_in_words_is_checked_and_repaired(house, models, kind):
    models.say(house.model, "Well, a is one.", '{"a": 1}')
    client = open_door(house, openai.OpenAI)
    form = chat_format(OPEN, None)
    said = client.chat.completions.create(model="manager", messages=SAY, response_format=form)
    assert json.loads(said.choices[0].message.content) == {"a": 1}
    assert len(models.asked) == 2


@pytest.mark.parametrize("kind", ["openai"])
def test_a_format_that_is_none_is_refused(house, models, kind):
    client = open_door(house, anthropic.Anthropic)
    for form in ({"type": "xml"}, {"type": "json_schema"}, {"type": "json_schema", "schema": {"type": 3}}):
        with pytest.raises(anthropic.BadRequestError, match="output_config.format"):
            client.messages.create(
                model="manager", max_tokens=100, messages=SAY, extra_body={"output_config": {"format": form}}
            )
    assert not models.asked


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_the_schema_and_the_tools_of_a_caller_hold_after_a_restart_at_a_question(house, models, kind, end):
    """A turn that waits for a person is asked for as before, whichever process goes on with it."""
    weir = house([{"tools": {"calculator": "ask"}}])
    ask = vendors.call("calculator", {"expression": "6*7"}, id="c1")
    models.say(house.model, ask, ask, "no JSON", json.dumps(GIVEN), "Done.")
    weather = {"name": "weather", "description": "d", "parameters": {"type": "object"}}
    chat = {"messages": [{"role": "user", "content": "go"}], "tools": [{"type": "function", "function": weather}]}
    shaped = {"input": "go", "session_id": "shaped", "config": {"output_schema": OPEN}}
    with weir.http(headers=harness.bearer()) as http:
        assert http.post("/invoke", json=shaped).json()["metadata"]["interrupted"] is True
        first = said_by_vendor(kind, models.asked[-1].body)
        asked = http.post("/v1/chat/completions", json=chat, headers={"x-session-id": "tools"})
        assert "approval" in asked.json()["weir"]
        offered = prompts.of(kind, models.asked[-1].body).tools
        assert "weather" in offered
    getattr(weir, end)()
    weir.start()
    with weir.http(headers=harness.bearer()) as http:
        answer = http.post("/resume", json={"thread_id": "shaped", "human_input": "yes"})
        assert json.loads(answer.json()["output"]) == GIVEN, "checked, and repaired once"
        assert said_by_vendor(kind, models.asked[-1].body) == first
        chat["messages"] = [{"role": "user", "content": "yes"}]
        answer = http.post("/v1/chat/completions", json=chat, headers={"x-session-id": "tools"})
        assert answer.json()["choices"][0]["message"]["content"] == "Done."
        assert prompts.of(kind, models.asked[-1].body).tools == offered
