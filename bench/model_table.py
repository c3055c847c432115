"""model_table: from the lines that model.sh and openai.sh collected to a table of medians and ranges.

    model_table.py model_500.jsonl
"""
import json
import statistics
import sys

WAYS = ["weir", "before", "weir_h2", "before_h2", "weir_h2c", "before_h2c", "weir_tls", "before_tls", "nginx_tls", "forwarder", "haproxy", "nginx", "go", "litellm", "direct"]
PEERS = ["forwarder", "haproxy", "nginx", "go", "litellm"]


def dig(result, path):
    for key in path.split("."):
        result = result.get(key, {})
    return result if result != {} else None


def values(lines, way, path):
    """Of each round of `way` that passed, in order."""
    found = {line["round"]: dig(line["result"], path) for line in lines
             if line["way"] == way and "result" in line}
    return {number: value for number, value in found.items() if value is not None}


def added(lines, way, path):
    """Through minus direct, round by round."""
    direct, through = values(lines, "direct", path), values(lines, way, path)
    return {n: through[n] - direct[n] for n in through if n in direct and way != "direct"}


def of_floor(lines, way, path):
    """Of what the forwarder of the same round took."""
    floor, through = values(lines, "forwarder", path), values(lines, way, path)
    return {n: through[n] / floor[n] for n in through if floor.get(n)}


def cell(numbers, scale, digits):
    numbers = [number * scale for number in numbers.values()]
    if not numbers:
        return "-"
    middle = f"{statistics.median(numbers):,.{digits}f}"
    if len(numbers) == 1:
        return middle
    return f"{middle} ({min(numbers):,.{digits}f} to {max(numbers):,.{digits}f})"


# title, where the numbers come from, path, scale, digits
ROWS = [
    ("CPU a token, µs", values, "cpu_us_per_token", 1, 2),
    ("CPU a token : forwarder's", of_floor, "cpu_us_per_token", 1, 2),
    ("tokens a second", values, "tokens_per_second", 1, 0),
    ("model to reader, p50, ms", values, "delay_us.p50", 1e-3, 2),
    ("model to reader, p99, ms", values, "delay_us.p99", 1e-3, 2),
    ("added to direct, p50, ms", added, "delay_us.p50", 1e-3, 2),
    ("added to direct, p99, ms", added, "delay_us.p99", 1e-3, 2),
    ("memory a turn, KiB", values, "pss_kib_per_turn", 1, 1),
]


def ratio(ours, theirs):
    """How many times less weir takes, with HTTP/1.1; below 1 it takes more."""
    both = [n for n in ours if n in theirs and ours[n]]
    return f"{statistics.median(theirs[n] / ours[n] for n in both):.2f}" if both else "-"


def table(lines):
    ways = [way for way in WAYS if any(line["way"] == way for line in lines)]
    peers = [way for way in ways if way in PEERS and "weir" in ways]
    yield ["measured", *ways, *(f"weir : {peer}" for peer in peers)]
    yield ["---"] * (len(ways) + len(peers) + 1)
    for title, source, path, scale, digits in ROWS:
        found = {way: source(lines, way, path) for way in ways}
        ratios = [ratio(found["weir"], found[peer]) if path.startswith("cpu") and source is values else "-"
                  for peer in peers]
        yield [title, *(cell(found[way], scale, digits) for way in ways), *ratios]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    rows = list(table(lines))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("| " + " | ".join(part.ljust(width) for part, width in zip(row, widths)) + " |")
    results = [line["result"] for line in lines if "result" in line]
    others = [r["machine_cpu"] for r in results]
    failed = sum("failed" in line for line in lines)
    if results:
        print(f"\n- {results[0]['turns']} turns at the same time. All processes of the machine "
              f"used {statistics.median(others):.2f} cores, at most {max(others):.2f}.")
    print(f"- Runs that failed a check and count for nothing: {failed or 'none'}.")


if __name__ == "__main__":
    main()
