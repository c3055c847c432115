"""sidecar_table: how the proxies of bench/sidecar.sh compare, from the rows that it printed.

    sidecar_table.py FILE

The medians of the rounds. The p99 that a proxy adds is its own less that of the agent asked directly.
"""

import statistics
import sys

COLUMNS = ("turns", "p50", "p99", "cost", "rss")
WANTED = {"weir": 1.3, "weir rules": 3.0}  # CPU of an event, in those of nginx
WANTED_P99 = 1.5


def read(path):
    """{proxy: {column: median}}"""
    rows = {}
    for line in open(path, encoding="utf-8"):
        *name, turns, p50, p99, cost, rss = line.split()
        if turns.isdigit():
            values = zip(COLUMNS, (turns, p50, p99, cost, rss))
            for column, value in values:
                if value != "-":
                    rows.setdefault(" ".join(name), {}).setdefault(column, []).append(float(value))
    return {name: {c: statistics.median(v) for c, v in columns.items()} for name, columns in rows.items()}


def ratio(mine, other):
    return f"{mine / other:.2f}" if other > 0 else "-"


def main():
    found = read(sys.argv[1])
    direct = found["direct"]["p99"]
    print(f"{'':16} {'us/event':>9} {'of nginx':>9} {'wanted':>7} {'of Go':>6} {'added p99':>10} {'of nginx':>9} {'wanted':>7} {'of Go':>6}")
    for name, wanted in WANTED.items():
        mine, nginx, go = found[name], found["nginx"], found["go"]
        added = {proxy: found[proxy]["p99"] - direct for proxy in (name, "nginx", "go")}
        print(
            f"{name:16} {mine['cost']:9.2f} {ratio(mine['cost'], nginx['cost']):>9} {wanted:7.1f}"
            f" {ratio(mine['cost'], go['cost']):>6} {added[name]:10.0f} {ratio(added[name], added['nginx']):>9}"
            f" {WANTED_P99:7.1f} {ratio(added[name], added['go']):>6}"
        )


if __name__ == "__main__":
    main()
