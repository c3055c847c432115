"""The agents as models of OpenAI's API, as its official libraries and two chat servers meet them."""
import base64
import concurrent.futures
import json
import shutil
import sys
import threading
import time

import harness
import pydantic
import pytest
from sdks import openai

CONFIG = """
agents:
  - {slug: manager, description: Answers., thinking: true, tools: {pay: ask, look_up: allow}}
  - {slug: writer, description: Writes.}
openai_api: {media: true}
"""
PATIENCE = 60
ASIDE = "application/vnd.weir.aside"  # what a person said beside a question


@pytest.fixture(scope="module")
def weir(tmp_path_factory):
    """One daemon for all tests here: each has conversations of its own."""
    daemon = harness.Daemon(
        tmp_path_factory.mktemp("openai"), script="test/e2e/scripts/openai.yaml", config=CONFIG
    ).start()
    yield daemon
    daemon.stop()
    assert not daemon.sanitizer_log()


def client_of(weir, key=None, **options):
    return openai.OpenAI(
        base_url=weir.url + "/v1",
        api_key=key or harness.token(),
        timeout=PATIENCE,
        http_client=openai.DefaultHttpxClient(trust_env=False, verify=harness.NO_TLS),
        **options,
    )


@pytest.fixture(scope="module")
def client(weir):
    with client_of(weir) as client:
        yield client


def say(text):
    return [{"role": "user", "content": text}]


def events_of(weir, run, **whose):
    """The same run as /weir/v1 shows it."""
    headers = {"authorization": "Bearer " + harness.token(**whose)}
    with weir.http() as http:
        body = http.get(f"/weir/v1/runs/{run}/events", headers=headers).text
    data = [line[6:] for line in body.splitlines() if line.startswith("data: ")]
    return [json.loads(text) for text in data]


def text_of(events):
    return "".join(event["text"] for event in events if event["type"] == "text")


# --- models ---------------------------------------------------------------------------------


def test_each_agent_is_a_model(client):
    assert [model.id for model in client.models.list()] == ["manager", "writer"]
    assert client.models.retrieve("writer").owned_by == "weir"


def test_a_model_as_it_is_may_have_its_vendors_name(start_weir):
    """docs/openai.md: an agent without instructions. Its name has a slash, which the libraries quote."""
    config = CONFIG.replace("agents:\n", "agents:\n  - {slug: openai/gpt-4.1, description: As it is.}\n")
    weir = start_weir(script="test/e2e/scripts/openai.yaml", config=config)
    with client_of(weir) as client:
        assert "openai/gpt-4.1" in [model.id for model in client.models.list()]
        assert client.models.retrieve("openai/gpt-4.1").id == "openai/gpt-4.1"
        made = client.chat.completions.create(model="openai/gpt-4.1", messages=say("hi"))
        assert (made.model, made.choices[0].message.content) == ("openai/gpt-4.1", "heard: hi")


def test_an_unknown_model_is_not_found_and_the_known_ones_are_named(client):
    for ask in (
        lambda: client.models.retrieve("gpt-4o"),
        lambda: client.chat.completions.create(model="gpt-4o", messages=say("hi")),
    ):
        with pytest.raises(openai.NotFoundError, match="manager, writer") as caught:
            ask()
        assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


def test_a_wrong_key_is_an_authentication_error(weir):
    with client_of(weir, key="wrong") as client, pytest.raises(openai.AuthenticationError):
        client.models.list()


# --- chat completions -----------------------------------------------------------------------


def test_a_completion_is_a_turn(client):
    said = client.chat.completions.create(model="manager", messages=say("count"))
    (choice,) = said.choices
    assert choice.message.content == "One, two, three, four."
    assert (choice.message.role, choice.finish_reason, said.model) == (
        "assistant",
        "stop",
        "manager",
    )
    assert (said.object, said.id[:9]) == ("chat.completion", "chatcmpl-")
    usage = said.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (12, 20, 32)
    assert usage.prompt_tokens_details.cached_tokens == 4
    assert usage.completion_tokens_details.reasoning_tokens == 5


def test_chunks_say_the_same_as_the_run_and_end_with_usage(weir, client):
    raw = client.chat.completions.with_raw_response.create(
        model="manager",
        messages=say("count"),
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(raw.parse())
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == text_of(events_of(weir, raw.headers["x-weir-run-id"]))
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert len({chunk.id for chunk in chunks}) == 1
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 32)


@pytest.mark.parametrize("member", ["max_tokens", "max_completion_tokens"])
def test_an_answer_is_no_longer_than_the_caller_wants(client, member):
    """The scripted model takes four bytes for a token."""
    asked = {"model": "manager", "messages": say("count"), "extra_body": {member: 3}}
    made = client.chat.completions.create(**asked)
    assert made.choices[0].message.content == "One, two, th"
    assert made.choices[0].finish_reason == "length"
    assert made.usage.completion_tokens == 3
    chunks = [c for c in client.chat.completions.create(**asked, stream=True) if c.choices]
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "One, two, th"
    assert chunks[-1].choices[0].finish_reason == "length"
    whole = client.chat.completions.create(**{**asked, "extra_body": {member: 1000}})
    assert whole.choices[0].finish_reason == "stop"


def test_the_agents_own_limit_is_not_raised(start_weir):
    config = CONFIG.replace("thinking: true,", "thinking: true, max_tokens: 3,")
    weir = start_weir(script="test/e2e/scripts/openai.yaml", config=config)
    with client_of(weir) as client:
        for longest, text in ((None, "One, two, th"), (1000, "One, two, th"), (2, "One, two")):
            made = client.chat.completions.create(
                model="manager", messages=say("count"), max_tokens=longest
            )
            assert made.choices[0].message.content == text


@pytest.mark.parametrize("streams", [False, True])
def test_an_answer_ends_before_a_stop_sequence(weir, client, streams):
    asked = {"model": "manager", "messages": say("count"), "stop": ["four", "thr"]}
    if streams:
        chunks = [c for c in client.chat.completions.create(**asked, stream=True) if c.choices]
        text = "".join(c.choices[0].delta.content or "" for c in chunks)
        last, run = chunks[-1].choices[0], chunks[-1].weir["run"]
    else:
        made = client.chat.completions.create(**asked)
        last, run = made.choices[0], made.weir["run"]
        text = last.message.content
    assert (text, last.finish_reason) == ("One, two, ", "stop")
    events = events_of(weir, run)
    assert text_of(events) == text
    assert [e["result"] for e in events if e["type"] == "step"] == ["thr"]
    assert events[0]["options"] == {"stop": ["four", "thr"]}


def test_a_turn_that_outlives_the_process_keeps_the_callers_options(start_weir):
    weir = start_weir(script="test/e2e/scripts/openai.yaml", config=CONFIG)
    session = {"extra_headers": {"X-Session-Id": "kept"}}
    with client_of(weir) as client:
        client.chat.completions.create(
            model="manager", messages=say("pay"), stop="300", temperature=0, **session
        )
    weir.kill()
    weir.start()
    with client_of(weir) as client:
        done = client.chat.completions.create(model="manager", messages=say("yes"), **session)
        assert done.choices[0].message.content == "Paid "


def test_the_streaming_helper_accumulates_the_answer(client):
    with client.chat.completions.stream(model="writer", messages=say("a poem")) as stream:
        deltas = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    assert "".join(deltas) == final.choices[0].message.content == "written: a poem"
    assert len(deltas) > 1


def test_the_whole_list_is_the_conversation(client):
    list_ = say("first") + [{"role": "assistant", "content": "yes"}] + say("second")
    said = client.chat.completions.create(model="manager", messages=list_)
    assert said.choices[0].message.content == "heard: second"


def test_the_agents_own_tools_are_not_the_callers(client):
    said = client.chat.completions.create(model="manager", messages=say("look"))
    assert said.choices[0].message.tool_calls is None
    assert said.choices[0].message.content == "Found 42."
    with client.chat.completions.stream(model="manager", messages=say("look")) as stream:
        final = stream.get_final_completion().choices[0].message
    assert (final.content, final.tool_calls) == ("I look.\n\nFound 42.", None)


def test_reasoning_is_shown_of_an_agent_that_shows_it(client):
    said = client.chat.completions.create(model="manager", messages=say("think"))
    assert said.choices[0].message.reasoning_content == "Hm hm."
    stream = client.chat.completions.create(model="manager", messages=say("think"), stream=True)
    thought = [getattr(c.choices[0].delta, "reasoning_content", None) or "" for c in stream]
    assert "".join(thought) == "Hm hm."


class Trip(pydantic.BaseModel):
    city: str
    days: int


def test_a_shaped_answer_is_parsed(client):
    said = client.chat.completions.parse(
        model="manager", messages=say("shape"), response_format=Trip
    )
    assert said.choices[0].message.parsed == Trip(city="Kyoto", days=2)
    with client.chat.completions.stream(
        model="manager", messages=say("shape"), response_format=Trip
    ) as stream:
        assert stream.get_final_completion().choices[0].message.parsed.days == 2
    said = client.chat.completions.create(
        model="manager", messages=say("shape"), response_format={"type": "json_object"}
    )
    assert json.loads(said.choices[0].message.content)["city"] == "Kyoto"


def test_a_picture_is_taken(client):
    dot = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg"
    dot += "YGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
    parts = [
        {"type": "text", "text": "what is this"},
        {"type": "image_url", "image_url": {"url": dot}},
    ]
    said = client.chat.completions.create(
        model="manager", messages=[{"role": "user", "content": parts}]
    )
    assert said.choices[0].message.content == "heard: what is this\n\n[image/png, 70 bytes]"


# --- tools of the caller's own --------------------------------------------------------------


WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}


def results_of(message, say="dry"):
    calls = [call.model_dump(include={"id", "type", "function"}) for call in message.tool_calls]
    asked = {"role": "assistant", "content": message.content, "tool_calls": calls}
    answers = [{"role": "tool", "tool_call_id": c["id"], "content": say} for c in calls]
    return [asked, *answers]


@pytest.mark.parametrize("streams", [False, True])
def test_a_tool_of_the_caller_is_called_by_the_caller(client, streams):
    list_ = say("weather")
    asked = {"model": "manager", "messages": list_, "tools": [WEATHER]}
    if streams:
        with client.chat.completions.stream(**asked) as stream:
            names = [event.type for event in stream]
            (choice,) = stream.get_final_completion().choices
        assert names.count("tool_calls.function.arguments.done") == 2
    else:
        (choice,) = client.chat.completions.create(**asked).choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I ask you.")
    first, second = choice.message.tool_calls
    assert (first.function.name, json.loads(first.function.arguments)) == (
        "weather",
        {"city": "Kyoto"},
    )
    assert first.id != second.id
    list_ += results_of(choice.message)
    (choice,) = client.chat.completions.create(**asked).choices
    assert (choice.finish_reason, choice.message.content) == ("stop", "It is dry.")


def test_results_of_a_session_come_with_the_list_or_alone(client):
    named = {"model": "manager", "tools": [WEATHER], "extra_headers": {"x-session-id": "tools"}}
    (choice,) = client.chat.completions.create(messages=say("weather"), **named).choices
    list_ = say("weather") + results_of(choice.message)
    (choice,) = client.chat.completions.create(messages=list_, **named).choices
    assert choice.message.content == "It is dry."
    (choice,) = client.chat.completions.create(messages=say("weather"), **named).choices
    alone = results_of(choice.message)[1:]
    (choice,) = client.chat.completions.create(messages=alone, **named).choices
    assert choice.message.content == "It is dry."


def test_the_agents_calls_beside_the_callers_are_not_shown(client):
    asked = {"model": "manager", "messages": say("both"), "tools": [WEATHER]}
    (choice,) = client.chat.completions.create(**asked).choices
    assert [call.function.name for call in choice.message.tool_calls] == ["weather"]


@pytest.mark.parametrize(
    "param,more",
    [
        ("tool_choice", {"tool_choice": "sometimes"}),
        ("tool_choice", {"tool_choice": "required", "tools": []}),
        (None, {"tool_choice": {"type": "function", "function": {"name": "other"}}}),
        (None, {"tools": [{"type": "function", "function": {"name": "pay"}}]}),
    ],
)
def test_a_wrong_offer_of_tools_is_a_bad_request(client, param, more):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            **{"model": "manager", "messages": say("hi"), "tools": [WEATHER], **more}
        )
    assert caught.value.param == param


def test_tool_choice_none_offers_none(client):
    asked = {"model": "writer", "messages": say("hi"), "tools": [WEATHER], "tool_choice": "none"}
    assert client.chat.completions.create(**asked).choices[0].finish_reason == "stop"


# --- sessions and decisions -----------------------------------------------------------------


def test_an_approval_is_a_question_that_the_next_message_answers(client):
    named = {"model": "manager", "extra_headers": {"x-session-id": "pays"}}
    asked = client.chat.completions.create(messages=say("pay"), **named)
    (choice,) = asked.choices
    waits = asked.model_extra["weir"]
    assert choice.finish_reason == "stop"
    assert choice.message.content.endswith("Answer yes or no.")
    assert (waits["session"], waits["approval"]["tool"]) == ("pays", "pay")
    assert waits["approval"]["id"].startswith(waits["run"] + "-")
    again = client.chat.completions.create(messages=say("hm"), **named)
    assert again.model_extra["weir"]["approval"]["id"] == waits["approval"]["id"]
    last = list(client.chat.completions.create(messages=say("maybe"), stream=True, **named))
    assert last[-1].model_extra["weir"]["approval"]["id"] == waits["approval"]["id"]
    done = client.chat.completions.create(messages=say("yes"), **named)
    assert done.choices[0].message.content == "Paid 300."
    assert "approval" not in done.model_extra["weir"]


def test_a_streamed_approval_ends_with_the_question(client):
    list_ = say("pay")
    metadata = {"session_id": "streamed"}
    chunks = list(
        client.chat.completions.create(
            model="manager", messages=list_, metadata=metadata, stream=True
        )
    )
    text = "".join(c.choices[0].delta.content or "" for c in chunks)
    assert text.endswith("Answer yes or no.")
    assert chunks[-1].choices[0].finish_reason == "stop"
    chunks = client.chat.completions.create(
        model="manager",
        messages=list_ + [{"role": "assistant", "content": text}] + say("yes"),
        metadata=metadata,
        stream=True,
    )
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "Paid 300."


# --- refusals and failures ------------------------------------------------------------------


@pytest.mark.parametrize(
    "param,more",
    [
        ("n", {"n": 2}),
        ("logprobs", {"logprobs": True}),
        ("modalities", {"modalities": ["text", "audio"]}),
        ("functions", {"functions": [{"name": "f"}]}),
        ("tools", {"tools": [{"type": "web_search"}]}),
        ("response_format", {"response_format": {"type": "xml"}}),
        ("messages", {"messages": []}),
        ("messages", {"messages": [{"role": "robot", "content": "hi"}]}),
        ("stream_options", {"stream_options": 5}),
        ("metadata", {"metadata": "x"}),
        ("max_tokens", {"max_tokens": 0}),
        ("max_completion_tokens", {"max_completion_tokens": "many"}),
        ("temperature", {"temperature": 2.5}),
        ("top_p", {"top_p": -1}),
        ("stop", {"stop": [""]}),
        ("seed", {"seed": 0.5}),
        ("presence_penalty", {"presence_penalty": 3}),
    ],
)
def test_what_cannot_be_had_is_a_bad_request_that_names_it(client, param, more):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            **{"model": "manager", "messages": say("hi"), "extra_body": more}
        )
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"


def test_a_failed_run_raises(client):
    fresh = client.with_options(max_retries=0)
    with pytest.raises(openai.InternalServerError, match="the model is away") as caught:
        fresh.chat.completions.create(model="manager", messages=say("broken"))
    assert caught.value.status_code == 503
    stream = fresh.chat.completions.create(model="manager", messages=say("broken"), stream=True)
    text = ""
    with pytest.raises(openai.APIError, match="the model is away"):
        for chunk in stream:
            text += chunk.choices[0].delta.content or ""
    assert text == "So far."


def test_a_caller_who_leaves_cancels_the_run(weir, client):
    raw = client.chat.completions.with_raw_response.create(
        model="manager", messages=say("slow"), stream=True
    )
    run = raw.headers["x-weir-run-id"]
    with raw.parse() as stream:
        next(iter(stream))
    assert events_of(weir, run)[-1]["type"] == "cancelled"


def test_two_streams_at_once_do_not_mix(client):
    one = client.chat.completions.create(model="writer", messages=say("one"), stream=True)
    two = client.chat.completions.create(model="writer", messages=say("two"), stream=True)
    pairs = list(zip(one, two, strict=True))
    for which, name in enumerate(("one", "two")):
        text = "".join(pair[which].choices[0].delta.content or "" for pair in pairs)
        assert text == f"written: {name}"


# --- responses ------------------------------------------------------------------------------

OUTPUT = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


def without_repeats(names):
    return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]


def test_a_response_is_a_turn_and_can_be_read_again(client):
    made = client.responses.create(model="manager", input="count", metadata={"a": "b"})
    assert (made.output_text, made.status, made.model) == (
        "One, two, three, four.",
        "completed",
        "manager",
    )
    assert (made.usage.input_tokens, made.usage.total_tokens) == (12, 32)
    assert made.usage.input_tokens_details.cached_tokens == 4
    assert made.usage.output_tokens_details.reasoning_tokens == 5
    again = client.responses.retrieve(made.id)
    assert again == made
    assert again.metadata == {"a": "b"}


def test_the_events_of_a_response_come_in_their_order(weir, client):
    raw = client.responses.with_raw_response.create(model="manager", input="count", stream=True)
    events = list(raw.parse())
    assert without_repeats([event.type for event in events]) == OUTPUT
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert text == text_of(events_of(weir, raw.headers["x-weir-run-id"]))
    assert text == events[-1].response.output_text
    assert len({e.item_id for e in events if hasattr(e, "item_id")}) == 1
    again = list(client.responses.retrieve(events[-1].response.id, stream=True))
    assert again == events
    rest = client.responses.retrieve(events[-1].response.id, stream=True, starting_after=4)
    assert list(rest) == events[5:]
    for wrong in ({"starting_after": "x"}, {"starting_after": "4" * 2000}, {"stream": "maybe"}):
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.retrieve(events[-1].response.id, extra_query={"stream": "true", **wrong})
        assert caught.value.param == next(iter(wrong))


def test_a_response_that_was_cut_is_incomplete(client):
    asked = {"model": "manager", "input": "count", "max_output_tokens": 3, "temperature": 0.5}
    made = client.responses.create(**asked)
    assert (made.status, made.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert (made.output_text, made.max_output_tokens, made.temperature) == ("One, two, th", 3, 0.5)
    assert client.responses.retrieve(made.id) == made
    events = list(client.responses.create(**asked, stream=True))
    assert events[-1].type == "response.incomplete"
    assert events[-1].response.max_output_tokens == 3


def test_the_streaming_helper_of_responses_accumulates(client):
    with client.responses.stream(model="writer", input="a poem") as stream:
        for event in stream:
            pass
        final = stream.get_final_response()
    assert final.output_text == "written: a poem"


def test_the_agents_own_tools_are_shown_as_items_that_nobody_executes(client):
    with client.responses.stream(model="manager", input="look") as stream:
        names = [event.type for event in stream]
        output = stream.get_final_response().output
    assert [item.type for item in output] == ["message", "mcp_call", "message"]
    call = output[1]
    assert (call.name, json.loads(call.output), call.error) == ("look_up", {"found": "42"}, None)
    assert [output[0].content[0].text, output[2].content[0].text] == ["I look.", "Found 42."]
    assert "response.mcp_call.completed" in names
    assert client.responses.create(model="manager", input="look").output_text.endswith("Found 42.")


def test_a_conversation_goes_on_from_its_newest_response(weir, client):
    first = client.responses.create(model="writer", input="one")
    second = client.responses.create(input="two", previous_response_id=first.id)
    assert (second.output_text, second.model) == ("written: two", "writer")
    assert second.previous_response_id == first.id
    assert second.model_extra["weir"]["session"] == first.model_extra["weir"]["session"]
    with pytest.raises(openai.BadRequestError, match="newest") as caught:
        client.responses.create(input="other", previous_response_id=first.id)
    assert caught.value.code == "previous_response_superseded"


def test_a_conversation_goes_on_after_responses_that_came_to_nothing(start_weir):
    weir = start_weir(script="test/e2e/scripts/openai.yaml", config=CONFIG)
    with client_of(weir, max_retries=0) as client:
        first = client.responses.create(model="manager", input="one")
        for _ in range(2):  # as the library does by itself
            with pytest.raises(openai.InternalServerError, match="the model is away"):
                client.responses.create(input="broken", previous_response_id=first.id)
        slow = client.responses.create(input="slow", previous_response_id=first.id, background=True)
        assert client.responses.cancel(slow.id).status == "cancelled"
    weir.restart()
    with client_of(weir, max_retries=0) as client:
        second = client.responses.create(input="two", previous_response_id=first.id)
        assert second.status == "completed" and second.previous_response_id == first.id
        for seen in (first.id, slow.id):
            with pytest.raises(openai.BadRequestError, match="newest") as caught:
                client.responses.create(input="three", previous_response_id=seen)
            assert caught.value.code == "previous_response_superseded"
        assert client.responses.create(input="three", previous_response_id=second.id).output_text


@pytest.mark.parametrize("again", range(4))
def test_of_many_that_go_on_from_a_response_at_once_one_does(client, again):
    first = client.responses.create(model="writer", input="one")
    begin = threading.Barrier(6)

    def go_on(text):
        fresh = client.with_options(max_retries=0)
        begin.wait(PATIENCE)
        try:
            return fresh.responses.create(input=text, previous_response_id=first.id).output_text
        except openai.BadRequestError as refused:
            return refused.code

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        *refused, written = sorted(pool.map(go_on, "abcdef"))
    assert refused == ["previous_response_superseded"] * 5
    assert written.startswith("written: ")


@pytest.mark.parametrize("again", range(4))
def test_the_conversation_goes_on_from_the_one_of_many_at_once(client, again):
    """The others failed, the last of them perhaps after it, and do not stand between."""
    first = client.responses.create(model="writer", input="one")
    begin = threading.Barrier(6)

    def go_on(text):
        fresh = client.with_options(max_retries=0)
        begin.wait(PATIENCE)
        try:
            made = fresh.responses.create(input=text, previous_response_id=first.id, background=True)
        except openai.BadRequestError as refused:
            assert refused.code == "previous_response_superseded"
            return None
        while made.status in ("queued", "in_progress"):
            made = client.responses.retrieve(made.id)
        return made

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        made = [response for response in pool.map(go_on, "abcdef") if response]
    done = [response for response in made if response.status == "completed"]
    assert len(done) == 1
    with pytest.raises(openai.BadRequestError, match="went on") as caught:
        client.responses.create(input="stale", previous_response_id=first.id)
    assert caught.value.code == "previous_response_superseded"
    assert client.responses.create(input="next", previous_response_id=done[0].id).output_text == "written: next"


@pytest.mark.parametrize("restarts", [False, True])
def test_results_whose_turn_failed_can_be_sent_again(start_weir, tmp_path, restarts):
    """docs/openai.md: what met a failure can be sent again as it was, also if it has no words of a user."""
    script = tmp_path / "script.yaml"
    script.write_text(
        "script: 1\nmodel: m\npace: {every: 0ms, chunk: 8}\n"
        "agents: [{slug: manager, description: d}]\n"
        "scenes:\n"
        "  - match: weather\n"
        "    replies:\n"
        "      - [tool_call: {tool: weather, args: {city: Kyoto}}]\n"
        "      - [fault: {kind: error, code: UNAVAILABLE, message: the model is away}]\n"
        "  - {reply: 'heard: {input}'}\n"
    )
    weir = start_weir(script=str(script), config="agents: [{slug: manager, description: d}]\n")
    tool = {"type": "function", **WEATHER["function"]}
    with client_of(weir, max_retries=0) as client:
        asked = client.responses.create(model="manager", input="weather", tools=[tool])
    (call,) = [item for item in asked.output if item.type == "function_call"]
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "dry"}
    for _ in range(2):
        with client_of(weir, max_retries=0) as client:
            with pytest.raises(openai.InternalServerError, match="the model is away"):
                client.responses.create(input=[result], previous_response_id=asked.id, tools=[tool])
        if restarts:
            weir.restart()
    with client_of(weir, max_retries=0) as client:
        done = client.responses.create(input="never mind", previous_response_id=asked.id)
        assert done.output_text == "heard: never mind"
        with pytest.raises(openai.BadRequestError, match="went on"):
            client.responses.create(input=[result], previous_response_id=asked.id, tools=[tool])


@pytest.mark.parametrize("restarts", [False, True])
def test_a_turn_inside_the_newest_response_does_not_come_after_it(start_weir, tmp_path, restarts):
    """A tool says something in the same session. Its caller knows the response around that as the newest."""
    script, tool = tmp_path / "script.yaml", tmp_path / "call_back.py"
    script.write_text(
        "script: 1\nmodel: m\npace: {every: 0ms, chunk: 8}\n"
        "agents: [{slug: manager, description: d}]\n"
        "scenes:\n"
        "  - {match: outer, replies: [[tool_call: {tool: call_back}], outer done]}\n"
        "  - {reply: 'heard: {input}'}\n"
    )
    tool.write_text(
        "import json, sys, urllib.request\n"
        "url, token = open(sys.argv[1]).read().split()\n"
        "body = {'model': 'manager', 'messages': [{'role': 'user', 'content': 'inner'}]}\n"
        "headers = {'content-type': 'application/json', 'authorization': 'Bearer ' + token, 'x-session-id': 's'}\n"
        "asked = urllib.request.Request(url, json.dumps(body).encode(), headers)\n"
        "print(json.dumps({'inner': urllib.request.urlopen(asked).read().decode()}))\n"
    )
    weir = start_weir(
        script=str(script),
        config="agents: [{slug: manager, description: d, tools: [call_back]}]\n"
        f"tools:\n  call_back: {{description: d, command: [{sys.executable}, {tool}, {tmp_path}/door], policy: allow}}\n",
    )
    (tmp_path / "door").write_text(f"{weir.url}/v1/chat/completions {harness.token()}")
    with client_of(weir, max_retries=0) as client:
        session = {"x-session-id": "s"}
        outer = client.responses.create(model="manager", input="outer", extra_headers=session)
        assert outer.output_text == "outer done" and "heard: inner" in outer.output[0].output
    if restarts:
        weir.restart()
    with client_of(weir, max_retries=0) as client:
        then = client.responses.create(input="next", previous_response_id=outer.id)
        assert then.output_text == "heard: next"
        for newest in ("outer", "newest"):  # one with a turn inside it, and one without
            then = client.responses.create(input=newest, previous_response_id=then.id)
            with pytest.raises(openai.BadRequestError, match="went on") as caught:
                client.responses.create(input="stale", previous_response_id=outer.id)
            assert caught.value.code == "previous_response_superseded"


def test_a_function_of_the_caller_is_called_by_the_caller(client):
    tool = {"type": "function", **WEATHER["function"]}
    with client.responses.stream(model="manager", input="weather", tools=[tool]) as stream:
        names = [event.type for event in stream]
        asked = stream.get_final_response()
    assert names.count("response.function_call_arguments.done") == 2
    calls = [item for item in asked.output if item.type == "function_call"]
    assert [json.loads(call.arguments)["city"] for call in calls] == ["Kyoto", "Nara"]
    results = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "dry"}
        for call in calls
    ]
    done = client.responses.create(input=results, previous_response_id=asked.id, tools=[tool])
    assert done.output_text == "It is dry."
    whole = [{"role": "user", "content": "weather"}, *asked.output, *results]
    done = client.responses.create(model="manager", input=whole, tools=[tool], store=False)
    assert done.output_text == "It is dry."


def test_the_input_of_a_response_is_listed(client):
    made = client.responses.create(
        model="manager",
        instructions="Be short.",
        input=[
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "1"},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "2"},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "three"},
                    {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "auto"},
                ],
            },
        ],
    )
    items = list(client.responses.input_items.list(made.id, order="asc", limit=2))
    assert [item.type for item in items] == ["message"] * 3 + [
        "function_call",
        "function_call_output",
        "message",
    ]
    assert (items[0].role, items[0].content[0].text) == ("system", "Be short.")
    assert (items[3].call_id, items[4].output) == ("c1", "2")
    assert [part.type for part in items[5].content] == ["input_text", "input_image"]
    newest = client.responses.input_items.list(made.id, limit=1)
    assert newest.data[0] == items[5] and newest.has_more
    assert len({item.id for item in items}) == len(items)
    more = client.responses.create(input="and now", previous_response_id=made.id)
    (item,) = client.responses.input_items.list(more.id)
    assert item.content[0].text == "and now"
    with pytest.raises(openai.NotFoundError):
        client.responses.input_items.list("resp_1")
    for wrong in ({"limit": 101}, {"order": "up"}, {"after": "in_1_1"}):
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.input_items.list(made.id, **wrong)
        assert caught.value.param == next(iter(wrong))


def test_the_answer_of_a_person_is_an_input_item(client):
    asked = client.responses.create(model="manager", input="pay")
    done = client.responses.create(input="yes", previous_response_id=asked.id)
    (item,) = client.responses.input_items.list(done.id)
    assert (item.type, item.approve) == ("mcp_approval_response", True)
    assert item.approval_request_id == asked.output[-1].id
    (item,) = client.responses.input_items.list(asked.id)
    assert item.content[0].text == "pay"


def test_a_shaped_response_is_parsed(client):
    made = client.responses.parse(model="manager", input="shape", text_format=Trip)
    assert made.output_parsed == Trip(city="Kyoto", days=2)
    with client.responses.stream(model="manager", input="shape", text_format=Trip) as stream:
        assert stream.get_final_response().output_parsed.days == 2


def test_an_approval_of_a_response_is_asked_for_and_given(client):
    asked = client.responses.create(model="manager", input="pay")
    request = asked.output[-1]
    assert (request.type, request.name) == ("mcp_approval_request", "pay")
    assert asked.output_text.endswith("Answer yes or no.")
    answer = {
        "type": "mcp_approval_response",
        "approval_request_id": request.id,
        "approve": True,
    }
    done = client.responses.create(input=[answer], previous_response_id=asked.id)
    assert done.output_text == "Paid 300."
    assert done.id != asked.id
    assert client.responses.retrieve(done.id).output_text == "Paid 300."
    asked = client.responses.create(model="manager", input="pay")
    events = list(
        client.responses.create(input="yes", previous_response_id=asked.id, stream=True)
    )
    assert events[-1].response.output_text == "Paid 300."


def test_a_background_response_is_polled_and_cancelled(client):
    made = client.responses.create(model="manager", input="slow", background=True)
    assert (made.status, made.background) == ("in_progress", True)
    assert client.responses.retrieve(made.id).status == "in_progress"
    done = client.responses.cancel(made.id)
    assert done.status == "cancelled"
    assert client.responses.retrieve(made.id).status == "cancelled"


def until_asleep(weir, times):
    """Until a run that waits for a person has left memory for the `times`th time."""
    give_up = time.monotonic() + PATIENCE
    while weir.log().count("leaves memory") < times and time.monotonic() < give_up:
        time.sleep(0.02)
    assert weir.log().count("leaves memory") >= times


@pytest.mark.parametrize("in_memory", ["1h", "20ms"], ids=["in memory", "asleep"])
def test_a_response_that_waits_for_a_person_can_be_cancelled(start_weir, in_memory):
    weir = start_weir(
        script="test/e2e/scripts/openai.yaml",
        config=CONFIG,
        env={"WEIR_APPROVALS_IN_MEMORY": in_memory, "WEIR_LOG_LEVEL": "debug"},
    )
    with client_of(weir) as client:
        asked = client.responses.create(model="manager", input="pay")
        if in_memory == "20ms":
            until_asleep(weir, 1)
        found = client.responses.retrieve(asked.id)
        for name in asked.model_dump():
            assert getattr(found, name) == getattr(asked, name), name
        cancelled = client.responses.cancel(asked.id)
        assert (cancelled.id, cancelled.status) == (asked.id, "cancelled")
        assert [item.type for item in cancelled.output] == [item.type for item in asked.output]
        assert "not made" in cancelled.output[0].error
        assert client.responses.retrieve(asked.id) == cancelled
        assert client.responses.cancel(asked.id) == cancelled
        answer = {
            "type": "mcp_approval_response",
            "approval_request_id": asked.output[-1].id,
            "approve": True,
        }
        with pytest.raises(openai.ConflictError):
            client.responses.create(input=[answer], previous_response_id=asked.id)
    with client_of(weir) as client:
        asked = client.responses.create(model="manager", input="pay")
        done = client.responses.create(input="yes", previous_response_id=asked.id)
        assert client.responses.cancel(done.id).status == "completed"
        assert client.responses.retrieve(asked.id) == asked  # answered, and so not cancelled


def test_a_key_finds_what_it_began_where_only_the_earlier_response_names_the_user(start_weir):
    """Without a token's user, a request that goes on belongs to the user of the response before it."""
    weir = start_weir(
        script="test/e2e/scripts/openai.yaml", config=CONFIG, env={"AGENT_AUTH_TOKEN": "shared"}
    )
    with client_of(weir, key="shared") as client:
        first = client.responses.create(model="writer", input="one", user="ann")
        asked = {
            "input": "two",
            "previous_response_id": first.id,
            "extra_headers": {"Idempotency-Key": "two-once"},
        }
        second = client.responses.create(**asked)
        assert client.responses.create(**asked) == second
        client.responses.create(input="three", previous_response_id=second.id)
        assert client.responses.create(**asked) == second


def test_a_session_that_slept_is_named_once(start_weir):
    weir = start_weir(
        script="test/e2e/scripts/openai.yaml",
        config=CONFIG,
        env={"WEIR_APPROVALS_IN_MEMORY": "20ms", "WEIR_LOG_LEVEL": "debug"},
    )
    headers = {"authorization": "Bearer " + harness.token(), "x-session-id": "sleepy"}
    with weir.http(headers=headers) as http:
        doors = (("chat/completions", "messages"), ("responses", "input"))
        for times, (path, member) in enumerate(doors, 1):
            asked = {"model": "manager", member: say("pay")}
            assert http.post("/v1/" + path, json=asked).status_code == 200
            until_asleep(weir, times)
            answer = http.post("/v1/" + path, json={**asked, member: say("yes")})
            assert "Paid 300." in answer.text
            assert answer.headers.get_list("x-session-id") == ["sleepy"]


@pytest.mark.parametrize(
    "path,body",
    [
        ("/v1/chat/completions", lambda text: {"model": "manager", "messages": say(text)}),
        ("/v1/responses", lambda text: {"model": "manager", "input": text}),
        (
            "/v1/messages",
            lambda text: {"model": "manager", "max_tokens": 99, "messages": say(text)},
        ),
        ("/resume", lambda text: {"thread_id": "again-resume", "human_input": text}),
    ],
    ids=["chat", "responses", "messages", "resume"],
)
def test_words_that_are_sent_again_with_their_key_are_kept_once(weir, path, body):
    """They decide nothing: the question comes again, each time."""
    session = "again" + path.replace("/", "-")
    headers = {"authorization": "Bearer " + harness.token(), "x-session-id": session}
    with weir.http(headers=headers) as http:
        begin = ("/invoke", {"input": "pay"}) if path == "/resume" else (path, body("pay"))
        run = http.post(begin[0], json=begin[1]).headers["x-weir-run-id"]
        for key in ("k1", "k1", "k2", "k1"):
            answer = http.post(path, json=body("why so?"), headers={"idempotency-key": session + key})
            assert answer.status_code == 200 and "pay" in answer.text
            assert answer.headers["x-weir-run-id"] == run
        assert "Paid 300." in http.post(path, json=body("yes")).text
    whose = {"user": "anonymous", "workspace": "default"} if path == "/resume" else {}
    asides = [e for e in events_of(weir, run, **whose) if e.get("content_type") == ASIDE]
    assert [base64.b64decode(e["bytes"]) for e in asides] == [b"why so?"] * 2


def test_a_failed_response_raises_and_is_kept(client):
    fresh = client.with_options(max_retries=0)
    with pytest.raises(openai.InternalServerError, match="the model is away"):
        fresh.responses.create(model="manager", input="broken")
    events = list(fresh.responses.create(model="manager", input="broken", stream=True))
    assert events[-1].type == "response.failed"
    assert "the model is away" in events[-1].response.error.message
    kept = client.responses.retrieve(events[-1].response.id)
    assert (kept.status, kept.output_text) == ("failed", "So far.")


def test_what_is_not_stored_or_not_there_is_not_found(weir, client):
    unkept = client.responses.create(model="manager", input="hi", store=False)
    for name in (unkept.id, "resp_1", "resp_999999999999", "nonsense"):
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(name)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(input="hi", previous_response_id=unkept.id)
    kept = client.responses.create(model="manager", input="hi")
    with client_of(weir, key=harness.token("user-2", "ws-2")) as stranger:
        with pytest.raises(openai.NotFoundError):
            stranger.responses.retrieve(kept.id)
        with pytest.raises(openai.NotFoundError):
            stranger.responses.create(input="hi", previous_response_id=kept.id)
    with pytest.raises(openai.BadRequestError, match="session"):
        client.responses.delete(kept.id)


@pytest.mark.parametrize(
    "param,more",
    [
        ("input", {"input": 5}),
        ("input", {"input": [{"type": "item_reference", "id": "x"}]}),
        ("input", {"input": []}),
        ("conversation", {"conversation": "conv_1"}),
        ("previous_response_id", {"previous_response_id": "nonsense"}),
        ("background", {"background": True, "store": False}),
        ("text.format", {"text": {"format": {"type": "grammar"}}}),
        ("tools", {"tools": [{"type": "web_search"}]}),
        ("max_output_tokens", {"max_output_tokens": -1}),
        ("temperature", {"temperature": "hot"}),
    ],
)
def test_what_a_response_cannot_be_is_a_bad_request(client, param, more):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(**{"model": "manager", "input": "hi", "extra_body": more})
    assert caught.value.param == param


def test_a_response_outlives_the_process(start_weir):
    weir = start_weir(script="test/e2e/scripts/openai.yaml")
    with client_of(weir) as client:
        made = client.responses.create(model="writer", input="one")
    weir.restart()
    with client_of(weir) as client:
        assert client.responses.retrieve(made.id) == made
        said = client.responses.create(input="two", previous_response_id=made.id)
        assert said.output_text == "written: two"
        with pytest.raises(openai.BadRequestError, match="openai_api.media"):
            client.embeddings.create(model="hash-256", input="a")


# --- vectors and sound ----------------------------------------------------------------------


def test_vectors_are_made_as_numbers_or_bytes(client):
    texts = ["a red fox", "a red fox", "winter"]
    made = client.embeddings.create(model="hash-256", input=texts)  # base64, the library's choice
    numbers = client.embeddings.create(model="hash-256", input=texts, encoding_format="float")
    assert [item.index for item in made.data] == [0, 1, 2]
    for item, other in zip(made.data, numbers.data, strict=True):
        assert len(item.embedding) == len(other.embedding) == 256
        assert item.embedding == pytest.approx(other.embedding, abs=1e-6)
    assert made.data[0].embedding == made.data[1].embedding != made.data[2].embedding
    assert client.embeddings.create(model="local/hash-256", input="a").data


@pytest.mark.parametrize(
    "param,more", [("input", {"input": [[1, 2]]}), ("input", {"input": []}), ("dimensions", {"dimensions": "x"})]
)
def test_wrong_vectors_are_a_bad_request(client, param, more):
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(
            **{"model": "hash-256", "input": "a", "encoding_format": "float", "extra_body": more}
        )
    assert caught.value.param == param


def test_sound_is_made_where_there_is_a_program_for_it(client):
    asked = {"model": "espeak-ng", "voice": "", "input": "hello", "response_format": "wav"}
    fresh = client.with_options(max_retries=0)
    if shutil.which("espeak-ng"):
        assert fresh.audio.speech.create(**asked).content[:4] == b"RIFF"
    else:
        with pytest.raises(openai.APIStatusError, match="espeak-ng"):
            fresh.audio.speech.create(**asked)
    with pytest.raises(openai.BadRequestError) as caught:
        fresh.audio.speech.create(**{**asked, "speed": 9})
    assert caught.value.param == "speed"


# --- chat servers ---------------------------------------------------------------------------

# What they send, by the sources of Open WebUI 0.12 (routers/openai.py, routers/tasks.py) and of LibreChat's
# agents 3.2 (utils/title.ts, and LangChain's ChatOpenAI under it).
USER_INFO = {
    "X-OpenWebUI-User-Name": "Ann%20B",
    "X-OpenWebUI-User-Id": "5f0c1d2e-0000-4000-8000-000000000000",
    "X-OpenWebUI-User-Email": "ann@example.com",
    "X-OpenWebUI-User-Role": "admin",
    "X-OpenWebUI-Chat-Id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
}
STAINLESS = {
    "X-Stainless-Lang": "js",
    "X-Stainless-Retry-Count": "0",
    "User-Agent": "OpenAI/JS 6.9.0",
}
TITLE = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where to"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}
TITLE_TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "A title", "parameters": TITLE},
}
PARTS = [{"type": "text", "text": "count"}]
LIBRECHAT = {
    "model": "manager",
    "temperature": 1,
    "top_p": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "user": "65f1c2d3e4f5a6b7c8d9e0f1",
}


def task(text):
    """Open WebUI's title, tags and follow-ups: one user message, which has the conversation in it."""
    return {"model": "manager", "messages": say(f"### Task:\n{text}\n### Chat History:\nshape"), "stream": False}


@pytest.fixture
def server(weir, request):
    with weir.http(headers={"authorization": "Bearer " + harness.token(), **request.param}) as http:
        yield http


def read_chunks(http, path, body):
    with http.stream("POST", path, json=body) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in answer.iter_lines() if line]
    assert all(line[:6] == "data: " for line in lines)
    return [line if line == "data: [DONE]" else json.loads(line[6:]) for line in lines]


def said_in(chunks):
    deltas = [c["choices"][0]["delta"] for c in chunks[:-1] if c["choices"]]
    return "".join(d.get("content") or "" for d in deltas)


@pytest.mark.parametrize("server", [USER_INFO, STAINLESS], ids=["Open WebUI", "LibreChat"], indirect=True)
def test_a_chat_server_finds_its_models(server):
    models = server.get("/v1/models").json()
    assert models["object"] == "list"
    assert [(m["id"], m["object"], m["name"]) for m in models["data"]] == [
        ("manager", "model", "manager"),
        ("writer", "model", "writer"),
    ]


@pytest.mark.parametrize("server", [USER_INFO], ids=["Open WebUI"], indirect=True)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"stream_options": {"include_usage": True}, "temperature": 0.7, "seed": 3, "stop": ["###"]},
        {"max_tokens": 1000, "tools": [TITLE_TOOL], "frequency_penalty": 0.1},
    ],
)
def test_open_webui_chats(server, more):
    """A long chat brings its answers back, with what it kept of their reasoning, and files' texts."""
    messages = [
        {"role": "system", "content": "User Context:\n\n### Context\n"},
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": "Found 42.", "reasoning_content": "Hm."},
        {"role": "user", "content": PARTS},
    ]
    chunks = read_chunks(
        server, "/v1/chat/completions", {"stream": True, "model": "manager", "messages": messages, **more}
    )
    assert chunks[-1] == "data: [DONE]"
    assert said_in(chunks) == "One, two, three, four."
    counted = [c["usage"] for c in chunks[:-1] if c.get("usage")]
    assert len(counted) == ("stream_options" in more)


@pytest.mark.parametrize("server", [USER_INFO], ids=["Open WebUI"], indirect=True)
@pytest.mark.parametrize("text", ["Generate a title", "Generate 1-3 tags", "Suggest 3-5 follow-ups"])
def test_open_webui_asks_for_titles_tags_and_follow_ups(server, text):
    answer = server.post("/v1/chat/completions", json={**task(text), "max_tokens": 1000}).json()
    said = answer["choices"][0]["message"]["content"]
    assert json.loads(said[said.index("{") : said.rindex("}") + 1]) == {"city": "Kyoto", "days": 2}


@pytest.mark.parametrize("server", [USER_INFO], ids=["Open WebUI"], indirect=True)
def test_open_webui_chats_with_responses(server):
    """It keeps the items of an answer and sends them with the next question."""
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]}
    asked = {"model": "manager", "stream": True, "instructions": "Be short.", "max_output_tokens": 1000}
    with server.stream("POST", "/v1/responses", json={**asked, "input": [said]}) as answer:
        lines = [line[6:] for line in answer.iter_lines() if line.startswith("data: ")]
    items = json.loads(lines[-1])["response"]["output"]
    assert [item["type"] for item in items] == ["message", "mcp_call", "message"]
    again = {**said, "content": [{"type": "input_text", "text": "count"}]}
    with server.stream("POST", "/v1/responses", json={**asked, "input": [said, *items, again]}) as answer:
        lines = [line[6:] for line in answer.iter_lines() if line.startswith("data: ")]
    last = json.loads(lines[-1])
    assert last["type"] == "response.completed"
    assert last["response"]["output"][0]["content"][0]["text"] == "One, two, three, four."


@pytest.mark.parametrize("server", [STAINLESS], ids=["LibreChat"], indirect=True)
def test_librechat_chats_and_asks_for_a_title(server):
    chat = {
        **LIBRECHAT,
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": PARTS}],
    }
    chunks = read_chunks(server, "/v1/chat/completions", chat)
    assert said_in(chunks) == "One, two, three, four."
    assert chunks[-2]["choices"] == [] and chunks[-2]["usage"]["total_tokens"] == 32
    completion = {
        **LIBRECHAT,
        "stream": False,
        "temperature": 0.2,
        "max_tokens": 16,
        "messages": say("Provide a concise, 5-word-or-less title for the conversation\nshape"),
    }
    title = server.post("/v1/chat/completions", json=completion).json()
    assert json.loads(title["choices"][0]["message"]["content"])["city"] == "Kyoto"
    shaped = {
        **completion,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "extract", "description": "A title", "schema": TITLE},
        },
    }
    title = server.post("/v1/chat/completions", json=shaped).json()
    assert json.loads(title["choices"][0]["message"]["content"]) == {"city": "Kyoto", "days": 2}
    called = {
        **completion,
        "messages": say("weather"),
        "tools": [TITLE_TOOL],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "parallel_tool_calls": False,
    }
    choice = server.post("/v1/chat/completions", json=called).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "weather"


@pytest.mark.parametrize("server", [STAINLESS], ids=["LibreChat"], indirect=True)
def test_librechat_brings_results_of_its_tools(server):
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    body = {
        **LIBRECHAT,
        "stream": True,
        "tools": [TITLE_TOOL],
        "messages": [
            {"role": "user", "content": "weather"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "sunny", "name": "weather", "tool_call_id": "call_1"},
        ],
    }
    assert said_in(read_chunks(server, "/v1/chat/completions", body)) == "It is sunny."
