"""What a model says, as each vendor's API streams it, arrives on each wire."""
import crawbl
import prompts
import vendors

WORDS = "Grüße aus 京都: one, two, three — and 🦊 four."


def usage(prompt, completion):
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


def test_a_text_streams_piece_by_piece_over_converse(house, models):
    models.say(house.model, {"content": WORDS, **usage(11, 7)}, chunkSize=5)
    weir = house()
    turn = crawbl.one_turn(weir, "hello")
    assert turn.error is None
    assert turn.text == WORDS
    pieces = [chunk.text for chunk in turn.of("chunk")]
    assert all(pieces) and len(pieces) > 3
    assert [t.text for t in turn.done.turns] == [WORDS]
    assert {c.agent_id for c in turn.of("chunk")} == {"manager"}
    [used] = turn.of("usage")
    assert (used.prompt_tokens, used.completion_tokens, used.total_tokens) == (11, 7, 18)
    assert used.call_sequence == 0 and used.agent_id == "manager"
    assert turn.done.model == used.model == house.model
    [asked] = models.asked
    assert "You lead." in asked.raw.decode() and "hello" in asked.raw.decode()
    vendors.no_key_in(weir, turn.events)


def test_a_text_streams_piece_by_piece_over_sse(house, models):
    models.say(house.model, WORDS, chunkSize=5)
    weir = house()
    told = vendors.stream(weir, "hello")
    assert told.status == 200 and told.text == WORDS
    assert len([d for d in told.of("message") if "delta" in d]) > 3
    assert told.of("result")[0]["output"] == WORDS and not told.of("error")
    vendors.no_key_in(weir, told)


def test_an_answer_is_whole_over_invoke(house, models):
    models.say(house.model, WORDS)
    weir = house()
    answer = vendors.invoke(weir, "hello")
    assert answer.status_code == 200, answer.text
    assert answer.json()["output"] == WORDS
    vendors.no_key_in(weir, answer.text)


def test_the_name_that_the_model_reports_is_told(house, models, kind):
    models.say(house.model, {"content": "Hi.", "model": "exactly-this-1"})
    if kind == "gemini":  # whose mock names no model
        named = b'"modelVersion":"exactly-this-1","candidates":'
        models.relay.spoil(vendors.rewrite(b'"candidates":', named))
    turn = crawbl.one_turn(house(), "hello")
    assert turn.text == "Hi."
    assert turn.done.model == turn.of("usage")[0].model == "exactly-this-1"


def test_unknown_usage_is_nought_over_converse(house, models, kind):
    models.say(house.model, "Hi.")
    models.relay.spoil(vendors.rewrite(b'"usage', b'"unsage'))
    turn = crawbl.one_turn(house(), "hello")
    assert turn.error is None
    [used] = turn.of("usage")
    assert (used.prompt_tokens, used.completion_tokens, used.total_tokens) == (0, 0, 0)


def test_settings_of_an_agent_reach_the_vendor(house, models, kind):
    models.say(house.model, "Hi.")
    top_p = {} if kind == "anthropic" else {"top_p": 0.25}  # it takes one of the two
    weir = house([{"max_tokens": 77, "temperature": 0.5, **top_p}])
    assert crawbl.one_turn(weir, "hello").text == "Hi."
    [asked] = models.asked
    said = asked.body.get("generationConfig", asked.body)
    names = {
        "anthropic": ("max_tokens", "temperature"),
        "gemini": ("maxOutputTokens", "temperature", "topP"),
        "openai": ("max_completion_tokens", "temperature", "top_p"),
        "openai-responses": ("max_output_tokens", "temperature", "top_p"),
    }[kind]
    if kind == "openai" and "max_tokens" in said:
        names = ("max_tokens", *names[1:])
    assert [said[name] for name in names] == [77, 0.5, 0.25][: len(names)]


def test_the_key_travels_in_the_header_of_the_vendor(house, models, kind):
    models.say(house.model, "Hi.")
    assert crawbl.one_turn(house(), "hello").text == "Hi."
    [asked] = models.asked
    name, value = {
        "anthropic": ("x-api-key", vendors.KEY),
        "gemini": ("x-goog-api-key", vendors.KEY),
        "openai": ("authorization", f"Bearer {vendors.KEY}"),
        "openai-responses": ("authorization", f"Bearer {vendors.KEY}"),
    }[kind]
    assert asked.headers[name] == value
    assert vendors.KEY not in asked.path and vendors.KEY not in asked.raw.decode()


def test_a_system_prompt_of_a_request_replaces_the_agents_for_that_turn(house, models, kind):
    models.say(house.model, "One.", "Two.")
    weir = house()
    with crawbl.open_stream(weir) as stream:
        assert stream.ask("hello", system_prompt="Speak like a pirate.").text == "One."
        assert stream.ask("hello").text == "Two."
    first, second = (prompts.of(kind, asked.body) for asked in models.asked)
    assert "pirate" in first.system and "You lead." not in first.system
    assert "pirate" not in models.asked[1].raw.decode() and "You lead." in second.system
