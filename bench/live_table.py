#!/usr/bin/env python3
"""live_table: what bench/live.sh measured, as tables in Markdown.

    live_table.py RESULTS.jsonl

One table for each load; a cell is the median of the rounds, with the smallest and the largest. It
fails when weir has no result, or a reader of weir missed an event.
"""
import json
import sys
from pathlib import Path
from statistics import median

ROWS = [
    ("deliveries a second, thousands", lambda r: r["per_second"] / 1000, 0),
    ("CPU a delivery, us", lambda r: r["cpu_us"], 2),
    ("events in a read", lambda r: r["events_a_read"], 2),
    ("bytes a delivery", lambda r: r["bytes"], 0),
    ("spread p50, ms", lambda r: r["spread_ms"]["p50"], 1),
    ("spread p99, ms", lambda r: r["spread_ms"]["p99"], 1),
    ("events of the slowest reader", lambda r: r["slowest"]["events"], 0),
    ("its longest silence, ms", lambda r: r["slowest"]["silence_ms"], 0),
    ("PSS a connection, kB", lambda r: r["kb"]["connection"], 2),
    ("PSS a reader above it, kB", lambda r: r["kb"]["reader"], 2),
    ("GET /health p99 without readers, ms", lambda r: r["health_ms"]["idle_p99"], 2),
    ("GET /health p99 beside them, ms", lambda r: r["health_ms"]["p99"], 2),
    ("events missed or doubled", lambda r: r["wrong"], 0),
    ("core of the server", lambda r: r["core"], 2),
    ("core of the readers", lambda r: r["driver_core"], 2),
    ("cores that others used", lambda r: r["others_cpu"], 2),
]


def cell(values: list[float], digits: int) -> str:
    if not values:
        return "failed"
    middle = f"{median(values):,.{digits}f}"
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def ratio(of, results: dict[str, list[dict]], other: str) -> str:
    """weir's share of another's, each round by itself."""
    pairs = [(of(w), of(o)) for w, o in zip(results["weir"], results.get(other, [])) if w and o]
    shares = [mine / theirs for mine, theirs in pairs if theirs]
    return f"{median(shares):.2f}" if shares else "-"


def table(load: str, results: dict[str, list[dict]]) -> None:
    servers = list(results)
    others = [s for s in servers if s != "weir"] if "weir" in servers else []
    rate, readers = load.split("x")
    print(f"\n{readers} readers, {rate} events a second\n")
    head = [load, *servers, *[f"weir : {other}" for other in others]]
    print("| " + " | ".join(head) + " |")
    print("|" + " --- |" * len(head))
    for name, of, digits in ROWS:
        cells = [cell([of(r) for r in results[s] if r], digits) for s in servers]
        cells += [ratio(of, results, other) for other in others]
        print("| " + " | ".join([name, *cells]) + " |")


def faults(results: dict[str, dict[str, list[dict]]]) -> list[str]:
    found = []
    for load, servers in results.items():
        for server, rounds in servers.items():
            for number, result in enumerate(rounds, 1):
                where = f"{load}, {server}, round {number}"
                if not result:
                    found.append(f"{where}: no result")
                elif result["wrong"]:
                    found.append(f"{where}: {result['wrong']} events were missed or doubled")
                elif not result["all_begun"]:
                    found.append(f"{where}: some readers had nothing")
    return found


def main() -> int:
    results: dict[str, dict[str, list[dict]]] = {}
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        results.setdefault(said["load"], {}).setdefault(said["server"], []).append(said["result"])
    for load, servers in results.items():
        table(load, servers)
    found = faults(results)
    if found:
        print("\nRuns that failed their checks:\n")
        for fault in found:
            print(f"- {fault}")
    return 1 if any(", weir, " in fault for fault in found) else 0


if __name__ == "__main__":
    sys.exit(main())
