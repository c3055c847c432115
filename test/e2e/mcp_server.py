"""An MCP server on standard streams, without a library, that fails on command.

    python mcp_server.py FOLDER [stateless | silent]

stateless              speaks 2026-07-28 alone: no handshake
silent                 answers nothing that it does not know
eager                  reports a change of its tools with each list
nulls                  writes result and error into each answer, one of them null, and ids as strings
FOLDER/tools.json      replaces the list of tools, read at each tools/list
FOLDER/listed          when each tools/list came, in seconds
FOLDER/pids            a line for each process that it was or started
FOLDER/heard           each message that it read
FOLDER/paid            the text of each call of `pay`
"""
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

FOLDER = pathlib.Path(sys.argv[1])
MODE = sys.argv[2] if len(sys.argv) > 2 else ""
VERSION = "2026-07-28"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
LISTENERS = []
LOCK = threading.Lock()
QUESTIONS = ("ping", "elicitation/create", "sampling/createMessage", "roots/list")
ANSWERS = queue.Queue()
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
NAMES = ("say", "crash", "hang", "noise", "huge", "slow", "grow", "danger_a", "orphans", "steps", "asks", "pay", "broken",
         "parts", "nothing", "half", "torn")
PICTURE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
CONTENTS = {
    "parts": [{"type": "text", "text": "Chart of May"}, PICTURE, {"type": "text", "text": "Chart of June"}],
    "nothing": [],
    "half": [{"type": "text", "text": "cut \ud83d here"}],  # half of a surrogate pair
}
TOOLS = [{"name": n, "description": f"Does {n}.", "inputSchema": TEXT} for n in NAMES]


def note(name, line):
    with open(FOLDER / name, "a") as file:
        file.write(f"{line}\n")


def send(message):
    if MODE == "nulls" and "method" not in message:
        message = {"result": None, "error": None, **message, "id": str(message["id"])}
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def tools():
    own = FOLDER / "tools.json"
    return json.loads(own.read_text()) if own.exists() else TOOLS


def tell_changed():
    if MODE != "stateless":
        send({"method": "notifications/tools/list_changed"})
    for id in LISTENERS:
        send({"method": "notifications/tools/list_changed", "params": {"_meta": {SUBSCRIPTION: id}}})


def act(id, name, args, meta):
    text = args.get("text", "")
    if name == "crash":
        os._exit(3)
    if name == "hang":
        return
    if name == "noise":
        with LOCK:
            sys.stdout.write('no json at all\n{"half": \n[1,2]\n{"jsonrpc":"2.0","id":77,"result":{}}\n')
    if name == "huge":
        with LOCK:
            sys.stdout.write("x" * (5 << 20) + "\n")
            sys.stdout.flush()
        return
    if name == "torn":
        with LOCK:
            sys.stdout.write('{"jsonrpc":"2.0","id":%d,"result":{"content":\n' % id)
            sys.stdout.flush()
        return
    if name == "broken":
        send({"id": id, "error": "it broke"})
        return
    if name == "slow":
        time.sleep(0.4)
    if name == "grow":
        more = {"name": "grown", "description": "New.", "inputSchema": TEXT}
        (FOLDER / "tools.json").write_text(json.dumps(TOOLS + [more]))
        tell_changed()
    if name == "steps":
        for step in (1, 2):
            progress = {"progressToken": meta["progressToken"], "progress": step, "total": 2}
            send({"method": "notifications/progress", "params": {**progress, "message": f"part {step}"}})
            time.sleep(2 if step == 1 else 0)  # one a second is passed on
    if name == "pay":
        note("paid", text)
        time.sleep(0.05)
    if name == "asks":  # each question that there is; the answers are the text
        for question in QUESTIONS:
            send({"id": question, "method": question, "params": {"requestedSchema": {}, "message": "?"}})
        text = json.dumps([ANSWERS.get(timeout=20) for _ in QUESTIONS])
    if name == "orphans":  # one in our group, one in a session of its own
        for start in (False, True):
            child = subprocess.Popen(
                ["sleep", "600"], start_new_session=start, stdout=subprocess.DEVNULL
            )
            note("pids", child.pid)
    content = CONTENTS.get(name, [{"type": "text", "text": f"{name}: {text}"}])
    send({"id": id, "result": {"content": content}})


def answer(message):
    method, id = message.get("method"), message.get("id")
    meta = message.get("params", {}).get("_meta", {})
    if method is None:
        ANSWERS.put(message["error"]["code"] if "error" in message else message["result"])
        return
    if MODE == "stateless" and id is not None:
        if meta.get("io.modelcontextprotocol/protocolVersion") != VERSION:
            send({"id": id, "error": {"code": -32602, "message": "this server is stateless"}})
            return
    if MODE == "stateless" and method == "server/discover":
        found = {"supportedVersions": [VERSION], "capabilities": {"tools": {"listChanged": True}}}
        send({"id": id, "result": {"resultType": "complete", **found}})
    elif MODE == "stateless" and method == "subscriptions/listen":
        LISTENERS.append(id)
        filter = message["params"]["notifications"]
        params = {"_meta": {SUBSCRIPTION: id}, "notifications": filter}
        send({"method": "notifications/subscriptions/acknowledged", "params": params})
    elif method == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "faults", "version": "1"}
        send({"id": id, "result": {"protocolVersion": version, "capabilities": {}, "serverInfo": info}})
    elif method == "tools/list":
        note("listed", time.monotonic())
        send({"id": id, "result": {"tools": tools()}})
        if MODE == "eager":
            tell_changed()
    elif method == "tools/call":
        asked = message["params"]
        more = (id, asked["name"], asked["arguments"], meta)
        threading.Thread(target=act, args=more, daemon=True).start()
    elif id is not None and MODE != "silent":
        send({"id": id, "error": {"code": -32601, "message": "Method not found"}})


note("pids", os.getpid())
print("a word on standard error", file=sys.stderr, flush=True)
for line in sys.stdin:
    note("heard", line.rstrip())
    answer(json.loads(line))
