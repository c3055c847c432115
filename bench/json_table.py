#!/usr/bin/env python3
"""json_table: rows of JSON as one table in Markdown, which chart.py draws.

    json_table.py FILE TITLE MEMBER=NAME...

Each line of FILE is who was measured and what was said, a JSON object: `weir {"rate": 5}`. Who becomes
a column, a member a row under its NAME; a cell is the median of the lines, with the smallest and the
largest. The last columns are weir's share of each other one's median.
"""
import json
import sys
from pathlib import Path
from statistics import median


def short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"


def cell(values: list[float]) -> str:
    if not values:
        return "-"
    if min(values) == max(values):
        return short(values[0])
    return f"{short(median(values))} ({short(min(values))} to {short(max(values))})"


def share(mine: list[float], theirs: list[float]) -> str:
    return f"{median(mine) / median(theirs):.2f}" if mine and theirs and median(theirs) else "-"


def main() -> int:
    path, title, *members = sys.argv[1:]
    said: dict[str, list[dict]] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        who, _, text = line.partition(" ")
        said.setdefault(who, []).append(json.loads(text))
    others = [who for who in said if who != "weir"] if "weir" in said else []
    head = [title, *said, *[f"weir : {other}" for other in others]]
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for member in members:
        key, _, name = member.partition("=")
        values = {who: [float(line[key]) for line in lines if key in line] for who, lines in said.items()}
        cells = [cell(values[who]) for who in said]
        cells += [share(values["weir"], values[other]) for other in others]
        print("| " + " | ".join([name, *cells]) + " |")
    return 0 if said else 1


if __name__ == "__main__":
    sys.exit(main())
