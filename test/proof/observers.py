#!/usr/bin/env python3
"""observers: what a run loses to the consoles that watch it, which must be nothing.

A run that says a piece every 5 ms is called over Converse and over /stream, and watched by no console, by
one, by a hundred, and by a hundred with one that reads nothing. Checked: each caller gets every piece in
order, each console every event in order, the run takes as long as its own pace by the daemon's clock (5 %,
one of three tries), and the daemon holds no more than 64 KiB for a console and not the run's text for the
one that stalls. Printed: how late the pieces reach the caller, what the daemon computed, what it holds.

    test/proof/observers.py [pieces of a run, 2000] [consoles, 100]
"""
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

import clients  # first: it finds the others
import consoles
import crawbl
import harness

PIECES = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
MANY = int(sys.argv[2]) if len(sys.argv) > 2 else 100
PACE_MS = 5
PATIENCE_S = 90
HOLDS_MAX_BYTES = 64 * 1024  # of the daemon's memory, for a console
SCRIPT = f"""script: 1
model: paced
agents: [{{slug: manager, description: Talks.}}]
scenes:
  - reply:
      - repeat: {{text: "piece ", times: {PIECES}}}
        pace: {{every: {PACE_MS}ms}}
"""
TICKS = os.sysconf("SC_CLK_TCK")


def computed_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def holds_bytes(pid):
    (line,) = [line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def converse(weir, session):
    """When each piece came, as the orchestrator sees it."""
    with crawbl.open_stream(weir) as stream:
        stream.send("go", session_id=session)
        for event in stream.call:
            kind = event.WhichOneof("event")
            if kind == "chunk":
                yield event.chunk.text, time.monotonic()
            if kind == "done":
                return


def sse(weir, session):
    with weir.http() as http:
        with http.stream("POST", "/stream", json={"input": "go", "session_id": session}, timeout=None) as answer:
            for line in answer.iter_lines():
                if line.startswith('data: {"delta"'):
                    yield json.loads(line[6:])["delta"], time.monotonic()


def run_of(weir, session):
    with weir.http() as http:
        (run,) = http.get("/weir/v1/runs", params={"session": session}).json()["runs"]
        return run["id"]


def events_of(weir, run):
    with weir.http() as http:
        text = http.get(f"/weir/v1/runs/{run}/events").text
    return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def one(weir, call, watching, stalled, session):
    """A run with so many consoles; the row of the table."""
    pieces, first = [], threading.Event()

    def listen():
        for piece in call(weir, session):
            pieces.append(piece)
            first.set()

    told = crawbl.in_background(listen)
    assert first.wait(PATIENCE_S)
    run = run_of(weir, session)
    held, used = holds_bytes(weir.pid), computed_s(weir.pid)
    with consoles.Consoles(weir.port("http"), run, watching, stalled) as watchers:
        told()
        used, held = computed_s(weir.pid) - used, holds_bytes(weir.pid) - held
        heard = watchers.heard()
    expected = events_of(weir, run)
    assert "".join(text for text, _ in pieces) == "piece " * PIECES, "the caller lacks a piece"
    assert len(heard) == watching
    for events in heard:
        assert events == expected, "a console lacks an event, or has one twice"
    assert [event["seq"] for event in expected] == list(range(1, len(expected) + 1))
    assert held <= HOLDS_MAX_BYTES * (watching + stalled + 32), f"the daemon holds {held} bytes more"
    gaps = [(after - before) * 1000 for (_, before), (_, after) in zip(pieces, pieces[1:])]
    return {"took_ms": expected[-1]["at_ms"] - expected[1]["at_ms"], "p50": percentile(gaps, 0.5), "p99": percentile(gaps, 0.99),
            "most": max(gaps), "cpu_s": used, "held": held}


def main():
    rows = [(0, 0), (1, 0), (MANY, 0), (MANY, 1)]
    late = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "paced.yaml").write_text(SCRIPT)
        weir = harness.Daemon(folder, script=folder / "paced.yaml", env={"CRAWBL_MCP_SIGNING_KEY": None}).start()
        print(f"{PIECES} pieces, one every {PACE_MS} ms: {PIECES * PACE_MS / 1000:.1f} s\n")
        print("caller    consoles  stalled   run takes   between pieces: p50    p99    most   daemon computes   holds more")
        try:
            for call in (converse, sse):
                for watching, stalled in rows:
                    for attempt in range(3):
                        row = one(weir, call, watching, stalled, f"{call.__name__}-{watching}-{stalled}-{attempt}")
                        print(f"{call.__name__:9} {watching:8} {stalled:8} {row['took_ms'] / 1000:9.2f} s {row['p50']:21.2f} "
                              f"{row['p99']:7.2f} {row['most']:7.1f} {row['cpu_s']:12.2f} s {row['held'] / 1024:12.0f} KiB", flush=True)
                        if row["took_ms"] <= PIECES * PACE_MS * 1.05:
                            break
                    else:
                        late.append((call.__name__, watching, stalled))
        finally:
            weir.stop()
    assert not late, f"these runs took longer than their own pace: {late}"


if __name__ == "__main__":
    main()
