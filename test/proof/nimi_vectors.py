#!/usr/bin/env python3
"""nimi_vectors: what a search by vectors costs, and what it costs those beside it.

    test/proof/nimi_vectors.py [RECORDS [DIMENSION [SEARCHES]]]     100,000, 384 and 20

Fills a bank whose model is a server with OpenAI's /v1/embeddings in this process. Says how fast the
vectors are made, then what nimi_recall.py says of words: the slowest retain alone and beside
a caller who searches, the searches themselves, and how much memory they take. The first hits are
compared with those that this script works out from the same vectors. WEIR_BINARY chooses the daemon.
"""
import array
import math
import pathlib
import random
import sys
import tempfile
import threading
import time

import clients  # noqa: F401  first: it finds the others
import embeddings
import harness
from nimi.runtime.v1 import memory_pb2 as pb
from nimi_recall import retain, retains_until, said
from nimi_streams import cpu_seconds
from test_nimi_memory import Memory, episode, place

AT_ONCE = 100
SECONDS = 5  # of retaining alone
QUERY = "thing 77"  # every record has one of the words
FAR = "elsewhere"  # and none has this one


def vector_of(text, dimension):
    """Numbers that only the text decides; made fast, since the model's time is not the daemon's."""
    made = random.Random(text).randbytes(2 * dimension)
    return [x / 32768 for x in array.array("h", made)]


def text_of(n):
    return f"a tale of thing {n}"


def resident_kib(pid, name="VmRSS"):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0])


def as_kept(values):
    return array.array("f", values)


def best_of(records, dimension):
    """The cosine of each record's vector with the query's, the highest first."""
    query = as_kept(vector_of(FAR, dimension))
    length = math.sqrt(sum(x * x for x in query))
    found = []
    for n in range(records):
        values = as_kept(vector_of(text_of(n), dimension))
        dot = sum(map(float.__mul__, query, values))
        found.append((dot / length / math.sqrt(sum(x * x for x in values)), text_of(n)))
    return sorted(found, reverse=True)[:20]


def wait_for_vectors(maker, records, began):
    while len(maker.texts()) < records:
        time.sleep(0.1)
        assert time.monotonic() < began + 3600
    time.sleep(1)  # until the last ones are kept


def main(records=100_000, dimension=384, searches=20):
    maker = embeddings.Embeddings(dimension, vector_of)
    with tempfile.TemporaryDirectory(prefix="weir-vectors-") as folder:
        weir = harness.Daemon(
            pathlib.Path(folder), config=maker.config, env={"HOUSE_KEY": "k"}
        ).start()
        try:
            memory, other = Memory(weir), Memory(weir)
            memory.create(
                embedding_profile=pb.MemoryEmbeddingProfile(
                    provider="maker", model_id="m", dimension=dimension
                )
            )
            began = time.monotonic()
            for first in range(0, records, AT_ONCE):
                retain(memory, [episode(text_of(n)) for n in range(first, first + AT_ONCE)])
            wait_for_vectors(maker, records, began)
            print(f"vectors  {records} of {dimension} numbers were there after "
                  f"{time.monotonic() - began:.0f} s, the model's time included")
            rest = resident_kib(weir.pid)
            over = time.monotonic() + SECONDS
            alone = retains_until(memory, lambda: time.monotonic() > over)
            found, hits, peak = [], [], [0]

            def search():
                query = pb.MemoryRecallQuery(query=QUERY, limit=20)
                asked = pb.RecallRequest(context=other.context, bank=place(), query=query)
                for _ in range(searches):
                    began = time.monotonic()
                    hits[:] = other.ask("Recall", asked).hits
                    found.append(time.monotonic() - began)
                    peak[0] = max(peak[0], resident_kib(weir.pid))

            thread = threading.Thread(target=search)
            thread.start()
            beside = retains_until(memory, lambda: not thread.is_alive())
            thread.join()
            times, cpu = {}, {}
            for query in (QUERY, FAR):
                times[query], before = [], cpu_seconds(weir.pid)
                for _ in range(searches // 2):
                    began = time.monotonic()
                    nearest = other.recall(query)
                    times[query].append(time.monotonic() - began)
                cpu[query] = (cpu_seconds(weir.pid) - before) / len(times[query])
            print(f"         retains alone: {said(alone)}")
            print(f"         beside searches: {said(beside)}")
            print(f"         searches beside them: {said(sorted(found))}")
            for query, took in times.items():
                print(f"         searches for {query!r} alone: {said(sorted(took))}; "
                      f"{cpu[query]:.2f} s of CPU each")
            print(f"         resident: {rest} KiB before, {peak[0]} KiB at most while searching, "
                  f"{resident_kib(weir.pid, 'VmHWM')} KiB ever")
            assert all(h.match_reason == "cosine" for h in nearest)
            for hit, (cosine, text) in zip(nearest, best_of(records, dimension), strict=True):
                assert hit.record.episodic.summary == text, text
                assert abs(hit.relevance_score - cosine / 2) < 1e-9, text
            print(f"         the {len(nearest)} nearest of all are the ones found, with their scores")
        finally:
            weir.kill()
            maker.end()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
