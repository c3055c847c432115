"""What an operator meets: reloads, signals, settings that count, logs, doctor, a manager."""
import base64
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

import crawbl
import grpc
import harness
import pytest

sys.path.insert(0, str(harness.ROOT / "test/proof"))
import shutdowns  # noqa: E402

KEY = harness.SIGNING_KEY
NEW_KEY = "the-key-after-the-rotation-is-32!"
PATIENCE = 90

SCRIPT = """\
script: 1
model: ops-script
pace: {{every: 0, chunk: 0}}
agents:
  - slug: manager
tools:
  - name: wait
    after: 700ms
    result: {{long: "{long}"}}
scenes:
  - match: tool
    replies:
      - - tool_call: {{tool: wait, args: {{}}}}
      - "{word}: the tool is back"
  - match: slow
    reply: [begin, {{wait: 1500ms}}, end]
  - match: silence
    reply: [begin, {{wait: 600ms}}, end]
  - reply: "{word} heard: {{input}}"
"""


def script(word="old"):
    return SCRIPT.format(word=word, long="äöü" * 40)


@pytest.fixture
def start(tmp_path, start_weir):
    """Start a daemon whose script is tmp_path/play.yaml."""
    (tmp_path / "play.yaml").write_text(script())

    def begin(config="", **options):
        return start_weir(config=f"script: {tmp_path}/play.yaml\n{config}", **options)

    return begin


def wait_for(check, what):
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        if result := check():
            return result
        time.sleep(0.005)
    raise AssertionError(f"{what} did not happen")


def wait_for_log(weir, part, count=1):
    def seen():
        return weir.log().count(part) >= count

    try:
        wait_for(seen, part)
    except AssertionError:
        raise AssertionError(f"no '{part}' in the log:\n{weir.log()}") from None


def reload(weir, expect="the configuration was read again"):
    before = weir.log().count(expect)
    weir.signal(signal.SIGHUP)
    wait_for_log(weir, expect, before + 1)


def invoke(weir, message, session="s"):
    with weir.http() as http:
        return http.post("/invoke", json={"input": message, "session_id": session})


def run(*args, env=None):
    return subprocess.run(
        [str(harness.BINARY), *map(str, args)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=harness.clean_environment(env or {}),
        check=False,
    )


# --- reading the configuration again --------------------------------------------------


def test_after_sighup_new_turns_follow_the_new_script_and_running_ones_keep_theirs(
    start, tmp_path
):
    weir = start()
    with crawbl.open_stream(weir) as stream:
        stream.send("a tool please")
        assert stream.next().WhichOneof("event") == "usage"
        (tmp_path / "play.yaml").write_text(script("new"))
        reload(weir)
        assert crawbl.one_turn(weir, "hello").text == "new heard: hello"
        assert stream.turn().text == "old: the tool is back"
        assert stream.ask("hello").text == "new heard: hello"


def test_a_mistake_in_what_is_read_again_changes_nothing_and_is_told(start, tmp_path):
    weir = start()
    (tmp_path / "play.yaml").write_text("script: 1\nscenes: [\n")
    reload(weir, "the one before stays")
    assert re.search(r"play\.yaml:\d+:\d+: ", weir.log())
    config = weir.folder / "weir.yaml"
    good = config.read_text()
    config.write_text(good + "listn: {}\n")
    reload(weir, "did you mean 'listen'?")
    assert "weir.yaml:2:1: " in weir.log()
    assert crawbl.one_turn(weir, "hello").text == "old heard: hello"
    (tmp_path / "play.yaml").write_text(script("new"))
    config.write_text(good)
    reload(weir)
    assert crawbl.one_turn(weir, "hello").text == "new heard: hello"


@pytest.mark.parametrize("named", [True, False], ids=["named", "beside"])
@pytest.mark.parametrize("what", ["", " \n  \n", None], ids=["empty", "space", "gone"])
def test_a_settings_file_that_is_empty_or_gone_at_a_reload_is_refused(
    start, start_weir, tmp_path, what, named
):
    weir = start() if named else start_weir()
    config = weir.folder / "weir.yaml"
    if not named:  # it is the one in the current folder
        weir.stop()
        config.write_text(f"script: {tmp_path}/play.yaml\n")
        weir.start()
    good = config.read_text()
    gone = "there is no such file" if named else "the settings file 'weir.yaml' is gone"
    for _ in range(2):
        if what is None:
            config.unlink()
        else:
            config.write_text(what)
        reload(weir, "the one before stays")
        weir.said(gone if what is None else "weir.yaml' is empty")
        assert crawbl.one_turn(weir, "hello").text == "old heard: hello"
        config.write_text(good)
        reload(weir)


def test_a_settings_file_with_only_a_comment_is_taken_and_one_that_was_empty_may_stay_so(start):
    weir = start()
    config = weir.folder / "weir.yaml"
    config.write_text("# nothing\n")
    reload(weir)
    weir.stop()
    config.write_text("")
    weir.start()
    reload(weir)


def test_what_cannot_change_without_a_restart_is_named(start):
    weir = start()
    config = weir.folder / "weir.yaml"
    config.write_text(config.read_text() + "limits: {idle: 1m, turn: 1m}\nthreads: 7\n")
    reload(weir)
    assert "wait for a restart: threads, limits.idle" in weir.log()


def test_the_bearer_of_the_runtime_contract_is_read_at_the_start_only(start, tmp_path):
    """K34: that contract forbids its rotation at run time"""
    token = tmp_path / "token"
    token.write_text("first")
    weir = start(config=f"tokens: {{auth_token_file: {token}}}\n")
    token.write_text("second")
    reload(weir)
    for bearer, status in (("first", 200), ("second", 403)):
        with weir.http(headers={"authorization": f"Bearer {bearer}"}) as http:
            assert http.post("/invoke", json={"input": "x"}).status_code == status
            assert http.get("/weir/v1/sessions").status_code == status
    assert "wait for a restart: tokens.auth_token_file" in weir.log()
    assert "first" not in weir.log() and "second" not in weir.log()


def test_many_reloads_in_a_row_under_load_are_survived(start, tmp_path):
    weir = start()
    stop = threading.Event()

    def load():
        turns = 0
        with crawbl.open_stream(weir) as stream:
            while not stop.is_set() or turns == 0:
                assert stream.ask("hello").error is None
                turns += 1
        return turns

    loads = [crawbl.in_background(load) for _ in range(4)]
    for number in range(40):
        (tmp_path / "play.yaml").write_text(script(f"v{number}"))
        weir.signal(signal.SIGHUP)
        time.sleep(0.01)
    wait_for(lambda: crawbl.one_turn(weir, "hello").text == "v39 heard: hello", "the last one")
    stop.set()
    assert all(get() for get in loads)


def test_sighup_while_it_starts_or_stops_ends_nothing(start):
    weir = start()
    with crawbl.open_stream(weir) as stream:
        stream.send("a tool please")
        stream.next()
        weir.signal(signal.SIGTERM)
        weir.signal(signal.SIGHUP)
        assert stream.turn().text == "old: the tool is back"
    assert weir.wait() == 0


def test_keys_rotate_without_a_restart_of_open_streams(start, tmp_path):
    """A10"""
    current, previous = tmp_path / "key", tmp_path / "previous"
    current.write_text(KEY + "\n")
    files = f"tokens:\n  key_file: {current}\n"
    weir = start(config=files, env={"CRAWBL_MCP_SIGNING_KEY": None})
    config = weir.folder / "weir.yaml"

    def code(key):
        token = harness.token(crawbl.USER, crawbl.WORKSPACE, key=key)
        metadata = (("authorization", "Bearer " + token),)
        with crawbl.open_stream(weir, metadata=metadata) as stream:
            stream.send("hello")
            stream.half_close()
            return stream.status()

    with crawbl.open_stream(weir) as stream:
        assert stream.ask("hello").error is None
        assert code(NEW_KEY) == grpc.StatusCode.UNAUTHENTICATED
        previous.write_text(KEY)
        current.write_text(NEW_KEY)
        config.write_text(config.read_text() + f"  previous_key_file: {previous}\n")
        reload(weir)
        assert code(NEW_KEY) == code(KEY) == grpc.StatusCode.OK
        config.write_text(config.read_text().replace(f"  previous_key_file: {previous}\n", ""))
        reload(weir)
        assert code(NEW_KEY) == grpc.StatusCode.OK
        assert code(KEY) == grpc.StatusCode.UNAUTHENTICATED
        assert stream.ask("still here").text == "old heard: still here"
    weir.said("a token is refused: it is forged; peer 127.0.0.1:")


# --- settings that count --------------------------------------------------------------


def test_a_busy_session_refuses_a_second_turn_where_that_is_the_policy(start):
    weir = start(config="session: {busy: reject}\n")
    with crawbl.open_stream(weir) as first, crawbl.open_stream(weir) as second:
        first.send("slow", session_id="one")
        first.next()
        assert second.ask("hello", session_id="one").code == "ABORTED"
        assert first.turn().error is None
    body = {"input": "slow", "session_id": "s"}
    with weir.http() as http, http.stream("POST", "/stream", json=body) as slow:
        text = slow.iter_text()
        assert "begin" in next(text)
        answer = invoke(weir, "hello")
        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "SESSION_BUSY"
        assert "".join(text).endswith("data: [DONE]\n\n")


def test_with_sticky_the_one_who_spoke_last_takes_the_next_turn(start_weir):
    weir = start_weir(script="test/e2e/scripts/contract.yaml", config="converse: {sticky: true}\n")
    with crawbl.open_stream(weir) as stream:
        assert stream.ask("hello").text == "manager heard: hello"
        assert stream.ask("hand over").error is None
        assert stream.ask("who?").text == "wally heard: who?"
        assert stream.ask("who?", agent_id="manager").text == "wally heard: who?"
        assert stream.ask("who?", session_id="other").text == "manager heard: who?"
    with weir.http() as http:
        body = {"input": "who?", "session_id": "third"}
        assert "manager heard" in http.post("/invoke", json=body).text


def test_a_pinned_daemon_refuses_other_identities(start):
    pins = {"CRAWBL_WORKSPACE_ID": "ws-1", "CRAWBL_USER_ID": "user-1"}
    weir = start(env=pins)
    assert crawbl.one_turn(weir, "hello").error is None
    for user, workspace in (("user-1", "ws-2"), ("user-2", "ws-1")):
        with crawbl.open_stream(weir, metadata=weir.metadata(user, workspace)) as stream:
            stream.send("hello")
            assert stream.status() == grpc.StatusCode.PERMISSION_DENIED
    believing = start(env={**pins, "CRAWBL_MCP_SIGNING_KEY": None})
    with crawbl.open_stream(believing, metadata=()) as stream:
        turn = stream.ask("hello", user_id="user-2")
        assert turn.code == "PERMISSION_DENIED"
        assert stream.ask("hello", user_id="user-1", workspace_id="ws-1").error is None


def test_a_message_above_its_limit_is_resource_exhausted(start):
    weir = start(config="limits: {message: 1KiB}\n")
    assert crawbl.one_turn(weir, "x" * 500).error is None
    with crawbl.open_stream(weir) as stream:
        stream.send("x" * 1100)
        assert stream.status() == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_body_that_drips_is_answered_408_and_others_are_served(start):
    """P8"""
    weir = start(config="limits: {body_grace: 300ms}\n")
    head = b"POST /invoke HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    with socket.create_connection(("127.0.0.1", weir.port("http")), PATIENCE) as peer:
        peer.sendall(head)
        assert invoke(weir, "hello").status_code == 200
        answer = b""
        while part := peer.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"REQUEST_TIMEOUT"' in answer and b"x-runtime-contract-version: 1" in answer.lower()


def test_a_silent_stream_has_a_heartbeat_as_often_as_configured(start):
    """S5"""
    weir = start(config="limits: {heartbeat: 50ms}\n")
    with weir.http() as http:
        text = http.post("/stream", json={"input": "silence"}).text
    assert text.count(": keep-alive\n\n") >= 3
    assert text.endswith("data: [DONE]\n\n")


def test_a_long_result_of_a_tool_is_shown_cut_between_characters_and_kept_whole(start):
    """U10"""
    weir = start(config="limits: {tool_output: 30B}\n")
    turn = crawbl.one_turn(weir, "a tool please")
    (result,) = turn.of("tool_result")
    value = json.loads(result.result_json)
    assert set(value) == {"cut", "bytes_in_all", "result_id", "next_offset", "hint"}
    assert value["next_offset"] == len(value["cut"].encode()) and value["result_id"] == 1
    assert 27 <= len(value["cut"].encode()) <= 30 and value["cut"].startswith('{"long":"äöü')
    assert turn.error is None


# --- signals --------------------------------------------------------------------------


def test_a_signal_during_the_start_is_a_clean_exit(start, tmp_path):
    """D3"""
    daemon = harness.Daemon(tmp_path, config=f"script: {tmp_path}/play.yaml\n")
    (tmp_path / "play.yaml").write_text(script())
    for delay in (0, 0, 0.001, 0.002, 0.005, 0.01):
        process = subprocess.Popen(
            daemon.command(),
            stderr=subprocess.PIPE,
            env=harness.clean_environment({}),
            cwd=tmp_path,
            text=True,
        )
        while not shutdowns.listens_for_signals(process.pid):
            pass
        time.sleep(delay)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said


def test_a_second_sigterm_ends_it_at_once(start):
    """D3"""
    weir = start(env=harness.NO_JOINS)
    with crawbl.open_stream(weir) as stream:
        stream.send("slow")
        stream.next()
        weir.signal(signal.SIGTERM)
        wait_for_log(weir, "stopping; turns have 10 s to end")
        time.sleep(0.1)  # less would be one wish told twice
        weir.signal(signal.SIGTERM)
        assert weir.wait() == 1


def test_twenty_shutdowns_at_random_moments_are_in_time_and_lose_nothing(tmp_path, monkeypatch):
    """D4, a share of test/proof/shutdowns.py"""
    monkeypatch.setattr(shutdowns, "BINARY", str(harness.BINARY))
    monkeypatch.setattr(shutdowns, "SLACK_S", 15 if crawbl.is_sanitized() else 3)
    acknowledged, _ = shutdowns.prove(tmp_path, 20, 20)
    assert acknowledged > 0


# --- a service manager ----------------------------------------------------------------


@pytest.mark.parametrize("abstract", [False, True])
def test_a_service_manager_hears_how_it_is(start, tmp_path, abstract):
    name = f"@weir-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name[1:] if abstract else name)
        manager.settimeout(PATIENCE)
        weir = start(env={"NOTIFY_SOCKET": name})
        assert manager.recv(4096) == b"READY=1\nSTATUS=serving 1 agent"
        weir.signal(signal.SIGHUP)
        told = manager.recv(4096).decode()
        assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+\nSTATUS=reading .*", told)
        assert manager.recv(4096).startswith(b"READY=1\n")
        weir.signal(signal.SIGTERM)
        assert manager.recv(4096).startswith(b"STOPPING=1\n")
        assert weir.wait() == 0


# --- the log --------------------------------------------------------------------------


def test_a_flood_of_wrong_tokens_is_a_few_lines_with_a_count(start):
    """A12"""
    weir = start(env={"AGENT_AUTH_TOKEN": "right"})
    began = time.monotonic()
    with weir.http(headers={"authorization": "Bearer wrong"}) as http:
        for _ in range(300):
            assert http.post("/invoke", json={"input": "x"}).status_code == 403
    seconds = int(time.monotonic() - began) + 2
    weir.stop()
    log = weir.log()
    lines = log.count("a token is refused: it is not ours; peer 127.0.0.1:")
    left_out = sum(map(int, re.findall(r"(\d+) lines like the one before were left out", log)))
    assert 1 <= lines <= 9 * seconds
    assert lines + left_out == 300


def test_no_secret_is_ever_in_the_log(start, tmp_path):
    secrets = {
        "CRAWBL_MCP_SIGNING_KEY": "hush-signing-key-of-32-bytes-abc",
        "CRAWBL_MCP_SIGNING_KEY_PREVIOUS": "hush-previous-key-of-32-bytes-ab",
        "AGENT_AUTH_TOKEN": "hush-bearer-token",
    }
    weir = start(env=secrets, args=["-v"])
    tokens = [
        harness.token(crawbl.USER, crawbl.WORKSPACE, key=secrets["CRAWBL_MCP_SIGNING_KEY"]),
        harness.token(crawbl.USER, crawbl.WORKSPACE, key="hush-wrong"),
        harness.token(crawbl.USER, crawbl.WORKSPACE, at=1, key=secrets["CRAWBL_MCP_SIGNING_KEY"]),
    ]
    for token in tokens:
        with crawbl.open_stream(weir, metadata=(("authorization", "Bearer " + token),)) as stream:
            stream.send("hello")
            stream.half_close()
            stream.status()
    for bearer in (secrets["AGENT_AUTH_TOKEN"], "hush-wrong-bearer"):
        with weir.http(headers={"authorization": f"Bearer {bearer}"}) as http:
            http.post("/invoke", json={"input": "x"})
            http.get("/health")
    reload(weir)
    (tmp_path / "play.yaml").write_text("hush")
    reload(weir, "the one before stays")
    weir.stop()
    log = weir.log()
    assert "used by 127.0.0.1:" in log and "it is expired" in log and "it is forged" in log
    log = log.replace(str(tmp_path), "")
    assert "hush" not in log
    for token in tokens:
        assert token not in log and token.partition(".")[2] not in log


# --- weir config, weir doctor ---------------------------------------------------------


def test_config_check_names_every_mistake_with_its_place(tmp_path):
    file = tmp_path / "weir.yaml"
    file.write_text("listn: {}\nlimits: {idle: 30}\nscript: play.yaml\n")
    checked = run("config", "check", file)
    assert checked.returncode == 2 and checked.stdout == ""
    assert f"{file}:1:1: no setting is called 'listn'; did you mean 'listen'?" in checked.stderr
    assert f"{file}:2:16: limits.idle: '30' has no unit" in checked.stderr

    file.write_text("script: play.yaml\n")
    (tmp_path / "play.yaml").write_text("script: 1\nscnes: []\n")
    checked = run("config", "check", file)
    assert checked.returncode == 2
    assert f"{tmp_path}/play.yaml:2:1: " in checked.stderr

    (tmp_path / "play.yaml").write_text(script())
    checked = run("config", "check", file)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout == f"{file}: good; 1 agent, 1 tool\n"
    assert run("config").returncode == run("config", "chek").returncode == 2


@pytest.mark.parametrize("agent, place", [
    ("tools: {calculator: ask, look: alow}", "1:57: 'alow' is not one of"),
    ("tools: [calculator, []]", "1:46: expected a name"),
    ("guardrails: [no-cards, []]", "1:49: a guardrail is named here"),
    ("kind: process, command: [python3, []]", "1:60: a word of a command is a text"),
])
def test_config_check_survives_a_mistake_late_in_a_list(tmp_path, agent, place):
    file = tmp_path / "weir.yaml"
    file.write_text(f"agents: [{{slug: manager, {agent}}}]\n")
    checked = run("config", "check", file)
    assert checked.returncode == 2 and checked.stdout == ""
    assert f"{file}:{place}" in checked.stderr


def test_config_print_shows_what_counts_and_where_from_and_no_secret(tmp_path):
    file = tmp_path / "weir.yaml"
    file.write_text("limits: {idle: 1m}\n")
    env = {"CRAWBL_MCP_SIGNING_KEY": "hush", "WEIR_THREADS": "3", "CRAWBL_NATS_URL": "nats://svc:hush@h"}
    printed = run("config", "print", "-c", file, "--http", "off", env=env)
    assert printed.returncode == 0 and "hush" not in printed.stdout + printed.stderr
    for line in (
        "listen.http = off (--http)",
        "threads = 3 (WEIR_THREADS)",
        f"limits.idle = 1m ({file})",
        "tokens.key_file = set (CRAWBL_MCP_SIGNING_KEY)",
        "limits.body = 8MiB (default)",
        "orchestrator.nats_file = set (CRAWBL_NATS_URL)",
    ):
        assert line + "\n" in printed.stdout


def test_config_check_opens_the_files_that_a_start_opens(tmp_path):
    """The unit's ExecStartPre is `config check`: what it calls good must start."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-subj", "/CN=localhost", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"],
                   check=True, capture_output=True)
    (tmp_path / "file").write_text("garbage")
    file = tmp_path / "weir.yaml"
    good = "{cert: cert.pem, key: key.pem, ca: cert.pem, trust: cert.pem}"
    file.write_text(f"tls: {good}\ndata: data\nlisten: {{http: 'unix:{tmp_path}/s'}}\n")
    assert run("config", "check", file).returncode == 0
    for text, says in {
        "tls: {cert: cert.pem}": "set tls.key",
        "tls: {ca: cert.pem}": "set tls.cert",
        "tls: {cert: none.pem, key: key.pem}": "tls.cert: cannot read",
        "tls: {cert: file, key: key.pem}": "tls.cert: ",
        "tls: {cert: cert.pem, key: file}": "tls.key: ",
        "tls: {cert: cert.pem, key: key.pem, ca: file}": "tls.ca: ",
        "tls: {trust: none.pem}": "tls.trust: ",
        "tls: {trust: file}": "tls.trust: ",
        "data: file": "data: '",
        "record: file": "record: '",
        "ports_file: none/ports": "ports_file: the folder '",
        f"listen: {{http: 'unix:{tmp_path}/none/s'}}": "listener 'http': the folder '",
    }.items():
        file.write_text(text + "\n")
        checked = run("config", "check", file)
        assert checked.returncode == 2 and says in checked.stderr, (text, checked.stderr)
        assert not (tmp_path / "data").exists()


def doctor(*args, **options):
    looked = run("doctor", "--json", *args, **options)
    report = json.loads(looked.stdout)
    assert report["good"] == (looked.returncode == 0)
    for found in report["findings"]:
        assert found["finding"] in ("good", "note", "bad")
        assert found["finding"] != "bad" or found["fix"], found
    return looked.returncode, report["findings"]


def of(findings, what, finding=None):
    return " | ".join(
        f["text"] for f in findings if f["what"] == what and finding in (None, f["finding"])
    )


def calm(tmp_path):
    return ("--data", tmp_path / "data", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")


def test_doctor_is_content_with_a_good_machine(tmp_path):
    env = {"CRAWBL_MCP_SIGNING_KEY": "k" * 32, "AGENT_AUTH_TOKEN": "hush"}
    code, findings = doctor(*calm(tmp_path), "--strict-tokens", env=env)
    assert code == 0, findings
    whats = {f["what"] for f in findings}
    assert whats == {
        "settings", "agents", "tokens", "ports", "files", "memory", "clock", "speech", "store",
        "disk",
    }
    assert not (tmp_path / "data").exists(), "it changes nothing"
    assert "hush" not in json.dumps(findings)
    plain = run("doctor", *calm(tmp_path), env=env)
    assert plain.returncode == 0 and "good  clock " in plain.stdout


def test_doctor_names_who_holds_a_port_and_a_command(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        code, findings = doctor(*calm(tmp_path), "--http", f"127.0.0.1:{port}")
    assert code == 1
    assert f"is taken by pid {os.getpid()} (" in of(findings, "ports", "bad")


def test_doctor_sees_bad_settings_scripts_keys_and_folders(tmp_path):
    file = tmp_path / "weir.yaml"
    (tmp_path / "play.yaml").write_text("script: 2\n")
    (tmp_path / "file").write_text("")
    file.write_text("listn: {}\nscript: play.yaml\ndata: file\n")
    code, findings = doctor(
        "-c", file, "--http", "off", "--grpc", "127.0.0.1:0", env={"CRAWBL_MCP_SIGNING_KEY": "k"}
    )
    assert code == 1
    assert "weir.yaml:1:1: " in of(findings, "settings", "bad")
    assert "play.yaml:" in of(findings, "agents", "bad")
    assert "1 bytes and can be guessed" in of(findings, "tokens", "bad")
    assert "is not a folder" in of(findings, "store", "bad")
    assert [f["fix"] for f in findings if f["what"] == "store"] == ["weir doctor --data /var/tmp/weir"]


def fold_one_page(data):
    """What a kill in the middle of a fold leaves: the first page is folded in, no other is."""
    frame, page = 24, 4096
    log = (data / "weir.db-wal").read_bytes()
    folded = None
    for at in range(32, len(log) - frame - page + 1, frame + page):
        if log[at + 8 : at + 16] == log[16:24] and log[at : at + 4] == b"\0\0\0\1":
            folded = log[at + frame : at + frame + page]
    with open(data / "weir.db", "r+b") as database:
        database.write(folded)


def test_doctor_calls_no_store_damaged_whose_weir_was_killed(start):
    weir = start()
    for turn in range(9):
        assert crawbl.one_turn(weir, "x" * 9000, session_id="s").error is None
    weir.kill()
    fold_one_page(pathlib.Path(weir.data))
    code, findings = doctor(*calm(weir.folder))
    assert code == 0 and "log is not folded in" in of(findings, "store", "note"), findings
    weir.start()
    with weir.http(headers=harness.bearer()) as http:
        runs = http.get("/weir/v1/runs", params={"session_id": "s"}).json()["runs"]
    assert [run["state"] for run in runs] == ["done"] * 9
    weir.stop()
    code, findings = doctor(*calm(weir.folder))
    assert code == 0 and "weir.db is whole" in of(findings, "store", "good"), findings


def test_a_log_that_a_foreign_reader_keeps_growing_is_told_once_and_by_doctor(start):
    weir = start()
    log = pathlib.Path(weir.data) / "weir.db-wal"
    ports = ("--http", f"127.0.0.1:{weir.port('http')}", "--grpc", "off", "--data", weir.data)

    def grow_to(mib):
        for turn in range(400):
            if log.stat().st_size >= mib << 20:
                return
            with weir.http() as http:
                text = base64.b64encode(os.urandom(1_500_000)).decode()
                assert http.post("/invoke", json={"input": text}, timeout=60).status_code == 200
        raise AssertionError(f"the log has {log.stat().st_size} bytes")

    grow_to(1)
    assert "has it open" in of(doctor(*ports)[1], "store", "note")
    reader = sqlite3.connect(f"file:{weir.data}/weir.db?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM log").fetchone()
    grow_to(100)
    said = weir.said("weir.db-wal has ")
    assert said.count("goes on growing") == 1 and "fuser -v" in said
    code, findings = doctor(*ports)
    assert code == 1 and "reads the database" in of(findings, "store", "bad"), findings
    reader.close()
    for _ in range(40):
        if "begins again" in weir.log():
            break
        with weir.http() as http:
            assert http.post("/invoke", json={"input": "x" * 100_000}, timeout=60).status_code == 200
    weir.said("begins again: the other process has ended its transaction")
    code, findings = doctor(*ports)
    assert code == 0, findings
    assert weir.log().count("goes on growing") == 1


LOCKS_THAT_COME_AND_GO = """
import fcntl, random, sys
files = [open(f"{sys.argv[1]}/{n}", "w") for n in range(60)]
print("ready", flush=True)
while True:
    fcntl.lockf(random.choice(files), fcntl.LOCK_EX)
    fcntl.lockf(random.choice(files), fcntl.LOCK_UN)
"""


def test_doctor_finds_the_weir_that_runs_while_other_locks_come_and_go(start, tmp_path):
    weir = start()
    others = []
    try:
        for n in range(2):
            (tmp_path / f"locks{n}").mkdir()
            others.append(
                subprocess.Popen(
                    [sys.executable, "-c", LOCKS_THAT_COME_AND_GO, tmp_path / f"locks{n}"],
                    stdout=subprocess.PIPE,
                )
            )
        for other in others:
            assert other.stdout.readline() == b"ready\n"
        ports = ("--http", f"127.0.0.1:{weir.port('http')}", "--grpc", "off", "--data", weir.data)
        for _ in range(20):
            code, findings = doctor(*ports)
            assert code == 0, findings
            assert f"pid {weir.pid} has it open" in of(findings, "store", "note")
    finally:
        for other in others:
            other.kill()
            other.wait()
            other.stdout.close()


def test_doctor_looks_at_the_store_of_a_weir_that_runs_and_of_one_that_does_not(start):
    weir = start()
    assert crawbl.one_turn(weir, "hello").error is None
    ports = ("--http", f"127.0.0.1:{weir.port('http')}", "--grpc", "off", "--data", weir.data)
    code, findings = doctor(*ports)
    assert code == 0, findings
    assert f"pid {weir.pid} has it open" in of(findings, "store", "note")
    assert f"the weir that runs has it (pid {weir.pid})" in of(findings, "ports", "note")
    weir.stop()
    code, findings = doctor(*ports)
    assert code == 0 and "weir.db is whole" in of(findings, "store", "good")

    database = pathlib.Path(weir.data) / "weir.db"
    content = bytearray(database.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    database.write_bytes(content)
    code, findings = doctor(*ports)
    assert code == 1 and "is damaged: " in of(findings, "store", "bad")
    database.unlink()
