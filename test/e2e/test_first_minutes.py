"""What a person types in the first ten minutes: the demo, and the commands beside it."""
import contextlib
import json
import os
import signal
import subprocess
import time

import grpc
import harness
import httpx
import pytest
from crawbl import runtime_pb2_grpc

OK, FAILED, USAGE = 0, 1, 2
PRODUCTION_KEY = "what-signs-in-production-32bytes"


class Demo:
    """`weir` alone, and commands in a second terminal of the same person."""

    def __init__(self, folder, env=None, args=()):
        self.folder, self.ports_file = folder, folder / "ports.json"
        self.env = {"HOME": folder, "XDG_DATA_HOME": folder, **(env or {})}
        self.log = open(folder / "screen", "w+")
        self.process = subprocess.Popen(
            [str(harness.BINARY), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", *args],
            env=harness.clean_environment({**self.env, "WEIR_PORTS_FILE": self.ports_file}),
            stdout=self.log,
            stderr=self.log,
            cwd=folder,
        )

    def wait(self):
        give_up = time.monotonic() + harness.READY_SECONDS
        while "stop     Ctrl-C" not in self.screen():
            assert time.monotonic() < give_up and self.process.poll() is None, self.screen()
            time.sleep(0.01)
        ports = json.loads(self.ports_file.read_text())
        self.http, self.grpc = (f"127.0.0.1:{ports[name]}" for name in ("http", "grpc"))
        return self

    def screen(self):
        return (self.folder / "screen").read_text()

    def token(self):
        return self.screen().split("  token    ")[1].split()[0]

    def cli(self, *args):
        return subprocess.run(
            [str(harness.BINARY), *args],
            env=harness.clean_environment({**self.env, "WEIR_HTTP": self.http}),
            capture_output=True,
            text=True,
            timeout=30,
            cwd=self.folder,
        )

    def client(self, **headers):
        return httpx.Client(base_url=f"http://{self.http}", headers=headers, trust_env=False, verify=harness.NO_TLS)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(timeout=20) == 0
        self.log.close()


@contextlib.contextmanager
def playing(folder, **options):
    demo = Demo(folder, **options)
    try:
        yield demo.wait()
    finally:
        demo.stop()


def terminal(folder, *args, env=None, cwd=None):
    return subprocess.run(
        [str(harness.BINARY), *map(str, args)],
        env=harness.clean_environment({"HOME": folder, "XDG_DATA_HOME": folder, **(env or {})}),
        capture_output=True,
        text=True,
        timeout=30,
        cwd=cwd or folder,
    )


# --- the demo and its operator ------------------------------------------------------------


def test_commands_beside_the_demo_need_no_token(tmp_path):
    """K23: nobody has configured a token"""
    with playing(tmp_path) as demo, demo.client() as http:
        waits = http.post("/invoke", json={"input": "book the trip", "session_id": "s-1"}).json()
        assert waits["metadata"]["interrupted"]

        listed = json.loads(demo.cli("approvals", "--json").stdout)["approvals"]
        assert len(listed) == 1 and listed[0]["session_id"] == "s-1"
        answer = demo.cli("approvals", "approve", listed[0]["id"])
        assert (answer.returncode, answer.stdout) == (OK, "approved\n")
        assert json.loads(demo.cli("approvals", "--json").stdout)["approvals"] == []

        for command in ("sessions", "usage"):
            answer = demo.cli(command, "--json")
            assert answer.returncode == OK and json.loads(answer.stdout), answer.stderr
        assert "s-1" in demo.cli("sessions").stdout
        for path in ("runs?session_id=s-1", "sessions", "usage", "approvals"):
            assert http.get(f"/weir/v1/{path}").status_code == 200


def test_a_token_of_the_demo_still_narrows_what_its_caller_sees(tmp_path):
    with playing(tmp_path) as demo, demo.client() as http:
        http.post("/invoke", json={"input": "hello", "session_id": "s-1"})
        everyones = http.get("/weir/v1/sessions").json()["sessions"]
        bearer = {"authorization": f"Bearer {demo.token()}"}
        own = http.get("/weir/v1/sessions", headers=bearer).json()["sessions"]
        assert len(everyones) == 1 and own == []


def test_agents_without_a_model_have_no_line_for_one(tmp_path):
    """docs/plugin-agents.md: weir -c weir.yaml"""
    (tmp_path / "weir.yaml").write_text(
        "agents:\n  - {slug: first, kind: process, command: [cat]}\n"
        "  - {slug: second, kind: http, url: 'http://127.0.0.1:1'}\n"
        "  - {slug: third, model: ollama/gemma3}\n")
    with playing(tmp_path, args=("-c", "weir.yaml")) as demo:
        models = [line for line in demo.screen().splitlines() if line.startswith("  model ")]
        assert models == ["  model    ollama/gemma3"]


def test_a_configured_token_closes_the_demo_too(tmp_path):
    with playing(tmp_path, env={"AGENT_AUTH_TOKEN": "hush"}) as demo, demo.client() as http:
        assert http.get("/weir/v1/sessions").status_code == 401
        assert demo.cli("sessions").returncode == OK  # it finds the token where the demo did


def test_the_demo_never_signs_with_the_key_of_production(tmp_path):
    """its tokens stand on a screen"""
    env = {"CRAWBL_MCP_SIGNING_KEY": PRODUCTION_KEY, "CRAWBL_WORKSPACE_ID": "w-9"}
    with playing(tmp_path, env=env) as demo:
        assert terminal(tmp_path, "token", "check", demo.token(), env=env).returncode == FAILED
        check = terminal(tmp_path, "token", "check", demo.token(), "--demo", "--json", env=env)
        assert json.loads(check.stdout)["workspace"] == "w-9"  # one that this demo serves
        assert "CRAWBL_MCP_SIGNING_KEY is not used" in demo.screen()
        assert "weir token new --demo" in demo.screen()

        own_key = (tmp_path / "weir/demo.key").read_text()
        for key, good in ((PRODUCTION_KEY, False), (own_key, True)):
            bearer = f"Bearer {harness.token('u-1', 'w-9', key=key)}"
            with grpc.insecure_channel(demo.grpc) as channel:
                stub = runtime_pb2_grpc.AgentRuntimeStub(channel)
                call = stub.Converse(iter([]), metadata=[("authorization", bearer)])
                if good:
                    assert list(call) == []
                else:
                    with pytest.raises(grpc.RpcError) as refused:
                        list(call)
                    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


# --- tokens before the first start --------------------------------------------------------


def test_tokens_are_made_and_checked_before_the_first_start(tmp_path):
    made = terminal(tmp_path / "a/b", "token", "new", "--user", "u1", cwd=tmp_path)
    assert made.returncode == OK, made.stderr
    check = terminal(tmp_path / "a/b", "token", "check", made.stdout.strip(), cwd=tmp_path)
    assert check.returncode == OK and "user u1" in check.stdout


def test_a_check_writes_nothing_and_says_where_a_key_comes_from(tmp_path):
    check = terminal(tmp_path, "token", "check", harness.token())
    assert check.returncode == FAILED and os.listdir(tmp_path) == []
    assert "weir token new" in check.stderr and "CRAWBL_MCP_SIGNING_KEY" in check.stderr


# --- the settings file --------------------------------------------------------------------


def test_serve_uses_the_file_that_stands_here_and_says_so(tmp_path):
    (tmp_path / "weir.yaml").write_text("agent: {name: here}\n")
    ports = tmp_path / "ports.json"
    log = open(tmp_path / "log", "w")
    process = subprocess.Popen(
        [str(harness.BINARY), "serve", "--http", "127.0.0.1:0", "--grpc", "off"],
        env=harness.clean_environment(
            {"HOME": tmp_path, "XDG_DATA_HOME": tmp_path, "WEIR_PORTS_FILE": ports}
        ),
        stdout=log,
        stderr=log,
        cwd=tmp_path,
    )
    try:
        give_up = time.monotonic() + harness.READY_SECONDS
        while not ports.exists():
            assert time.monotonic() < give_up and process.poll() is None
            time.sleep(0.01)
        port = json.loads(ports.read_text())["http"]
        health = httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False, verify=harness.NO_TLS).json()
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
        log.close()
    assert health["agent_name"] == "here"
    assert "the settings are those of weir.yaml" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    "words,shows",
    [
        (["run", "hello"], "Nice to meet you."),
        (["agent", "list"], "gardener"),
        (["tool", "list"], "spade"),
        (["provider", "list"], "shed"),
    ],
)
def test_a_command_uses_the_file_that_stands_here_and_says_so(tmp_path, words, shows):
    (tmp_path / "play.yaml").write_text(
        "script: 1\nagents: [{slug: gardener}]\n"
        "tools: [{name: spade, description: Digs., result: {}}]\n"
        "scenes: [{reply: [{text: Nice to meet you.}]}]\n"
    )
    (tmp_path / "weir.yaml").write_text(
        "script: play.yaml\n"
        "providers: [{name: shed, kind: openai, base_url: 'http://127.0.0.1:1/v1'}]\n"
    )
    told = terminal(tmp_path, *words)
    assert told.returncode == OK, told.stderr
    assert shows in told.stdout
    assert "the settings are those of weir.yaml" in told.stderr


def test_a_daemon_is_looked_for_where_the_file_that_stands_here_says(tmp_path):
    (tmp_path / "weir.yaml").write_text("listen: {http: '127.0.0.1:1'}\n")
    told = terminal(tmp_path, "runs")
    assert told.returncode == FAILED and "the daemon at http://127.0.0.1:1 " in told.stderr


def test_one_check_names_every_mistake_also_of_tools_and_no_false_one(tmp_path):
    (tmp_path / "weir.yaml").write_text(
        "providers:\n"
        "  - {name: fake, kind: openai, base_url: http://127.0.0.1:1/v1, api_key: x}\n"
        "agents:\n"
        "  - slug: a\n"
        "    model: fake/m\n"
        "    instruction: hey\n"
        "    tools: [calc, file_read]\n"
        "mcp_servers: []\n"
    )
    checked = terminal(tmp_path, "config", "check")
    lines = checked.stderr.splitlines()
    assert checked.returncode == USAGE and len(lines) == 4, checked.stderr
    assert "weir.yaml:2:65: " in lines[0] and "key_env" in lines[0]
    assert "weir.yaml:6:5: " in lines[1] and "instructions" in lines[1]
    assert "weir.yaml:8:1: " in lines[2] and "the section mcp " in lines[2]
    assert "weir.yaml:7:13: no tool is called 'calc'" in lines[3]

    (tmp_path / "weir.yaml").write_text(
        "agents:\n  - {slug: a, tools: [web_search_tool, file_read]}\n"
        "  - {slug: b, output: {type: 1}}\n  - {slug: c, output: {type: 2}}\n"
    )
    lines = terminal(tmp_path, "config", "check").stderr.splitlines()
    assert [line.split(":")[1] for line in lines] == ["2", "2", "3", "4"], lines


def test_a_script_that_is_taken_for_settings_is_told_apart(tmp_path):
    (tmp_path / "weir.yaml").write_text("script: 1\npace: {every: 0}\nscenes:\n  - reply: hello\n")
    lines = terminal(tmp_path, "config", "check").stderr.splitlines()
    assert [line for line in lines if "which --script FILE plays" in line] == lines[:2], lines


# --- the log ------------------------------------------------------------------------------


def test_each_turn_is_one_line_of_the_log(start_weir):
    weir = start_weir(script="test/e2e/scripts/contract.yaml")
    with weir.http() as http:
        for session in ("s-1", "s-2"):
            http.post("/invoke", json={"input": "hello", "session_id": session}).raise_for_status()
    weir.stop()
    lines = [json.loads(line)["message"] for line in weir.log().splitlines() if " ended: " in line]
    assert len(lines) == 2
    for line, session in zip(lines, ("s-1", "s-2")):
        assert f"workspace default, user anonymous, session {session}, agent manager" in line
        assert " tokens in, " in line and " tokens out, " in line and line.endswith(" s, done")
