#!/usr/bin/env python3
"""nimi_recall: what a search of a large memory bank costs those who use the store beside it.

    test/proof/nimi_recall.py [RECORDS [SEARCHES]]     100,000 and 20 without numbers

Fills a bank in which every record has the words that are looked for. Then one caller retains
record after record: alone, and beside a caller who searches. Says how long the slowest retain and
the slowest search took. WEIR_BINARY chooses the daemon.
"""
import pathlib
import sys
import tempfile
import threading
import time

import clients  # noqa: F401  first: it finds the others
import harness
from nimi.runtime.v1 import memory_pb2 as pb
from test_nimi_memory import Memory, episode, place

AT_ONCE = 100
SECONDS = 5  # of retaining alone


def retain(memory, records):
    memory.ask(
        "Retain", pb.RetainRequest(context=memory.context, bank=place(), records=records)
    )


def retains_until(memory, over):
    """The seconds that each took."""
    took = []
    while not over():
        began = time.monotonic()
        retain(memory, [episode("one more of them")])
        took.append(time.monotonic() - began)
    return sorted(took)


def said(took):
    at = [took[len(took) // 2], took[len(took) * 99 // 100], took[-1]]
    return f"{len(took)}, half within {at[0] * 1e3:.1f} ms, 99 of 100 within " \
           f"{at[1] * 1e3:.1f} ms, all within {at[2] * 1e3:.1f} ms"


def main(records=100_000, searches=20):
    with tempfile.TemporaryDirectory(prefix="weir-recall-") as folder:
        weir = harness.Daemon(pathlib.Path(folder)).start()
        try:
            memory, other = Memory(weir), Memory(weir)
            memory.create()
            for first in range(0, records, AT_ONCE):
                retain(
                    memory,
                    [episode(f"a common tale of thing {n}") for n in range(first, first + AT_ONCE)],
                )
            over = time.monotonic() + SECONDS
            alone = retains_until(memory, lambda: time.monotonic() > over)
            found = []

            def search():
                query = pb.MemoryRecallQuery(query="a common tale", limit=20)
                asked = pb.RecallRequest(context=other.context, bank=place(), query=query)
                for _ in range(searches):
                    began = time.monotonic()
                    assert len(other.ask("Recall", asked).hits) == 20
                    found.append(time.monotonic() - began)

            thread = threading.Thread(target=search)
            thread.start()
            beside = retains_until(memory, lambda: not thread.is_alive())
            thread.join()
            print(f"recall   {records} records: retains alone: {said(alone)}")
            print(f"         beside searches: {said(beside)}")
            print(f"         searches: {said(sorted(found))}")
        finally:
            weir.kill()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
