"""The tool exec: commands that nobody vouches for, and what they try. Group X of the checks."""
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import harness
import pytest
import vendors
from vendors import call

MODEL = "gpt-5-mini"
SECRET = "canary-of-the-environment"


def why_not():
    """Why no command can be shut in on this machine, or None."""
    listed = subprocess.run([harness.BINARY, "tool", "list", "--json"], capture_output=True, text=True)
    (row,) = [t for t in json.loads(listed.stdout)["tools"] if t["name"] == "exec"]
    return row.get("off")


@pytest.fixture
def kind():
    return "openai"


@pytest.fixture
def folder():
    """Where commands may write. Their user may have to reach it, so not in the test's own folder."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="weir-exec-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def run(house, models, folder):
    """run(command): what the model reads of it. settings(...) before it starts the daemon."""
    if why := why_not():
        pytest.skip(f"exec is off: {why}")
    state = {"weir": None, "settings": {"timeout": "60s", "scope": "workspace"}}

    def daemon():
        if not state["weir"]:
            tools = {"exec": {"root": str(folder), "policy": "allow", **state["settings"]}}
            state["weir"] = house([{"tools": ["exec"]}], tools=tools, env={"SECRET_KEY": SECRET})
        return state["weir"]

    def run(command, whole=False, **whose):
        models.say(MODEL, [call("exec", {"command": command}, id="c1")], "Done.")
        told = vendors.invoke(daemon(), "go", **whose)
        assert told.status_code == 200, told.text
        read = [m["content"] for m in models.asked[-1].body["messages"] if m["role"] == "tool"][-1]
        return read if whole else json.loads(read)

    run.daemon, run.settings = daemon, state["settings"]
    return run


def files(folder):
    return folder / "workspaces/default/files"


def test_a_command_works_in_its_workspace_and_files_stay(run, folder):
    assert run("echo hello; echo oops >&2; exit 3") == {
        "exit_code": 3, "stdout": "hello\n", "stderr": "oops\n"}
    assert run("pwd; echo kept > note; mkdir -p a/b; ls")["stdout"] == "/workspace\na\nnote\n"
    assert (files(folder) / "note").read_text() == "kept\n"
    assert run("cat note; cat")["stdout"] == "kept\n"  # and nothing on standard input
    assert run("printf '\\377x'")["stdout"] == "\ufffdx"
    assert run("echo x > /tmp/a; cat /tmp/a")["exit_code"] == 0
    assert run("cat /tmp/a")["exit_code"] != 0  # /tmp was its own


def whose(user, session):
    return {"session_id": session, "config": {"configurable": {"user_id": user}}}


def test_each_conversation_has_its_folder_and_no_other(run, folder):
    """Also where two people call their session the same."""
    run.settings["scope"] = "session"
    ours = {("ann", "s-1"), ("ann", "s-2"), ("bob", "s-1"), ("anonymous", "s-1")}
    for user, session in ours:
        assert run(f"echo {user}-{session} > note; ls -a / /workspace | sort -u", **whose(user, session))["exit_code"] == 0
    for user, session in ours:
        read = run("cat note; ls -R /workspace; cat /workspace/../*/*/note ../note ../../*/*/note", **whose(user, session))
        assert read["stdout"] == f"{user}-{session}\n/workspace:\nnote\n", read
    users = folder / "workspaces/default/users"
    assert sorted(str(p.relative_to(users)) for p in users.rglob("note")) == sorted(
        f"{user}/sessions/{session}/files/note" for user, session in ours)
    assert run("cat note", **whose("../bob", "../../bob/sessions/s-1"))["exit_code"] != 0


def test_a_user_may_have_one_folder_and_one_quota_holds_for_all(run, folder):
    run.settings.update({"scope": "user", "disk": "8MiB"})
    run("echo kept > note", **whose("ann", "s-1"))
    assert run("cat note", **whose("ann", "s-2"))["stdout"] == "kept\n"
    assert run("cat note", **whose("bob", "s-2"))["exit_code"] != 0
    assert run("head -c 7M /dev/zero > most", **whose("ann", "s-1"))["exit_code"] == 0
    read = run("head -c 30M /dev/zero > more; ls -s --block-size=1K more", **whose("bob", "s-1"))
    assert 512 <= int(read["stdout"].split()[0]) <= 1024, read  # what was left, at any speed
    assert "filled the workspace" in run("exec head -c 30M /dev/zero > more", **whose("bob", "s-1"))["ended"]


REACHES = {
    "the environment": "env; cat /proc/*/environ | tr '\\0' '\\n'",
    "process 1 of the machine": "cat /proc/1/cmdline | tr '\\0' ' '; ls /proc/1/root /proc/1/cwd",
    "homes": "ls -a /root /home /var/lib /etc/shadow /etc/passwd",
    "our folders": "ls {store} {root}; cat {store}/* {root}/../*",
    "a link out": "ln -s {store} out; ls out/; cat out/*; ln -s /proc/1/root r; ls r/root",
    "a socket": "ls /run /var/run; python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('{socket}')\"",
}


def test_nothing_of_this_machine_is_reached(run, folder, tmp_path):
    weir = run.daemon()
    (folder / "other.txt").write_text("canary-of-another\n")
    (folder / "workspaces/other/files").mkdir(parents=True)
    (folder / "workspaces/other/files/s").write_text("canary-of-a-neighbour\n")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen()
        listener.setblocking(False)
        for what, command in REACHES.items():
            read = run(command.format(store=weir.data, root=folder, socket=folder / "socket"))
            said = read["stdout"] + read["stderr"]
            assert "canary" not in said and SECRET not in said, what
            assert "weir.db" not in said and str(harness.ROOT) not in said, what
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert sorted(p.name for p in files(folder).iterdir()) == ["out", "r"]


REFUSED = {
    "to write to the system": "echo x > /usr/x",
    "to write beside the workspace": "echo x > /x || echo x > /etc/x || echo x > /dev/x",
    "to make a namespace": "unshare -U true || unshare -r true || unshare -n true || unshare -m true",
    "to trace": "python3 -c \"import ctypes, sys; c = ctypes.CDLL(None, use_errno=True); sys.exit(c.ptrace(0, 0, 0, 0) == -1)\"",
    "to mount": "mount -t tmpfs none /tmp || mount --bind / /workspace",
    "to kill what runs it": "kill -9 $PPID; kill -9 1; test $(ls -d /proc/[0-9]* | wc -l) -gt 10",
    "the network": "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 2)\"",
    "a name server": "python3 -c \"import socket; socket.getaddrinfo('example.com', 80)\"",
    "a packet socket": "python3 -c \"import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\"",
    "another user": "setpriv --reuid 0 true || su -c true",
    "a device": "mknod d b 8 0 || cat /dev/sda || cat /dev/mem || cat /dev/vda",
    "kernel keys": "python3 -c \"import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(250, 0, -3, 0) == -1)\"",
}


def test_what_a_command_may_not_do_fails(run):
    port = run.daemon().ports["http"]
    for what, command in REFUSED.items():
        read = run(command.format(port=port))
        assert read["exit_code"] != 0, (what, read)


def descendants(pid):
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
    found, more = set(), {pid}
    while more:
        more = {p for p, parent in parents.items() if parent in more} - found
        found |= more
    return found


def alone(weir):
    give_up = time.monotonic() + 30
    while (left := descendants(weir.pid)) and time.monotonic() < give_up:
        time.sleep(0.02)
    return not left


GREEDY = {
    "a fork bomb": ("bash -c ':(){ :|:& };:; sleep 20'", "time limit"),
    "many threads": ("python3 -c \"import threading, time\nfor _ in range(1000): threading.Thread(target=time.sleep, args=(20,)).start()\"", None),
    "memory": ("python3 -c \"x = b'x' * (1 << 30)\"", None),
    "shared memory": ("head -c 1G /dev/zero > /dev/shm/x; head -c 1G /dev/zero > /tmp/x", None),
    "a spin": ("while :; do :; done", "time limit"),
    "output": ("yes", "output limit"),
    "complaints": ("yes >&2", "output limit"),
    "a file": ("head -c 1G /dev/zero > big", "size"),
    "the disk": ("i=0; while :; do i=$((i+1)); head -c 1M /dev/zero > f$i; done", "workspace"),
    "many files": ("mkdir m; cd m; i=0; while :; do i=$((i+1)); : > f$i; done", None),
    "no signal heard": ("trap '' TERM INT HUP; while :; do sleep 1; done", "time limit"),
    "a daemon": ("(setsid sh -c 'trap \"\" TERM; sleep 60' &) ; echo gone", None),
}


# A busy machine may need long to reach a size; only the clock's own cases have a short one.
@pytest.mark.parametrize("timeout", ["1s", "120s"])
def test_what_takes_too_much_is_ended_whole(run, folder, timeout):
    run.settings.update({"timeout": timeout, "memory": "64MiB", "processes": 32, "file": "4MiB",
                         "disk": "16MiB", "scratch": "4MiB"})
    weir = run.daemon()
    by_size = ("output limit", "size", "workspace")
    for what, (command, reason) in GREEDY.items():
        if (reason in by_size) != (timeout == "120s"):
            continue
        read = run(command)
        assert reason is None or reason in read.get("ended", ""), (what, read)
        assert read.get("exit_code", -1) != 0 or what == "a daemon", (what, read)
        assert len(json.dumps(read)) < 31000, what
        assert alone(weir), what
        run("rm -rf /workspace/*")
    used = sum(f.stat().st_size for f in files(folder).rglob("*") if f.is_file())
    assert used < 64 << 20


def test_processor_time_is_limited_and_the_network_may_be_allowed(run, folder):
    run.settings.update({"cpu": "1s", "timeout": "60s", "network": True})
    read = run("while :; do :; done")
    assert read["exit_code"] > 128 and "processor time" in read["ended"]
    weir = run.daemon()
    assert run(f"python3 -c \"import socket; socket.create_connection(('127.0.0.1', {weir.ports['http']}), 5)\"")["exit_code"] == 0
    weir.said("tools.exec.network lets a command call this program's own listeners")
    shutil.rmtree(folder / "workspaces")
    (folder / "workspaces").write_text("a file where a folder should be")
    assert "the folder of the workspace cannot be made" in run("true", whole=True)


def test_a_caller_who_leaves_ends_the_command(run, models, folder):
    weir = run.daemon()
    models.say(MODEL, [call("exec", {"command": "touch begun; sleep 60"}, id="c1")])
    leaving = http.client.HTTPConnection("127.0.0.1", weir.ports["http"])
    leaving.request("POST", "/invoke", json.dumps({"input": "go"}), {"content-type": "application/json"})
    give_up = time.monotonic() + 30
    while not (files(folder) / "begun").exists():
        assert time.monotonic() < give_up, "the command does not begin"
        time.sleep(0.02)
    leaving.close()
    assert alone(weir)


def test_a_full_workspace_can_be_emptied_and_not_filled_more(run, folder):
    run.settings.update({"disk": "8MiB", "file": "4MiB"})
    run("true")
    for n in range(4):
        (files(folder) / f"old{n}").write_bytes(b"x" * (4 << 20))
        os.chown(files(folder) / f"old{n}", files(folder).stat().st_uid, files(folder).stat().st_gid)
    assert "workspace" in run("head -c 4M /dev/zero > more; sleep 5")["ended"]
    assert run("rm -f old* more; sleep 0.5; ls")["exit_code"] == 0


def test_a_person_decides_unless_the_settings_say_otherwise(house, models, folder):
    if why := why_not():
        pytest.skip(f"exec is off: {why}")
    weir = house([{"tools": ["exec"]}], tools={"exec": {"root": str(folder)}})
    models.say(MODEL, [call("exec", {"command": "echo x > done"}, id="c1")], "Done.")
    told = vendors.invoke(weir, "go", session_id="s1").json()
    assert told["metadata"]["interrupted"] and not list(folder.rglob("done"))
    with weir.http() as http:
        answer = http.post("/resume", json={"thread_id": "s1", "human_input": "yes"})
    assert answer.json()["output"] == "Done."
    (done,) = folder.rglob("done")
    assert done == folder / "workspaces/default/users/anonymous/sessions/s1/files/done"


def test_a_killed_daemon_leaves_no_command(run):
    weir = run.daemon()
    assert alone(weir)
    with pytest.raises(Exception):
        import threading
        threading.Thread(target=lambda: kill_soon(weir), daemon=True).start()
        run("trap '' TERM; touch begun; sleep 40; touch late")
    give_up = time.monotonic() + 30
    while [p for p in pathlib.Path("/proc").iterdir() if p.name.isdigit() and says(p, "touch late")]:
        assert time.monotonic() < give_up, "the command outlives the daemon"
        time.sleep(0.02)


def kill_soon(weir):
    give_up = time.monotonic() + 30
    while not any(says(pathlib.Path(f"/proc/{p}"), "touch late") for p in descendants(weir.pid)):
        assert time.monotonic() < give_up
        time.sleep(0.02)
    weir.kill()


def says(process, text):
    try:
        return text in (process / "cmdline").read_text()
    except OSError:
        return False


def test_where_no_command_can_be_shut_in_exec_is_off_with_the_reason(folder, tmp_path):
    config = tmp_path / "weir.yaml"
    config.write_text(f"tools: {{exec: {{root: {folder}}}}}\nagents: [{{slug: a, provider: scripted, tools: [exec]}}]\n")
    without = ["unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', "sh"]
    if subprocess.run([*without, "true"]).returncode:
        without = []  # they are off already
    check = subprocess.run([*without, harness.BINARY, "config", "check", config], capture_output=True, text=True)
    assert check.returncode == 0, check.stderr
    assert "off: tool 'exec': " in check.stderr
    doctor = subprocess.run([*without, harness.BINARY, "doctor", "-c", config], capture_output=True, text=True)
    assert any("exec" in line and ("shut in" in line or "missing" in line)
               for line in doctor.stdout.splitlines()), doctor.stdout
    listed = subprocess.run([*without, harness.BINARY, "tool", "list"], capture_output=True, text=True)
    (line,) = [line for line in listed.stdout.splitlines() if line.startswith("exec ")]
    assert "Off: " in line
