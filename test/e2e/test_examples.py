"""Every example of the pages is a file, and runs."""
import os
import pathlib
import subprocess
import sys

import crawbl
import harness

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
    for name in ("weir.yaml", "agents.yaml", "agentbreeder/agent.yaml", "process/weir.yaml"):
        answer = subprocess.run(
            [str(harness.BINARY), "config", "check", str(EXAMPLES / name)],
            env=harness.clean_environment({"HOME": tmp_path}),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert answer.returncode == 0, answer.stderr
        assert ": good; " in answer.stdout


def test_the_process_agents_of_the_examples_use_a_tool(start_weir, tmp_path):
    """docs/process-agents.md: the protocol itself, and the SDK of each language."""
    (tmp_path / "weir-agent").symlink_to(harness.ROOT / "sdk/node")
    paths = f"{{PYTHONPATH: {harness.ROOT / 'sdk/python'}, NODE_PATH: {tmp_path}}}"
    agents = {"plain": "python3, {}/plain.py", "guide": "python3, {}/guide.py", "guide-js": "node, {}/guide.js"}
    weir = start_weir(
        config="agents:\n"
        + "".join(
            f"  - {{slug: {slug}, kind: process, command: [{command.format(EXAMPLES / 'process')}],\n"
            f"     tools: [calculator], environment: {paths}}}\n"
            for slug, command in agents.items()
        )
    )
    for slug in agents:
        with crawbl.open_stream(weir) as call:
            turn = call.ask("add 1 2 3", agent_id=slug)
            assert (turn.error, turn.text) == (None, "That makes 6.")
            assert call.ask("hello", agent_id=slug).text == "I heard you."
