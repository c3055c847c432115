"""A process agent without a library: lines of JSON in and out (docs/process-agents.md).

It adds up numbers with a tool of weir, or says what it has heard.
"""
import json
import sys


def tell(turn, kind, **members):
    print(json.dumps({"type": kind, "turn": turn, **members}), flush=True)


for text in sys.stdin:
    line = json.loads(text)
    if line["type"] == "turn":
        results = line["calls"]  # made in this turn already
        if not results and line["input"].startswith("add "):
            expression = line["input"][4:].replace(" ", "+")
            tell(line["turn"], "call", calls=[{"tool": "calculator", "args": {"expression": expression}}])
            continue  # the result is the next line
        answer = results[0] if results else None
    elif line["type"] == "result":
        answer = line
    else:  # "cancel"
        answer = None
    tell(line["turn"], "text", text=f"That makes {answer['result']['result']}." if answer else "I heard you.")
    tell(line["turn"], "done")
