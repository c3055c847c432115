"""calls_table: from the lines that calls.sh collected to a table of medians and ranges.

    calls_table.py calls.jsonl
"""
import json
import statistics
import sys

from model_table import cell


def values(lines, server, call, value):
    return {line["round"]: value(line) for line in lines
            if line["server"] == server and line["call"] == call and "rate" in line}


def rate(line):
    return line["rate"]


def cost(line):
    """CPU of the server for one call, µs."""
    return line["core"] / line["rate"] * 1e6


def table(lines):
    servers = sorted({line["server"] for line in lines}, reverse=True)  # weir first
    yield ["call", *(f"{server}, calls a second" for server in servers),
           *(f"{server}, CPU a call, µs" for server in servers), "rate, weir : go"]
    yield ["---"] * (2 * len(servers) + 2)
    for call in dict.fromkeys(line["call"] for line in lines):
        rates = {server: values(lines, server, call, rate) for server in servers}
        both = [n for n in rates.get("weir", {}) if n in rates.get("go", {})]
        ratio = "-"
        if both:
            ratio = f"{statistics.median(rates['weir'][n] / rates['go'][n] for n in both):.2f}"
        yield [call, *(cell(rates[server], 1, 0) for server in servers),
               *(cell(values(lines, server, call, cost), 1, 2) for server in servers), ratio]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    for row in table(lines):
        print("| " + " | ".join(row) + " |")
    failed = sum("failed" in line for line in lines)
    print(f"\n- Runs with a call that was not answered well, which count for nothing: "
          f"{failed or 'none'}.")


if __name__ == "__main__":
    main()
