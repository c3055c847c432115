"""A log that nobody reads: lines are lost and counted, and nothing waits for it."""
import contextlib
import fcntl
import os
import re
import signal
import threading
import time

import harness
import pytest

PIPE_BYTES = 4096
PATIENCE = 90
RIGHT = "Bearer right"
DROPPED = re.compile(r"(\d+) lines of the log were dropped")


@pytest.fixture
def pipe():
    """A pipe that is full already: (reader, writer)."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    os.write(writer, b"\n" * PIPE_BYTES)
    yield reader, writer
    for end in (reader, writer):
        with contextlib.suppress(OSError):
            os.close(end)


def read_all(reader, seen):
    while piece := os.read(reader, 65536):
        seen.append(piece)


def start(start_weir, pipe, **options):
    """All that it says goes into the pipe; it gets ready all the same."""
    weir = start_weir(output=pipe[1], env={"AGENT_AUTH_TOKEN": "right"}, **options)
    os.close(pipe[1])
    return weir


def refuse_some(weir, count=50):
    with weir.http(headers={"authorization": "Bearer wrong"}) as http:
        for _ in range(count):
            assert http.post("/invoke", json={"input": "x"}).status_code == 403


def test_nobody_waits_for_the_reader_of_the_log_and_what_was_lost_is_counted(start_weir, pipe):
    """L4: each token that is used is a line, until neither pipe nor ring takes another"""
    weir = start(start_weir, pipe, args=["-v"])
    refuse_some(weir)
    calls = 2500
    with weir.http(headers={"authorization": RIGHT}) as http:
        for _ in range(calls):
            assert http.post("/resume", json={}).status_code in (400, 404, 422)
        assert http.get("/health").json()["status"] == "healthy"
        assert http.post("/invoke", json={"input": "x"}).status_code == 200
    seen = []
    reading = threading.Thread(target=read_all, args=(pipe[0], seen))
    reading.start()
    give_up = time.monotonic() + PATIENCE
    while not DROPPED.search(b"".join(seen).decode()):  # once there is room again
        assert time.monotonic() < give_up, "nothing is said of the lines that were lost"
        time.sleep(0.01)
    weir.stop()
    reading.join()
    log = b"".join(seen).decode()
    dropped = sum(map(int, DROPPED.findall(log)))
    used = log.count("used by 127.0.0.1:")
    assert dropped > 0 and used > 0, log[-2000:]
    assert used + dropped >= calls + 1


@pytest.mark.parametrize("how", ["serve", "demo"])
def test_a_signal_is_obeyed_with_every_output_blocked(start_weir, pipe, monkeypatch, how):
    if how == "demo":
        command = harness.Daemon.command

        def without_a_word(self):
            return [word for word in command(self) if word != "serve"]

        monkeypatch.setattr(harness.Daemon, "command", without_a_word)
    weir = start(start_weir, pipe)
    refuse_some(weir)
    weir.signal(signal.SIGTERM)
    assert weir.wait() == 0
