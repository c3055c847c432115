"""How a model's answer ends, and comes: behind its end, without one, all at once, by nobody's name."""
import time

import crawbl
import nimi_client as nimi
import pytest
import vendors
from test_models_errors import KEY
from vendors import call, hold, insert, instead, rewrite

ALL = 10_000  # events of an answer, and more

# Words behind the event that ends a stream, as nobody should send them.
GHOSTS = {
    "anthropic": "event: content_block_start\ndata: "
    '{"type":"content_block_start","index":9,"content_block":{"type":"text","text":"ghost"}}\n\n',
    "gemini": 'data: {"candidates":[{"content":{"parts":[{"text":"ghost"}]},"index":0}]}\n\n',
    "openai": 'data: {"choices":[{"index":0,"delta":{"content":"ghost"}}]}\n\n',
    "openai-responses": "event: response.output_text.delta\ndata: "
    '{"type":"response.output_text.delta","output_index":0,"delta":"ghost"}\n\n',
}

NO_STREAM = '{"error":{"message":"Your organization must be verified to stream this model.","param":"stream"}}'


def test_words_behind_the_end_are_no_part_of_the_answer(house, models, kind):
    models.say(house.model, "fine", "again")
    models.relay.spoil(insert(GHOSTS[kind], after=ALL))
    weir = house()
    session = crawbl.new_session()
    assert crawbl.one_turn(weir, "hello", session_id=session).text == "fine"
    assert crawbl.one_turn(weir, "more", session_id=session).text == "again"
    assert "ghost" not in models.asked[1].raw.decode()


def test_an_answer_whose_connection_stays_open_ends_all_the_same(house, models, kind):
    models.say(house.model, "fine")
    models.relay.spoil(hold(after=ALL))
    weir = house(provider={"stall": "60s"})
    begun = time.monotonic()
    turn = crawbl.one_turn(weir, "hello")
    assert turn.error is None and turn.text == "fine"
    assert time.monotonic() - begun < 5
    check_usage(turn, kind)


def test_a_vendor_that_refuses_to_stream_is_asked_without(house, models, kind):
    models.say(house.model, "refused", "one two three four five six seven", "again", chunkSize=4)
    models.relay.spoil(instead(400, NO_STREAM))
    weir = house()
    with crawbl.open_stream(weir) as stream:
        turn = stream.ask("hello")
        assert turn.error is None and turn.text == "one two three four five six seven"
        assert len(turn.of("chunk")) == 1, "the whole answer is one delta"
        check_usage(turn, kind)
        refused, whole = models.asked
        assert streams(refused, kind) and not streams(whole, kind)
        assert "stream_options" not in whole.body
        assert stream.ask("more").text == "again"
    assert len(models.asked) == 3 and not streams(models.asked[2], kind), "it is remembered"


def check_usage(turn, kind):
    """Counts that come at the end are kept; the mock counts for one kind alone."""
    [usage] = turn.of("usage")
    assert usage.prompt_tokens > 0 or kind != "openai"


def streams(asked, kind):
    if kind == "gemini":
        return ":streamGenerateContent" in asked.path
    return asked.body["stream"]


def test_tools_are_called_without_a_stream(house, models, kind):
    called = call("calculator", {"expression": "6*7"}, id="c1")
    models.say(house.model, "refused", called, "It is 42.")
    models.relay.spoil(instead(400, NO_STREAM))
    weir = house([{"tools": ["calculator"]}])
    turn = crawbl.one_turn(weir, "hello")
    assert turn.error is None and turn.text == "It is 42."
    assert "42" in turn.of("tool_result")[0].result_json
    assert "42" in models.asked[2].raw.decode()


@pytest.mark.parametrize("kind", ["openai"])
def test_json_in_place_of_a_stream_is_an_answer(house, models):
    models.relay.spoil(
        instead(
            200,
            '{"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"Hi you"},'
            '"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}',
        )
    )
    models.say(house.model, "unused")
    weir = house()
    turn = crawbl.one_turn(weir, "hello")
    assert turn.error is None and turn.text == "Hi you" and turn.done.model == "m-1"
    [usage] = turn.of("usage")
    assert (usage.prompt_tokens, usage.completion_tokens) == (5, 2)


def test_a_call_without_a_name_is_answered_and_the_turn_goes_on(house, models, kind):
    models.say(house.model, call("calculator", {"expression": "6*7"}, id="c1"), "I see.")
    models.relay.spoil(rewrite(b'"name":"calculator"', b'"name":""'))
    weir = house([{"tools": ["calculator"]}])
    turn = crawbl.one_turn(weir, "hello")
    assert turn.error is None and turn.text == "I see."
    [result] = turn.of("tool_result")
    assert result.error


OPERATORS = ("http", "weir", "house", "key", "401", "org-7")


def test_callers_read_a_sentence_and_the_log_tells_the_operator(house, models):
    refused = '{"error":{"message":"Incorrect API key. See https://acme.test/keys of org-7"}}'
    models.say(house.model, "unused")
    models.relay.spoil(*[instead(401, refused)] * 3)
    weir = house(converse={"errors_as_text": True})
    turn = crawbl.one_turn(weir, "hello")
    assert turn.error == (
        "FAILED_PRECONDITION: the model's provider refused the server's credentials"
    )
    assert turn.text.endswith("the model's provider refused the server's credentials")
    told = vendors.stream(weir, "hello")
    answer = vendors.invoke(weir, "hello")
    assert answer.json()["error"]["message"] == "the model's provider refused the server's credentials"
    for seen in (turn.error, turn.text, str(told.of("error")), str(answer.json()["error"])):
        assert not [word for word in OPERATORS if word in seen.replace("provider", "")], seen
    log = weir.said("Incorrect API key. See https://acme.test/keys of org-7", times=3)
    assert log.count("check its key: weir provider test house (PROVIDER_AUTH)") == 3
    assert "run " in log.split("provider 'house'")[0].splitlines()[-1]
    vendors.no_key_in(weir, turn.events, told, answer.text)


@pytest.mark.parametrize("kind", ["openai"])
def test_nimi_says_that_a_whole_answer_was_not_streamed(house, models):
    models.say(house.model, "refused", "one two three four", "again")
    models.relay.spoil(instead(400, NO_STREAM))
    weir = house(
        nimi={"allow_loopback_provider_endpoint": True, "probe_interval": "0s"},
        connectors=[{"id": "house", "provider": "house", "owner": "anna"}],
    )
    client = nimi.Client(weir)
    turn = client.stream(
        connector_id="house",
        model_id=house.model,
        subject_user_id="anna",
        route_policy=nimi.common.ROUTE_POLICY_CLOUD,
    )
    assert turn.text == "one two three four" and turn.last.completed.stream_simulated
