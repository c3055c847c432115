"""instructions: thousand instructions a turn, thread by thread, from callgrind's files.

    instructions.py LOAD TOP FILE...

With spans or metrics, "measured" is what the loop spends on them: the calls of measure_* and all they
call. Each FILE is what one thread did (--separate-threads=yes). A turn is a call of run_start; for a load
without turns it is a call of route_serve, for a model's tokens one of the function that reads a chunk, for readers
of a live run one of the function that sends. TOP is how many functions are listed for each thread.
"""

import re
import sys
from collections import Counter

FEW = 2000
MEASURE = "measure_"  # all functions of turn/measure.h
COUNTED = {"model": ("openai_reply_feed",), "live": ("route_piece_now", "route_piece")}
NAMED = re.compile(r"\((\d+)\)(?: (.*))?")


def read(path):
    """The own instructions of each function of one thread, how often each was called, and what the calls of
    turn/measure.h cost with all that they called."""
    own, called, names, measured = Counter(), Counter(), {}, 0

    def name(text):
        number, said = NAMED.fullmatch(text).groups()
        if said:
            names[number] = said.split("'")[0]
        return names[number]

    function = target = None
    of_call = False  # the line after calls= is the cost of what was called
    for line in open(path, encoding="utf-8", errors="replace"):
        line = line.rstrip("\n")
        if line.startswith("fn="):
            function = name(line[3:])
        elif line.startswith("cfn="):
            target = name(line[4:])
        elif line.startswith("calls="):
            called[target] += int(line[6:].split()[0])
            of_call = True
        elif line[:1].isdigit() or line[:1] in "+-*":
            cost = line.split()[1:]  # none: the line cost nothing
            if cost and of_call and target.startswith(MEASURE) and not function.startswith(MEASURE):
                measured += int(cost[0])
            if cost and not of_call and function:
                own[function] += int(cost[0])
            of_call = False
    return own, called, measured


def thread_of(own):
    if any(function.startswith("sqlite3") for function in own):
        return "store"
    if any(function in own for function in ("exporter_next", "spans_chunk_part")):
        return "spans"
    return "loop" if "loop_run" in own or "uv_run" in own or "route_serve" in own else "other"


def main():
    load, top, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    threads, called, measured = {}, Counter(), 0
    for path in paths:
        own, calls, more = read(path)
        measured += more
        called += calls
        if own:
            threads.setdefault(thread_of(own), Counter()).update(own)
    counted = COUNTED.get(load.split("_")[0], ("run_start", "route_serve"))
    turns = next((called[function] for function in counted if called[function]), 0)
    if not turns:
        sys.exit("instructions: no turn was made")
    total = sum(sum(own.values()) for own in threads.values())
    digits = 3 if load == "live" else 1
    parts = [f"{thread} {sum(own.values()) / turns / 1000:.{digits}f}" for thread, own in sorted(threads.items())]
    parts.append(f"measured {measured / turns / 1000:.2f}")
    print(f"{load}: {total / turns / 1000:.{digits}f} thousand instructions each ({', '.join(parts)}), {turns} counted")
    if turns < FEW:
        print(f"  fewer than {FEW}: the first turn of each stream weighs too much; set BENCH_SECONDS higher")
    for thread, own in sorted(threads.items()):
        for function, cost in own.most_common(top):
            print(f"  {thread:6} {cost / turns:9.0f}  {function}")


if __name__ == "__main__":
    main()
