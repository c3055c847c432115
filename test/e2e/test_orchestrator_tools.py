"""An orchestrator's tools are tools: every kind of agent has them, and the settings rule them by name."""
import json

import crawbl
import pytest
from orchestrator import Orchestrator, agent
from test_models import cli as weir_cli  # noqa: F401
from vendors import KEY, call

MODEL = "gpt-5-mini"
GREET = call("greet", {"name": "Ann"}, id="c1")


@pytest.fixture
def double():
    with Orchestrator() as orchestrator:
        orchestrator.tools["greet"] = lambda args, _: f"hello {args['name']}"
        orchestrator.tools["zip"] = lambda args, _: "zipped"
        yield orchestrator


@pytest.fixture
def start(start_weir, models, double):
    """Start a daemon with these settings, beside a provider `house`."""

    def run(**settings):
        provider = models.provider("openai")
        text = json.dumps({"providers": [provider], **settings}, indent=1)
        return start_weir(config=text, env={"HOUSE_KEY": KEY, **double.env})

    return run


def plain(**more):
    return {"slug": "manager", "instructions": "You lead.", "model": f"house/{MODEL}", **more}


def offered(asked):
    return {tool["function"]["name"] for tool in asked.body.get("tools", [])}


def results(asked):
    return [m["content"] for m in asked.body["messages"] if m["role"] == "tool"]


NO_BLUEPRINT = {"converse": {"blueprint": False}}


@pytest.mark.parametrize(
    "settings",
    [
        {"agents": [plain()], **NO_BLUEPRINT},
        {"model": f"house/{MODEL}", **NO_BLUEPRINT},
        {"agents": [plain()]},
        {"model": f"house/{MODEL}"},
        {"agents": [plain(tools=["greet", "zip"])], **NO_BLUEPRINT},
    ],
    ids=["agents", "a model alone", "agents, no blueprint", "a model, no blueprint", "by name"],
)
def test_configured_agents_have_them(start, models, double, settings):
    """Where `blueprint` is on, the orchestrator knows no agents: the configured ones serve."""
    models.say(MODEL, GREET, "greeted")
    turn = crawbl.one_turn(start(**settings), "hi")
    assert turn.error is None and turn.text == "greeted"
    assert {"greet", "zip"} <= offered(models.asked[0])
    assert len(double.of("tools/call")) == 1
    assert "hello Ann" in results(models.asked[1])[0]


def test_an_agent_has_only_those_that_it_names(start, models, double):
    models.say(MODEL, "hi", "hi")
    weir = start(
        agents=[plain(tools=["greet", "calculator"]), plain(slug="bare", tools=[])], **NO_BLUEPRINT
    )
    crawbl.one_turn(weir, "hi")
    assert {"greet", "calculator"} <= offered(models.asked[0])
    assert "zip" not in offered(models.asked[0])
    crawbl.one_turn(weir, "hi", agent_id="bare")
    assert not {"greet", "zip", "calculator"} & offered(models.asked[1])


def test_what_another_agent_names_of_our_own_tools_is_not_had(start, models):
    models.say(MODEL, "hi")
    weir = start(agents=[plain(), plain(slug="other", tools=["calculator"])], **NO_BLUEPRINT)
    crawbl.one_turn(weir, "hi")
    assert "greet" in offered(models.asked[0]) and "calculator" not in offered(models.asked[0])


def check_asked(weir, models, double):
    """The call waits for a human, runs after a yes, and its result reaches the model."""
    models.say(MODEL, GREET, "greeted", GREET, "not greeted")
    with crawbl.open_stream(weir) as stream:
        turn = stream.ask("hi", session_id="s")
        assert turn.error is None and not double.of("tools/call")
        assert "greet" in offered(models.asked[0])
        turn = stream.ask("yes", session_id="s")
        assert turn.error is None and turn.text.endswith("greeted")
        assert len(double.of("tools/call")) == 1
        assert "hello Ann" in results(models.asked[1])[0]
        stream.ask("hi again", session_id="s")
        stream.ask("no", session_id="s")
        assert len(double.of("tools/call")) == 1, "a no is a no"
        assert "hello Ann" not in results(models.asked[-1])[-1]


@pytest.mark.parametrize(
    "settings",
    [
        {"agents": [plain(tools={"greet": "ask", "zip": "allow"})], **NO_BLUEPRINT},
        {"agents": [plain()], "tools": {"greet": "ask"}, **NO_BLUEPRINT},
        {"agents": [plain(tools=["greet"])], "tools": {"greet": "ask"}, **NO_BLUEPRINT},
        {"model": f"house/{MODEL}", "tools": {"greet": "ask"}, **NO_BLUEPRINT},
    ],
    ids=["of the agent", "of all", "of all, and named", "of all, a model alone"],
)
def test_one_can_be_held_for_a_human(start, models, double, settings):
    check_asked(start(**settings), models, double)


@pytest.mark.parametrize("named", [None, ["greet", "zip"]], ids=["all", "by name"])
def test_agents_of_a_blueprint_keep_the_settings_policies(start, models, double, named):
    double.agents[crawbl.WORKSPACE] = [agent("manager", role="manager", tools=named)]
    weir = start(model=f"house/{MODEL}", tools={"greet": "ask", "zip": "hidden"})
    check_asked(weir, models, double)
    assert all("zip" not in offered(asked) for asked in models.asked)


@pytest.mark.parametrize(
    "settings",
    [
        {"agents": [plain(tools={"greet": "hidden", "zip": "allow"})]},
        {"agents": [plain()], "tools": {"greet": "hidden"}},
        {"agents": [plain(tools=["greet", "zip"])], "tools": {"greet": "off"}},
        {"model": f"house/{MODEL}", "tools": {"greet": "off"}},
    ],
    ids=["of the agent", "of all", "of all, and named", "of all, a model alone"],
)
def test_one_can_be_hidden(start, models, double, settings):
    models.say(MODEL, GREET, "I see.")
    turn = crawbl.one_turn(start(**settings, **NO_BLUEPRINT), "hi")
    assert turn.text == "I see."
    assert "zip" in offered(models.asked[0]) and "greet" not in offered(models.asked[0])
    assert not double.of("tools/call"), "nor can it be called"
    assert turn.of("tool_result")[0].error


def test_an_agents_own_word_comes_first_unless_nobody_may(start, models, double):
    models.say(MODEL, GREET, "greeted")
    weir = start(agents=[plain(tools={"greet": "allow"})], tools={"greet": "ask"}, **NO_BLUEPRINT)
    assert crawbl.one_turn(weir, "hi").text == "greeted"
    assert len(double.of("tools/call")) == 1


@pytest.mark.parametrize(
    "settings, endpoint, told",
    [
        ({"agents": [plain(tools=["calculater"])]}, True, "did you mean 'calculator'?"),
        ({"tools": {"calculater": "ask"}}, True, "did you mean 'calculator'?"),
        ({"agents": [plain(tools=["greet"])]}, False, "no tool is called 'greet'"),
        ({"tools": {"greet": "ask"}}, False, "need converse.mcp_endpoint"),
        ({"tools": {"greet": "maybe"}}, True, "all it may be is allow, ask, hidden or off"),
        ({"agents": [plain(tools=["greet"])], "tools": {"zip": "ask"}}, True, None),
    ],
)
def test_a_name_that_nobody_can_have_is_refused_at_the_check(
    models, weir_cli, tmp_path, settings, endpoint, told  # noqa: F811
):
    text = json.dumps({"providers": [models.provider("openai")], **settings})
    (tmp_path / "weir.yaml").write_text(text)
    env = {"CRAWBL_MCP_ENDPOINT": "http://127.0.0.1:1/mcp/v1"} if endpoint else {}
    answer = weir_cli("config", "check", "-c", "weir.yaml", env={"HOUSE_KEY": KEY, **env})
    if told is None:
        assert answer.returncode == 0, answer.stderr
    else:
        assert answer.returncode != 0 and told in answer.stderr, answer.stderr
