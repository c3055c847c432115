#!/usr/bin/env python3
"""memory: a daemon that is asked to hold more than it may (checks.md L2, L5, B1, S8).

    test/proof/memory.py [PART [COUNT]]

With `limits.memory: 256MiB`, and again in an address space of 1 GiB:

    sessions  1,000 turns whose user says 4 MiB, each in a session of its own, eight at once
    readers   1,000 readers of a long reply who stop reading after the first bytes
    parked    10,000 turns that wait for a human

Whoever is refused is told so (503 with Retry-After; RESOURCE_EXHAUSTED), a small turn and
/health are answered all the while and afterwards, what was accepted can be had, and a minute
after the flood the process holds what it held before, within 10 %.
"""
import concurrent.futures
import json
import pathlib
import re
import socket
import sys
import tempfile
import threading
import time

import clients  # first: it finds the others
import harness
import httpx

MIB = 1024 * 1024
SCRIPT = "test/e2e/scripts/flood.yaml"
READER_KIB, QUEUE_KIB = 64, 128  # of a reader that stopped (S8): ours, the kernel's


def rss(daemon):
    status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


class Roofed(harness.Daemon):
    """A daemon under a ceiling."""

    def __init__(self, folder, limit, space):
        self.space = space
        super().__init__(
            folder,
            script=SCRIPT,
            config=f"limits: {{memory: {limit}MiB, connections: 4096}}\n",
            env={"CRAWBL_MCP_SIGNING_KEY": None},
        )

    def command(self):
        if not self.space:
            return super().command()
        return ["prlimit", f"--as={self.space * MIB}", *super().command()]


class Watch:
    """Asks /health and a small turn all the while; what failed is counted."""

    def __init__(self, daemon):
        self.daemon, self.peak, self.asked, self.failures = daemon, 0, 0, []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        with self.daemon.http() as http:
            while not self.over.wait(0.2):
                self.ask(http)

    def ask(self, http):
        self.asked += 1
        self.peak = max(self.peak, rss(self.daemon))
        try:
            assert http.get("/health").status_code == 200, "health"
            answer = http.post("/invoke", json={"input": "hi"})
            assert answer.status_code == 200 and answer.json()["output"] == "ok", answer.text
        except (AssertionError, httpx.HTTPError) as why:
            self.failures.append(repr(why)[:200])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.thread.join()


def sessions(daemon, count):
    """Big turns; some are refused with 503, and what was accepted is remembered."""
    text = "x" * (4 * MIB)
    told = {200: 0, 503: 0}

    def ask(number):
        with daemon.http() as http:
            answer = http.post("/invoke", json={"input": text, "session_id": f"s{number}"})
        assert answer.status_code in told, answer.text[:200]
        assert answer.status_code == 200 or "retry-after" in answer.headers, answer.headers
        told[answer.status_code] += 1

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(count)))
    return f"{told[200]} answered, {told[503]} refused", True


def readers(daemon, count):
    """Readers who stop; each is cut in the end, and none costs more than its allowance."""
    body = json.dumps({"input": "flood"}).encode()
    head = f"POST /stream HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    before, stopped = rss(daemon), []
    for _ in range(count):
        peer = socket.create_connection(("127.0.0.1", daemon.port("http")))
        peer.sendall(head.encode() + body)
        stopped.append(peer)
    first = [peer.recv(64) for peer in stopped]
    statuses = [int(piece.split()[1]) for piece in first]
    assert set(statuses) <= {200, 503}, set(statuses)
    each, seconds = settle(lambda: (rss(daemon) - before) / count, READER_KIB * 1024)
    queues = sent_queues(daemon)
    time.sleep(40 - seconds)  # limits.write_stall and some
    for peer in stopped:
        peer.close()
    result = (
        f"{statuses.count(200)} streams, {statuses.count(503)} refused, {each / 1024:.0f} KiB each "
        f"after {seconds:.0f} s, kernel's send queues at most {max(queues, default=0) / 1024:.0f} KiB"
    )
    return result, each <= READER_KIB * 1024 and max(queues, default=0) <= QUEUE_KIB * 1024


def settle(measure, enough, seconds=25):
    """The first measure that is small enough, or the last one, and when that was. The disk has
    to catch up first, and on a busy machine that takes seconds."""
    began = time.monotonic()
    while True:
        time.sleep(1)
        measured, passed = measure(), time.monotonic() - began
        if measured <= enough or passed > seconds:
            return measured, passed


def sent_queues(daemon):
    """Bytes in the send queue of each of the listener's connections."""
    port, queues = daemon.port("http"), []
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, _, queue, *_ = line.split()
        if int(local.split(":")[1], 16) == port:
            queues.append(int(queue.split(":")[0], 16))
    return queues


def parked(daemon, count):
    """Turns that wait; those that were accepted still wait afterwards."""
    told = {200: 0, 503: 0}

    def ask(numbers):
        with daemon.http() as http:
            for number in numbers:
                answer = http.post("/invoke", json={"input": "hold", "session_id": f"p{number}"})
                assert answer.status_code in told, answer.text[:200]
                told[answer.status_code] += 1

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, [range(at, count, 8) for at in range(8)]))
    return f"{told[200]} wait, {told[503]} refused", True


PARTS = {"sessions": (sessions, 1000), "readers": (readers, 1000), "parked": (parked, 10000)}


def prove(name, count, space):
    part, usual = PARTS[name]
    with tempfile.TemporaryDirectory() as folder:
        daemon = Roofed(folder, 256, space).start()
        try:
            with daemon.http() as http:
                for _ in range(50):
                    assert http.post("/invoke", json={"input": "hi"}).status_code == 200
            time.sleep(6)
            idle = rss(daemon)
            with Watch(daemon) as watch:
                result, good = part(daemon, count or usual)
            time.sleep(60)
            after = rss(daemon)
            print(
                f"{name}{' in 1 GiB' if space else ''}: {result}; idle {idle / MIB:.1f} MiB, peak "
                f"{watch.peak / MIB:.0f}, a minute later {after / MIB:.1f}; "
                f"{watch.asked} healthy turns, {len(watch.failures)} failed",
                flush=True,
            )
            if watch.failures:
                print("  " + "\n  ".join(watch.failures[:5]), flush=True)
            daemon.stop()
        finally:
            if daemon.process:
                print(daemon.log()[-2000:])
                daemon.kill()
    return good and not watch.failures and after <= 1.1 * idle


def main():
    names = sys.argv[1:2] or list(PARTS)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else None
    good = [prove(name, count, space) for name in names for space in (None, 1024)]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
