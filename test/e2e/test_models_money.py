"""Prices, budgets and limits in dollars hold, whoever answers."""
import crawbl
import vendors
from vendors import call


def spend(text, prompt, completion):
    return {
        "content": text,
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion},
    }


def test_a_price_makes_dollars_of_tokens(house, models):
    models.say(house.model, spend("Hi.", 1_000_000, 0), "Never.")
    prices = [{"model": house.model + "*", "from": "2020-01-01", "input": 3, "output": 5}]
    weir = house([{"max_tokens": 100}], prices=prices, budgets=[{"day": "$2.50"}])
    session = crawbl.new_session()
    with crawbl.open_stream(weir) as stream:
        assert stream.ask("hello", session_id=session).text == "Hi."
        assert '"cost_nano_usd":3000000000' in vendors.journal(weir, session)
        turn = stream.ask("more", session_id=session)
    assert turn.code == "RESOURCE_EXHAUSTED" and len(models.asked) == 1


def test_the_cost_of_a_model_without_a_price_is_unknown(house, models):
    models.say("nobody-prices-this", "Hi.")
    weir = house([{"model": "house/nobody-prices-this"}])
    session = crawbl.new_session()
    assert crawbl.one_turn(weir, "hello", session_id=session).text == "Hi."
    assert '"cost_nano_usd":null' in vendors.journal(weir, session)


def test_an_agents_own_limit_of_dollars_ends_its_turn(house, models):
    made = {"toolCalls": [call("calculator", {"expression": "1"}, id="c")]}
    models.say(house.model, {"usage": {"prompt_tokens": 1_000_000, "completion_tokens": 0}, **made}, "Never.")
    prices = [{"model": house.model, "from": "2020-01-01", "input": 3, "output": 5}]
    weir = house([{"tools": ["calculator"], "limits": {"cost": "$0.20"}}], prices=prices)
    turn = crawbl.one_turn(weir, "go")
    assert turn.code == "RESOURCE_EXHAUSTED" and len(models.asked) == 1
