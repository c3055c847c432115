"""What a person types: commands, their output and their exit codes."""
import json
import os
import pty
import re
import signal
import subprocess
import time

import harness
import pytest

SCRIPT = str(harness.ROOT / "test/e2e/scripts/contract.yaml")
OK, FAILED, USAGE = 0, 1, 2


@pytest.fixture
def cli(tmp_path):
    """Run the program in a folder of its own: cli("version", env={...})."""

    def run(*args, env=None, timeout=30, **options):
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "share")}
        return subprocess.run(
            [str(harness.BINARY), *map(str, args)],
            env=harness.clean_environment({**home, **(env or {})}),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            **options,
        )

    return run


def write(folder, text, name="weir.yaml"):
    path = folder / name
    path.write_text(text)
    return path


# --- version and help -----------------------------------------------------------------


def test_version_is_one_line_and_nothing_else(cli):
    """b9: stdout is data"""
    for args in (["version"], ["--version"]):
        answer = cli(*args)
        assert answer.returncode == OK and answer.stderr == ""
        assert re.fullmatch(r"weir \d+\.\d+\.\d+\S*\n", answer.stdout)


def test_version_is_also_json(cli):
    """b9"""
    answer = cli("version", "--json")
    assert answer.returncode == OK and answer.stderr == ""
    assert cli("version").stdout == f"weir {json.loads(answer.stdout)['version']}\n"


@pytest.mark.parametrize(
    "args", [["--help"], ["-h"], ["help"], ["serve", "--help"], ["run", "-h"], ["token", "--help"]]
)
def test_help_goes_to_stdout_and_is_no_failure(cli, args):
    """b9"""
    answer = cli(*args)
    assert answer.returncode == OK and answer.stderr == ""
    assert answer.stdout.startswith("weir") and "\x1b" not in answer.stdout


def test_every_flag_stands_in_the_help_beside_its_variable(cli):
    """design: every flag has its environment twin in --help"""
    text = cli("serve", "--help").stdout
    pairs = [("--http", "WEIR_HTTP"), ("--http", "PORT"), ("--grpc", "CRAWBL_GRPC_LISTEN")]
    pairs += [("--data", "WEIR_DATA"), ("--durability", "WEIR_DURABILITY")]
    pairs += [("--ports-file", "WEIR_PORTS_FILE"), ("--admin", "WEIR_ADMIN")]
    for flag, variable in pairs:
        entry = text[text.index(f"  {flag} ") :].split("\n  --")[0]
        assert re.search(rf"\b{variable}\b", entry), flag


# --- wrong usage ----------------------------------------------------------------------


def expect_hint(answer, hint):
    assert answer.returncode == USAGE and answer.stdout == ""
    assert re.search(rf"(?<![\w-]){re.escape(hint)}\b", answer.stderr), answer.stderr
    assert len(answer.stderr.splitlines()) <= 3, "the hint drowns in the help"


@pytest.mark.parametrize(
    "args, hint",
    [
        (["serve", "--htpp", "off"], "--http"),
        (["serve", "--durabilty", "full"], "--durability"),
        (["run", "x", "--scrpt", "x"], "--script"),
        (["serve", "--durability", "ful"], "full"),
    ],
    ids=str,
)
def test_a_slip_in_a_setting_is_refused_with_the_nearest_name(cli, args, hint):
    """b9: what, why, fix"""
    expect_hint(cli(*args), hint)


@pytest.mark.parametrize(
    "args",
    [
        ["frobnicate"],
        ["serve", "--frobnicate"],
        ["serve", "--http"],
        ["serve", "--http", "nowhere"],
        ["serve", "--http", "127.0.0.1:99999"],
        ["serve", "--threads", "0"],
        ["serve", "--limit-turn", "30"],
        ["serve", "surplus"],
        ["run"],
        ["run", ""],
        ["token"],
        ["token", "check"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2_with_a_reason(cli, args):
    """`weir --help`: 2 wrong usage"""
    answer = cli(*args)
    assert answer.returncode == USAGE and answer.stdout == "" and answer.stderr


# --- settings -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, place, hint",
    [
        ("listen:\n  htttp: off\n", "2:3", "http"),
        ("limits:\n  turn: 10\n", "2:9", "unit"),
        ("lisen:\n  http: off\n", "1:1", "listen"),
        ("store:\n  durability: ful\n", "2:15", "full"),
        ("threads: many\n", "1:10", None),
        ("listen:\n  http: [1]\n", "2:9", None),
        ("listen:\n  http: nowhere\n", "2:9", None),
        ("listen: {http: off\n", None, None),
        ("listen:\n  http: off\n  http: off\n", "3:3", None),
        (
            "agents:\n  - {slug: manager, delegates: [reserch]}\n  - {slug: research}\n",
            "2:33",
            "research",
        ),
        ("agents:\n  - {slug: manager, modle: x}\n", "2:21", "model"),
    ],
)
def test_a_mistake_in_the_settings_is_refused_with_its_place_and_the_fix(
    cli, tmp_path, text, place, hint
):
    """docs/config.md: FILE:LINE:COLUMN, the nearest name"""
    write(tmp_path, text)
    answer = cli("serve", "-c", "weir.yaml", "--http", "off", "--grpc", "off")
    assert answer.returncode == USAGE and answer.stdout == ""
    assert re.search(rf"\bweir\.yaml:{place or '[0-9]+:[0-9]+'}: ", answer.stderr), answer.stderr
    assert hint is None or hint in answer.stderr


@pytest.mark.parametrize(
    "text, place, hint",
    [
        ("script: 1\nscenes:\n  - reply:\n      - txt: hi\n", "4:9", "text"),
        ("script: 2\nscenes: [{reply: hi}]\n", "1:9", None),
        ("scenes: [{reply: hi}]\n", None, "script"),
        ("script: 1\nscenes: [{reply: &a hi}]\n", None, None),
    ],
)
def test_a_mistake_in_a_script_is_refused_with_its_place_and_the_fix(
    cli, tmp_path, text, place, hint
):
    """docs/script.md"""
    write(tmp_path, text, "play.yaml")
    answer = cli("run", "hello", "--script", "play.yaml")
    assert answer.returncode != OK and answer.stdout == ""
    assert re.search(rf"\bplay\.yaml:{place or '[0-9]+:[0-9]+'}: ", answer.stderr), answer.stderr
    assert hint is None or hint in answer.stderr


@pytest.mark.parametrize("agents", ["", "agents: []\n"])
def test_a_script_that_lists_no_agents_is_played_by_the_manager(cli, tmp_path, start_weir, agents):
    """docs/script.md: agents are not required"""
    text = f"script: 1\n{agents}scenes: [{{reply: '{{agent}} heard it'}}]\n"
    write(tmp_path, text, "play.yaml")
    answer = cli("run", "hello", "--script", "play.yaml")
    assert (answer.returncode, answer.stdout) == (OK, "manager heard it\n"), answer.stderr
    weir = start_weir(script=tmp_path / "play.yaml")
    with weir.http() as http:
        assert http.post("/invoke", json={"input": "hello"}).json()["output"] == "manager heard it"


def test_a_settings_file_or_a_script_that_is_not_there_is_named(cli):
    """what, why, fix"""
    for args in (["serve", "-c", "gone.yaml"], ["run", "x", "--script", "gone.yaml"]):
        answer = cli(*args)
        assert answer.returncode in (FAILED, USAGE) and "gone.yaml" in answer.stderr


def test_flags_beat_the_environment_and_it_beats_the_file(start_weir):
    """docs/config.md: seen in what /health reports"""
    config = "agent:\n  name: of-the-file\n  version: 1.1.1\n"
    for env, args, name in (
        ({}, [], "of-the-file"),
        ({"AGENT_NAME": "of-the-environment"}, [], "of-the-environment"),
        ({"AGENT_NAME": "no", "WEIR_AGENT_NAME": "own"}, [], "own"),
        ({"AGENT_NAME": "no"}, ["--agent-name", "of-the-flag"], "of-the-flag"),
        ({"AGENT_NAME": ""}, [], "of-the-file"),
    ):
        weir = start_weir(config=config, env=env, args=args)
        with weir.http() as http:
            assert http.get("/health").json()["agent_name"] == name
        weir.stop()


# --- run ------------------------------------------------------------------------------


def test_run_prints_the_answer_to_stdout_and_only_that(cli):
    """b9: stdout is data, stderr is talk"""
    answer = cli("run", "hello", "--script", SCRIPT)
    assert (answer.returncode, answer.stdout) == (OK, "manager heard: hello\n")


def test_run_tells_of_tools_on_stderr(cli):
    """b9"""
    answer = cli("run", "three tools", "--script", SCRIPT)
    assert answer.returncode == OK
    assert "look_up" in answer.stderr and "look_up" not in answer.stdout
    assert "Then: short." in answer.stdout and "\x1b" not in answer.stdout + answer.stderr


def test_run_as_json_is_a_line_for_each_event_with_seq_without_gaps(cli):
    """b6, b9"""
    answer = cli("run", "three tools", "--json", "--script", SCRIPT)
    assert answer.returncode == OK and answer.stderr == ""
    events = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["type"] == "started" and events[-1]["type"] == "done"
    kinds = [event["type"] for event in events]
    assert kinds.count("tool_call") == kinds.count("tool_result") == 3
    assert "12345678901234567890" in answer.stdout


def test_run_asks_the_agent_that_is_named(cli):
    answer = cli("run", "hello", "--agent", "eve", "--script", SCRIPT)
    assert answer.stdout == "eve heard: hello\n"


@pytest.mark.parametrize("message", ["fail INTERNAL", "fail eof", "always a tool"])
def test_a_turn_that_fails_is_exit_code_1_with_the_reason_on_stderr(cli, message):
    """`weir run --help`"""
    answer = cli("run", message, "--script", SCRIPT)
    assert answer.returncode == FAILED and answer.stderr
    answer = cli("run", message, "--json", "--script", SCRIPT)
    assert answer.returncode == FAILED
    assert json.loads(answer.stdout.splitlines()[-1])["type"] == "failed"


def test_run_leaves_nothing_behind(cli, tmp_path):
    """`weir run --help`: kept nowhere"""
    assert cli("run", "hello", "--script", SCRIPT).returncode == OK
    assert list(tmp_path.iterdir()) == []


ASKED_TWICE = """script: 1
agents: [{slug: manager}]
scenes:
  - match: go
    replies:
      - - approval: {question: "First?"}
      - - approval: {question: "Second?"}
      - - text: "{answer}"
"""


@pytest.mark.parametrize("size", (4094, 4095, 4096, 9000, 200000))
def test_a_long_answer_answers_one_question(cli, tmp_path, size):
    """Its rest would be the answer to the next question, which may be an approval."""
    (tmp_path / "script.yaml").write_text(ASKED_TWICE)
    answer = cli("run", "go", "--script", "script.yaml", input="n" * size + "yes\nsecond\n")
    assert (answer.returncode, answer.stdout) == (0, "second\n"), answer.stderr
    answer = cli("run", "go", "--script", "script.yaml", input="n" * size + "yes\n")
    assert answer.returncode == 1 and answer.stdout == "" and "stdin has none" in answer.stderr


def test_an_answer_without_an_end_of_the_line_counts_and_one_without_bounds_does_not(cli, tmp_path):
    (tmp_path / "script.yaml").write_text(ASKED_TWICE)
    answer = cli("run", "go", "--script", "script.yaml", input="first\nsecond")
    assert (answer.returncode, answer.stdout) == (0, "second\n"), answer.stderr
    answer = cli("run", "go", "--script", "script.yaml", input="n" * (5 << 20))
    assert answer.returncode == 1 and "longer than 4 MiB" in answer.stderr


def test_run_may_be_interrupted(tmp_path):
    process = subprocess.Popen(
        [str(harness.BINARY), "run", "long while", "--script", SCRIPT],
        env=harness.clean_environment({"HOME": str(tmp_path)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        # Who runs the tests in the background of a shell may have it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert os.read(process.stdout.fileno(), 100).startswith(b"begin")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=5)
    assert process.returncode not in (0, -signal.SIGSEGV, -signal.SIGABRT)


def test_run_to_a_closed_pipe_does_not_crash(tmp_path):
    """D3: SIGPIPE"""
    answer = subprocess.run(
        f"'{harness.BINARY}' run 'a flood' --script '{SCRIPT}' | head -c 10; "
        "echo \" ${PIPESTATUS[0]}\"",
        shell=True,
        executable="/bin/bash",
        env=harness.clean_environment({"HOME": str(tmp_path)}),
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert answer.stdout.startswith("0123456789 ")
    assert int(answer.stdout.split()[1]) in (0, 1, 141), answer


# --- token ----------------------------------------------------------------------------

KEY = {"CRAWBL_MCP_SIGNING_KEY": harness.SIGNING_KEY}


def test_a_new_token_is_the_one_that_an_orchestrator_would_make(cli):
    """3.1"""
    now = int(time.time())
    answer = cli("token", "new", "--user", "u1", "--workspace", "w1", env=KEY)
    assert answer.returncode == OK and answer.stderr == ""
    assert answer.stdout.strip() in {
        harness.token("u1", "w1", at=at) for at in range(now, now + 30)
    }


def test_a_new_token_is_also_json(cli):
    answer = cli("token", "new", "--user", "u1", "--workspace", "w 1", "--json", env=KEY)
    assert answer.returncode == OK and answer.stdout.count("\n") == 1
    made = json.loads(answer.stdout)
    assert made.pop("token") == harness.token("u1", "w 1", at=made["unix_s"])
    assert made == {"user": "u1", "workspace": "w 1", "unix_s": pytest.approx(time.time(), abs=60)}


def test_a_new_token_opens_the_daemon_that_has_the_same_key(cli, start_weir):
    import crawbl

    weir = start_weir(script="test/e2e/scripts/contract.yaml")
    made = cli("token", "new", "--user", "u1", "--workspace", "w1", env=KEY).stdout.strip()
    with crawbl.open_stream(weir, metadata=[("authorization", f"Bearer {made}")]) as stream:
        assert stream.ask("hello", user_id="u1", workspace_id="w1").error is None


def test_check_says_whose_a_token_is(cli):
    good = harness.token("u1", "w1")
    answer = cli("token", "check", good, env=KEY)
    assert answer.returncode == OK and "u1" in answer.stdout and "w1" in answer.stdout
    answer = cli("token", "check", good, "--json", env=KEY)
    told = json.loads(answer.stdout)
    assert answer.returncode == OK and (told["user"], told["workspace"]) == ("u1", "w1")


@pytest.mark.parametrize(
    "bad",
    [
        lambda: harness.token(key="another-key-that-nobody-knows-of"),
        lambda: harness.token(at=1700000000),
        lambda: "nonsense",
        lambda: harness.token() + "0",
    ],
    ids=["another key", "an old one", "nonsense", "one digit more"],
)
def test_check_refuses_with_exit_code_1_and_a_reason(cli, bad):
    """3.1"""
    answer = cli("token", "check", bad(), env=KEY)
    assert answer.returncode == FAILED and answer.stderr
    answer = cli("token", "check", bad(), "--json", env=KEY)
    assert answer.returncode == FAILED
    assert harness.SIGNING_KEY not in answer.stdout + answer.stderr


@pytest.mark.parametrize("ids", [("u:1", "w1"), ("u1", "w:1"), ("", "w1"), ("u\n1", "w1")], ids=repr)
def test_ids_that_would_be_ambiguous_are_refused_when_a_token_is_made(cli, ids):
    """K1: refused at mint and at check"""
    answer = cli("token", "new", "--user", ids[0], "--workspace", ids[1], env=KEY)
    assert answer.returncode != OK and answer.stdout == "" and answer.stderr


# --- the demo, and two daemons --------------------------------------------------------


def test_the_demo_prints_addresses_and_a_token_that_works(tmp_path, start_weir):
    """README, K17: `weir` alone; it stays on this host"""
    ports = tmp_path / "ports.json"
    env = {"HOME": tmp_path, "XDG_DATA_HOME": tmp_path, "WEIR_PORTS_FILE": ports}
    env |= {"WEIR_HTTP": "127.0.0.1:0", "WEIR_GRPC": "127.0.0.1:0"}
    env |= {"WEIR_NIMI_GRPC": "off", "WEIR_NIMI_HTTP": "off"}
    master, slave = pty.openpty()  # the start screen is for a person
    process = subprocess.Popen(
        [str(harness.BINARY)], env=harness.clean_environment(env), stdout=slave, stderr=slave
    )
    os.close(slave)
    screen = b""
    try:
        give_up = time.monotonic() + 20
        while not ports.exists() or b"curl" not in screen:
            assert time.monotonic() < give_up and process.poll() is None, screen
            screen += os.read(master, 65536)
        http = json.loads(ports.read_text())["http"]
        assert str(http).rsplit(":", 1)[-1].encode() in screen
        assert b"not an AI" in screen and b"127.0.0.1" in screen
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0
        os.close(master)


def test_a_second_daemon_on_the_same_data_is_refused_in_clear_words(start_weir, cli):
    """b9: what, why, fix"""
    weir = start_weir()
    off = ["--http", "127.0.0.1:0", "--grpc", "off", "--nimi-grpc", "off", "--nimi-http", "off"]
    answer = cli("serve", "--data", weir.data, *off)
    assert answer.returncode == FAILED
    assert str(weir.data) in answer.stderr and str(weir.pid) in answer.stderr
    with weir.http() as http:
        assert http.get("/health").status_code == 200


def test_an_address_that_is_taken_is_named(start_weir, cli, tmp_path):
    """b9: which address, and what to do"""
    weir = start_weir()
    off = ["--grpc", "off", "--nimi-grpc", "off", "--nimi-http", "off", "--data", tmp_path / "d"]
    answer = cli("serve", "--http", f"127.0.0.1:{weir.port('http')}", *off)
    assert answer.returncode == FAILED and str(weir.port("http")) in answer.stderr


def test_every_listener_may_be_off_or_a_unix_socket(start_weir, tmp_path):
    """b1"""
    import httpx

    path = tmp_path / "http.sock"
    weir = start_weir(args=["--http", f"unix:{path}", "--grpc", "off", "--nimi-grpc", "off"])
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), trust_env=False) as http:
        assert http.get("http://weir/health").status_code == 200
    weir.stop()
    assert not path.exists()


def test_a_daemon_at_a_unix_socket_is_asked_there(cli, start_weir, tmp_path):
    """By the settings that it has itself, or by its address; a proxy never hears of it."""
    where = f"unix:{tmp_path / 'http.sock'}"
    token = {"AGENT_AUTH_TOKEN": "s3cret"}
    weir = start_weir(script="test/e2e/scripts/human.yaml", env=token, args=["--http", where, "--mcp-server=true"])
    by_settings, by_address = ["--http", where, "--data", weir.data], ["--url", where]
    lost = {**token, "http_proxy": "http://127.0.0.1:9", "all_proxy": "http://127.0.0.1:9"}
    for number, how in enumerate((by_settings, by_address)):
        status = json.loads(cli("status", "--json", *how, env=lost).stdout)
        assert status["serving"] and status["url"] == where and status["daemon"]["pid"] == weir.process.pid
        said = cli("run", "hello", "--session", f"s{number}", *how, env=lost)
        assert (said.returncode, said.stdout) == (0, "heard: hello\n"), said.stderr
        said = cli("chat", "--session", f"s{number}", *how, input="ask\nyes\n", env=lost)
        assert said.returncode == 0 and "Answered: yes" in said.stdout, said.stderr
        listed = cli("runs", "--json", "--session", f"s{number}", *how, env=lost).stdout
        runs = [json.loads(line) for line in listed.splitlines()]
        assert [run["state"] for run in runs] == ["done", "done"]
        assert "heard: hello" in cli("logs", runs[1]["id"], *how, env=lost).stdout
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}
        answer = cli("mcp", *how, input=json.dumps(hello) + "\n", env=lost)
        assert json.loads(answer.stdout)["result"]["serverInfo"]["name"] == "weir", answer.stderr
    asked = cli("stop", *by_address, env=lost)
    assert asked.returncode == FAILED and "--data" in asked.stderr
    weir.stop()
    for how, code, why in ((where, FAILED, "No such file"), ("unix:", USAGE, "unix:/path"),
                           (f"unix:{tmp_path}/{'x' * 120}", FAILED, "File name too long")):
        asked = cli("runs", "--url", how)
        assert asked.returncode == code and why in asked.stderr, asked.stderr


def test_secrets_are_never_printed(start_weir):
    """docs/config.md"""
    weir = start_weir(env={"AGENT_AUTH_TOKEN": "a-secret-of-mine"}, args=["--log-level", "debug"])
    with weir.http() as http:
        for value in ("Bearer a-secret-of-mine", "Bearer a-wrong-one"):
            http.post("/invoke", json={"input": "x"}, headers={"Authorization": value})
    weir.stop()
    log = weir.log()
    for secret in ("a-secret-of-mine", "a-wrong-one", harness.SIGNING_KEY):
        assert secret not in log


def test_the_log_is_lines_of_json_off_a_terminal(weir):
    """b9"""
    weir.stop()
    lines = weir.log().splitlines()
    assert lines and all({"time", "level", "message"} <= set(json.loads(x)) for x in lines)


@pytest.mark.parametrize(
    "args, hint",
    [
        (["serv"], "serve"),
        (["tokn", "new"], "token"),
        (["verson"], "version"),
        (["run", "x", "--jsn"], "--json"),
        (["token", "nwe"], "new"),
        (["token", "chekc", "x"], "check"),
    ],
    ids=str,
)
def test_a_slip_in_a_command_is_refused_with_the_nearest_name(cli, args, hint):
    """b9: what, why, fix"""
    expect_hint(cli(*args), hint)


def test_run_says_which_agent_was_probably_meant(cli):
    """b9"""
    answer = cli("run", "hello", "--agent", "ev", "--script", SCRIPT)
    assert answer.returncode != OK and "eve" in answer.stderr and answer.stdout == ""
    answer = cli("run", "hello", "--agent", "ev", "--script", SCRIPT, "--json")
    error = json.loads(answer.stdout)
    assert answer.returncode != OK and (error["type"], error["code"]) == ("error", "NOT_FOUND")
    assert "eve" in error["message"] and error["message"] in answer.stderr


# --- what a shell may do --------------------------------------------------------------


@pytest.mark.parametrize("closed", ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"))
def test_closed_standard_files_are_no_sockets(tmp_path, closed):
    """Otherwise the first files of the program get their numbers."""
    env = harness.clean_environment({"HOME": str(tmp_path)})
    line = f"exec '{harness.BINARY}' runs --data {tmp_path}/none --http 127.0.0.1:1 {closed}"
    ended = subprocess.run(line, shell=True, executable="/bin/bash", env=env, timeout=60, check=False)
    assert ended.returncode == 1
    line = f"exec '{harness.BINARY}' version {closed}"
    ended = subprocess.run(line, shell=True, executable="/bin/bash", env=env, timeout=60, check=False)
    assert ended.returncode == (1 if " >&-" in " " + closed else 0), "what it printed is nowhere"
    ports = tmp_path / "ports.json"
    line = (f"exec '{harness.BINARY}' serve --data {tmp_path}/d --http 127.0.0.1:0 --grpc off --nimi-grpc off "
            f"--nimi-http off --ports-file {ports} {closed}")
    daemon = subprocess.Popen(line, shell=True, executable="/bin/bash", env=env)
    give_up = time.monotonic() + 60
    while not ports.exists():
        assert daemon.poll() is None and time.monotonic() < give_up
        time.sleep(0.01)
    files = {number: os.readlink(f"/proc/{daemon.pid}/fd/{number}") for number in (0, 1, 2)}
    assert not [name for name in files.values() if name.startswith(("socket:", "anon_inode:"))], files
    daemon.terminate()
    assert daemon.wait(timeout=60) == 0


def test_a_settings_file_that_was_not_written_whole_is_not_left(tmp_path):
    """It would be in the way of the next try."""
    env = harness.clean_environment({"HOME": str(tmp_path)})
    line = f"""trap '' XFSZ; ulimit -f 1; exec '{harness.BINARY}' init '{tmp_path}/new'"""
    ended = subprocess.run(line, shell=True, executable="/bin/bash", env=env, timeout=60, check=False,
                           capture_output=True, text=True)
    assert ended.returncode == FAILED and "File too large; name another folder" in ended.stderr
    assert list((tmp_path / "new").iterdir()) == []


def test_a_data_folder_that_is_a_file_is_said_to_be_none(cli, tmp_path):
    (tmp_path / "file").write_text("")
    answer = cli("serve", "--data", tmp_path / "file", "--http", "127.0.0.1:0", "--grpc", "off")
    assert answer.returncode == FAILED and "it is no folder; name another one with --data" in answer.stderr


def test_what_comes_after_two_dashes_is_no_flag(cli):
    answer = cli("run", "--script", SCRIPT, "--", "--json")
    assert answer.returncode == OK and not answer.stdout.startswith("{"), answer.stderr


@pytest.mark.parametrize("words, reason", (
    (["run", "a", "b"], "more than one message"), (["run", ""], "the message is empty"),
    (["run"], "there is no message"), (["logs"], "the id of a run (weir runs lists them) is missing"), (["mcp", "x"], "'x' is one argument too many"),
    (["stop", "x"], "'x' is one argument too many"), (["token", "new", "x"], "'x' is one argument too many"),
    (["-v", "run", "hi"], "a command comes before its flags"),
))
def test_wrong_usage_says_what_is_wrong(cli, words, reason):
    answer = cli(*words)
    first = answer.stderr.splitlines()[0]
    assert answer.returncode == USAGE and first.startswith("weir: error: ") and reason in first
