#!/usr/bin/env python3
"""nimi_stops: SIGTERM while 250 streams of every mode of nimi.runtime.v1 are open.

    test/proof/nimi_stops.py [ROUNDS [EACH]]        100 and 250 without numbers

Every stream ends CANCELLED in plain words, none with an invented end, and the process exits with 0
within its shutdown deadline. An export that is read in time may also come to its real end. A stream
whose own time was over before the signal ends with that, as its timestamp tells; those are counted,
and each mode has others in each round. A round in which a limit of this client was reached says
nothing, and is counted apart. The modes are the rows of test/e2e/nimi_streams.py.
"""
import pathlib
import sys
import tempfile

import clients  # noqa: F401  first: it finds the others
import harness
import nimi_client as nimi
from nimi_streams import MODES, PATIENCE, Machine, TooSlow

DEADLINE_S = 10  # limits.shutdown
nimi.PATIENCE = PATIENCE  # for opening, too


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
                over = machine.over
        finally:
            for weir in started:
                weir.kill()
    assert gone < DEADLINE_S, f"the process took {gone:.2f} s"
    for name, count in over.items():
        if count == each:
            raise TooSlow(f"all streams of {name} were over before the signal")
    return subscriptions, gone, machine.cpu_s, sum(over.values())


def main(rounds=100, each=250):
    subscriptions = exit_ = cpu = over = slow = 0
    for number in range(1, rounds + 1):
        try:
            ended, gone, used, before = one_round(each)
        except TooSlow as limit:
            slow += 1
            print(f"stops    round {number} says nothing: {limit}", flush=True)
            continue
        subscriptions, exit_ = max(subscriptions, ended), max(exit_, gone)
        cpu = max(cpu, used)
        over += before
        if sys.stdout.isatty() or number % 10 == 0 or number == rounds:
            print(
                f"stops    {number - slow} rounds of {len(MODES)} modes, {each} streams each: all "
                f"cancelled but {over} that were over before, the slowest subscription after "
                f"{subscriptions:.2f} s, the slowest exit after {exit_:.2f} s, {cpu:.2f} s of CPU at most; {slow} other rounds",
                flush=True,
            )
    sys.exit(slow > rounds // 10)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
