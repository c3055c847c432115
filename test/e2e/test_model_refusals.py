"""A model that refuses, and a conversation that is too long for it, in the forms of the APIs
that the callers know."""
import json

import httpx
import pytest
from sdks import anthropic, openai
from vendors import instead

WORDS = "I can't help with that."
SAY = [{"role": "user", "content": "q"}]


def sse(*events, named=False):
    lines = [(f"event: {e['type']}\n" if named else "") + f"data: {json.dumps(e)}\n\n" for e in events]
    return "".join(lines) + ("" if named else "data: [DONE]\n\n")


def chunk(delta, finish=None):
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def refusal_of(kind, said):
    """The vendor's stream: text, then a refusal with WORDS."""
    if kind == "openai":
        return sse(chunk({"content": said}), chunk({"refusal": WORDS}), chunk({}, "stop"))
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    text = {"type": "text_delta", "text": said}
    stop = {"stop_reason": "refusal", "stop_details": {"type": "refusal", "explanation": WORDS}}
    return sse(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": text},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
        named=True,
    )


@pytest.fixture
def refuser(house, models, kind):
    """A daemon whose model refuses as often as it is asked, after the text "So: "."""
    models.say(house.model, *["not sent"] * 10)
    for _ in range(10):
        models.relay.spoil(instead(200, refusal_of(kind, "So: "), kind="text/event-stream"))
    return house(env={"CRAWBL_MCP_SIGNING_KEY": None})


KINDS = pytest.mark.parametrize("kind", ["openai", "anthropic"])


@KINDS
def test_a_refusal_is_a_chat_completion_with_the_models_words(refuser, models, kind):
    client = openai.OpenAI(base_url=refuser.url + "/v1", api_key="x")
    (choice,) = client.chat.completions.create(model="manager", messages=SAY).choices
    assert (choice.message.refusal, choice.finish_reason) == (WORDS, "content_filter")
    assert choice.message.content == "So: "
    assert len(models.asked) == 1  # the library did not repeat it
    chunks = list(client.chat.completions.create(model="manager", messages=SAY, stream=True))
    deltas = [c.choices[0].delta for c in chunks if c.choices]
    assert "".join(d.refusal or "" for d in deltas) == WORDS
    assert "".join(d.content or "" for d in deltas) == "So: "
    assert chunks[-1].choices[0].finish_reason == "content_filter"


@KINDS
def test_a_refusal_passes_the_guardrails_as_any_answer(house, models, kind):
    models.say(house.model, "not sent")
    models.relay.spoil(instead(200, refusal_of(kind, "So: "), kind="text/event-stream"))
    weir = house([{"guardrails": ["words"]}], env={"CRAWBL_MCP_SIGNING_KEY": None},
                 guardrails=[{"name": "words", "pattern": "help with", "replace": "[CUT]"}])
    client = openai.OpenAI(base_url=weir.url + "/v1", api_key="x")
    (choice,) = client.chat.completions.create(model="manager", messages=SAY).choices
    assert choice.message.refusal == "I can't [CUT] that."


@KINDS
def test_a_refusal_is_a_response_with_the_models_words(refuser, models, kind):
    client = openai.OpenAI(base_url=refuser.url + "/v1", api_key="x")
    said = client.responses.create(model="manager", input="q")
    assert (said.status, said.incomplete_details.reason) == ("incomplete", "content_filter")
    text, refusal = (item.content[0] for item in said.output)
    assert (text.text, refusal.type, refusal.refusal) == ("So: ", "refusal", WORDS)
    events = list(client.responses.create(model="manager", input="q", stream=True))
    assert [e.delta for e in events if e.type == "response.refusal.delta"] == [WORDS]
    assert [e.refusal for e in events if e.type == "response.refusal.done"] == [WORDS]
    assert events[-1].type == "response.incomplete"
    assert events[-1].response.output[-1].content[0].refusal == WORDS


@KINDS
def test_a_refusal_is_a_message_with_the_models_words(refuser, models, kind):
    client = anthropic.Anthropic(base_url=refuser.url, api_key="x")
    asked = {"model": "manager", "max_tokens": 100, "messages": SAY}
    said = client.messages.create(**asked)
    assert said.stop_reason == "refusal"
    assert "".join(block.text for block in said.content) == "So: \n\n" + WORDS
    with client.messages.stream(**asked) as stream:
        said = stream.get_final_message()
    assert said.stop_reason == "refusal"
    assert "".join(block.text for block in said.content) == "So: \n\n" + WORDS


@pytest.fixture
def too_long(house, models):
    body = {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}
    models.say(house.model, *["not sent"] * 10)
    for _ in range(10):
        models.relay.spoil(instead(400, json.dumps({"error": body})))
    return house(env={"CRAWBL_MCP_SIGNING_KEY": None})


@pytest.mark.parametrize("kind", ["openai"])
def test_a_conversation_that_is_too_long_is_the_callers_to_shorten(too_long, models, kind):
    client = openai.OpenAI(base_url=too_long.url + "/v1", api_key="x")
    for ask in (
        lambda: client.chat.completions.create(model="manager", messages=SAY),
        lambda: client.responses.create(model="manager", input="q"),
    ):
        models.asked.clear()
        with pytest.raises(openai.BadRequestError) as raised:
            ask()
        assert (raised.value.code, raised.value.type) == ("context_length_exceeded", "invalid_request_error")
        assert len(models.asked) == 1
    events = list(client.responses.create(model="manager", input="q", stream=True))
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.code == "context_length_exceeded"
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long") as raised:
        anthropic.Anthropic(base_url=too_long.url, api_key="x").messages.create(
            model="manager", max_tokens=100, messages=SAY
        )
    assert raised.value.body["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("kind", ["openai"])
def test_other_contracts_say_the_words_too(refuser, models, kind):
    said = httpx.post(refuser.url + "/invoke", json={"input": "q"}, trust_env=False)
    assert said.status_code == 500 and WORDS in said.text
