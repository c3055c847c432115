#!/usr/bin/env python3
"""nimi_stops: SIGTERM while 250 streams of every mode of nimi.runtime.v1 are open.

    test/proof/nimi_stops.py [ROUNDS [EACH]]        100 and 250 without numbers

Every stream ends CANCELLED in plain words, none with an invented end, and the process exits with 0
within its shutdown deadline. An export that is read in time may also come to its real end. The modes
are the rows of test/e2e/nimi_streams.py.
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
                subscriptions, gone = machine.stop()
        finally:
            for weir in started:
                weir.kill()
    assert gone < DEADLINE_S, f"the process took {gone:.2f} s"
    return subscriptions, gone


def main(rounds=100, each=250):
    subscriptions = exit_ = 0
    for number in range(1, rounds + 1):
        ended, gone = one_round(each)
        subscriptions, exit_ = max(subscriptions, ended), max(exit_, gone)
        if sys.stdout.isatty() or number % 10 == 0 or number == rounds:
            print(
                f"stops    {number} rounds of {len(MODES)} modes, {each} streams each: all "
                f"cancelled, the slowest subscription after {subscriptions:.2f} s, the slowest exit "
                f"after {exit_:.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
