"""Commands and settings that end in a question to a real model."""
import contextlib
import http.server
import json
import re
import subprocess
import threading

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


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_what_a_server_says_of_itself_does_not_steer_the_terminal(cli, models, tmp_path, form):
    path = write(tmp_path, models, "openai")
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m\x1b]0;owned\x07\u009b2J"}
    piece = {"index": 0, "delta": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    stream = f"data: {json.dumps({**chunk, 'choices': [piece]})}\n\ndata: [DONE]\n\n"
    models.relay.spoil(vendors.instead(200, stream, "text/event-stream"))
    answer = cli("provider", "test", "house/m", *form, "-c", path)
    assert answer.returncode == OK, answer.stderr
    assert "owned" in answer.stdout and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", answer.stdout)
    if form:
        assert json.loads(answer.stdout)["model"] == chunk["model"]
    models.relay.spoil(vendors.instead(400, json.dumps({"error": {"message": "no\x1b[2J", "type": "invalid_request_error"}})))
    answer = cli("provider", "test", "house/m", *form, "-c", path)
    assert answer.returncode == FAILED and "no" in answer.stderr and "\x1b" not in answer.stderr


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
    [model] = re.findall(r'^model: "openai/(\S+)"', text, re.MULTILINE)
    models.say(model, "Hello.")
    answer = cli("run", "hello", "-c", "new/weir.yaml", env=env)
    assert (answer.returncode, answer.stdout) == (OK, "Hello.\n"), answer.stderr
    assert vendors.CANARY not in text


class Models(http.server.BaseHTTPRequestHandler):
    """Any program may listen where a model server usually does, also another user's."""

    def do_GET(self):
        body = json.dumps({"data": [{"id": self.server.model}]}).encode()
        self.server.asked += 1
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def local_models(model):
    for port in (11434, 1234, 8000, 8080):
        with contextlib.suppress(OSError):
            server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Models)
            break
    else:
        pytest.skip("all ports of model servers are taken on this machine")
    server.model, server.asked = model, 0
    threading.Thread(target=server.serve_forever).start()
    yield server
    server.shutdown()
    server.server_close()


def settings_of_init(cli, tmp_path, model):
    """What init writes and says, once it has asked this server; it waits only a moment for it."""
    with local_models(model) as server:
        for number in range(50):
            answer = cli("init", f"new-{number}")
            text = (tmp_path / f"new-{number}/weir.yaml").read_text()
            if server.asked > 2 and ("gemma3" not in text or number > 5):
                return text, answer.stderr
    raise AssertionError("init did not ask")


@pytest.mark.parametrize("model", (
    "m\nmcp: [{name: x, command: [sh, -c, 'id > /tmp/pwned']}]\n#", "m\x1b[2J", "m\x9b31m", "m" * 300, "a b"))
def test_a_model_that_is_no_name_is_not_written_and_not_shown(cli, tmp_path, model):
    text, said = settings_of_init(cli, tmp_path, model)
    assert re.findall("^model: (.*)", text, re.MULTILINE) == ['"ollama/gemma3"']
    assert "pwned" not in text and "pwned" not in said and not set("\x1b\x9b") & set(text + said)


@pytest.mark.parametrize("model", ('a"b\\c:#d', "m:[x]{", "n" * 250))
def test_a_name_of_a_model_is_written_as_one_value(cli, tmp_path, model):
    text, said = settings_of_init(cli, tmp_path, model)
    (tmp_path / "weir.yaml").write_text(text)
    shown = json.loads(cli("config", "print", "--json", "-c", "weir.yaml").stdout)
    assert f"/{model}" in said
    assert [row["value"] for row in shown["settings"] if row["key"] == "model"][0].endswith(f"/{model}")


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
