"""Models from the outside: a key or a local server, and the agents of a file."""
import http.server
import json
import os
import signal
import subprocess
import threading
import time

import harness
import pytest

OK, FAILED, USAGE = 0, 1, 2


class Vendor(http.server.BaseHTTPRequestHandler):
    """Speaks enough of the Chat Completions API to be believed."""

    def do_GET(self):
        self.answer(200, "application/json", json.dumps({"data": [{"id": "gemma3"}]}))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append((dict(self.headers), body))
        if self.server.refuses:
            self.answer(401, "application/json", '{"error":{"message":"Incorrect API key"}}')
            return
        chunks = [
            {"model": body["model"], "choices": [{"index": 0, "delta": {"content": "Hello."}}]},
            {"model": body["model"], "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
        ]
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]
        self.answer(200, "text/event-stream", "".join(lines))

    def answer(self, status, kind, text):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


def serve(port=0):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Vendor)
    server.asked, server.refuses = [], False
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server


@pytest.fixture
def vendor():
    server = serve()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def cli(tmp_path):
    def run(*args, env=None):
        home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "share")}
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


def ollama(vendor):
    return {"OLLAMA_HOST": f"127.0.0.1:{vendor.server_port}"}


def test_one_flag_asks_a_local_model(cli, vendor):
    answer = cli("run", "hello", "--model", "ollama/gemma3", env=ollama(vendor))
    assert (answer.returncode, answer.stdout) == (OK, "Hello.\n"), answer.stderr
    assert vendor.asked[0][1]["model"] == "gemma3"


def test_an_agent_of_a_file_asks_its_provider_with_its_key(cli, vendor, tmp_path):
    (tmp_path / "key").write_text("s3cret\n")
    (tmp_path / "weir.yaml").write_text(
        "providers:\n  - name: house\n    kind: openai\n    key_file: key\n"
        f"    base_url: http://127.0.0.1:{vendor.server_port}/v1\n    headers: {{x-team: blue}}\n"
        "agents:\n  - {slug: a, instructions: You help., model: house/big, temperature: 0.5}\n"
    )
    answer = cli("run", "hello", "-c", "weir.yaml")
    assert answer.returncode == OK, answer.stderr
    headers, body = vendor.asked[0]
    headers = {name.lower(): value for name, value in headers.items()}
    assert headers["authorization"] == "Bearer s3cret" and headers["x-team"] == "blue"
    assert body["model"] == "big" and body["temperature"] == 0.5
    assert "You help." in json.dumps(body["messages"])


def test_a_test_that_fails_says_all_and_never_to_run_itself(cli):
    answer = cli("provider", "test", "ollama/gemma3", env={"OLLAMA_HOST": "127.0.0.1:9"})
    assert answer.returncode == 1
    assert "provider 'ollama': it cannot be reached" in answer.stderr
    assert "check its base URL and the network" in answer.stderr
    assert "weir provider test" not in answer.stderr
    run = cli("run", "hello", "--model", "ollama/gemma3", env={"OLLAMA_HOST": "127.0.0.1:9"})
    assert "provider 'ollama': it cannot be reached" in run.stderr, "the log has it"
    assert "weir: error: the model's provider cannot be reached" in run.stderr


def test_a_provider_is_tested_with_one_small_question(cli, vendor):
    answer = cli("provider", "test", "ollama/gemma3", "--json", env=ollama(vendor))
    assert answer.returncode == OK, answer.stderr
    told = json.loads(answer.stdout)
    assert told["model"] == "gemma3" and told["prompt_tokens"] == 5
    assert told["completion_tokens"] == 2 and told["total_ms"] >= told["first_token_ms"]
    assert len(vendor.asked) == 1


def test_a_refused_key_is_told_with_the_fix_and_never_shown(cli, vendor):
    vendor.refuses = True
    env = {"OPENAI_BASE_URL": f"http://127.0.0.1:{vendor.server_port}/v1"}
    answer = cli("provider", "test", "openai", env={**env, "OPENAI_API_KEY": "sk-hush"})
    assert answer.returncode == FAILED and answer.stdout == ""
    assert "PROVIDER_AUTH" in answer.stderr and "hush" not in answer.stderr
    assert len(vendor.asked) == 1, "a wrong key is not tried again"


def test_a_provider_that_nobody_knows_is_refused_with_the_nearest(cli):
    answer = cli("provider", "test", "olama/x")
    assert answer.returncode == USAGE and "did you mean 'ollama'?" in answer.stderr
    assert cli("provider", "test", "ollama").returncode == USAGE  # which model?
    assert cli("provider", "frobnicate").returncode == USAGE


def test_the_list_of_providers_says_where_each_key_comes_from(cli):
    answer = cli("provider", "list", "--json", env={"ANTHROPIC_API_KEY": "hush"})
    assert answer.returncode == OK and "hush" not in answer.stdout
    rows = {row["name"]: row for row in json.loads(answer.stdout)["providers"]}
    assert rows["anthropic"]["key"] == "set"
    assert rows["anthropic"]["key_source"] == "ANTHROPIC_API_KEY"
    assert rows["openai"]["key"] == "missing" and rows["ollama"]["key"] == "none needed"
    text = cli("provider", "list", env={"ANTHROPIC_API_KEY": "hush"}).stdout
    assert "hush" not in text and len(text.splitlines()) == len(rows)


def test_init_writes_a_file_that_is_right_and_leaves_one_alone(cli, tmp_path):
    answer = cli("init", "new", env={"GEMINI_API_KEY": "k"})
    assert (answer.returncode, answer.stdout) == (OK, "new/weir.yaml\n")
    text = (tmp_path / "new/weir.yaml").read_text()
    assert '\nmodel: "gemini/' in text
    assert cli("config", "check", "new/weir.yaml", env={"GEMINI_API_KEY": "k"}).stderr == ""
    (tmp_path / "new/weir.yaml").write_text("# mine\n")
    answer = cli("init", "new")
    assert answer.returncode == FAILED and "there already" in answer.stderr
    assert (tmp_path / "new/weir.yaml").read_text() == "# mine\n"
    assert cli("init", "a", "b").returncode == USAGE


def test_an_agent_yaml_is_served_under_its_name(start_weir, vendor):
    config = (
        "name: kyoto-guide\nversion: 3.2.1\nteam: t\nowner: a@b.example\nframework: custom\n"
        "language: c\nmodel: {primary: ollama/gemma3}\ndeploy: {cloud: local}\n"
    )
    weir = start_weir(config=config, env=ollama(vendor))
    with weir.http() as http:
        health = http.get("/health").json()
    assert health["agent_name"] == "kyoto-guide" and health["version"] == "3.2.1"


# --- the demo stays what it is ------------------------------------------------------------


def screen_of(tmp_path, env, until, seconds=20):
    """What the bare command writes, until `until` stands there; and what it has mapped."""
    ports = tmp_path / "ports.json"
    env = {"HOME": tmp_path, "XDG_DATA_HOME": tmp_path, "WEIR_PORTS_FILE": ports, **env}
    process = subprocess.Popen(
        [str(harness.BINARY), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"],
        env=harness.clean_environment(env),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    os.set_blocking(process.stderr.fileno(), False)
    screen, give_up = b"", time.monotonic() + seconds
    try:
        while until not in screen and time.monotonic() < give_up:
            screen += process.stderr.read() or b""
            time.sleep(0.01)
        maps = open(f"/proc/{process.pid}/maps").read()
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
    assert until in screen, screen
    return screen.decode(), maps


def test_the_demo_maps_no_library_that_asks_others(tmp_path):
    screen, maps = screen_of(tmp_path, {}, b"Ctrl-C")
    assert "libcurl" not in maps
    assert "demo (built in" in screen


def test_a_key_in_the_environment_is_offered(tmp_path):
    screen, maps = screen_of(tmp_path, {"ANTHROPIC_API_KEY": "sk-hush"}, b"Ctrl-C")
    assert "weir --model anthropic/" in screen and "hush" not in screen
    assert "libcurl" not in maps


def test_a_local_server_is_found_once_the_screen_is_up(tmp_path):
    try:
        server = serve(11434)
    except OSError:
        pytest.skip("port 11434 is taken on this machine")
    try:
        screen, _ = screen_of(tmp_path, {}, b"weir --model ollama/gemma3")
    finally:
        server.shutdown()
        server.server_close()
    assert screen.index("ready in") < screen.index("found")


def test_the_screen_tells_which_model_answers(tmp_path, vendor):
    env = {"WEIR_MODEL": "openai/gpt-x"}
    screen, _ = screen_of(tmp_path, env, b"Ctrl-C")
    assert "openai/gpt-x   no key: set OPENAI_API_KEY" in screen
    assert "not an AI" not in screen


def test_settings_are_checked_and_shown_as_json(cli, tmp_path):
    (tmp_path / "weir.yaml").write_text(
        "agents: [{slug: researcher, model: ollama/m}]\nbudgets: [{agent: reseacher, day: $1}]\n"
    )
    answer = cli("config", "check", "weir.yaml", "--json")
    said = json.loads(answer.stdout)
    assert answer.returncode == OK and answer.stderr == ""
    assert (said["good"], said["file"], said["agents"]) == (True, "weir.yaml", 1)
    assert ["did you mean 'researcher'?" in line for line in said["warnings"]] == [True]

    answer = cli("config", "print", "--json", "-c", "weir.yaml", env={"AGENT_TEMPERATURE": "0.5"})
    said = json.loads(answer.stdout)
    rows = {row["key"]: row for row in said["settings"]}
    assert rows["agent.temperature"] == {
        "key": "agent.temperature", "value": "0.5", "source": "environment", "name": "AGENT_TEMPERATURE"
    }
    assert rows["limits.idle"] == {"key": "limits.idle", "value": "5m", "source": "default"}
    assert {"key": "agents.researcher.model", "value": "ollama/m"} in said["lists"]

    (tmp_path / "weir.yaml").write_text("agents: [{slgu: x}]\nlisten: {htpp: off}\n")
    answer = cli("config", "check", "--json", "weir.yaml")
    said = json.loads(answer.stdout)
    assert answer.returncode == USAGE and not said["good"]
    assert len(said["problems"]) == 2 and "did you mean 'slug'" in said["problems"][0]
