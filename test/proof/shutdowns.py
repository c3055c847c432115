#!/usr/bin/env python3
"""shutdowns: many daemons told to stop at random moments under load (row D4).

    test/proof/shutdowns.py [COUNT [SEED]]        1,000 without a number

Each round starts a daemon on the same data folder, lets a few clients run turns, sends SIGTERM
after a random while (some before it is ready), and wants: exit status 0 within the shutdown
deadline, and every turn that was acknowledged still in the store. The daemon itself checks the
store at each start; at the end the whole database is checked once more.
"""
import json
import os
import pathlib
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
BINARY = os.environ.get("WEIR_BINARY", str(BUILD / "weir"))
EVENT_DONE = 11  # src/wire/event.h
DEADLINE_S = 2  # limits.shutdown
SLACK_S = float(os.environ.get("WEIR_SLACK", 1.0))  # for a machine that is busy otherwise
CLIENTS = 6

SCRIPT = """\
script: 1
pace: {every: 2ms, chunk: 8}
agents:
  - slug: manager
tools:
  - name: think
    after: 20ms
    result: {thought: "yes"}
scenes:
  - match: never
    reply: [begin, {fault: {kind: stall}}]
  - match: tool
    replies:
      - - tool_call: {tool: think, args: {}}
      - - text: "It said {result.thought}."
  - reply: "You said: {input}. That is all there is to say about it, and it takes a while."
"""
MESSAGES = ["hello", "a tool please", "hello again", "this never ends"]


def ask(port, path, message, session):
    """One request by hand; whether it was acknowledged as done."""
    body = json.dumps({"input": message, "session_id": session}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    answer = b""
    with socket.create_connection(("127.0.0.1", port), 5) as peer:
        peer.settimeout(10)
        peer.sendall(head.encode() + body)
        while part := peer.recv(65536):
            answer += part
            if path == "/invoke" and b"\r\n\r\n" in answer and answer.endswith(b"}"):
                break
            if b"data: [DONE]\n\n" in answer:
                break
    if path == "/stream":
        return b"event: result" in answer
    return answer.startswith(b"HTTP/1.1 200")


class Clients:
    """Threads that ask as long as somebody answers."""

    def __init__(self, port, name, endless):
        self.done = 0
        self._endless = endless  # one of them has a turn that never ends by itself
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(port, f"{name}-{i}", i), daemon=True)
            for i in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, port, session, number):
        chance = random.Random(session)
        while not self._stop.is_set():
            path = chance.choice(["/invoke", "/stream"])
            message = MESSAGES[3] if self._endless and number == 0 else chance.choice(MESSAGES[:3])
            try:
                if ask(port, path, message, session):
                    with self._lock:
                        self.done += 1
            except OSError:
                return

    def join(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(15)
            assert not thread.is_alive(), "a client was left hanging"
        return self.done


def clean_environment():
    foreign = ("WEIR_", "CRAWBL_", "AGENT", "PORT", "NOTIFY")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    return {**kept, "WEIR_LIMIT_SHUTDOWN": f"{DEADLINE_S}s"}


def listens_for_signals(pid):
    """Whether main() has begun: before, the kernel alone decides."""
    sigterm = 1 << (signal.SIGTERM - 1)
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(("SigBlk:", "SigCgt:")) and int(line.split()[1], 16) & sigterm:
            return True
    return False


def one_round(folder, number, chance):
    """Start, load, stop; returns (seconds to exit, turns acknowledged)."""
    ports_file = folder / "ports.json"
    ports_file.unlink(missing_ok=True)
    command = [BINARY, "serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
    command += ["--script", str(folder / "play.yaml"), "--data", str(folder / "data")]
    command += ["--ports-file", str(ports_file)]
    with open(folder / "weir.log", "ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=clean_environment())
    early = chance.random() < 0.2
    clients = None
    if early:
        while not listens_for_signals(process.pid):
            pass
        time.sleep(chance.random() * 0.02)
    else:
        give_up = time.monotonic() + 30
        while not ports_file.exists():
            assert process.poll() is None and time.monotonic() < give_up, "it does not start"
            time.sleep(0.001)
        clients = Clients(json.loads(ports_file.read_text())["http"], f"round-{number}",
                          chance.random() < 0.15)
        time.sleep(chance.random() * 0.3)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    try:
        status = process.wait(DEADLINE_S + SLACK_S + 5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise AssertionError(f"round {number}: it hangs") from None
    took = time.monotonic() - began
    assert status == 0, f"round {number}: exit status {status}\n{tail(folder)}"
    assert took < DEADLINE_S + SLACK_S, f"round {number}: it took {took:.2f} s"
    return took, clients.join() if clients else 0


def tail(folder):
    return "\n".join((folder / "weir.log").read_text(errors="replace").splitlines()[-20:])


def check_store(folder, acknowledged):
    with sqlite3.connect(f"file:{folder}/data/weir.db?mode=ro", uri=True) as db:
        (verdict,) = db.execute("PRAGMA integrity_check").fetchone()
        assert verdict == "ok", verdict
        (done,) = db.execute("SELECT count(*) FROM run WHERE state = ?", (EVENT_DONE,)).fetchone()
        assert done >= acknowledged, f"{acknowledged} acknowledged, {done} in the store"


def prove(folder, count, seed):
    chance = random.Random(seed)
    (folder / "play.yaml").write_text(SCRIPT)
    acknowledged, slowest = 0, 0.0
    for number in range(count):
        took, done = one_round(folder, number, chance)
        acknowledged += done
        slowest = max(slowest, took)
        if sys.stdout.isatty() or (number + 1) % 100 == 0:
            print(f"shutdowns: {number + 1} of {count}, {acknowledged} turns, "
                  f"slowest exit {slowest:.2f} s", flush=True)
    check_store(folder, acknowledged)
    return acknowledged, slowest


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"shutdowns: {count} rounds, seed {seed}")
    with tempfile.TemporaryDirectory(prefix="weir-shutdowns-") as folder:
        acknowledged, slowest = prove(pathlib.Path(folder), count, seed)
    assert acknowledged > 0
    print(f"shutdowns: all {count} in time, slowest {slowest:.2f} s, "
          f"{acknowledged} acknowledged turns, store intact")


if __name__ == "__main__":
    main()
