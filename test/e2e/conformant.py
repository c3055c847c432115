"""weir as a client under test of the protocol's conformance kit.

    python conformant.py URL

The kit starts this once for a scenario, with the address of its server. It lists the tools of
that server with weir, and calls each, with the arguments that the kit gives or any that fit.
What the kit gives as null is left out: weir refuses null where the schema says boolean.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
VALUES = {"string": "x", "integer": 1, "number": 2, "boolean": True, "object": {}, "array": []}


def weir(folder, *args):
    command = [os.environ["WEIR_BINARY"], *args, "-c", "weir.yaml", "--data", "data"]
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=50)
    print(args[:3], told.returncode, told.stdout[:300], told.stderr[-300:], file=sys.stderr)
    return told.stdout


def arguments(tool, tools):
    """What fits its schema; for the scenario that wants one back, the schema of another tool."""
    schema = tool["parameters"]
    if SCENARIO == "json-schema-2020-12-preservation":
        [other] = [t for t in tools if t is not tool]
        return {"schema": other["parameters"]}
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    return {n: VALUES[properties[n].get("type", "object")] for n in required}


def calls(tools):
    given = CONTEXT.get("toolCalls")
    if given:
        return [
            (c["name"], {n: v for n, v in c["arguments"].items() if v is not None}) for c in given
        ]
    return [(t["name"], arguments(t, tools)) for t in tools]


def main(url):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server = {"name": "kit", "url": url, "elicitation": "accept-defaults"}
        settings = {"mcp": [server], "log": {"level": "debug"}}
        (folder / "weir.yaml").write_text(json.dumps(settings))
        tools = [t for t in json.loads(weir(folder, "tool", "list", "--json"))["tools"] if t["from"] == "mcp"]
        for tool, args in calls(tools):
            weir(folder, "tool", "call", tool, json.dumps(args))


main(sys.argv[-1])
