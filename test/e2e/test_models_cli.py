"""Commands and settings that end in a question to a real model."""
import json
import re
import subprocess

import harness
import prompts
import pytest
import vendors
from vendors import KEY, KINDS, call

OK, FAILED, USAGE = 0, 1, 2


@pytest.fixture
def cli(tmp_path):
    def run(*args, env=None):
        home = {"HOME": tmp_path, "XDG_DATA_HOME": tmp_path / "share", "HOUSE_KEY": KEY}
        return subprocess.run(
            [str(harness.BINARY), *map(str, args)],
            env=harness.clean_environment({**home, **(env or {})}),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )

    return run


def write(tmp_path, models, kind, agent=None, provider=None, **more):
    plain = {"slug": "manager", "instructions": "You lead.", "model": f"house/{KINDS[kind][1]}"}
    path = tmp_path / "weir.yaml"
    one = models.provider(kind, **(provider or {}))
    path.write_text(vendors.settings(one, [{**plain, **(agent or {})}], **more))
    return path


def test_one_turn_without_a_server(cli, models, kind, tmp_path):
    six = call("calculator", {"expression": "6*7"}, id="c1")
    models.say(KINDS[kind][1], six, "It is 42.", six, "It is 42.")
    path = write(tmp_path, models, kind, {"tools": ["calculator"]})
    answer = cli("run", "go", "-c", path)
    assert (answer.returncode, answer.stdout) == (OK, "It is 42.\n"), answer.stderr
    assert "calculator" in answer.stderr
    answer = cli("run", "go", "-c", path, "--json")
    events = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [e["type"] for e in events].count("usage") == 2 and events[-1]["type"] == "done"
    assert vendors.CANARY not in answer.stdout + answer.stderr


def test_one_turn_that_fails_without_a_server(cli, models, kind, tmp_path):
    models.relay.spoil(vendors.instead(401, "no: " + KEY))
    answer = cli("run", "go", "-c", write(tmp_path, models, kind))
    assert answer.returncode == FAILED and answer.stdout == ""
    assert "house" in answer.stderr and vendors.CANARY not in answer.stderr


def test_a_provider_of_each_kind_is_tested(cli, models, kind, tmp_path):
    model = KINDS[kind][1]
    usage = {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    models.say(model, {"content": "Yes.", **usage})
    path = write(tmp_path, models, kind)
    answer = cli("provider", "test", f"house/{model}", "--json", "-c", path)
    assert answer.returncode == OK, answer.stderr
    told = json.loads(answer.stdout)
    assert (told["prompt_tokens"], told["completion_tokens"]) == (9, 2)
    assert len(models.asked) == 1
    models.relay.spoil(vendors.instead(401, "no: " + KEY))
    answer = cli("provider", "test", f"house/{model}", "-c", path)
    assert answer.returncode == FAILED and vendors.CANARY not in answer.stdout + answer.stderr


def test_providers_are_listed_without_their_keys(cli, models, kind, tmp_path):
    answer = cli("provider", "list", "-c", write(tmp_path, models, kind))
    assert answer.returncode == OK and "house" in answer.stdout
    answer = cli("config", "print", "-c", tmp_path / "weir.yaml")
    assert answer.returncode == OK and "house" in answer.stdout
    assert vendors.CANARY not in answer.stdout + answer.stderr


@pytest.mark.parametrize(
    "vendor, model",
    [("OPENAI", "gpt-5-mini"), ("ANTHROPIC", "claude-sonnet-4-5")],
)
def test_an_agent_of_agentbreeder_asks_its_vendor(start_weir, models, vendor, model):
    models.say(model, "Walk.", "Walk.")
    path = {"OPENAI": "/v1", "ANTHROPIC": ""}[vendor]
    config = (
        "name: kyoto-guide\nversion: 3.2.1\nteam: t\nowner: a@b.example\nframework: custom\n"
        f"model: {{primary: {model}, temperature: 0.5, max_tokens: 99}}\n"
        "prompts: {system: You plan days.}\ndeploy: {cloud: local}\n"
    )
    env = {f"{vendor}_API_KEY": KEY, f"{vendor}_BASE_URL": models.url + path}
    weir = start_weir(config=config, env=env)
    assert vendors.invoke(weir, "plan").json()["output"] == "Walk."
    assert vendors.stream(weir, "plan").text == "Walk."
    body = models.asked[0].body
    prompt = prompts.of({"OPENAI": "openai", "ANTHROPIC": "anthropic"}[vendor], body)
    assert "You plan days." in prompt.system
    assert body["model"] == model and body["temperature"] == 0.5 and 99 in body.values()
    vendors.no_key_in(weir)


def test_what_init_writes_runs(cli, models, tmp_path):
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": models.url + "/v1"}
    answer = cli("init", "new", env=env)
    assert answer.returncode == OK, answer.stderr
    text = (tmp_path / "new/weir.yaml").read_text()
    [model] = re.findall(r"^model: openai/(\S+)", text, re.MULTILINE)
    models.say(model, "Hello.")
    answer = cli("run", "hello", "-c", "new/weir.yaml", env=env)
    assert (answer.returncode, answer.stdout) == (OK, "Hello.\n"), answer.stderr
    assert vendors.CANARY not in text


# what is misspelt -> (changes of the agent, of the provider, what is suggested)
NEAR = {
    "a tool": ({"tools": ["calculater"]}, {}, "calculator"),
    "a delegate": ({"delegates": ["clrk"]}, {}, "clerk"),
    "a provider": ({"model": "hose/m"}, {}, "house"),
    "a key of an agent": ({"instruction": "x"}, {}, "instructions"),
    "a kind of provider": ({}, {"kind": "antropic"}, "anthropic"),
    "a policy": ({"tools": {"calculator": "alow"}}, {}, "allow"),
    "an effort": ({"effort": "hihg"}, {}, "high"),
    "a limit": ({"limits": {"model_call": 3}}, {}, "model_calls"),
}


@pytest.mark.parametrize("what", sorted(NEAR))
def test_a_name_that_nobody_has_is_refused_with_the_nearest(cli, models, tmp_path, what):
    agent, provider, near = NEAR[what]
    entry = {**models.provider("openai"), **provider}
    agents = [{"slug": "manager", "model": "house/m", **agent}]
    agents += [{"slug": "clerk", "model": "house/m"}]
    path = tmp_path / "weir.yaml"
    path.write_text(vendors.settings(entry, agents))
    answer = cli("config", "check", path)
    assert answer.returncode != OK and f"did you mean '{near}'?" in answer.stderr, answer.stderr
    assert re.search(r"weir\.yaml:\d+:\d+: ", answer.stderr), "the place is told"
    assert not models.asked
