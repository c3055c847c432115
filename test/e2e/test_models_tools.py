"""Tools and delegation with each vendor's API: what is offered, asked for and answered."""
import json

import crawbl
import prompts
import pytest
import vendors
from vendors import call

SIX_TIMES_SEVEN = call("calculator", {"expression": "6*7"}, id="call_one")


def prompt(models, kind, at):
    return prompts.of(kind, models.asked[at].body)


def key_of(kind, id, name):
    """How a vendor pairs a result with its call: Gemini by name, all others by id."""
    return name if kind == "gemini" else id


def test_a_tool_is_offered_called_and_answered(house, models, kind):
    models.say(house.model, SIX_TIMES_SEVEN, "It is 42.")
    weir = house([{"tools": ["calculator"]}])
    turn = crawbl.one_turn(weir, "six times seven?")
    assert turn.error is None
    assert turn.text == "It is 42." and len(turn.done.turns) == 1

    [made], [given] = turn.of("tool_call"), turn.of("tool_result")
    assert made.tool == "calculator" and json.loads(made.args_json) == {"expression": "6*7"}
    assert given.call_id == made.call_id and not given.error
    assert str(json.loads(given.result_json)["result"]) == "42"
    assert [u.call_sequence for u in turn.of("usage")] == [0, 1]
    assert turn.kinds.index("tool_call") < turn.kinds.index("tool_result")

    first, second = prompt(models, kind, 0), prompt(models, kind, 1)
    assert "calculator" in first.tools and "current_time" not in first.tools
    schema = first.tools["calculator"]
    assert schema["required"] == ["expression"] and "expression" in schema["properties"]
    [(id, name, arguments)] = second.calls
    assert (name, arguments) == ("calculator", {"expression": "6*7"})
    [(paired, result)] = second.results
    assert paired == key_of(kind, id, name) and str(result["result"]) == "42"
    if kind != "gemini":
        assert id == "call_one" == made.call_id
    vendors.no_key_in(weir, turn.events)


def test_two_tools_of_one_reply_are_answered_each_by_its_own_id(house, models, kind):
    both = [SIX_TIMES_SEVEN, call("current_time", {"zone": "UTC"}, id="call_two")]
    models.say(house.model, both, "Done.")
    weir = house([{"tools": ["calculator", "current_time"]}])
    turn = crawbl.one_turn(weir, "both")
    assert turn.error is None and turn.text == "Done."
    assert [c.tool for c in turn.of("tool_call")] == ["calculator", "current_time"]
    results = {r.call_id: json.loads(r.result_json) for r in turn.of("tool_result")}
    ids = [c.call_id for c in turn.of("tool_call")]
    assert set(results) == set(ids) and len(set(ids)) == 2
    second = prompt(models, kind, 1)
    assert [name for _, name, _ in second.calls] == ["calculator", "current_time"]
    by_key = dict(second.results)
    assert set(by_key) == {key_of(kind, id, name) for id, name, _ in second.calls}
    keys = [key_of(kind, id, name) for id, name, _ in second.calls]
    assert str(by_key[keys[0]]["result"]) == "42" and by_key[keys[1]]["zone"] == "UTC"


def test_a_tool_that_does_not_exist_is_told_to_the_model(house, models, kind):
    models.say(house.model, call("calculater", {"expression": "1"}, id="call_x"), "I see.")
    weir = house([{"tools": ["calculator"]}])
    turn = crawbl.one_turn(weir, "go")
    assert turn.error is None and turn.text == "I see."
    [given] = turn.of("tool_result")
    assert given.error and "calculater" in given.error_message
    assert "calculater" in json.dumps(prompt(models, kind, 1).results)


def test_arguments_that_do_not_fit_are_told_to_the_model(house, models, kind):
    wrong = [call("calculator", text, id="c") for text in ("{}", '{"expression": 7}', "[]", '"x"')]
    models.say(house.model, *[reply for one in wrong for reply in (one, "I see.")])
    weir = house([{"tools": ["calculator"]}])
    with crawbl.open_stream(weir) as stream:
        for at in range(len(wrong)):
            turn = stream.ask("go", session_id=crawbl.new_session())
            assert turn.error is None and turn.text == "I see."
            [made], [given] = turn.of("tool_call"), turn.of("tool_result")
            assert isinstance(json.loads(made.args_json), dict)
            assert given.error and given.error_message
            [(_, told)] = prompt(models, kind, 2 * at + 1).results
            assert told, "the model reads what was wrong"


@pytest.mark.parametrize("kind", ["anthropic", "openai", "openai-responses"])
def test_arguments_that_are_cut_are_told_to_the_model(house, models, kind):
    whole = call("calculator", '{"expression":"6*7"}', id="c")
    models.say(house.model, whole, "I see.", chunkSize=99)
    models.relay.spoil(vendors.rewrite(rb'{\"expression\":\"6*7\"}', rb'{\"expression\":\"6'))
    weir = house([{"tools": ["calculator"]}])
    turn = crawbl.one_turn(weir, "go")
    assert turn.error is None and turn.text == "I see."
    [made], [given] = turn.of("tool_call"), turn.of("tool_result")
    assert isinstance(json.loads(made.args_json), dict) and given.error
    [(id, _, arguments)] = prompt(models, kind, 1).calls
    assert id == "c" and isinstance(arguments, dict), "half arguments do not go back"


def test_text_before_a_call_is_kept_and_told_back(house, models, kind):
    first = {"content": "Let me see. ", "toolCalls": [SIX_TIMES_SEVEN]}
    models.say(house.model, first, "It is 42.")
    weir = house([{"tools": ["calculator"]}])
    turn = crawbl.one_turn(weir, "go")
    assert turn.error is None and turn.text == "Let me see. \n\nIt is 42."
    second = prompt(models, kind, 1)
    assert ("assistant", "Let me see. ") in second.texts and len(second.calls) == 1


def test_tools_show_on_the_stream_and_in_the_history_of_invoke(house, models, kind):
    models.say(house.model, SIX_TIMES_SEVEN, "It is 42.", SIX_TIMES_SEVEN, "Still 42.")
    weir = house([{"tools": ["calculator"]}])
    told = vendors.stream(weir, "go")
    [made] = told.of("tool_call")
    assert made["name"] == "calculator" and made["args"] == {"expression": "6*7"}
    assert told.text == "It is 42."
    answer = vendors.invoke(weir, "go").json()
    assert answer["output"] == "Still 42."
    [past] = answer["history"]
    assert past["name"] == "calculator" and "42" in past["result"]


def test_a_hidden_tool_is_neither_offered_nor_run(house, models, kind):
    models.say(house.model, SIX_TIMES_SEVEN, "I see.")
    weir = house([{"tools": {"calculator": "hidden", "current_time": "allow"}}])
    turn = crawbl.one_turn(weir, "go")
    offered = prompt(models, kind, 0).tools
    assert "current_time" in offered and "calculator" not in offered
    [given] = turn.of("tool_result")
    assert given.error and "42" not in given.result_json


def test_a_tool_that_no_agent_named_is_not_run(house, models, kind):
    models.say(house.model, SIX_TIMES_SEVEN, "I see.")
    weir = house()
    turn = crawbl.one_turn(weir, "go")
    assert prompt(models, kind, 0).tools == {}
    [given] = turn.of("tool_result")
    assert given.error and "42" not in given.result_json and turn.text == "I see."


def test_a_delegate_answers_with_its_own_instructions(house, models, kind):
    hand_over = call("transfer_to_agent", {"agent_name": "clerk"}, id="call_t")
    first = {"content": "One moment. ", "toolCalls": [hand_over]}
    models.say(house.model, first, "I am the clerk.")
    weir = house(
        [
            {"delegates": ["clerk"]},
            {"slug": "clerk", "instructions": "You file.", "description": "Files things."},
        ]
    )
    turn = crawbl.one_turn(weir, "file this")
    assert turn.error is None
    [made] = turn.of("tool_call")
    assert made.tool == "transfer_to_agent" and made.agent_id == "manager"
    assert [(c.agent_id, c.text) for c in turn.of("chunk")][-1][0] == "clerk"
    assert ("clerk", "I am the clerk.") in [(t.agent_id, t.text) for t in turn.done.turns]
    first, second = prompt(models, kind, 0), prompt(models, kind, 1)
    assert "You lead." in first.system and "Files things." in models.asked[0].raw.decode()
    assert "You file." in second.system and "You lead." not in second.system
    assert "file this" in models.asked[1].raw.decode()
    assert [u.agent_id for u in turn.of("usage")] == ["manager", "clerk"]


def test_handing_over_to_nobody_is_told_to_the_model(house, models, kind):
    hand_over = call("transfer_to_agent", {"agent_name": "clark"}, id="call_t")
    models.say(house.model, hand_over, "Nobody there.")
    weir = house([{"delegates": ["clerk"]}, {"slug": "clerk", "instructions": "You file."}])
    turn = crawbl.one_turn(weir, "go")
    assert turn.error is None and turn.text == "Nobody there."
    [given] = turn.of("tool_result")
    assert given.error


def test_a_model_that_always_calls_a_tool_stops_at_the_limit(house, models, kind):
    models.say(house.model, *[SIX_TIMES_SEVEN] * 5)  # U6
    weir = house([{"tools": ["calculator"], "limits": {"model_calls": 3}}])
    turn = crawbl.one_turn(weir, "go")
    assert turn.code == "RESOURCE_EXHAUSTED", turn.done.model
    assert len(turn.of("usage")) == 3 == len(models.asked)


def test_a_second_turn_carries_the_first(house, models, kind):
    models.say(house.model, SIX_TIMES_SEVEN, "It is 42.", "As I said.")
    weir = house([{"tools": ["calculator"]}])
    with crawbl.open_stream(weir) as stream:
        assert stream.ask("six times seven?").text == "It is 42."
        assert stream.ask("again?").text == "As I said."
    last = prompt(models, kind, 2)
    assert last.texts == [
        ("user", "six times seven?"),
        ("assistant", "It is 42."),
        ("user", "again?"),
    ]
    assert len(last.calls) == len(last.results) == 1
