"""A daemon that `weir chat` or `weir mcp` starts for itself, and the commands that use it meanwhile."""
import contextlib
import json
import os
import signal
import subprocess
import time

import harness
import pytest
import test_tls
from ports import free_port

SCRIPT = harness.ROOT / "test/e2e/scripts/chat.yaml"
PATIENCE = 90
TOKEN = "s3cret"
FOUND = "manager heard: "
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.fixture(params=("a port of its own", "a port in the settings"))
def folder(tmp_path, request):
    """Settings, and a data folder that no daemon has."""
    port = 0 if request.param == "a port of its own" else free_port()
    (tmp_path / "weir.yaml").write_text(
        f"script: {SCRIPT}\nagents: [{{slug: manager, delegates: [eve]}}, {{slug: eve}}]\n"
        f"listen: {{http: 127.0.0.1:{port}}}\ndata: {tmp_path}/data\n")
    return tmp_path


started = []


@pytest.fixture(autouse=True)
def end_all():
    """What a test that failed has left."""
    yield
    while started:
        process = started.pop()
        process.kill()
        process.wait()


def begin(folder, *args, **env):
    """A command whose stdin stays open."""
    environment = harness.clean_environment({"AGENT_AUTH_TOKEN": TOKEN, "TMPDIR": folder, **env})
    command = [str(harness.BINARY), *map(str, args), "-c", str(folder / "weir.yaml")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=environment, cwd=folder)
    started.append(process)
    return process


def done(folder, *args, said="", **env):
    process = begin(folder, *args, **env)
    out, err = process.communicate(said, timeout=PATIENCE)
    return process.returncode, out, err


def say(process, text):
    process.stdin.write(text + "\n")
    process.stdin.flush()


def first_chat(folder):
    """A conversation that goes on, and whose daemon is there."""
    chat = begin(folder, "chat", "--session", "first")
    say(chat, "one")
    assert chat.stdout.readline() == FOUND + "one\n"
    return chat


def call(process, method, params, number):
    say(process, json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
    return json.loads(process.stdout.readline())


def first_mcp(folder):
    mcp = begin(folder, "mcp")
    assert call(mcp, "initialize", INITIALIZE, 1)["result"]["serverInfo"]["name"] == "weir"
    return mcp


def leave(process):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return out


def daemon_of(folder):
    """The process of the daemon, or None."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        return int((folder / "data/weir.lock").read_text())
    return None


def ends(pid):
    give_up = time.monotonic() + PATIENCE
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < give_up, "the daemon goes on without a command"
        time.sleep(0.02)


def nothing_is_left(folder):
    names = {path.name for path in folder.iterdir()}
    return not (folder / "data/clients.token").exists() and names == {"weir.yaml", "data"}


def test_every_command_finds_the_daemon_of_a_chat(folder):
    chat = first_chat(folder)
    pid = daemon_of(folder)
    assert (folder / "data/clients.token").stat().st_mode & 0o777 == 0o600
    code, out, err = done(folder, "chat", said="two\n")
    assert (code, out) == (0, FOUND + "two\n"), err
    code, out, err = done(folder, "run", "three", "--session", "first")
    assert (code, out) == (0, FOUND + "three\n"), err
    for words, shows in ((["runs"], "first"), (["sessions"], "first"), (["usage"], "calls"),
                         (["approvals"], ""), (["agents"], "eve"), (["status"], f"process  {pid}")):
        code, out, err = done(folder, *words)
        assert code == 0 and shows in out, (words, out, err)
    say(chat, "four")
    assert chat.stdout.readline() == FOUND + "four\n" and daemon_of(folder) == pid
    leave(chat)
    assert not os.path.exists(f"/proc/{pid}") and nothing_is_left(folder)


def test_a_second_mcp_client_is_served(folder):
    first, second = first_mcp(folder), first_mcp(folder)
    third, err = done(folder, "chat", said="hello\n")[1:]
    assert third == FOUND + "hello\n", err
    for number, client in enumerate((first, second)):
        answer = call(client, "tools/call", {"name": "manager", "arguments": {"message": "hi"}}, 7)
        assert answer["result"]["structuredContent"]["answer"] == FOUND + "hi", number
    pid = daemon_of(folder)
    leave(first)
    answer = call(second, "tools/call", {"name": "manager", "arguments": {"message": "on"}}, 8)
    assert answer["result"]["structuredContent"]["answer"] == FOUND + "on"
    leave(second)
    ends(pid)
    assert nothing_is_left(folder)


@pytest.mark.parametrize("end", ("leaves", "SIGTERM", "SIGKILL"))
def test_a_turn_goes_on_when_the_one_that_started_the_daemon_goes(folder, end):
    chat = first_chat(folder)
    pid = daemon_of(folder)
    other = begin(folder, "chat", "--json")
    say(other, "a moment")
    while json.loads(other.stdout.readline())["type"] != "text":
        pass
    if end == "leaves":
        chat.stdin.close()
        # Its caller waits until nobody has its stdout and stderr open.
        assert chat.stdout.read() == "" and chat.stderr.read() == ""
    else:
        chat.send_signal(getattr(signal, end))
    chat.wait(timeout=PATIENCE)
    for _ in range(3):  # the daemon looks for commands four times a second
        say(other, "a moment")
    out, err = other.communicate(timeout=PATIENCE)
    types = [json.loads(line)["type"] for line in out.splitlines()]
    assert (other.returncode, types.count("done"), "failed" in types) == (0, 4, False), (out, err)
    ends(pid)
    assert nothing_is_left(folder)


@pytest.mark.parametrize("words", (["chat"], ["mcp"]), ids=lambda words: words[0])
@pytest.mark.parametrize("number", ("SIGTERM", "SIGKILL"))
def test_a_command_that_is_killed_leaves_no_daemon_and_no_file(folder, words, number):
    process = first_chat(folder) if words == ["chat"] else first_mcp(folder)
    pid = daemon_of(folder)
    process.send_signal(getattr(signal, number))
    process.wait(timeout=PATIENCE)
    ends(pid)
    assert nothing_is_left(folder)


def test_commands_that_come_at_once_start_one_daemon(folder):
    chats = [begin(folder, "chat") for _ in range(4)]
    for chat in chats:
        say(chat, "hello")
    for chat in chats:
        assert chat.stdout.readline() == FOUND + "hello\n"
    for chat in chats:
        out, err = chat.communicate(timeout=PATIENCE)
        assert (chat.returncode, out, err) == (0, "", "")
    ends(daemon_of(folder))


def test_a_daemon_that_comes_after_a_killed_one_is_no_commands(folder):
    """The token of a dead daemon opens nothing, and does not hide the new one's."""
    chat = first_chat(folder)
    os.kill(daemon_of(folder), signal.SIGKILL)
    chat.kill()
    chat.wait(timeout=PATIENCE)
    chat.communicate()
    assert (folder / "data/clients.token").exists()
    code, out, err = done(folder, "run", "two", "--session", "first")
    assert (code, out) == (0, FOUND + "two\n"), err
    assert nothing_is_left(folder)


def test_alone_asks_nobody(folder):
    chat = first_chat(folder)
    code, out, err = done(folder, "chat", "--alone", said="two\n")
    assert (code, out) == (1, "") and "is using it" in err
    leave(chat)
    code, out, err = done(folder, "chat", "--alone", said="two\n")
    assert (code, out) == (0, FOUND + "two\n"), err


def test_settings_with_a_certificate_are_fine(folder):
    """Commands ask over loopback with a token: the daemon of their own has no TLS."""
    cert, key = test_tls.Authority(folder, "root").sign("server")
    with open(folder / "weir.yaml", "a", encoding="utf-8") as settings:
        settings.write(f"tls: {{cert: {cert}, key: {key}}}\n")
    chat = first_chat(folder)
    code, out, err = done(folder, "run", "two", "--session", "first")
    assert (code, out) == (0, FOUND + "two\n"), err
    answer = call(first := begin(folder, "mcp"), "initialize", INITIALIZE, 1)
    assert answer["result"]["serverInfo"]["name"] == "weir"
    leave(first)
    leave(chat)
    assert leave(first_mcp(folder)) == ""
