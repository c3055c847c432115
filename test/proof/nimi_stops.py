#!/usr/bin/env python3
"""nimi_stops: SIGTERM while 250 streams of every mode of nimi.runtime.v1 are open.

    test/proof/nimi_stops.py [ROUNDS [EACH]]        100 and 250 without numbers

Every stream ends CANCELLED in plain words, none with an invented end, and the process exits with 0
within its shutdown deadline. The modes are the rows of test/e2e/nimi_streams.py.
"""
import pathlib
import sys
import tempfile

import clients  # noqa: F401  first: it finds the others
import harness
from nimi_streams import MODES, Machine

DEADLINE_S = 10  # limits.shutdown


def one_round(each):
    with tempfile.TemporaryDirectory(prefix="weir-stops-") as folder:
        started = []

        def start(**options):
            started.append(harness.Daemon(pathlib.Path(folder), **options).start())
            return started[0]

        try:
            with Machine(start, each) as machine:
                machine.open_all()
                gone = machine.stop()
        finally:
            for weir in started:
                weir.kill()
    assert gone < DEADLINE_S, f"the process took {gone:.2f} s"
    return gone


def main(rounds=100, each=250):
    worst = 0
    for number in range(1, rounds + 1):
        worst = max(worst, one_round(each))
        if sys.stdout.isatty() or number % 10 == 0 or number == rounds:
            print(
                f"stops    {number} rounds of {len(MODES)} modes, {each} streams each: "
                f"all cancelled, the slowest exit after {worst:.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
