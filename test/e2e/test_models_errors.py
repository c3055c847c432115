"""Vendors that fail, and what callers are told (U1 to U3, O6): no success, and never the key."""
import time

import crawbl
import pytest
import vendors
from vendors import KEY, cut, hold, insert, instead, refuse, reset

# What an error looks like inside a stream that began well.
ERROR_EVENTS = {
    "anthropic": "event: error\ndata: "
    '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
    "gemini": 'data: {"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}\n\n',
    "openai": 'data: {"error":{"message":"Overloaded","type":"server_error","code":null}}\n\n',
    "openai-responses": "event: error\ndata: "
    '{"type":"error","code":"server_error","message":"Overloaded","param":null}\n\n',
}

# Events of a stream before its second word.
BEGUN = {"anthropic": 4, "gemini": 2, "openai": 3, "openai-responses": 9}

# name -> (settings of the provider, what happens to each answer, how often it may be asked)
FAULTS = {
    "401": ({}, lambda kind: instead(401, '{"error":{"message":"Wrong key: ' + KEY + '"}}'), 1),
    "403": ({}, lambda kind: instead(403, '{"error":{"message":"Not yours: ' + KEY + '"}}'), 1),
    "400": ({}, lambda kind: instead(400, '{"error":{"message":"Bad: ' + KEY + '"}}'), 1),
    "500 for ever": ({"retries": 1}, lambda kind: instead(500, "oops " + KEY, "text/plain"), 2),
    "429 for ever": (
        {"retries": 1},
        lambda kind: instead(429, '{"error":{"message":"Slow down"}}', retry_after="0"),
        2,
    ),
    "an error in the stream": ({}, lambda kind: insert(ERROR_EVENTS[kind], after=2), 1),
    "an end without a finish": ({}, lambda kind: cut(after=3), 1),
    "a broken connection": ({}, lambda kind: reset(after=3), 3),  # RST may overtake the words
    "half an event": ({}, lambda kind: insert('data: {"choices":[{"del', after=2), 1),
    "no JSON": ({}, lambda kind: insert("data: <h1>oops</h1>\n\n", after=2), 1),
    "HTML": ({}, lambda kind: instead(200, f"<html>{KEY}</html>", "text/html"), 3),
    "an empty stream": ({}, lambda kind: instead(200, "", "text/event-stream"), 3),
    "a stall": ({"stall": "500ms"}, lambda kind: hold(after=3), 1),
    "no first byte": ({"first_byte": "700ms", "retries": 0}, lambda kind: hold(), 1),
    "a redirect": ({}, lambda kind: instead(302, "", location="http://127.0.0.1:9/?k=" + KEY), 1),
}


@pytest.fixture(params=sorted(FAULTS))
def broken(request, house, models, kind):
    """A daemon whose vendor fails this way for three turns, and is well again afterwards."""
    provider, fault, at_most = FAULTS[request.param]
    models.say(house.model, *["one two three four five six seven"] * 20, chunkSize=5)
    models.at_most = at_most
    models.fault = fault(kind)
    return house(provider=provider)


def fail_next(models):
    """All that is asked until heal() fails."""
    models.relay.spoils.extend([models.fault] * 10)
    del models.asked[:]


def heal(models):
    models.relay.spoils.clear()


def test_a_failure_is_told_on_each_wire_and_the_next_turn_is_well(broken, models):
    weir = broken
    with crawbl.open_stream(weir) as stream:
        fail_next(models)
        turn = stream.ask("hello")
        assert turn.error and turn.done.turns == [], turn.done
        assert 1 <= len(models.asked) <= models.at_most
        heal(models)
        assert stream.ask("again").text == "one two three four five six seven"

    fail_next(models)
    told = vendors.stream(weir, "hello")
    assert told.status == 200 and len(told.of("error")) == 1 and not told.of("result"), told
    assert told.events[-1][0] == "error"

    fail_next(models)
    answer = vendors.invoke(weir, "hello")
    assert answer.status_code >= 500, answer.text
    error = answer.json()["error"]
    assert error["code"] and error["message"] and error["code"] == error["code"].upper()
    heal(models)
    assert vendors.invoke(weir, "hello").status_code == 200
    vendors.no_key_in(weir, turn.events, told, answer.text, dict(answer.headers))


def test_a_redirect_says_to_check_the_base_url(house, models):
    """A base URL with http: instead of https: is the usual cause."""
    models.say(house.model, "Hi.")
    weir = house()
    models.relay.spoils.extend([instead(308, "", location="https://elsewhere/?k=" + KEY)] * 3)
    answer = vendors.invoke(weir, "hello")
    assert answer.json()["error"]["details"]["reason"] == "PROVIDER_UNREACHABLE", answer.text
    weir.said("answered 308, a redirect, which is not followed; check its base URL")
    assert len(models.asked) == 1
    models.relay.spoils.clear()
    vendors.no_key_in(weir, answer.text)


def test_too_many_requests_are_tried_again_when_the_vendor_says(house, models):
    models.say(house.model, refuse(429, "slow down", retryAfter=1), "Hi.")
    weir = house()
    begun = time.monotonic()
    turn = crawbl.one_turn(weir, "hello")
    assert turn.error is None and turn.text == "Hi." and len(models.asked) == 2
    assert time.monotonic() - begun >= 0.9
    assert models.asked[0].raw == models.asked[1].raw


def test_two_failures_of_the_server_are_tried_again(house, models):
    models.say(house.model, refuse(500), refuse(503), "Hi.")
    weir = house()
    turn = crawbl.one_turn(weir, "hello")
    assert turn.error is None and turn.text == "Hi." and len(models.asked) == 3
    assert len(turn.of("usage")) == 1


def test_what_was_said_before_a_failure_is_shown_once(house, models, kind):
    models.say(house.model, "one two three four five", chunkSize=4)
    models.relay.spoil(insert(ERROR_EVENTS[kind], after=BEGUN[kind]))
    turn = crawbl.one_turn(house(), "hello")
    assert turn.error and turn.text and "one two three four five".startswith(turn.text)
    assert len(models.asked) == 1, "after the first word nobody is asked again"


@pytest.mark.parametrize("kind", ["openai"])
def test_a_server_that_is_not_there_is_told(start_weir, models, kind):
    provider = models.provider(kind, base_url="http://127.0.0.1:9/v1", retries=0)
    agent = {"slug": "a", "model": "house/m"}
    weir = start_weir(config=vendors.settings(provider, [agent]), env={"HOUSE_KEY": KEY})
    turn = crawbl.one_turn(weir, "hello")
    assert turn.error == (
        "UNAVAILABLE: the model's provider cannot be reached; try again in a moment"
    )
    weir.said("provider 'house': it cannot be reached")
    vendors.no_key_in(weir, turn.events)


# --- fallback -----------------------------------------------------------------------------


def test_the_next_model_answers_when_the_first_does_not(house, models):
    models.say("first", refuse(401, "no"))
    models.say("second", "I am the second.")
    weir = house([{"model": "house/first", "fallback": ["house/second"]}])
    session = crawbl.new_session()
    turn = crawbl.one_turn(weir, "hello", session_id=session)
    assert turn.error is None and turn.text == "I am the second." and len(models.asked) == 2
    assert turn.done.model == "second"
    assert "first did not answer" in vendors.journal(weir, session)


def test_a_stream_says_that_the_next_model_is_asked(house, models):
    models.say("first", refuse(401, "no " + KEY))
    models.say("second", "I am the second.")
    weir = house([{"model": "house/first", "fallback": ["house/second"]}])
    told = vendors.stream(weir, "hello")
    assert told.text == "I am the second." and not told.of("error")
    [step] = told.of("step")
    assert "first" in step["description"] and "second" in step["description"]
    vendors.no_key_in(weir, told)


def test_nobody_else_is_asked_after_the_first_word(house, models, kind):
    models.say("first", "one two three four", chunkSize=4)
    models.say("second", "I am the second.")
    models.relay.spoil(insert(ERROR_EVENTS[kind], after=BEGUN[kind]))
    weir = house([{"model": "house/first", "fallback": ["house/second"]}])
    turn = crawbl.one_turn(weir, "hello")
    assert turn.error and len(models.asked) == 1 and "second" not in turn.text


def test_a_failure_of_all_models_is_told_once(house, models):
    models.say("first", refuse(401, "no"))
    models.say("second", refuse(401, "no"))
    weir = house([{"model": "house/first", "fallback": ["house/second"]}])
    turn = crawbl.one_turn(weir, "hello")
    assert turn.error and len(models.asked) == 2


# --- leaving ------------------------------------------------------------------------------


def wait_gone(models):
    assert models.asked[-1].gone.wait(5), "the vendor's connection stayed open"


def test_who_leaves_converse_closes_the_vendors_connection(house, models, kind):
    models.say(house.model, "one two three four", "Hi.", chunkSize=4)
    models.relay.spoil(hold(after=BEGUN[kind]))
    weir = house()
    session = crawbl.new_session()
    with crawbl.open_stream(weir) as stream:
        stream.send("hello", session_id=session)
        assert stream.next().chunk.text
    wait_gone(models)
    assert crawbl.one_turn(weir, "again", session_id=session).text == "Hi."


def test_who_leaves_the_stream_closes_the_vendors_connection(house, models, kind):  # S6
    models.say(house.model, "one two three four", "Hi.", chunkSize=4)
    models.relay.spoil(hold(after=BEGUN[kind]))
    weir = house()
    with weir.http() as http:
        body = {"input": "hello", "session_id": "s"}
        with http.stream("POST", "/stream", json=body) as answer:
            assert any("delta" in line for line in answer.iter_lines())
    wait_gone(models)
    assert vendors.invoke(weir, "again", session_id="s").json()["output"] == "Hi."


@pytest.mark.parametrize("kind", ["openai"])
def test_the_clients_deadline_closes_the_vendors_connection(house, models, kind):  # G5
    models.say(house.model, "one", "Hi.")
    models.relay.spoil(hold())
    weir = house()
    stream = crawbl.open_stream(weir, timeout=0.3)
    stream.send("hello")
    assert stream.status().name == "DEADLINE_EXCEEDED"
    wait_gone(models)


@pytest.mark.parametrize("kind", ["openai"])
def test_a_turn_that_takes_too_long_is_ended(house, models):
    models.say(house.model, "one two three", "Hi.", chunkSize=4)
    models.relay.spoil(hold(after=3))
    weir = house(limits={"turn": "200ms"})
    with crawbl.open_stream(weir) as stream:
        turn = stream.ask("hello")
        assert turn.code == "DEADLINE_EXCEEDED"
        wait_gone(models)
        assert stream.ask("again").text == "Hi."
