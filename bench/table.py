"""table: from the lines that run.sh collected to a table of medians and ranges.

    table.py runs.jsonl FOLDER [KEPT]

Writes FOLDER/latest.json and FOLDER/figures.md, and prints the table with one more column:
what KEPT, an earlier figures.md, said of weir.
"""
import json
import statistics
import sys

SERVERS = ["weir", "weir-off", "grpc-go", "tonic", "grpc-cpp", "floor"]
PEERS = ["grpc-go", "tonic", "grpc-cpp", "floor"]
TITLES = {"weir": "weir", "weir-off": "weir, durability off", "grpc-go": "grpc-go",
          "tonic": "tonic", "grpc-cpp": "gRPC C++", "floor": "floor"}

TURNS = {"mode": "turns"}
PACED_ONE = {"mode": "paced", "connections": 1}
PACED_MANY = {"mode": "paced", "connections": 100}
MEMORY = {"mode": "memory", "connections": 1}
BURST = {"mode": "memory", "connections": 10}
CONNECTIONS = {"mode": "connections"}

# title, which results, path of the number, scale, digits, which way is better
ROWS = [
    ("turns a second, 8 x 32 streams", TURNS, "turns_per_second", 1, 0, "more"),
    ("events a second", TURNS, "events_per_second", 1, 0, "more"),
    ("CPU an event, µs", TURNS, "cpu_us_per_event", 1, 3, "less"),
    ("a turn's time, p50, ms", TURNS, "turn_us.p50", 1e-3, 1, "less"),
    ("a turn's time, p99, ms", TURNS, "turn_us.p99", 1e-3, 1, "less"),
    ("events in a DATA frame", TURNS, "events_per_frame", 1, 1, None),
    ("paced 1 x 1,000: CPU an event, µs", PACED_ONE, "cpu_us_per_event", 1, 2, "less"),
    ("paced 1 x 1,000: events a second", PACED_ONE, "events_per_second", 1, 0, None),
    ("paced 1 x 1,000: lateness p50, ms", PACED_ONE, "late_us.p50", 1e-3, 2, "less"),
    ("paced 1 x 1,000: lateness p99, ms", PACED_ONE, "late_us.p99", 1e-3, 2, "less"),
    ("paced 1 x 1,000: lateness p99.9, ms", PACED_ONE, "late_us.p999", 1e-3, 2, "less"),
    ("paced 1 x 1,000: worst lateness, ms", PACED_ONE, "late_us.max", 1e-3, 2, "less"),
    ("paced 100 x 10: CPU an event, µs", PACED_MANY, "cpu_us_per_event", 1, 2, "less"),
    ("paced 100 x 10: events a second", PACED_MANY, "events_per_second", 1, 0, None),
    ("paced 100 x 10: lateness p50, ms", PACED_MANY, "late_us.p50", 1e-3, 2, "less"),
    ("paced 100 x 10: lateness p99, ms", PACED_MANY, "late_us.p99", 1e-3, 2, "less"),
    ("paced 100 x 10: lateness p99.9, ms", PACED_MANY, "late_us.p999", 1e-3, 2, "less"),
    ("paced 100 x 10: worst lateness, ms", PACED_MANY, "late_us.max", 1e-3, 2, "less"),
    ("memory idle, RSS MB", MEMORY, "idle.rss_kb", 1 / 1024, 1, "less"),
    ("memory idle, PSS MB", MEMORY, "idle.pss_kb", 1 / 1024, 1, "less"),
    ("with 1,000 idle streams, RSS MB", MEMORY, "open_streams.rss_kb", 1 / 1024, 1, "less"),
    ("bytes an idle stream, 1.5 s after its turn", MEMORY, "open_streams.bytes_per_stream", 1, 0,
     "less"),
    ("bytes an idle stream, 30 s later", MEMORY, "quiet_streams.bytes_per_stream", 1, 0, "less"),
    ("with 1,000 in a turn, RSS MB", MEMORY, "paced_streams.rss_kb", 1 / 1024, 1, "less"),
    ("bytes a stream in a turn", MEMORY, "paced_streams.bytes_per_stream", 1, 0, "less"),
    ("3 s after 1,000 turns at once, RSS MB", MEMORY, "after_burst.rss_kb", 1 / 1024, 1, "less"),
    ("10,000 idle streams, RSS MB", BURST, "quiet_streams.rss_kb", 1 / 1024, 1, "less"),
    ("bytes an idle stream of 10,000", BURST, "quiet_streams.bytes_per_stream", 1, 0, "less"),
    ("right after 10,000 turns at once, RSS MB", BURST, "burst.rss_kb", 1 / 1024, 1, "less"),
    ("3 s after 10,000 turns at once, RSS MB", BURST, "after_burst.rss_kb", 1 / 1024, 1, "less"),
    ("3 s after 10,000 turns at once, of what was idle", BURST, "after_burst_to_quiet", 1, 2,
     "less"),
    ("bytes an HTTP/2 connection", CONNECTIONS, "http2.rss_bytes", 1, 0, "less"),
    ("bytes a kept HTTP/1.1 connection", CONNECTIONS, "http1.rss_bytes", 1, 0, "less"),
    ("exec to GET /health, ms", {"mode": "start", "probe": "health"}, "start_us.p50", 1e-3, 1,
     "less"),
    ("exec to HTTP/2 SETTINGS, ms", {"mode": "start", "probe": "settings"}, "start_us.p50",
     1e-3, 1, "less"),
]


def dig(result, path):
    for key in path.split("."):
        result = result[key]
    return result


def values(lines, server, wanted, path):
    return [dig(line["result"], path) for line in lines
            if line["server"] == server and "result" in line
            and all(line["result"].get(key) == value for key, value in wanted.items())]


def summary(numbers):
    if not numbers:
        return None
    return {"median": statistics.median(numbers), "min": min(numbers), "max": max(numbers),
            "runs": len(numbers)}


def cell(found, scale, digits):
    if not found:
        return "-"
    middle = f"{found['median'] * scale:,.{digits}f}"
    if found["runs"] == 1:
        return middle
    return f"{middle} ({found['min'] * scale:,.{digits}f} to {found['max'] * scale:,.{digits}f})"


def ratio(ours, theirs, better):
    """How many times better ours is; below 1 it is worse."""
    if not ours or not theirs or not better or not ours["median"] or not theirs["median"]:
        return "-"
    times = ours["median"] / theirs["median"]
    return f"{times if better == 'more' else 1 / times:.2f}"


def kept_cells(path):
    """What an earlier page says of weir, title to cell: of several tables the first counts."""
    kept, of_weir = {}, False
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return {}
    for line in lines:
        row = [cell.strip() for cell in line.split("|")]
        if not line.startswith("| ") or len(row) <= 3:
            of_weir = False
        elif row[1] == "measured":
            of_weir = row[2] == "weir"
        elif of_weir and not row[1].startswith("-"):
            kept.setdefault(row[1], row[2])
    return kept


def summaries(lines):
    for title, wanted, path, scale, digits, better in ROWS:
        found = {s: summary(values(lines, s, wanted, path)) for s in SERVERS}
        yield title, found, scale, digits, better


def table(lines):
    rows = [["measured"] + [TITLES[s] for s in SERVERS]
            + ["weir : " + TITLES[s] for s in PEERS]]
    for title, found, scale, digits, better in summaries(lines):
        rows.append([title] + [cell(found[s], scale, digits) for s in SERVERS]
                    + [ratio(found["weir"], found[s], better) for s in PEERS])
    return rows


def page(rows):
    rows = rows[:1] + [["---"] * len(rows[0])] + rows[1:]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("| " + " | ".join(value.ljust(widths[i]) for i, value in enumerate(row))
                     + " |" for row in rows) + "\n"


def remarks(lines):
    """What a reader must know to believe the table."""
    results = [line["result"] for line in lines if "result" in line]
    others = [r["others_cpu"] for r in results if "others_cpu" in r]
    if others:
        yield (f"Somebody else's use of the two cores while measuring: median "
               f"{statistics.median(others):.2f}, at most {max(others):.2f} cores.")
    driver = [line["result"]["driver_cpu"] for line in lines
              if line["server"] == "weir" and line.get("result", {}).get("mode") == "turns"]
    if driver:
        yield f"The driver was busy for at most {max(driver):.0%} of its core against weir."
    floor, ours = (summary(values(lines, s, TURNS, "events_per_second"))
                   for s in ("floor", "weir"))
    if floor and ours:
        times = floor["median"] / ours["median"]
        word = "so the driver is not the limit" if times >= 1.3 else "THE DRIVER MAY BE THE LIMIT"
        yield f"The same driver takes {times:.1f} times as much from the floor, {word}."
    for line in lines:
        if line.get("result", {}).get("mode") == "disk":
            disk = line["result"]["fdatasync_us"]
            yield (f"4 KiB and fdatasync on the disk of the data folder: median {disk['p50']} µs, "
                   f"p99 {disk['p99']} µs, worst {disk['max']} µs.")
    failed = [f"{line['server']} {line['failed']} (round {line['round']})" for line in lines
              if "failed" in line]
    yield "Runs that failed a check and count for nothing: " + (", ".join(failed) or "none") + "."


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    rows = table(lines)
    notes = list(remarks(lines))
    listed = "\n" + "\n".join("- " + note for note in notes) + "\n"
    kept = kept_cells(sys.argv[3]) if len(sys.argv) > 3 else {}
    with open(sys.argv[2] + "/latest.json", "w", encoding="utf-8") as file:
        json.dump({"table": [{"measured": title, "better": better, **found}
                             for title, found, _, _, better in summaries(lines)],
                   "remarks": notes, "runs": lines}, file, indent=1, ensure_ascii=False)
    with open(sys.argv[2] + "/figures.md", "w", encoding="utf-8") as file:
        file.write("# Turns of Converse\n\n" + page(rows) + listed)
    if kept:
        for row in rows:
            row.insert(2, kept.get(row[0], "-"))
        rows[0][2] = "weir, kept"
    print(page(rows) + listed)


if __name__ == "__main__":
    main()
