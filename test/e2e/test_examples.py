"""Every example of the pages is a file, and runs."""
import os
import pathlib
import subprocess
import sys

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
