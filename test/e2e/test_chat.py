"""weir chat, and the commands beside it: run --session, runs, logs, agents, status and stop.

One daemon serves the module; a conversation without one has a data folder of its own."""
import fcntl
import http.server
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
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
EDITED = "\x1b[?2004l\r\n"  # a prompt was left


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
    assert ask(weir, "chat", "--session", "hers", "--user", "ada", said="hi\n").returncode == 0
    assert runs_of(weir, "hers") == []
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


@pytest.mark.parametrize("as_json", [True, False])
def test_a_line_that_is_too_long_is_no_silence(weir, as_json):
    """1,000 times larger: what came before it was said, and what became of it is said"""
    said = "hello\n" + "x" * (5 << 20) + "\nfollowing\n"
    answer = ask(weir, "chat", *(["--json"] if as_json else []), said=said)
    assert answer.returncode == 1 and "following" not in answer.stdout
    if as_json:
        last = json.loads(answer.stdout.splitlines()[-1])
        assert (last["type"], answer.stderr) == ("error", "") and "longer than 4 MiB" in last["message"]
    else:
        assert answer.stdout == "manager heard: hello\n"
        assert "weir: error: a line of the input is longer than 4 MiB" in answer.stderr


def test_mistakes_are_said_before_anything_is_begun(weir):
    done = ask(weir, "chat", "evee", said="x\n")
    assert done.returncode == 1 and "there are: manager, eve" in done.stderr and done.stdout == ""
    done = ask(weir, "chat", "evee", "--json", said="x\n")
    error = json.loads(done.stdout)
    assert done.returncode == 1 and (error["type"], error["code"]) == ("error", "NOT_FOUND")
    assert "there are: manager, eve" in error["message"] and error["message"] in done.stderr
    for wrong, why in ((["a", "b"], "one agent"), (["--session", "x", "--continue"], "two sessions"),
                       (["--color", "red"], "auto, on or off"), (["--alone", "--url", "http://x"], "--alone")):
        done = ask(weir, "chat", *wrong)
        assert done.returncode == 2 and why in done.stderr.splitlines()[0]
    for command_line, why in ((["runs", "--limit", "0"], "--limit"), (["runs", "--state", "x"], "'x'"),
                              (["stop", "--wait", "x"], "--wait"), (["agents", "x"], "'x'")):
        done = ask(weir, *command_line)
        assert done.returncode == 2 and why in done.stderr.splitlines()[0]
    assert ask(weir, "chat", "--thinking", "loud").returncode == 2
    long = "s" * 1025
    for words, code in ((["chat", "--session", long], 1), (["run", "x", "--session", long], 1), (["chat"], 0)):
        done = ask(weir, *words, said=f"/session {long}\n")
        assert done.returncode == code and "the name of the session is longer than 1024 bytes" in done.stderr
    done = command("chat", "--url", "http://127.0.0.1:1", said="x\n")
    assert done.returncode == 1 and "no server answers" in done.stderr
    done = command("chat", "--url", "ftp://x", said="x\n")
    assert done.returncode == 2 and "http://HOST:PORT" in done.stderr


# --- in a terminal --------------------------------------------------------------------


class Terminal:
    """A command that somebody types to."""

    def __init__(self, weir, *args, env=None, program=None):
        line = program or [str(harness.BINARY), *map(str, args), "--data", str(weir.data)]
        env = {"XDG_STATE_HOME": weir.folder / "state", **(env or {})}
        self.fd, inside = pty.openpty()
        self.before = termios.tcgetattr(self.fd)
        # Not pty.fork(): of this process with its threads, Python may never get as far as exec.
        # A sanitizer's core would take minutes.
        own = ["sh", "-c", 'ulimit -c 0; exec setsid --ctty -- "$@"', "sh"]
        # A shell that runs these tests in the background has them ignore SIGINT and SIGQUIT.
        self.pid = os.posix_spawnp("sh", own + line, environment(env), file_actions=[
            (os.POSIX_SPAWN_DUP2, inside, fd) for fd in range(3)],
            setsigdef=[signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
        os.close(inside)
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

    def enter(self, text):
        """A line at the prompt: what comes after it is no editing."""
        self.type(text + "\r")
        return self.until(EDITED)

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
    terminal.enter("hostile")
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
    terminal.enter("hostile")
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


# --- edited lines ---------------------------------------------------------------------


def edits(weir, tmp_path, session, *args, **env):
    terminal = Terminal(weir, "chat", "--session", session, *args,
                        env={"XDG_STATE_HOME": str(tmp_path / "state"), **env})
    terminal.until("> ")
    return terminal


def flags(terminal):
    """Whether the terminal echoes, gives whole lines, and turns CR into LF, as a shell needs it."""
    mode = termios.tcgetattr(terminal.fd)
    return [bool(mode[3] & termios.ECHO), bool(mode[3] & termios.ICANON), bool(mode[0] & termios.ICRNL)]


def edited(terminal):
    eventually(lambda: flags(terminal) == [False, False, False])


def eventually(condition):
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def test_a_line_is_edited_before_it_is_said(weir, tmp_path):
    terminal = edits(weir, tmp_path, "edited")
    for typed in ("wrld\x1b[D\x1b[D\x1b[Do\x01hello \x05!",  # left, Ctrl-A, Ctrl-E
                  "漢字\x7fx one two\x17\x0b",  # backspace over two columns, Ctrl-W, Ctrl-K
                  "first\\\rsecond\x1b[A\x05 line",  # two lines, up into the first one
                  "\x1b[200~pasted\rand \x1b[2J not sent\x1b[201~ yet"):
        terminal.enter(typed)
        terminal.until("\n> ")
    terminal.type("\x04")
    assert "\x1b[2J" not in terminal.until("to go on: ")
    assert terminal.ended() == 0
    assert [run["text"] for run in runs_of(weir, "edited")] == [
        "hello world!", "漢x one ", "first line\nsecond", "pasted\nand \x1b[2J not sent yet"]


def test_the_history_is_kept_for_its_user_alone(weir, tmp_path):
    terminal = edits(weir, tmp_path, "history")
    for typed in ("one", " not kept", "two\\\rlines"):
        terminal.enter(typed)
        terminal.until("\n> ")
    terminal.enter("draft\x1b[A\x1b[A\x1b[A\x1b[A")  # through both lines of "two", then "one"
    terminal.until("\n> ")
    terminal.type("\x04")
    assert terminal.ended() == 0
    file = tmp_path / "state/weir/chat_history"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [json.loads(line) for line in file.read_text().splitlines()] == ["one", "two\nlines", "one"]
    terminal = edits(weir, tmp_path, "history")
    terminal.enter("\x1b[A")
    terminal.until("\n> ")
    terminal.type("\x04")
    assert terminal.ended() == 0
    assert [run["text"] for run in runs_of(weir, "history")] == ["one", " not kept", "two\nlines", "one", "one"]


@pytest.mark.parametrize("args, env", [(["--json"], {}), ([], {"TERM": "dumb"})], ids=["json", "dumb"])
def test_what_is_not_edited_keeps_the_terminals_own_lines(weir, tmp_path, args, env):
    state = {"XDG_STATE_HOME": str(tmp_path), "TERM": "xterm", **env}
    terminal = Terminal(weir, "chat", "--session", "own", *args, env=state)
    terminal.type("hi\r")
    seen = terminal.until("done" if args else "heard: hi")
    assert "\x1b[?2004h" not in seen and flags(terminal) == [True, True, True]
    terminal.type("\x04")
    assert terminal.ended() == 0
    assert not (tmp_path / "weir").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(weir, tmp_path, number):
    terminal = edits(weir, tmp_path, "ended")
    edited(terminal)
    terminal.type("half a line")
    terminal.until("half a line")
    os.kill(terminal.pid, number)
    terminal.until("\x1b[?2004l")
    assert os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]) == -number
    assert flags(terminal) == [True, True, True]
    os.close(terminal.fd)


def test_ctrl_c_gives_the_terminal_back_too(weir, tmp_path):
    terminal = edits(weir, tmp_path, "ended")
    edited(terminal)
    terminal.type("half")
    terminal.until("> half")
    terminal.type("\x03")
    terminal.until("Ctrl-D leaves)\r\n> ")
    edited(terminal)
    terminal.type("\x03")
    terminal.until("to go on")
    assert os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]) == 130
    assert flags(terminal) == [True, True, True]
    os.close(terminal.fd)
    assert runs_of(weir, "ended") == []


def test_a_stop_gives_the_terminal_back_and_goes_on_afterwards(weir, tmp_path):
    """Ctrl-Z as a shell with jobs has it, and a SIGSTOP that no process sees; then another size."""
    terminal = edits(weir, tmp_path, "stopped")
    edited(terminal)
    terminal.type("half")
    terminal.until("half")
    for number in (signal.SIGTSTP, signal.SIGSTOP):
        os.kill(terminal.pid, number)
        if number == signal.SIGTSTP:
            # A session's leader has no shell to stop it for: the kernel lets it go on.
            terminal.until("\x1b[?2004l")
        else:
            assert os.WIFSTOPPED(os.waitpid(terminal.pid, os.WUNTRACED)[1])
            termios.tcsetattr(terminal.fd, termios.TCSANOW, terminal.before)  # as a shell does
            os.kill(terminal.pid, signal.SIGCONT)
        terminal.until("> half")
        edited(terminal)
    fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 4, 0, 0))
    terminal.until("> ha\r\r\nlf")
    terminal.enter(" a line")
    assert "heard: half a line" in terminal.until("\n> ")
    terminal.type("\x04")
    assert terminal.ended() == 0


def test_ctrl_z_stops_it_for_a_shell_and_fg_goes_on(weir):
    shell = Terminal(weir, program=["bash", "--norc", "-i"], env={"PS1": "$ "})
    shell.until("$ ")
    shell.type(f"{harness.BINARY} chat --session job --data {weir.data}\r")
    shell.until("/help, Ctrl-D leaves\r\n> ")
    edited(shell)
    shell.type("half")
    shell.until("> half")
    shell.type("\x1a")  # what is not read yet goes, as with Ctrl-C
    shell.until("Stopped")
    shell.type("echo back $((20 + 3)); stty -a | grep -o ' -\\?icanon '; fg\r")
    shell.until("back 23\r\n icanon")
    shell.until("> half")
    edited(shell)
    shell.enter(" done")
    shell.until("heard: half done")
    shell.until("\n> ")
    shell.type("\x04")
    shell.until("to go on")
    shell.type("exit\r")
    assert shell.ended() == 0


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


def test_stop_does_not_wait_for_a_daemon_that_hangs(tmp_path):
    """It takes connections and answers nothing: the signal is sent all the same."""
    weir = harness.Daemon(tmp_path, script=SCRIPT).start()
    os.kill(weir.process.pid, signal.SIGSTOP)
    try:
        done = ask(weir, "stop", "--wait", "1")
        assert done.returncode == 1 and "still stops" in done.stderr, done.stderr
    finally:
        os.kill(weir.process.pid, signal.SIGCONT)
    assert weir.wait() == 0  # it finds the signal


def test_the_variable_counts_wherever_the_flag_does(weir, folder):
    assert ask(weir, "chat", "--session", "var", said="one\nask\n").returncode == 1
    named = {"WEIR_URL": weir.url.removeprefix("http://")}  # the scheme may be left out
    elsewhere = ("--data", folder / "data")
    run = json.loads(command("runs", "--session", "var", "--state", "waiting", "--json", *elsewhere,
                             env=named).stdout)
    for args, seen in [
            (("chat", "--session", "var2"), "manager heard: two"),
            (("run", "two", "--session", "var3"), "manager heard: two"),
            (("run", "two"), "manager heard: two"),
            (("logs", run["id"]), "manager heard: one" if run["text"] == "one" else ""),
            (("agents",), "manager *"),
            (("approvals",), run["id"]),
            (("sessions",), "var  workspace"),
            (("usage", "--by", "agent"), "manager"),
            (("status",), weir.url)]:
        done = command(*args, *elsewhere, said="two\n", env=named)
        assert done.returncode == 0 and seen in done.stdout, (args, done)
        done = command(*args, *elsewhere, said="two\n", env={"WEIR_URL": "127.0.0.1:1"})
        assert done.returncode == (3 if args == ("status",) else 1), (args, done)
        assert "127.0.0.1:1" in done.stdout + done.stderr, (args, done)
    assert not (folder / "data").exists()
    assert len(runs_of(weir, "var3")) == 1


def test_stop_finds_the_process_of_an_address_and_no_other(start_weir):
    weir = start_weir(config=ASKS, env=TOKEN)
    for wrong, why in [("http://192.0.2.1:8080", "no port of this machine"), ("127.0.0.1:1", "127.0.0.1:1")]:
        done = command("stop", env={"WEIR_URL": wrong})
        assert done.returncode == 1 and why in done.stderr
    assert command("stop", "--url", weir.url, "--token", "wrong").returncode == 1
    assert weir.process.poll() is None
    done = command("stop", "--json", "--url", weir.url)
    assert json.loads(done.stdout) == {"stopped": True, "pid": weir.process.pid}
    assert done.returncode == 0 and weir.wait() == 0


def test_a_server_that_names_another_process_stops_nothing():
    """Its number is that of a process here, which does not listen there."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"pid": other.pid, "runs": {}}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with subprocess.Popen(["sleep", "600"]) as other, \
            http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = command("stop", "--url", f"127.0.0.1:{server.server_port}")
        server.shutdown()
        assert done.returncode == 1 and "runs elsewhere" in done.stderr, done
        assert other.poll() is None
        other.send_signal(signal.SIGKILL)


def test_the_daemon_of_another_folder_is_not_asked_by_mistake(tmp_path):
    """At the usual port, in a network of its own."""
    (tmp_path / "weir.yaml").write_text(ASKS)
    (tmp_path / "own.sh").write_text("""
        ip link set lo up || exit 77
        "$WEIR" serve -c weir.yaml --data "$PWD/a" --grpc off --nimi-grpc off --nimi-http off &
        until "$WEIR" status --url 127.0.0.1:8080 >&2; do kill -0 $! || exit 78; done
        "$WEIR" run hello --session s --data "$PWD/a" >&2 || exit 79
        for command in "runs --json" "agents" "status" "approvals"; do
            "$WEIR" $command --data "$PWD/b"; echo "$command: $?"
        done
        "$WEIR" runs --json | grep -c manager
        "$WEIR" chat -c weir.yaml --session s --data "$PWD/b" <<< "own"
        kill $!; wait $!
    """)
    done = subprocess.run(["unshare", "-rn", "bash", "own.sh"], cwd=tmp_path, capture_output=True, text=True,
                          env=environment({"WEIR": str(harness.BINARY)}), timeout=PATIENCE, check=False)
    if done.returncode in (1, 77) and not done.stdout:
        pytest.skip("no network namespace can be made here")
    assert done.stderr.count(f"no daemon has the data folder {tmp_path}/b; the one at http://127.0.0.1:8080") == 3
    shown = done.stdout.splitlines()
    assert [line for line in shown if ": " in line and line.split(": ")[1].isdigit()] == [
        "runs --json: 1", "agents: 1", "status: 3", "approvals: 1"], done
    assert shown[-2:] == ["1", "manager heard: own"] and (tmp_path / "b/weir.db").exists(), done


def test_a_process_that_only_has_the_number_is_never_stopped(folder):
    (folder / "data").mkdir()
    with subprocess.Popen(["sleep", "600"]) as other:
        (folder / "data/weir.lock").write_text(f"{other.pid}\n")
        done = alone(folder, "stop")
        assert done.returncode == 0 and "no daemon has the data folder" in done.stderr
        assert other.poll() is None
        other.send_signal(signal.SIGKILL)


# --- nobody reads ---------------------------------------------------------------------


def states(weir, session):
    return [run["state"] for run in runs_of(weir, session)]


def test_no_turn_begins_once_stdout_cannot_be_written(weir):
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = subprocess.run(
            [str(harness.BINARY), "chat", "--session", "full", "--data", str(weir.data)],
            input="one\ntwo\nthree\n", env=environment(), stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=PATIENCE, check=False)
    assert process.returncode == 1 and "stdout cannot be written" in process.stderr
    assert len(states(weir, "full")) == 1


def test_a_turn_whose_reader_has_gone_is_cancelled(weir):
    """Its pieces come for two minutes, so one of them meets the closed pipe."""
    process = subprocess.Popen(
        [str(harness.BINARY), "chat", "--session", "gone", "--data", str(weir.data), "--json"],
        env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    process.stdin.write("many pieces\nlinger\nnever\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["type"] == "turn"
    process.stdout.close()
    assert process.wait(timeout=PATIENCE) == 1
    process.stdin.close()
    eventually(lambda: states(weir, "gone") == ["cancelled"] or len(states(weir, "gone")) > 1)
    assert states(weir, "gone")[0] == "cancelled" and len(states(weir, "gone")) < 3


def test_an_export_that_was_not_written_is_no_success(weir):
    assert ask(weir, "chat", "--session", "exported", said="one\n").returncode == 0
    for words in (["sessions", "export", "exported"], ["runs"], ["agents"], ["status"], ["usage"], ["version"],
                  ["--help"], ["help", "--man"], ["config", "print"], ["run", "hello", "--session", "exported"]):
        where = [] if words[0] in ("version", "--help", "help") else ["--data", str(weir.data)]
        with open("/dev/full", "w", encoding="utf-8") as full:
            process = subprocess.run(
                [str(harness.BINARY), *words, *where], env=environment(), stdin=subprocess.DEVNULL, stdout=full,
                stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
        assert process.returncode == 1 and "stdout cannot be written" in process.stderr, (words, process.stderr)


def test_a_second_ctrl_c_at_a_question_leaves_it_open(weir):
    terminal = Terminal(weir, "chat", "--session", "unsure")
    terminal.until("> ")
    terminal.type("pay the bill\r")
    terminal.until("(yes or no)")
    terminal.until("with these > ")
    os.kill(terminal.pid, signal.SIGINT)
    terminal.until("Ctrl-C again")
    terminal.until("with these > ")
    os.kill(terminal.pid, signal.SIGINT)
    assert terminal.ended() == 130
    assert states(weir, "unsure") == ["waiting"]
