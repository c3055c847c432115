"""Every example of the pages is a file, and runs."""
import os
import pathlib
import select
import socket
import subprocess
import sys
import threading

import harness
import pytest

EXAMPLES = harness.ROOT / "examples"


def test_the_curl_line_of_the_readme_streams_a_turn(weir):
    answer = subprocess.run(
        ["sh", EXAMPLES / "stream.sh"],
        env={**os.environ, "WEIR_URL": f"127.0.0.1:{weir.port('http')}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert answer.startswith('data: {"delta":')
    assert "event: tool_call\n" in answer
    assert answer.endswith("\n\ndata: [DONE]\n\n")
    command = (EXAMPLES / "stream.sh").read_text().splitlines()[-1]
    shown = command.replace('"${WEIR_URL:-127.0.0.1:8080}/stream"', "127.0.0.1:8080/stream")
    for page in ("README.md", "docs/tour.md"):
        assert shown in (harness.ROOT / page).read_text()


def test_the_converse_example_takes_two_turns_on_one_stream(weir):
    stubs = pathlib.Path(harness.BUILD) / "stubs"
    answer = subprocess.run(
        [
            sys.executable,
            EXAMPLES / "converse.py",
            f"127.0.0.1:{weir.port('grpc')}",
            harness.token("demo", "demo"),
        ],
        env={**os.environ, "PYTHONPATH": str(stubs)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert answer.count("[researcher calls web_search]") == 2
    assert answer.count("-- demo-script: 1 turns") == 2


def test_the_scenario_example_reads_a_stream_to_its_end(weir):
    stubs = pathlib.Path(harness.BUILD) / "stubs"
    answer = subprocess.run(
        [sys.executable, EXAMPLES / "scenario.py", f"127.0.0.1:{weir.ports['nimi_grpc']}"],
        env={**os.environ, "PYTHONPATH": str(stubs)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert answer.startswith("[") and "plan two days in Kyoto" in answer
    assert "-- done, " in answer


class LosesAnswers:
    """Passes connections on to a port, and breaks the first ones when their answer comes."""

    def __init__(self, port, lost):
        self.target, self.lost = ("127.0.0.1", port), lost
        self.requests = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, socket.create_connection(self.target) as server:
            while select.select([client, server], [], [], 60)[0]:
                ready = select.select([client, server], [], [], 0)[0]
                for one, other in ((client, server), (server, client)):
                    if one not in ready:
                        continue
                    data = one.recv(65536)
                    if not data:
                        return
                    if one is client and data.startswith(b"POST"):
                        self.requests.append(data)
                    if one is server and len(self.requests) <= self.lost:
                        return
                    other.sendall(data)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_question_over_openais_library_is_answered_once_however_often_it_is_sent(weir, lost):
    """docs/openai.md"""
    door = LosesAnswers(weir.port("http"), lost)
    answer = subprocess.run(
        [sys.executable, EXAMPLES / "openai/ask_once.py", f"http://127.0.0.1:{door.port}/v1", "hello"],
        env={**os.environ, "AGENT_AUTH_TOKEN": harness.token()},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    door.listener.close()
    assert len(door.requests) == lost + 1
    with weir.http(headers={"authorization": "Bearer " + harness.token()}) as http:
        runs = http.get("/weir/v1/runs").json()["runs"]
    [run] = [run for run in runs if not run.get("parent")]
    assert f"-- run {run['id']}" in answer and len(answer.splitlines()) >= 2
    shown = (EXAMPLES / "openai/ask_once.py").read_text()
    assert "extra_headers={\"Idempotency-Key\": key}" in shown
    assert "extra_headers={\"Idempotency-Key\": str(uuid.uuid4())}" in (harness.ROOT / "docs/openai.md").read_text()


def test_every_settings_file_passes_the_check(tmp_path):
    """docs/config.md, docs/agents.md: no key is needed to look for mistakes"""
    for name in ("weir.yaml", "agents.yaml", "agentbreeder/agent.yaml", "process/weir.yaml", "process/frameworks.yaml",
                 "remote/weir.yaml", "remote/converse.yaml", "tools/weir.yaml"):
        answer = subprocess.run(
            [str(harness.BINARY), "config", "check", str(EXAMPLES / name)],
            env=harness.clean_environment({"HOME": tmp_path}),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert answer.returncode == 0, answer.stderr
        assert ": good; " in answer.stdout


@pytest.mark.parametrize("agent", ["plain", "guide", "guide-js"])
def test_the_process_agents_of_the_examples_use_a_tool(agent, tmp_path):
    """docs/process-agents.md: the settings file as it stands, from the root of the repository."""
    for asked, answered in (("add 1 2 3", "That makes 6."), ("hello", "I heard you.")):
        answer = subprocess.run(
            [str(harness.BINARY), "run", "-c", "examples/process/weir.yaml", "--agent", agent, asked],
            cwd=harness.ROOT,
            env=harness.clean_environment({"HOME": tmp_path}),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (answer.returncode, answer.stdout.splitlines()[:1]) == (0, [answered]), answer.stdout + answer.stderr
