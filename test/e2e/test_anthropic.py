"""The agents as models of Anthropic's API, as its official libraries meet them."""
import json
import pathlib
import subprocess

import harness
import httpx2
import pytest
from sdks import anthropic

CONFIG = """
agents:
  - {slug: manager, description: Answers., thinking: true, tools: {pay: ask, look_up: allow}}
  - {slug: writer, description: Writes.}
"""
PATIENCE = 60
WEATHER = {
    "name": "weather",
    "description": "The weather.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
NODE = pathlib.Path(__file__).parent / "node"


@pytest.fixture(scope="module")
def weir(tmp_path_factory):
    """One daemon for all tests here: each has conversations of its own."""
    daemon = harness.Daemon(
        tmp_path_factory.mktemp("anthropic"),
        script="test/e2e/scripts/openai.yaml",
        config=CONFIG,
    ).start()
    yield daemon
    daemon.stop()
    assert not daemon.sanitizer_log()


def client_of(weir, **options):
    options.setdefault("api_key", harness.token())
    return anthropic.Anthropic(
        base_url=weir.url,
        timeout=PATIENCE,
        max_retries=0,
        http_client=httpx2.Client(trust_env=False),
        **options,
    )


@pytest.fixture(scope="module")
def client(weir):
    with client_of(weir) as client:
        yield client


def ask(client, text, **more):
    messages = more.pop("messages", [{"role": "user", "content": text}])
    return client.messages.create(
        model=more.pop("model", "manager"), max_tokens=1000, messages=messages, **more
    )


def events_of(weir, run):
    headers = {"authorization": "Bearer " + harness.token()}
    with weir.http() as http:
        body = http.get(f"/weir/v1/runs/{run}/events", headers=headers).text
    data = [line[6:] for line in body.splitlines() if line.startswith("data: ")]
    return [json.loads(text) for text in data]


def test_a_message_is_a_turn(client):
    said = ask(client, "count")
    (block,) = said.content
    assert (block.type, block.text) == ("text", "One, two, three, four.")
    assert (said.role, said.stop_reason, said.model) == ("assistant", "end_turn", "manager")
    assert said.id.startswith("msg_")
    usage = said.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (8, 4, 20)


def test_a_stream_says_the_same_as_the_run(weir, client):
    with client.messages.stream(
        model="manager", max_tokens=9, messages=[{"role": "user", "content": "count"}]
    ) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    run = stream.response.headers["x-weir-run-id"]
    told = "".join(e["text"] for e in events_of(weir, run) if e["type"] == "text")
    assert text == told == final.content[0].text == "One, two, three, four."
    assert (final.stop_reason, final.usage.output_tokens) == ("end_turn", 20)
    assert final.usage.input_tokens == 8


def test_an_answer_is_no_longer_than_the_caller_wants(client):
    asked = {"model": "manager", "max_tokens": 3, "messages": [{"role": "user", "content": "count"}]}
    cut = client.messages.create(**asked)
    assert (cut.content[0].text, cut.stop_reason, cut.stop_sequence) == ("One, two, th", "max_tokens", None)
    with client.messages.stream(**asked) as stream:
        assert stream.get_final_message().stop_reason == "max_tokens"


def test_an_answer_ends_before_a_stop_sequence(client):
    asked = {"messages": [{"role": "user", "content": "count"}], "stop_sequences": ["four", "three"]}
    made = ask(client, "", extra_body={"temperature": 0, "top_k": 5}, **asked)
    assert (made.content[0].text, made.stop_reason, made.stop_sequence) == (
        "One, two, ",
        "stop_sequence",
        "three",
    )
    with client.messages.stream(model="manager", max_tokens=100, **asked) as stream:
        final = stream.get_final_message()
    assert (final.content[0].text, final.stop_reason, final.stop_sequence) == (
        "One, two, ",
        "stop_sequence",
        "three",
    )


@pytest.mark.parametrize(
    "name,more",
    [
        ("max_tokens", {"max_tokens": 0}),
        ("temperature", {"temperature": 1.5}),
        ("top_k", {"top_k": -1}),
        ("stop_sequences", {"stop_sequences": [5]}),
    ],
)
def test_a_wrong_option_is_named(client, name, more):
    with pytest.raises(anthropic.BadRequestError, match=name + ": must be"):
        ask(client, "hi", extra_body=more)


def test_the_events_come_in_their_order(client):
    stream = ask(client, "think", stream=True)
    kinds = [event.type for event in stream if event.type != "ping"]
    assert kinds == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_reasoning_is_a_block_of_its_own(client):
    said = ask(client, "think")
    assert [(b.type, getattr(b, b.type)) for b in said.content] == [
        ("thinking", "Hm hm."),
        ("text", "Thought."),
    ]


def test_the_agents_own_tools_are_not_the_callers(client):
    said = ask(client, "look", tools=[WEATHER])
    assert [b.type for b in said.content] == ["text"]
    assert said.content[0].text == "I look.\n\nFound 42."
    assert said.stop_reason == "end_turn"


@pytest.mark.parametrize("streamed", (False, True))
@pytest.mark.parametrize("session", ("none", "with the list", "alone"))
def test_a_callers_tools_are_its_own_to_run(client, streamed, session):
    headers = {} if session == "none" else {"x-session-id": f"tools-{streamed}-{session}"}
    messages = [{"role": "user", "content": "weather"}]

    def turn():
        if not streamed:
            return ask(client, "", messages=messages, tools=[WEATHER], extra_headers=headers)
        with client.messages.stream(
            model="manager",
            max_tokens=9,
            messages=messages,
            tools=[WEATHER],
            extra_headers=headers,
        ) as stream:
            return stream.get_final_message()

    said = turn()
    assert said.stop_reason == "tool_use"
    text, *calls = said.content
    assert text.text == "I ask you."
    assert [(c.name, c.input["city"]) for c in calls] == [("weather", "Kyoto"), ("weather", "Nara")]
    messages.append({"role": "assistant", "content": said.content})
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"} for call in calls
    ]
    if session == "alone":
        messages.clear()
    messages.append({"role": "user", "content": results})
    said = turn()
    assert (said.content[0].text, said.stop_reason) == ("It is sunny.", "end_turn")


def test_a_result_that_nothing_asked_for_is_refused(client):
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    with pytest.raises(anthropic.BadRequestError, match="toolu_1"):
        ask(client, "", messages=[{"role": "user", "content": [result]}])
    with pytest.raises(anthropic.BadRequestError, match="does not have"):
        session = {"x-session-id": "nothing asked"}
        ask(client, "", messages=[{"role": "user", "content": [result]}], extra_headers=session)


def test_a_person_decides_in_the_session(weir, client):
    headers = {"x-session-id": "paying"}
    said = ask(client, "pay", extra_headers=headers)
    approval = said.weir["approval"]
    assert (approval["tool"], approval["args"]) == ("pay", {"eur": 300})
    assert approval["question"] in said.content[-1].text
    assert said.stop_reason == "end_turn"
    again = ask(client, "what for?", extra_headers=headers)
    assert again.weir["approval"]["id"] == approval["id"]
    done = ask(client, "yes", extra_headers=headers)
    assert done.content[0].text == "Paid 300."
    assert done.weir["run"] == said.weir["run"]


def test_a_failed_run_is_an_error_in_both_forms(client):
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(client, "broken")
    assert caught.value.status_code == 503
    assert caught.value.body["error"]["type"] == "overloaded_error"
    heard = []
    with pytest.raises(anthropic.APIError) as caught:
        for event in ask(client, "broken", stream=True):
            heard.append(event)
    assert "away" in str(caught.value)
    assert [e.delta.text for e in heard if e.type == "content_block_delta"]


def test_a_caller_who_leaves_cancels_the_run(weir, client):
    with client.messages.stream(
        model="manager", max_tokens=9, messages=[{"role": "user", "content": "slow"}]
    ) as stream:
        assert next(iter(stream.text_stream)) == "Begun."
        run = stream.response.headers["x-weir-run-id"]
    assert events_of(weir, run)[-1]["type"] == "cancelled"


def test_what_is_wrong_is_said(weir, client):
    with pytest.raises(anthropic.NotFoundError, match="manager, writer"):
        ask(client, "x", model="claude-sonnet-4-5")
    with client_of(weir, api_key="wrong") as other, pytest.raises(anthropic.PermissionDeniedError):
        ask(other, "x")
    with client_of(weir, api_key=None, auth_token=harness.token()) as bearer:
        assert ask(bearer, "x").content[0].text == "heard: x"
    bad = {"name": "w", "input_schema": []}
    with pytest.raises(anthropic.BadRequestError, match=r"tools\.0\.input_schema"):
        ask(client, "x", tools=[bad])
    with pytest.raises(anthropic.BadRequestError, match=r"messages\[0\]\.content\[0\]"):
        ask(client, "x", messages=[{"role": "user", "content": [{"type": "video"}]}])
    headers = {"x-api-key": harness.token()}
    with weir.http() as http:
        answer = http.post("/v1/messages", headers=headers, json={"model": "manager"})
    assert answer.status_code == 400
    assert answer.json() == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "max_tokens: field required"},
    }


def test_system_texts_are_part_of_the_conversation(client):
    said = ask(client, "x", system=[{"type": "text", "text": "Be brief."}], model="writer")
    assert said.content[0].text == "written: x"


def test_tokens_are_estimated(client):
    counted = client.messages.count_tokens(
        model="manager", messages=[{"role": "user", "content": "a" * 400}], tools=[WEATHER]
    )
    assert 100 < counted.input_tokens < 200


def test_the_javascript_library_meets_the_same(weir):
    done = subprocess.run(
        ["node", NODE / "anthropic.mjs", weir.url, harness.token()],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "text": "One, two, three, four.",
        "final": "One, two, three, four.",
        "tool": "It is sunny.",
        "unknown": 404,
        "failed": "overloaded_error",
    }
