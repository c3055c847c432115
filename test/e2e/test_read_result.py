"""A long result is read on in the session that it was made in, and nowhere else (K23)."""
import json

import pytest
import vendor
from test_transfers import Model

STATEMENT = "ALICES-BANK-STATEMENT " * 3000  # longer than a model is shown
MADE = ("statement", {})
UNKNOWN = "there is no result {}"


@pytest.fixture
def model():
    with Model() as model:
        yield model


def settings(model, tmp_path):
    text = tmp_path / "statement.txt"
    text.write_text(STATEMENT)
    provider = {"name": "house", "kind": "openai", "base_url": model.url + "/v1", "key_env": "HOUSE_KEY"}
    tool = {"description": "Reads the statement.", "command": ["/bin/cat", str(text)],
            "parameters": {"type": "object", "properties": {}}}
    agents = [{"slug": "manager", "model": "house/big", "tools": ["statement"], "delegates": ["clerk"]},
              {"slug": "clerk", "model": "house/big", "tools": ["calculator"]}]
    return json.dumps({"providers": [provider], "agents": agents, "tools": {"statement": tool}})


@pytest.fixture
def weir(start_weir, model, tmp_path):
    return start_weir(config=settings(model, tmp_path), env={"HOUSE_KEY": vendor.KEY})


def ask(weir, model, user, session, *replies):
    """One turn; what its model read at its end, as one text."""
    model.replies = [*replies, "Done."]
    body = {"input": "go", "session_id": session, "config": {"configurable": {"user_id": user}}}
    assert weir.http().post("/invoke", json=body).json()["output"] == "Done."
    return model.read()


def read_on(number, offset=40_000):
    return [("read_result", {"result_id": number, "offset": offset})]


def test_nobody_reads_on_in_the_result_of_another_session(weir, model):
    assert '"result_id":1' in ask(weir, model, "alice", "a", [MADE])
    for user, session in [("bob", "a"), ("alice", "b"), ("bob", "b")]:
        told = ask(weir, model, user, session, read_on(1))
        assert "STATEMENT" not in told and UNKNOWN.format(1) in told
        assert UNKNOWN.format(2) in ask(weir, model, user, session, read_on(2)), "the same words"


def test_a_result_is_read_on_in_its_own_session(weir, model):
    """In its turn, in a later one, by an agent that the turn was handed to, after a kill."""
    assert '"offset":40000,"text":"' in ask(weir, model, "alice", "a", [MADE], read_on(1))
    assert '"offset":41000,"text":"' in ask(weir, model, "alice", "a", read_on(1, 41_000))
    hand_over = [("transfer_to_agent", {"agent_name": "clerk"})]
    assert '"offset":42000,"text":"' in ask(weir, model, "alice", "a", hand_over, read_on(1, 42_000))
    weir.kill()
    weir.start()
    assert '"offset":43000,"text":"' in ask(weir, model, "alice", "a", read_on(1, 43_000))
