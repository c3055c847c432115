"""`weir validate`: what it finds in good servers, in wrong ones, and in those of others.

A wrong server breaks one rule (wrong_runtime.py); it must fail exactly the check of that rule.
"""
import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree

import harness
import pytest
import wrong_runtime

RUNTIMES = harness.ROOT / "test/e2e/runtimes"
TOKEN = "token-of-the-small-agent"
ALL = ["--strict", "--error-input", "boom", "--hitl-input", "human"]
BRIEF = ["--timeout", "30s", "--boot-timeout", "60s"]
SMALL = [sys.executable, "-S", harness.ROOT / "test/e2e/wrong_runtime.py"]


def run(*args, env=None, seconds=60, cwd=None):
    environment = harness.clean_environment(env or {})
    command = [str(harness.BINARY), "validate", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=seconds, cwd=cwd)


def validate(*args, **options):
    """The report, and what is not as it should be: {id: (verdict, why)}."""
    told = run("--format", "json", *args, **options)
    assert told.stdout, told.stderr
    report = json.loads(told.stdout)
    assert told.returncode == (3 if not report["reached"] else 0 if report["good"] else 1), told
    return report, {c["id"]: (c["verdict"], c["why"]) for c in report["checks"] if c["verdict"] in ("fail", "warn")}


def verdicts(report):
    return {c["id"]: c["verdict"] for c in report["checks"]}


def rows():
    """The checks of --list: {id: (level, word)}."""
    lines = run("--list").stdout.splitlines()
    found = re.findall(r"^([A-Z]+(?:-[A-Z]+)?-\d+)\s+(\w+)\s+(-|MAY|SHOULD|MUST(?: NOT)?)\s", "\n".join(lines), re.M)
    return {check: (level, word) for check, level, word in found}


# --- ours ---------------------------------------------------------------------------------


def ours(tmp_path, *more):
    (tmp_path / "weir.yaml").write_text(f"script: {harness.ROOT}/test/e2e/scripts/validated.yaml\n")
    command = [harness.BINARY, "serve", "--http", "127.0.0.1:{port}", "--grpc", "off"]
    command += ["--nimi-grpc", "off", "--nimi-http", "off"]
    return [*command, "--data", tmp_path / "data", "-c", tmp_path / "weir.yaml", *more]


def test_our_server_keeps_the_whole_contract(tmp_path):
    inputs = ["--error-input", "break down", "--hitl-input", "ask a human"]
    report, bad = validate("--profile", "runtime-v1", "--strict", *inputs, "--", *ours(tmp_path))
    assert bad == {}
    skipped = {c for c, verdict in verdicts(report).items() if verdict == "skip"}
    # Never seen loading; a stream without waiting; no 200 of /resume; no sidecar; {port}.
    assert skipped <= {"LOAD-01", "LOAD-02", "STRM-11", "RSME-03", "SIDE-01", "BOOT-03", "ROTA-01"}


@pytest.mark.weir(script="test/e2e/scripts/validated.yaml", env={"AGENT_AUTH_TOKEN": TOKEN})
def test_a_server_that_runs_is_checked_at_its_url(weir):
    report, bad = validate("--strict", weir.url, env={"AGENT_AUTH_TOKEN": TOKEN})
    assert bad == {}
    assert verdicts(report)["AUTH-03"] == "pass" and verdicts(report)["AUTH-08"] == "skip"


class Stranger(http.server.BaseHTTPRequestHandler):
    """A server on the port of a target, which ends once it has seen what `ends` names."""

    def do_GET(self):
        if self.ends == f"{self.command} {self.path}" and not self.over.exists():
            self.over.touch()
            while self.child.exists():
                time.sleep(0.01)
        self.send_response(200)
        self.send_header("content-length", "20")
        self.end_headers()
        self.wfile.write(b'{"status":"healthy"}')

    do_POST = do_GET

    def log_message(self, *args):
        pass


# The target; $1 is its port.
LOSER = "echo $$ $1 > begun; mv begun started; while [ ! -e over ]; do sleep 0.02; done; echo cannot listen >&2"


@contextlib.contextmanager
def stranger(folder, ends):
    def serve():
        while not (folder / "started").exists():
            time.sleep(0.01)
        pid, port = (folder / "started").read_text().split()
        Stranger.ends, Stranger.over, Stranger.child = ends, folder / "over", pathlib.Path(f"/proc/{pid}")
        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Stranger))
        servers[0].serve_forever()

    servers = []
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield
    servers[0].shutdown()
    servers[0].server_close()
    thread.join()


def assert_not_examined(told, code):
    report = json.loads(told.stdout)
    assert told.returncode == 3 and not report["reached"]
    assert report["why"].startswith(f"the target ended with exit code {code}, and another program answers on its port")
    assert report["why"].endswith("cannot listen")


@pytest.mark.parametrize("ends", ["GET /health", "POST /invoke"])
def test_a_stranger_on_the_port_of_a_target_that_ended_is_not_examined(tmp_path, ends):
    with stranger(tmp_path, ends):
        told = run("--profile", "runtime-v1", "--format", "json", *BRIEF, "--",
                   "sh", "-c", f"{LOSER}; exit 7", "sh", "{port}", cwd=tmp_path)
    assert_not_examined(told, 7)


@pytest.mark.parametrize("ends", ["GET /health", "POST /invoke"])
def test_a_stranger_on_the_port_of_an_image_that_was_not_started_is_not_examined(tmp_path, ends):
    (tmp_path / "docker").write_text(
        "#!/bin/sh\n[ $1 = run ] || exit 0\nwhile [ $1 != -p ]; do shift; done\n"
        f"set -- $(echo $2 | cut -d: -f2)\n{LOSER}; exit 125\n")
    (tmp_path / "docker").chmod(0o755)
    with stranger(tmp_path, ends):
        told = run("--profile", "runtime-v1", "--format", "json", *BRIEF, "agent:1", cwd=tmp_path,
                   env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert_not_examined(told, 125)


# --- wrong servers --------------------------------------------------------------------------

STARTED = {"BOOT-02", "BOOT-03", "AUTH-08", "SIDE-02"}  # by the validation itself
HOSTILE = {"garbage", "silent", "closes", "head without end", "leaks", "drips"}
SILENT = {"INVK-01 hangs", "STRM-03 endless"}
FAULTS = [name for name in wrong_runtime.FAULTS if name.split()[0] not in STARTED and name not in HOSTILE]


LOADED_LATE = ("/stream", "/health")  # it loads until both were asked


def examine(fault, loading=()):
    """Validate the small server with this fault in it."""
    check = (fault or "").split()[0] if fault else ""
    if check in ("LOAD-01", "LOAD-02", "BOOT-01"):
        loading = LOADED_LATE
    agent = wrong_runtime.Agent(TOKEN, loading, sidecar=check == "SIDE-01")
    more = ["--behind-sidecar"] if agent.sidecar else []
    more += ["--boot-timeout", "3s" if check == "BOOT-01" else "30s"]
    more += ["--timeout", "5s" if fault in SILENT else "30s"]  # the rest waits for no timeout
    with wrong_runtime.Server(0, agent, fault) as server:
        return validate(server.url, "--token", TOKEN, *ALL, *more)


def expected(check, variant=""):
    """fail or warn, by the table of src/validate/check.h; in strict mode."""
    level, word = rows()[check]
    remarks = {"STRM-06 unknown", "STRM-08 connection", "RSME-02 served"}
    if f"{check} {variant}" in remarks:
        return "warn"
    if level == "advisory":
        return "fail" if word.startswith("MUST") else "warn"
    return "warn" if level == "base" and word == "SHOULD" else "fail"


def test_the_small_server_without_a_fault_breaks_nothing():
    report, bad = examine(None)
    assert bad == {}
    skipped = {c for c, verdict in verdicts(report).items() if verdict == "skip"}
    assert skipped == {"BOOT-02", "LOAD-01", "LOAD-02", "STRM-11", "RSME-03", "SIDE-01", "BOOT-03", "SIDE-02", "AUTH-08", "ROTA-01"}


@pytest.mark.parametrize("last, verdict", [("/health", "skip"), ("/invoke", "pass"), ("/stream", "pass")])
def test_a_server_may_become_ready_between_two_questions(last, verdict):
    """Its next answer is then no answer of a server that loads, so nothing is said about it."""
    report, bad = examine(None, loading=[last])
    assert bad == {}
    assert verdicts(report)["LOAD-01"] == verdicts(report)["LOAD-02"] == verdict


@pytest.mark.parametrize("way", wrong_runtime.ODD)
def test_a_server_may_send_a_stream_as_the_standard_allows(way):
    report, bad = examine(way)
    assert bad == {}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_with_one_fault_fails_exactly_the_check_of_it(fault):
    report, bad = examine(fault)
    check, _, variant = fault.partition(" ")
    assert set(bad) == {check}, bad
    assert bad[check][0] == expected(check, variant)


@pytest.mark.parametrize("fault", ["BOOT-02", "AUTH-08", "SIDE-02"])
def test_a_server_that_is_started_fails_exactly_the_check_of_its_fault(fault):
    others = ",".join(STARTED - {fault})  # each of them starts it once more
    report, bad = validate(*ALL, *BRIEF, "--skip", others, "--", *SMALL, "--fault", fault)
    assert set(bad) == {fault}, bad
    assert bad[fault][0] == expected(fault)


def test_every_check_that_can_fail_has_a_wrong_server():
    wrong = {name.split()[0] for name in wrong_runtime.FAULTS}
    assert set(rows_of("runtime-v1")) - wrong == {"ROTA-01"}  # a SKIP: it cannot be seen over HTTP


def test_a_missing_version_header_warns_and_fails_only_when_strict():
    for strict, verdict in (([], "warn"), (["--strict"], "fail")):
        with wrong_runtime.Server(0, wrong_runtime.Agent(TOKEN), "VERS-02") as server:
            report, bad = validate(server.url, "--token", TOKEN, *strict)
        assert bad["VERS-02"][0] == verdict


# --- hostile servers ------------------------------------------------------------------------


def hostile(fault, *more, timeout="30s"):
    with wrong_runtime.Server(0, wrong_runtime.Agent(TOKEN), fault) as server:
        return validate(server.url, "--token", TOKEN, "--timeout", timeout, *more)


def test_a_server_that_hangs_gets_its_verdicts_in_time():
    report, bad = hostile("silent", "--profile", "runtime-v1", "--boot-timeout", "300ms", timeout="300ms")
    assert bad["BOOT-01"][0] == "fail" and bad["INVK-01"][0] == "fail"
    assert "no byte of a response came in time" in bad["HLTH-01"][1]
    assert len(report["checks"]) == len(rows_of("runtime-v1"))  # each has a verdict


def test_a_server_that_says_no_http_is_shown_with_what_it_says():
    report, bad = hostile("garbage", "--profile", "runtime-v1")
    [check] = [c for c in report["checks"] if c["id"] == "HLTH-01"]
    assert check["verdict"] == "fail" and "SSH-2.0-OpenSSH_9.2" in check["seen"]


def test_a_server_that_hangs_up_fails_and_the_report_goes_on():
    report, bad = hostile("closes")
    assert "closed the connection without an answer" in bad["INVK-01"][1]
    assert len(report["checks"]) == len(rows_of("runtime-v1"))


def test_a_head_without_end_is_cut():
    report, bad = hostile("head without end")
    assert "the head has more than" in bad["INVK-01"][1]


def test_a_body_that_drips_is_cut_at_the_timeout():
    report, bad = hostile("drips", timeout="3s")
    assert "did not end in time" in bad["INVK-01"][1]


def test_what_a_server_says_reaches_no_terminal_unescaped_and_shows_no_key():
    with wrong_runtime.Server(0, wrong_runtime.Agent(TOKEN), "leaks") as server:
        told = run(server.url, "--token", TOKEN, "--strict", "--only", "RSME-04")
    assert "\x1b" not in told.stdout and "\x9b" not in told.stdout
    assert "sk-proj" not in told.stdout and TOKEN not in told.stdout
    assert "***" in told.stdout


def test_a_port_where_nobody_listens_is_exit_code_3():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        told = run(f"http://127.0.0.1:{free.getsockname()[1]}")
    assert told.returncode == 3 and "nothing answers" in told.stderr


# --- commands ---------------------------------------------------------------------------------


def test_a_command_that_ends_is_exit_code_3_with_its_output():
    told = run("--", sys.executable, "-c", "import sys; sys.exit('no module named agent')")
    assert told.returncode == 3
    assert "exit code 1" in told.stderr and "no module named agent" in told.stderr


def test_a_command_that_never_answers_is_ended_after_the_boot_timeout(tmp_path):
    pid_file = tmp_path / "pid"
    told = run("--boot-timeout", "3s", "--", "sh", "-c", f"echo $$ > {pid_file}; exec sleep 600")
    assert told.returncode == 3 and "within 3 s" in told.stderr
    assert not alive(int(pid_file.read_text()))


def test_a_command_is_ended_with_what_it_started(tmp_path):
    pid_file = tmp_path / "pid"
    shell = f"sleep 600 & echo $! > {pid_file}; exec {' '.join(map(str, SMALL))}"
    report, bad = validate("--only", "HLTH", "--", "sh", "-c", shell)
    assert bad == {}
    assert not alive(int(pid_file.read_text()))


def test_a_command_is_ended_when_the_validation_is_killed(tmp_path):
    pid_file = tmp_path / "pid"
    code = f"import os,time; open({str(pid_file)!r},'w').write(str(os.getpid())); time.sleep(600)"
    command = [str(harness.BINARY), "validate", "--", sys.executable, "-c", code]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: pid_file.exists() and pid_file.read_text())
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not alive(int(pid_file.read_text())))


def test_a_command_gets_the_environment_that_is_asked_for(tmp_path):
    seen = tmp_path / "seen"
    code = f"import os,runpy; open({str(seen)!r},'w').write(os.environ['GREETING'] + os.environ['AGENT_AUTH_TOKEN']);"
    code += f"runpy.run_path({str(SMALL[-1])!r}, run_name='__main__')"
    validate("--env", "GREETING=hello", "--only", "AUTH-06", "--", sys.executable, "-c", code, env={"AGENT_AUTH_TOKEN": "mine"})
    assert re.fullmatch("hello[0-9a-f]{32}", seen.read_text())  # a token of its own


def until(holds):
    give_up = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def alive(pid):
    try:
        return "State:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


# --- images -------------------------------------------------------------------------------------


def engine(folder, works=True, fault=None, ignores_port=False):
    """A program that takes docker's place: it runs the small server as its image."""
    script = f"""#!{sys.executable}
import os, sys
args = sys.argv[1:]
if args[0] in ("info", "kill"):
    sys.exit({0 if works else 1})
published = args[args.index("-p") + 1].split(":")
told = [a.split("=")[1] for a in args if a.startswith("PORT=")]
if {ignores_port}:
    told = []
if published[2] != (told or ["8080"])[0]:
    sys.exit("it listens on another port than the one published")
command = {[str(word) for word in SMALL]!r} + ["--port", published[1]]
os.execv(command[0], command + {["--fault", fault] if fault else []!r})
"""
    folder.mkdir(exist_ok=True)
    (folder / "docker").write_text(script)
    (folder / "docker").chmod(0o755)
    return {"PATH": str(folder)}


def test_an_image_is_run_with_the_engine_that_works(tmp_path):
    report, bad = validate("agent:1", *ALL, *BRIEF, env=engine(tmp_path / "bin"))
    assert bad == {}
    assert {verdicts(report)[c] for c in ("BOOT-03", "AUTH-08", "SIDE-02")} == {"pass"}


def test_an_image_that_ignores_the_port_it_is_told_breaks_that_check(tmp_path):
    env = engine(tmp_path / "bin", ignores_port=True)
    report, bad = validate("agent:1", *ALL, *BRIEF, "--skip", "SIDE-02,AUTH-08", env=env)
    assert set(bad) == {"BOOT-03"}, bad


def test_without_a_container_engine_an_image_is_refused(tmp_path):
    told = run("agent:1", env={"PATH": str(tmp_path)})
    assert told.returncode == 3
    assert "docker is not installed, podman is not installed" in told.stderr
    told = run("agent:1", env=engine(tmp_path / "bin", works=False))
    assert told.returncode == 3 and "docker is installed and does not work here" in told.stderr


# --- servers of others -----------------------------------------------------------------------------


# Started once: Python's imports take long.
ONE_START = ["--skip", "AUTH-08,SIDE-02"]


def others(*command, more=()):
    return validate("--boot-timeout", "60s", *more, "--", *command, "{port}")


def failed(bad):
    return {check for check, (verdict, _) in bad.items() if verdict == "fail"}


def test_a_fastapi_server_fails_nothing_that_is_not_strict():
    strict = {"INVK-07", "ERRS-05", "RSME-04", "VERS-01", "VERS-02", "VERS-03"}
    report, bad = others(sys.executable, RUNTIMES / "fastapi_server.py", more=["--strict", *ONE_START])
    assert failed(bad) == strict
    assert {c["id"] for c in report["checks"] if c["id"] in strict and c["level"] == "strict"} == strict
    assert {"ERRS-01", "ERRS-02", "ERRS-04", "OAPI-02"} <= set(bad)  # what FastAPI does, tolerated


def test_a_node_server_keeps_the_whole_contract():
    report, bad = others(shutil.which("node"), RUNTIMES / "node_server.js", more=["--strict"])
    # Node joins two Authorization fields into the first of them.
    assert set(bad) == {"AUTH-09"} and bad["AUTH-09"][0] == "warn"


# What upstream's own templates break; agentbreeder.md 2.4. They are run as the package has them.
TEMPLATES = {
    "custom_server": {"ERRS-03", "STRM-01"},
    "crewai_server": {"INVK-01", "ERRS-03"},
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_upstreams_templates_break_what_is_known_of_them(name):
    more = ["--input", '{"topic": "ink"}'] if name == "crewai_server" else []
    report, bad = others(sys.executable, RUNTIMES / "template.py", name, more=[*ONE_START, *more])
    assert failed(bad) == TEMPLATES[name]


# --- reports ------------------------------------------------------------------------------------------


def rows_of(profile):
    return re.findall(r"^([A-Z]+-\d+) ", run("--list", "--profile", profile).stdout, re.M)


def report_of(format, *more, fault="STRM-07"):
    with wrong_runtime.Server(0, wrong_runtime.Agent(TOKEN), fault) as server:
        return run(server.url, "--token", TOKEN, "--format", format, *more)


def test_the_text_report_says_what_was_expected_and_seen_and_what_to_change():
    told = report_of("text", "--only", "STRM")
    assert told.returncode == 1
    assert re.search(r"^pass  STRM-01   POST /stream gives 200", told.stdout, re.M)
    [shown] = re.findall(r"^fail  STRM-07.*?(?=^\w)", told.stdout, re.M | re.S)
    for part in ("expected the header Cache-Control: no-cache", "POST /stream", "HTTP/1.1 200", "data: [DONE]", "Runtime Contract v1, 4.3", "fix"):
        assert part in shown
    assert "1 failed" in told.stdout.splitlines()[-1]


def test_the_junit_report_is_xml_that_ci_systems_read():
    root = xml.etree.ElementTree.fromstring(report_of("junit").stdout)
    assert root.tag == "testsuite" and root.get("failures") == "1"
    assert len(root.findall("testcase")) == int(root.get("tests")) == len(rows_of("runtime-v1"))
    [case] = [case for case in root if case.find("failure") is not None]
    assert case.get("name").startswith("STRM-07 ") and case.get("classname") == "runtime-v1"


def test_the_junit_report_of_hostile_text_is_still_xml():
    told = report_of("junit", "--strict", fault="leaks")
    assert xml.etree.ElementTree.fromstring(told.stdout).get("failures") != "0"


def test_the_tap_report_has_a_plan_and_a_line_for_each_check():
    lines = report_of("tap").stdout.splitlines()
    assert lines[0] == "TAP version 13" and lines[-1] == f"1..{len(rows_of('runtime-v1'))}"
    numbers = [int(n) for n in re.findall(r"^(?:not )?ok (\d+) - ", "\n".join(lines), re.M)]
    assert numbers == list(range(1, len(numbers) + 1)) and f"1..{len(numbers)}" == lines[-1]
    assert any(line.startswith("not ok") and "STRM-07" in line and "TODO" not in line for line in lines)


def test_only_and_skip_take_ids_and_groups():
    told = report_of("json", "--only", "STRM,HLTH-01", "--skip", "STRM-07,STRM-1")
    checks = [c["id"] for c in json.loads(told.stdout)["checks"]] if told.returncode != 2 else None
    assert checks is None and "there is no check 'STRM-1'" in told.stderr
    told = report_of("json", "--only", "STRM,HLTH-01", "--skip", "STRM-07")
    checks = {c["id"] for c in json.loads(told.stdout)["checks"]}
    assert told.returncode == 0 and "HLTH-01" in checks and "STRM-01" in checks and "STRM-07" not in checks


def test_explain_says_all_about_a_check():
    told = run("--explain", "strm-03")
    assert told.returncode == 0
    for part in ("STRM-03", "MUST", "[DONE]", "Runtime Contract v1, 4.3", "fix"):
        assert part in told.stdout
    assert run("--explain", "STRM-99").returncode == 2


WRONG_USAGE = {
    "no target": [],
    "two targets": ["http://a", "http://b"],
    "a target and a command": ["http://a", "--", "b"],
    "no profile": ["http://a", "--profile", "runtime-v2"],
    "no version": ["http://a", "--version", "2"],
    "no format": ["http://a", "--format", "yaml"],
    "no flag": ["http://a", "--stritc"],
    "no time": ["http://a", "--timeout", "0"],
    "no pair": ["http://a", "--env", "NAME"],
    "no port": ["agent:1", "--port", "70000"],
    "no URL": ["ftp://a"],
    "two inputs": ["http://a", "--input", "a", "--input-file", "b"],
    "no file": ["http://a", "--input-file", "/nowhere"],
}


@pytest.mark.parametrize("case", WRONG_USAGE)
def test_wrong_usage_is_exit_code_2_and_says_why(case):
    told = run(*WRONG_USAGE[case])
    assert told.returncode == 2 and told.stderr.startswith("weir: error: ")


def test_the_command_has_upstreams_name_too():
    with wrong_runtime.Server(0, wrong_runtime.Agent(TOKEN)) as server:
        command = [str(harness.BINARY), "validate-contract", server.url, "--version", "1", "--token", TOKEN, "--strict"]
        told = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert told.returncode == 0 and ", 0 failed" in told.stdout


def test_the_example_for_ci_writes_a_report_and_fails_with_the_server(tmp_path):
    example = harness.ROOT / "examples/validate/ci.sh"
    brief = tmp_path / "weir"  # of all checks these alone: no server is started once more
    brief.write_text(f'#!/bin/sh\nshift\nexec {harness.BINARY} validate --only HLTH,INVK "$@"\n')
    brief.chmod(0o755)
    for fault, code in ((None, 0), ("HLTH-04", 1)):
        command = [example, *SMALL, "--port", "{port}", *(["--fault", fault] if fault else [])]
        environment = harness.clean_environment({"WEIR": brief})
        told = subprocess.run(list(map(str, command)), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100)
        assert told.returncode == code, told.stdout + told.stderr
        suite = xml.etree.ElementTree.parse(tmp_path / "contract.xml").getroot()
        assert suite.get("failures") == str(code)
        assert ("fail  HLTH-04" in told.stdout) == bool(code)
