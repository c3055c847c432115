"""Agents that are programs: turns, tools, approvals, and every way in which they go wrong."""
import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import signal
import sys
import time

import crawbl
import harness
import pytest

HERE = pathlib.Path(__file__).parent
COMMANDS = {"python": ["python3", str(HERE / "agents/agent.py")], "node": ["node", str(HERE / "agents/agent.js")]}


def config(folder, language="python", more="", tools="{calculator: allow, file_write: ask}"):
    return (
        f"tools: {{files: {{root: {folder}}}}}\nthreads: 1\n"
        "agents:\n"
        f"  - {{slug: worker, kind: process, command: {json.dumps(COMMANDS[language])},\n"
        f"     tools: {tools}, delegates: [clerk]{more}}}\n"
        "  - {slug: clerk, provider: scripted, delegates: [worker]}\n"
    )


@pytest.fixture(params=COMMANDS)
def both(request, start_weir, tmp_path):
    (tmp_path / "files").mkdir()
    return start_weir(config=config(tmp_path / "files", request.param))


@pytest.fixture
def weir(start_weir, tmp_path):
    (tmp_path / "files").mkdir()
    return start_weir(config=config(tmp_path / "files", more=", processes: 2"))


def invoke(weir, text, session=None):
    body = {"input": text, **({"session_id": session} if session else {})}
    with weir.http() as http:
        return http.post("/invoke", json=body)


def output(weir, text, session=None):
    answer = invoke(weir, text, session)
    assert answer.status_code == 200, answer.text
    return answer.json()["output"]


def processes(weir):
    """The pids of all that descends from the daemon."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    found, more = set(), {weir.pid}
    while more:
        more = {pid for pid, parent in parents.items() if parent in more} - found
        found |= more
    return found


def gone(pids, seconds=10):
    give_up = time.monotonic() + seconds
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < give_up:
        time.sleep(0.02)
    return [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


# --- turns -----------------------------------------------------------------------------------


def test_a_turn_is_what_the_program_says(both):
    assert output(both, "hello there") == "heard: hello there"
    with both.http() as http:
        stream = http.post("/stream", json={"input": "hello again"}).text
    assert 'data: {"delta":"heard: "}' in stream and "event: step" in stream
    assert stream.endswith("data: [DONE]\n\n")
    with crawbl.open_stream(both) as call:
        turn = call.ask("hello grpc")
        assert turn.text == "heard: hello grpc" and turn.error is None
        (usage,) = turn.of("usage")
        assert (usage.prompt_tokens, usage.completion_tokens, usage.model) == (10, 2, "own-model")


def test_tools_are_called_through_weir(both):
    assert json.loads(output(both, "calc 6*7").removeprefix("it is "))["result"] == 42
    one, two = output(both, "both").split(" and ")
    assert json.loads(one)["result"] == 2 and two == "ToolError"


def test_a_program_gets_config_and_metadata_whole_also_after_kill_9(weir):
    sent = {"config": {"configurable": {"user_id": "ann"}, "depth": [1, {"x": None}]},
            "metadata": {"order": "77", "sum": 12345678901234567890}}
    with weir.http() as http:
        told = http.post("/invoke", json={"input": "extras", **sent}).json()["output"]
        assert json.loads(told) == [sent["config"], sent["metadata"]]
        assert json.loads(http.post("/invoke", json={"input": "extras"}).json()["output"]) == [{}, {}]
        asked = http.post("/invoke", json={"input": "extras ask", "session_id": "s-9", **sent}).json()
        assert asked["metadata"]["interrupted"]
    weir.kill()
    weir.start()
    with weir.http() as http:
        told = http.post("/resume", json={"thread_id": "s-9", "human_input": "go on"}).json()["output"]
    assert json.loads(told) == [sent["config"], sent["metadata"]]


def test_a_program_is_kept_warm_and_knows_its_session(weir):
    assert output(weir, "pid") == output(weir, "pid")
    output(weir, "hello", "s-1")
    assert json.loads(output(weir, "session", "s-1")) == ["worker", "default", "anonymous", "s-1", 3]


def test_two_turns_at_once_have_two_programs_and_a_third_waits(weir):
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda n: output(weir, f"slow {20 + n}"), range(5)))
    assert answers == ["word " * (20 + n) + "end" for n in range(5)]
    assert len({output(weir, "pid") for _ in range(4)}) <= 2


def test_the_turn_goes_to_another_agent_and_back(start_weir, tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text(
        "script: 1\nagents: [{slug: clerk, delegates: [worker]}, {slug: worker}]\nscenes:\n"
        "  - {agent: clerk, match: back, replies: [[{text: 'clerk. '}, {transfer: worker}], done]}\n"
        "  - {reply: 'clerk alone'}\n"
    )
    weir = start_weir(config=config(tmp_path), env={"WEIR_SCRIPT": str(script)})
    assert output(weir, "transfer clerk") == "clerk alone"


def notes(folder):
    return [path.read_text() for path in (folder / "files").rglob("note.txt")]


# --- humans ----------------------------------------------------------------------------------


def test_an_approval_survives_kill_9_and_nothing_is_done_or_said_twice(both, tmp_path):
    answer = invoke(both, "write something", "s-1").json()
    assert answer["metadata"]["interrupted"] is True
    assert not notes(tmp_path)
    left = processes(both)
    both.kill()
    assert gone(left) == []
    both.restart()
    with both.http() as http:
        answer = http.post("/resume", json={"thread_id": "s-1", "human_input": "yes"}).json()
    assert answer["output"] == "after 5", answer
    assert notes(tmp_path) == ["something"]
    with both.http() as http:
        again = http.post("/resume", json={"thread_id": "s-1", "human_input": "yes"})
    assert again.json()["output"] == answer["output"]
    assert [call["name"] for call in answer["history"]] == ["file_write"], answer


@pytest.mark.parametrize("program", ["framework.py", "framework.js"])
def test_a_framework_goes_on_after_kill_9_where_it_was(program, start_weir):
    """docs/process-agents.md: examples with Pydantic AI and with Vercel's AI SDK."""
    settings = (harness.ROOT / "examples/process/frameworks.yaml").read_text()
    entries = settings[settings.index("agents:") :]
    for name in ("framework.py", "framework.js"):
        entries = entries.replace(name, str(harness.ROOT / "examples/process" / name))
    entries = entries.replace("sdk/python", str(harness.ROOT / "sdk/python")).replace("[python3", f"[{sys.executable}")
    agent = "pydantic" if program.endswith("py") else "vercel"
    weir = start_weir(config=entries)
    turn = crawbl.one_turn(weir, "add 1 2 3", agent_id=agent)
    assert turn.error is None and '"result":6' in turn.text.replace(" ", ""), turn.error
    assert [call.tool for call in turn.of("tool_call")] == ["calculator"]
    assert len(turn.of("usage")) == 2  # one for each model call
    asked = crawbl.one_turn(weir, "note this", agent_id=agent, session_id="s-1")
    assert asked.error is None and not asked.of("tool_result")
    left = processes(weir)
    weir.kill()
    assert gone(left) == []
    weir.restart()
    turn = crawbl.one_turn(weir, "yes", agent_id=agent, session_id="s-1")
    assert turn.error is None and turn.text.startswith('I have {"memory"'), turn.events
    approved, made = turn.of("tool_result")
    assert "approve" in approved.result_json and not made.error and '"this"' in made.result_json
    assert crawbl.one_turn(weir, "hello", agent_id=agent, session_id="s-1").text == "I heard you."


def test_a_refused_call_is_an_error_for_the_program(both, tmp_path):
    assert invoke(both, "write it", "s-1").json()["metadata"]["interrupted"] is True
    with both.http() as http:
        answer = http.post("/resume", json={"thread_id": "s-1", "human_input": "no"}).json()
    assert "refused" in answer["output"] and not notes(tmp_path)


def test_a_question_to_a_person_gets_its_answer(both):
    answer = invoke(both, "ask", "s-1").json()
    assert answer["metadata"]["interrupted"] is True and "May I go on?" in answer["output"]
    with both.http() as http:
        answer = http.post("/resume", json={"thread_id": "s-1", "human_input": "in May"}).json()
    assert answer["output"].endswith("they said in May")


def test_a_turn_that_waits_for_a_person_keeps_no_program_from_others(start_weir, tmp_path):
    weir = start_weir(config=config(tmp_path, more=", processes: 1"))
    for n in range(3):
        assert invoke(weir, "ask", f"s-{n}").json()["metadata"]["interrupted"] is True
    assert output(weir, "hello") == "heard: hello"
    with weir.http() as http:
        for n in range(3):
            answer = http.post("/resume", json={"thread_id": f"s-{n}", "human_input": f"yes {n}"})
            assert answer.json()["output"].endswith(f"they said yes {n}")


# --- what goes wrong -------------------------------------------------------------------------


def test_a_long_turn_is_given_whole_to_the_program_that_is_warm(weir):
    """Its words stand in the line twice, as the input and as a message: 14 MiB."""
    warm = output(weir, "pid")
    assert json.loads(output(weir, "session " + "x" * (7 << 20)))[0] == "worker"
    assert output(weir, "pid") == warm


def failure(answer):
    assert answer.status_code in (500, 503), answer.text
    return answer.json()["error"]["details"]["reason"], answer.json()["error"]["message"]


def test_each_way_to_go_wrong_ends_the_turn_with_its_reason(start_weir, tmp_path):
    weir = start_weir(config=config(tmp_path, more=", silence: 10s"))
    assert failure(invoke(weir, "fail")) == (
        "AGENT_FAILED", "the agent 'worker' failed: ValueError: this is why")
    assert failure(invoke(weir, "crash")) == (
        "AGENT_ENDED", "the agent 'worker' ended with status 3 in the middle of a turn")
    assert failure(invoke(weir, "hang"))[0] == "AGENT_STALLED"
    assert failure(invoke(weir, "nonsense"))[0] == "AGENT_PROTOCOL"
    assert failure(invoke(weir, "huge"))[0] == "AGENT_PROTOCOL"
    assert failure(invoke(weir, "flood 5000"))[0] == "REPLY_TOO_LONG"
    assert output(weir, "aside think 100") == output(weir, "aside step 100") == "end"
    for kind in ("think", "step"):
        reason, message = failure(invoke(weir, f"aside {kind} 200"))
        assert reason == "REPLY_TOO_LONG" and "limits.run" in message
    assert output(weir, "hello") == "heard: hello"


def test_a_program_that_is_not_there_is_refused_at_the_start(start_weir, tmp_path):
    with pytest.raises(AssertionError, match="there is no program 'no-such-program'"):
        start_weir(config="agents: [{slug: a, kind: process, command: [no-such-program]}]\n")


def test_a_caller_that_leaves_cancels_the_turn_and_the_program_goes_on(weir):
    pid = output(weir, "pid")
    with weir.http() as http, http.stream("POST", "/stream", json={"input": "slow"}) as stream:
        assert next(stream.iter_lines()) == 'data: {"delta":"word "}'
    give_up = time.monotonic() + 20
    while "cancelled" not in weir.log() and time.monotonic() < give_up:
        time.sleep(0.02)
    assert output(weir, "hello") == "heard: hello"
    assert output(weir, "pid") == pid


def test_a_slow_reader_holds_the_program(start_weir, tmp_path):
    weir = start_weir(config=config(tmp_path), env={"WEIR_LIMITS_RUN_REPLY_BYTES": "64MiB"})
    answer = output(weir, "flood 3000")
    assert answer == "x" * 3000000 + "end"


# --- no orphans ------------------------------------------------------------------------------


def test_no_program_outlives_the_daemon_however_it_ends(weir):
    for end in (weir.stop, weir.kill):
        output(weir, "hello")
        own, child = map(int, output(weir, "child").split())
        pids = processes(weir) | {child}
        assert own in pids and len(pids) >= 2
        end()
        assert gone(pids) == []
        weir.restart()


CHILD_KILLS = int(os.environ.get("WEIR_CHILD_KILLS", "80"))


def test_programs_that_are_killed_at_random_lose_and_double_nothing(weir, tmp_path):
    """Every turn is answered or fails with a reason; a thousand of them with make proof."""
    random.seed(1)

    def turn(n):
        answer = invoke(weir, f"calc {n}+1")
        if answer.status_code == 200:
            return n, json.loads(answer.json()["output"].removeprefix("it is "))["result"] == n + 1
        return n, failure(answer)[0] == "AGENT_ENDED"

    def kill(most):
        victims = sorted(processes(weir))
        for pid in random.sample(victims, k=min(most, len(victims))):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = []
        for n in range(CHILD_KILLS):
            futures.append(pool.submit(turn, n))
            kill(1)
            time.sleep(0.02)
        results = [future.result() for future in futures]
    assert [n for n, good in results if not good] == []
    # On a busy machine each of these may have been killed before it had a turn.
    with weir.http() as http, http.stream("POST", "/stream", json={"input": "slow"}) as answer:
        parts = answer.iter_text()
        assert "word" in next(parts)
        kill(most=1000)
        ended = "".join(parts)  # the program was killed, or first the one that it runs
    assert "in the middle of a turn" in ended and ("signal 9" in ended or "status 137" in ended)
    assert output(weir, "hello") == "heard: hello"
    pids = processes(weir)
    weir.stop()
    assert gone(pids) == []


def test_tools_that_are_killed_at_random_have_no_effect_twice_and_none_is_lost(start_weir, tmp_path):
    """A server of MCP and a command write down each call before they answer it, and all that weir
    started is killed at any moment. What a turn was told of a call is true: an answer means once,
    an unknown effect once or never, any other failure never."""
    random.seed(2)
    tills = [f"till{n}" for n in range(3 + CHILD_KILLS // 40)]  # each rests longer after each kill
    charged = tmp_path / "charged"
    charge = f'read -r args; printf "%s %s\\n" "$WEIR_CALL_ID" "$args" >>{charged}; sleep 0.03; echo "$args"'
    for till in tills:
        (tmp_path / till).mkdir()
    settings = {
        "threads": 2,
        "mcp": [
            {"name": t, "prefix": f"{t}_", "command": [sys.executable, str(HERE / "mcp_server.py"), str(tmp_path / t)]}
            for t in tills
        ],
        "tools": {
            "charge": {
                "description": "Charges.",
                "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
                "command": ["sh", "-c", charge],
            }
        },
        "agents": [
            {"slug": "worker", "kind": "process", "command": COMMANDS["python"], "processes": 2,
             "tools": ["charge", *(f"{t}_pay" for t in tills)]}
        ],
    }
    weir = start_weir(config=json.dumps(settings))

    def turn(n):
        return json.loads(output(weir, f"effects {tills[n % len(tills)]} {n}"))

    def victims():  # servers, commands and the guards of both; the agent's program is killed above
        for pid in sorted(processes(weir)):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                if b"mcp_server.py" in command or b"WEIR_CALL_ID" in command:
                    yield pid

    give_up = time.monotonic() + 20
    while any("not found" in output(weir, f"effects {t} first-{t}") for t in tills):
        assert time.monotonic() < give_up, "a server has listed no tools"
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = []
        for n in range(CHILD_KILLS // 2):
            futures.append(pool.submit(turn, n))
            for pid in random.sample(alive := list(victims()), k=min(1, len(alive))):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        told = [future.result() for future in futures]

    paid = [line for t in tills if (f := tmp_path / t / "paid").exists() for line in f.read_text().split()]
    lines = [line.partition(" ") for line in charged.read_text().splitlines()]
    calls = [id for id, _, _ in lines]
    assert len(set(calls)) == len(calls), "a call was made twice"
    effects = (collections.Counter(paid), collections.Counter(json.loads(a)["text"] for _, _, a in lines))
    wrong = []
    for n, results in enumerate(told):
        for result, seen in zip(results, effects):
            count, unknown = seen[str(n)], "unknown" in str(result)
            allowed = (0, 1) if unknown else (1,) if isinstance(result, dict) else (0,)
            if count not in allowed:
                wrong.append((n, result, count))
    assert wrong == []
    give_up, calm = time.monotonic() + 20, []  # a killed server rests before it is started again
    while not any(isinstance(result, dict) for result, _ in calm):
        assert time.monotonic() < give_up, "no server has healed"
        calm.append(turn(len(told) + len(calm)))
    assert all(isinstance(result, dict) for _, result in calm)
    assert "ended by signal 9" in weir.log()
    pids = processes(weir)
    weir.stop()
    assert gone(pids) == []
