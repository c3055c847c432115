#!/usr/bin/env python3
"""nimi_fair: how long a stream takes alone, and beside four apps with 30 jobs each.

    test/proof/nimi_fair.py [ROUNDS]        1,000 without a number

Prints both as p50 and p99 in milliseconds, before and after a restart with the backlog. Status 1
if a p99 is more than twice the one alone (row M5 of the checks).
"""
import pathlib
import sys
import tempfile
import time

import clients  # noqa: F401  first: it finds the others
import harness
import nimi_client as nimi
import test_nimi_fair as fair


def measure(client, rounds):
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        assert client.stream("hello").last.HasField("completed")
        took.append(1000 * (time.perf_counter() - began))
    took.sort()
    return took[len(took) // 2], took[int(len(took) * 0.99)]


def main(rounds=1000):
    with tempfile.TemporaryDirectory() as folder:
        weir = harness.Daemon(pathlib.Path(folder), script="test/e2e/scripts/nimi.yaml").start()
        try:
            client = nimi.Client(weir)
            measure(client, rounds)
            results = [("alone", measure(client, rounds))]
            for app in fair.BUSY * 30:
                fair.submit(client, app)
            fair.until_used(client, 6)
            results.append(("beside 120 jobs", measure(client, rounds)))
            weir.kill()
            weir.start()
            client = nimi.Client(weir)
            fair.until_used(client, 6)
            measure(client, rounds)
            results.append(("after a restart", measure(client, rounds)))
        finally:
            weir.kill()
    for what, (p50, p99) in results:
        print(f"{what:16} p50 {p50:7.2f} ms   p99 {p99:7.2f} ms")
    worst = max(p99 for _, (_, p99) in results[1:])
    sys.exit(worst > 2 * results[0][1][1])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
