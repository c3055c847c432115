"""weir sidecar in front of agents that nobody here wrote the server of: FastAPI with uvicorn, node's
http, and weir itself; and what `weir validate` and curl say."""
import json
import re
import socket
import subprocess
import sys

import harness
import pytest
from sidecar import TOKEN, Sidecar, events

AGENTS = harness.ROOT / "test/e2e/agents"
PATIENCE = 30
TEXT = "my number is 123-45-6789"
CLEAN = "my number is [REDACTED-SSN]"


class Process:
    """A program that serves, ended by its own process id."""

    def __init__(self, command, **env):
        environment = harness.clean_environment(env)
        self.process = subprocess.Popen(command, cwd=AGENTS, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def said(self, pattern):
        for line in self.process.stdout:
            if found := re.search(pattern, line):
                return found[1]
        raise AssertionError("the agent ended before it served")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


def uvicorn():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return Process([sys.executable, "-m", "uvicorn", "fastapi_agent:app", "--port", str(port)]), r"http://127.0.0.1:(\d+)"


def node():
    return Process(["node", "node_agent.js"], PORT="0"), r"port (\d+)"


@pytest.fixture(scope="module", params=[uvicorn, node])
def behind(request, tmp_path_factory):
    process, pattern = request.param()
    with process:
        port = process.said(pattern)
        sidecar = Sidecar(tmp_path_factory.mktemp("behind"), f"http://127.0.0.1:{port}", {"scan_answers": True}).start()
        sidecar.kind = request.param.__name__
        yield sidecar
        sidecar.stop()
        assert not sidecar.sanitizer_log()


def check_a_turn_comes_and_goes(behind):
    with behind.http() as http:
        answer = http.post("/invoke", json={"input": TEXT, "session_id": "s"})
    body = answer.json()
    heard = body.get("heard") or body["metadata"]["heard"]
    assert answer.status_code == 200 and body["output"] == f"you said: {CLEAN}"
    assert heard["x-trace-id"] == body["trace_id"] == answer.headers["x-trace-id"]
    assert heard["traceparent"].split("-")[1] == body["trace_id"]
    assert answer.headers["x-runtime-contract-version"] == "1"
    if behind.kind == "uvicorn":
        assert body["tokens"] == {"input": 10, "output": 2, "total": 12}
        assert (body["model"], body["cost_usd"]) == ("gpt-4o", 0.000045)
    else:
        assert not {"tokens", "model", "cost_usd"} & set(body)


def check_a_stream_comes_and_ends(behind):
    with behind.http() as http:
        found = events(http.post("/stream", json={"input": TEXT}).text)
    text = "".join(data.get("delta") or data.get("text") or "" for name, data in found if name is None and data != "[DONE]")
    assert text == f"you said: {CLEAN}"
    assert [name for name, _ in found[-2:]] == ["done", None] and found[-1][1] == "[DONE]"


def check_a_stream_that_fails_ends_too(behind):
    with behind.http() as http:
        text = http.post("/stream", json={"input": "boom"}).text
    assert [name for name, _ in events(text)[-3:]] == ["error", "done", None]


def check_failures_have_the_trace_id_whatever_their_form(behind):
    with behind.http() as http:
        answer = http.post("/invoke", content=b"{")
    assert answer.status_code in (400, 422) and answer.json()["trace_id"] == answer.headers["x-trace-id"]


def check_curl_reads_the_stream(behind):
    command = ["curl", "-sN", "--max-time", "20", "-H", f"authorization: Bearer {TOKEN}", "-H", "content-type: application/json"]
    told = subprocess.run([*command, "-d", '{"input":"hi"}', f"{behind.url}/stream"], capture_output=True, text=True, check=True)
    assert told.stdout.endswith("data: [DONE]\n\n")


# One test: FastAPI takes seconds to start, and each worker would start its own.
def test_agents_of_other_makes_are_served(behind):
    check_a_turn_comes_and_goes(behind)
    check_a_stream_comes_and_ends(behind)
    check_a_stream_that_fails_ends_too(behind)
    check_failures_have_the_trace_id_whatever_their_form(behind)
    check_curl_reads_the_stream(behind)


# --- weir behind its own sidecar ----------------------------------------------------------------


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ours")
    (folder / "front").mkdir()
    env = {"AGENT_AUTH_TOKEN": TOKEN, "AGENTBREEDER_SIDECAR_ACTIVE": "1"}
    agent = harness.Daemon(folder, script="test/e2e/scripts/sidecar.yaml", env=env).start()
    prices = [{"model": "*", "input": 1, "output": 2}]
    sidecar = Sidecar(folder / "front", agent.url, {"prices": prices, "default_rules": True}).start()
    yield sidecar
    sidecar.stop()
    agent.stop()
    assert not sidecar.sanitizer_log() and not agent.sanitizer_log()


def test_our_own_agent_tells_its_sidecar_what_it_used(ours):
    with ours.http() as http:
        body = http.post("/invoke", json={"input": "ping"}).json()
        found = events(http.post("/stream", json={"input": "ping"}).text)
    done = found[-2][1]
    for fields in (body, done):
        assert fields["tokens"]["total"] > 0 and fields["model"] and fields["cost_usd"] > 0
    assert found[-2][0] == "done" and body["metadata"]["usage"]["total_tokens"] == body["tokens"]["total"]


def test_weir_validate_finds_nothing_wrong(ours, tmp_path):
    command = [str(harness.BINARY), "validate", ours.url, "--token", TOKEN, "--strict", "--behind-sidecar", "--format", "json"]
    command += ["--error-input", "break down", "--hitl-input", "ask a human"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=100, env=harness.clean_environment({}), cwd=tmp_path)
    report = json.loads(told.stdout)
    assert told.returncode == 0, told.stdout
    found = {check["id"]: check for check in report["checks"]}
    assert found["SIDE-01"]["verdict"].lower() == "pass"
