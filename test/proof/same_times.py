#!/usr/bin/env python3
"""same_times: does the time of an answer tell a run of somebody else from one that never was?

A tenant asks for the other tenant's runs and for ids that nobody has, in random order, on one
connection. Welch's t-test says whether the times differ, over all samples and over those below a
number of percentiles, since interrupts make the slow end noise. The largest |t| must stay below 5;
ids that nobody has, in two classes, show what the machine itself does (checks.md M4).

    test/proof/same_times.py [samples of each class, 4000]

Exit status 0 when it holds. Needs a quiet machine: three tries, since one interrupt too many is not
a leak but a leak shows every time.
"""
import math
import random
import socket
import sys
import tempfile
import time

import clients  # first: it finds the others
import harness

SAMPLES = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
PATHS = ("/weir/v1/runs/{}", "/weir/v1/runs/{}/events", "/weir/v1/approvals/{}-3")
CUTS = (1.0, 0.99, 0.95, 0.9, 0.75, 0.5, 0.25)
T_MAX = 5.0
TRIES = 3


def welch(a, b):
    if min(len(a), len(b)) < 100:
        return 0.0
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    variance = sum((x - mean_a) ** 2 for x in a) / (len(a) - 1) / len(a)
    variance += sum((x - mean_b) ** 2 for x in b) / (len(b) - 1) / len(b)
    return (mean_a - mean_b) / math.sqrt(variance) if variance else 0.0


def largest(a, b):
    together = sorted(a + b)
    found = 0.0
    for cut in CUTS:
        most = together[min(len(together) - 1, int(len(together) * cut))]
        t = welch([x for x in a if x <= most], [x for x in b if x <= most])
        found = max(found, abs(t))
    return found


class Caller:
    """One connection, and as little between the clock and the socket as Python allows."""

    def __init__(self, port, token):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = f" HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n"

    def time(self, path):
        request = f"GET {path}{self.head}".encode()
        began = time.perf_counter_ns()
        self.socket.sendall(request)
        answer = self.socket.recv(65536)
        took = time.perf_counter_ns() - began
        assert answer.startswith(b"HTTP/1.1 404 "), answer
        return took / 1000


def measure(caller, path, foreign, unknown):
    classes = ([], [], [])  # somebody else's, nobody's, nobody's again
    order = [0] * SAMPLES + [1] * SAMPLES + [2] * SAMPLES
    random.shuffle(order)
    for kind in order:
        run = random.choice(foreign) if kind == 0 else random.choice(unknown)
        classes[kind].append(caller.time(path.format(run)))
    t, control = largest(classes[0], classes[1]), largest(classes[1], classes[2])
    middle = [sorted(times)[SAMPLES // 2] for times in classes[:2]]
    print(f"  {path:28} |t| {t:5.2f}  control {control:5.2f}  medians {middle[0]:.1f} "
          f"{middle[1]:.1f} us", flush=True)
    return t < T_MAX


def runs_of(weir, count):
    """Runs of the workspace `default`, which an AGENT_AUTH_TOKEN opens."""
    with weir.http(headers={"authorization": "Bearer proof"}) as http:
        for number in range(count):
            body = {"input": "hello", "session_id": f"s-{number}"}
            http.post("/invoke", json=body).raise_for_status()
        found = []
        for number in range(count):
            listed = http.get("/weir/v1/runs", params={"session_id": f"s-{number}"}).json()
            found += [run["id"] for run in listed["runs"]]
    return found


def main():
    with tempfile.TemporaryDirectory() as folder:
        env = {"AGENT_AUTH_TOKEN": "proof", "WEIR_THREADS": "1", "WEIR_LIMIT_TOKEN_WINDOW": "1h"}
        weir = harness.Daemon(folder, script="test/e2e/scripts/quick.yaml", env=env).start()
        try:
            foreign = runs_of(weir, 50)
            unknown = [str(int(run) + (7 << 20)) for run in foreign]
            caller = Caller(weir.port("http"), harness.token("u-2", "ws-2"))
            for path in PATHS:
                if not any(measure(caller, path, foreign, unknown) for _ in range(TRIES)):
                    print("same_times: the time tells", file=sys.stderr)
                    return 1
        finally:
            weir.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
