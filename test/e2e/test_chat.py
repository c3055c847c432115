"""weir chat, and the commands beside it: run --session, runs, logs, agents, status and stop.

One daemon serves the module; a conversation without one has a data folder of its own."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import harness
import pytest

SCRIPT = harness.ROOT / "test/e2e/scripts/chat.yaml"
ASKS = f"script: {SCRIPT}\nagents: [{{slug: manager, delegates: [eve], tools: {{pay: ask}}}}, {{slug: eve}}]\n"
PATIENCE = 90
TOKEN = {"AGENT_AUTH_TOKEN": "s3cret"}
BEARER = {"authorization": "Bearer s3cret"}
# What a terminal would act on: C0 but for line ends and tabs, DEL, C1, and what turns directions.
HOSTILE = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069]")
OURS = re.compile("\x1b\\[[0-9]*m")  # colours


@pytest.fixture(scope="module")
def weir(tmp_path_factory):
    daemon = harness.Daemon(tmp_path_factory.mktemp("chat"), config=ASKS, env=TOKEN)
    yield daemon.start()
    daemon.stop()
    assert not daemon.sanitizer_log()


@pytest.fixture
def folder(tmp_path):
    """A data folder without a daemon, and settings for one."""
    (tmp_path / "weir.yaml").write_text(ASKS)
    return tmp_path


def environment(extra=None):
    return harness.clean_environment({"TERM": "xterm", **TOKEN, **(extra or {})})


def command(*args, said="", env=None, **options):
    return subprocess.run(
        [str(harness.BINARY), *map(str, args)],
        input=said, env=environment(env), capture_output=True, text=True, timeout=PATIENCE,
        check=False, **options)


def ask(weir, *args, **options):
    return command(*args, "--data", weir.data, **options)


def alone(folder, *args, **options):
    where = ("-c", folder / "weir.yaml", "--data", folder / "data", "--http", "127.0.0.1:0")
    return command(*args, *where, **options)


def runs_of(weir, session):
    with weir.http(headers=BEARER) as http:
        return http.get("/weir/v1/runs", params={"session_id": session}).json()["runs"]


# --- over a pipe ----------------------------------------------------------------------


def test_lines_of_a_pipe_are_turns_of_one_session(weir):
    done = ask(weir, "chat", "--session", "pipe", said="one\n\ntwo")
    assert (done.returncode, done.stdout) == (0, "manager heard: one\nmanager heard: two\n")
    assert [run["text"] for run in runs_of(weir, "pipe")] == ["one", "two"]
    done = ask(weir, "chat", "eve", "--continue", said="three\n")
    assert done.stdout == "eve heard: three\n"
    assert [run["agent"] for run in runs_of(weir, "pipe")] == ["manager", "manager", "eve"]


def test_another_user_has_other_sessions(weir):
    assert ask(weir, "chat", "--session", "own", "--user", "ada", said="hi\n").returncode == 0
    assert runs_of(weir, "own") == []
    done = ask(weir, "chat", "--continue", "--user", "nobody", said="hi\n")
    assert done.returncode == 1 and "no session to go on with" in done.stderr


def test_nothing_that_is_said_reaches_the_terminal_as_it_came(weir):
    said = "hostile\npay\ny\nask\nmaybe\nbreak\n/agents\n"
    done = ask(weir, "chat", "--thinking", "shown", said=said)
    assert done.returncode == 1  # `break` has failed
    assert not HOSTILE.search(done.stdout), repr(done.stdout)
    assert not HOSTILE.search(done.stderr), repr(done.stderr)
    assert "a␛[2Jb\ufffd31mc\ufffdd␍e\tf\n␡␛]52;c;cm0=␇." in done.stdout
    assert "hm␛[8m\ufffd31m" in done.stderr and "the model ␛[31mbroke" in done.stderr
    for args in (["agents"], ["agents", "--json"], ["runs"], ["approvals"]):
        assert not HOSTILE.search(ask(weir, *args).stdout)
    done = ask(weir, "chat", "--json", said="hostile\n")
    assert not HOSTILE.search(done.stdout)
    texts = [e["text"] for e in map(json.loads, done.stdout.splitlines()) if e["type"] == "text"]
    assert "".join(texts) == "a\x1b[2Jb\u009b31mc\u202ed\re\tf\n\x7f\x1b]52;c;cm0=\x07."


def test_approvals_show_every_argument_and_are_answered(weir):
    said = "pay\nwhat\ny\npay\nn too much\npay\ne {\"eur\": 5}\npay\n{\"eur\": 5000}\nno\nask\nperhaps\n"
    done = ask(weir, "chat", said=said)
    assert done.stdout == "Done: 300\nDone: \nDone: 5\nDone: \nAnswered: perhaps\n", done.stderr
    assert done.returncode == 0
    assert '  pay {"eur":300,"note":"\\u001b[1A\\u001b[2Kpay 1 EUR\ufffd"}' in done.stderr
    assert "that is no decision" in done.stderr and "at most 1000" in done.stderr


def test_a_question_that_nobody_answers_waits_for_the_next_conversation(weir):
    done = ask(weir, "chat", "--session", "later", said="pay\n")
    assert done.returncode == 1 and "weir approvals approve" in done.stderr
    done = ask(weir, "chat", "--session", "later", said="y\nhello\n")
    assert done.stdout == "Done: 300\nmanager heard: hello\n" and done.returncode == 0


def test_a_program_reads_events_and_writes_lines(weir):
    said = '{"text":"pay"}\n{"decision":"edit","args":{"eur":7}}\nplain\n{"text":"break"}\n'
    done = ask(weir, "chat", "--json", "--session", "machine", said=said)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    turns = [event["run_id"] for event in events if event["type"] == "turn"]
    assert [run["id"] for run in runs_of(weir, "machine")] == turns and len(turns) == 3
    kinds = [event["type"] for event in events]
    assert kinds.count("done") == 2 and kinds.count("failed") == 1 and "approval" in kinds
    assert any(e.get("result", {}).get("paid") == "7" for e in events if e["type"] == "tool_result")
    assert done.returncode == 1 and done.stderr == ""


def test_mistakes_are_said_before_anything_is_begun(weir):
    done = ask(weir, "chat", "evee", said="x\n")
    assert done.returncode == 1 and "there are: manager, eve" in done.stderr
    for wrong in (["a", "b"], ["--session", "x", "--continue"], ["--color", "red"]):
        assert ask(weir, "chat", *wrong).returncode == 2
    assert ask(weir, "chat", "--thinking", "loud").returncode == 1
    done = command("chat", "--url", "http://127.0.0.1:1", said="x\n")
    assert done.returncode == 1 and "no server answers" in done.stderr
    done = command("chat", "--url", "ftp://x", said="x\n")
    assert done.returncode == 1 and "http://HOST:PORT" in done.stderr


# --- in a terminal --------------------------------------------------------------------


class Terminal:
    """A command that somebody types to."""

    def __init__(self, weir, *args, env=None):
        line = [str(harness.BINARY), *map(str, args), "--data", str(weir.data)]
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(line[0], line, environment(env))
        self.shown = ""

    def until(self, words):
        """All that came up to `words`."""
        give_up = time.monotonic() + PATIENCE
        while words not in self.shown:
            assert time.monotonic() < give_up, repr(self.shown)
            if select.select([self.fd], [], [], 1)[0]:
                self.shown += os.read(self.fd, 65536).decode()
        before, _, self.shown = self.shown.partition(words)
        return before

    def type(self, text):
        os.write(self.fd, text.encode())

    def ended(self):
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def test_ctrl_c_cancels_a_turn_and_ctrl_d_leaves(weir):
    terminal = Terminal(weir, "chat", "--session", "typed")
    assert weir.url in terminal.until("\n> ")
    terminal.type("linger\r")
    terminal.until("begin")
    terminal.type("\x03")
    assert "cancelled" in terminal.until("\n> ")
    terminal.type("hostile\r")
    seen = terminal.until("\n> ")
    assert "\x1b[2m" in seen
    assert not HOSTILE.search(OURS.sub("", seen + "\n").replace("\r\n", "\n"))
    terminal.type("\x03")
    terminal.until("Ctrl-D leaves)\r\n> ")
    terminal.type("\x04")
    terminal.until("weir chat --session typed")
    assert terminal.ended() == 0
    assert [run["state"] for run in runs_of(weir, "typed")] == ["cancelled", "done"]


def test_a_second_ctrl_c_leaves_and_colours_can_be_off(weir):
    terminal = Terminal(weir, "chat", env={"NO_COLOR": "1"})
    terminal.until("> ")
    terminal.type("hostile\r")
    seen = terminal.until("\n> ")
    assert "\x1b" not in seen
    terminal.type("\x03")
    terminal.until("leaves)\r\n> ")
    terminal.type("\x03")
    assert terminal.ended() == 130


def test_orders_change_the_agent_and_the_session(weir):
    terminal = Terminal(weir, "chat")
    for typed, seen in [("/help", "/quit"), ("/agent eve", "agent eve"), ("x", "eve heard: x"),
                        ("/session here", "session here"), ("//y", "eve heard: /y"),
                        ("/nonsense", "there is no /nonsense"), ("/new", "session chat-")]:
        terminal.until("> ")
        terminal.type(typed + "\r")
        terminal.until(seen)
    terminal.type("/quit\r")
    assert terminal.ended() == 0
    assert [run["text"] for run in runs_of(weir, "here")] == ["/y"]


# --- by itself ------------------------------------------------------------------------


def test_without_a_daemon_the_store_is_the_same(folder):
    first = alone(folder, "chat", "--session", "s", said="one\nask\n")
    assert first.stdout == "manager heard: one\n" and first.returncode == 1, first.stderr
    second = alone(folder, "chat", "--continue", said="fine\ntwo\n")
    assert second.stdout == "Answered: fine\nmanager heard: two\n" and second.returncode == 0
    once = alone(folder, "run", "three", "--session", "s", "--agent", "eve", said="")
    assert (once.returncode, once.stdout) == (0, "eve heard: three\n")
    once = alone(folder, "run", "break", "--session", "s", said="")
    assert once.returncode == 1 and once.stdout == "Part\n"


def test_a_single_turn_may_use_memories(folder):
    (folder / "weir.yaml").write_text(
        f"script: {SCRIPT}\nagents: [{{slug: manager, tools: [memory_search]}}]\n")
    done = alone(folder, "run", "hello")
    assert (done.returncode, done.stdout) == (0, "manager heard: hello\n"), done.stderr


# --- runs, logs, agents ---------------------------------------------------------------


def test_runs_are_listed_newest_first_and_filtered(weir):
    assert ask(weir, "run", "break", "--session", "listed").returncode == 1
    assert ask(weir, "run", "fine", "--session", "listed").returncode == 0
    rows = ask(weir, "runs", "--session", "listed", "--json").stdout.splitlines()
    assert [json.loads(row)["text"] for row in rows] == ["fine", "break"]
    rows = ask(weir, "runs", "--state", "failed", "--limit", "1", "--json").stdout.splitlines()
    assert [json.loads(row)["text"] for row in rows] == ["break"]
    shown = ask(weir, "runs", "--agent", "manager", "--limit", "2").stdout
    assert "  done  manager  session listed" in shown and "    fine" in shown
    assert ask(weir, "runs", "--limit", "x").returncode == 2


def test_logs_show_a_run_and_follow_it(weir):
    assert ask(weir, "run", "break", "--session", "logged").returncode == 1
    run = runs_of(weir, "logged")[0]["id"]
    done = ask(weir, "logs", run)
    assert done.returncode == 1 and done.stdout == "Part\n"  # the run has failed
    assert "> break" in done.stderr and "broke" in done.stderr
    events = [json.loads(line) for line in ask(weir, "logs", run, "--json").stdout.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    done = ask(weir, "logs", "7")
    assert done.returncode == 1 and "no such run" in done.stderr


def test_the_daemon_says_who_there_is(weir):
    agents = json.loads(ask(weir, "agents", "--json").stdout)["agents"]
    assert [(agent["name"], agent["default"]) for agent in agents] == [("manager", True), ("eve", False)]
    assert "manager *" in ask(weir, "agents").stdout


# --- status and stop ------------------------------------------------------------------


def test_status_says_whether_a_daemon_serves(weir, folder):
    done = ask(weir, "status", "--json")
    status = json.loads(done.stdout)
    assert done.returncode == 0 and status["serving"] and status["pid"] == weir.process.pid
    assert status["ports"] == weir.ports and status["daemon"]["state"] == "serving"
    assert "serves" in ask(weir, "status").stdout
    done = alone(folder, "status", "--json")
    assert done.returncode == 3 and json.loads(done.stdout)["running"] is False
    done = command("status", "--url", weir.url, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["health"]["status"] == "healthy"


def test_logs_go_on_after_a_restart_and_stop_waits_for_turns(start_weir):
    weir = start_weir(config=ASKS, env=TOKEN)
    assert ask(weir, "chat", "--session", "s", said="ask\n").returncode == 1
    waiting = json.loads(ask(weir, "runs", "--json").stdout)
    assert waiting["state"] == "waiting"
    line = [str(harness.BINARY), "logs", waiting["id"], "-f", "--json", "--data", str(weir.data)]
    line += ["--url", weir.url]
    with subprocess.Popen(line, env=environment(), stdout=subprocess.PIPE, text=True) as logs:
        while json.loads(logs.stdout.readline())["type"] != "approval":
            pass
        weir._args = ["--http", f"127.0.0.1:{weir.port('http')}"]
        weir.restart()
        assert ask(weir, "chat", "--session", "s", said="fine\n").stdout == "Answered: fine\n"
        rest = [json.loads(text) for text in logs.stdout]
    assert [event["seq"] for event in rest][0] > 1 and rest[-1]["type"] == "done"
    assert logs.returncode == 0
    line = [str(harness.BINARY), "chat", "--data", str(weir.data)]
    with subprocess.Popen(line, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as talk:
        talk.stdin.write("short while\n")
        talk.stdin.flush()
        assert talk.stdout.read(5) == "begin"
        stopped = ask(weir, "stop")
        talk.stdin.close()
        assert talk.stdout.read() == "end\n"
    assert stopped.returncode == 0 and stopped.stdout == "stopped\n"
    assert f"stopping process {weir.process.pid}, with 1 run under way" in stopped.stderr
    assert weir.wait() == 0
    assert ask(weir, "stop").returncode == 0
    assert ask(weir, "status").returncode == 3


def test_a_process_that_only_has_the_number_is_never_stopped(folder):
    (folder / "data").mkdir()
    with subprocess.Popen(["sleep", "600"]) as other:
        (folder / "data/weir.lock").write_text(f"{other.pid}\n")
        done = alone(folder, "stop")
        assert done.returncode == 0 and "no daemon has the data folder" in done.stderr
        assert other.poll() is None
        other.send_signal(signal.SIGKILL)
