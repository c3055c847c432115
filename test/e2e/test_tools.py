"""The operator's own tools: programs and requests, on every wire, whatever befalls them."""
import http.server
import json
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

import crawbl
import harness
import pytest
import vendors
import wires
from vendors import call

EXAMPLES = harness.ROOT / "examples/tools"
MODEL = "gpt-5-mini"
PATIENCE = 90
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}


@pytest.fixture
def kind():
    return "openai"


class Server(http.server.ThreadingHTTPServer):
    """What tools ask: /say answers, /drip never ends, /hang never begins, /cut breaks off."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.heard, self.lock, self.gone = [], threading.Lock(), threading.Event()
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def note(self):
        length = int(self.headers.get("content-length", 0))
        asked = (self.command, self.path, dict(self.headers), self.rfile.read(length))
        with self.server.lock:
            self.server.heard.append(asked)

    def answer(self, body, status=200, length=None):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.note()
        what = self.path.split("?")[0].split("/")[1]
        try:
            getattr(self, "do_" + what)()
        except OSError:
            self.server.gone.set()

    do_POST = do_GET

    def do_say(self):
        self.answer(json.dumps({"path": self.path, "key": self.headers["x-key"]}).encode())

    def do_mcp(self):
        """A stateless MCP server with one tool, one of whose arguments is wanted as a header."""
        asked = json.loads(self.server.heard[-1][3])
        schema = {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}}
        result = {"resultType": "complete"}
        if asked["method"] == "server/discover":
            result |= {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        elif asked["method"] == "tools/list":
            broken = {"type": "object", "x-mcp-header": "Nowhere"}
            result["tools"] = [{"name": "sky", "inputSchema": schema}, {"name": "bad", "inputSchema": broken}]
        else:
            text = f"{asked['params']['arguments']['city']} = {self.headers['mcp-param-city']}"
            result["content"] = [{"type": "text", "text": text}]
        self.answer(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode())

    def do_repeat(self):
        self.answer(self.server.bodies.pop(0))

    def do_drip(self):
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(b"x")
            time.sleep(0.02)

    def do_hang(self):
        self.connection.settimeout(PATIENCE)
        self.connection.recv(1)
        self.server.gone.set()

    def do_cut(self):
        self.answer(b"{", length=10)
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def do_paid(self):
        """As many shops answer: done, look there."""
        self.send_response(303)
        self.send_header("location", "/orders/77")
        self.send_header("content-length", "0")
        self.end_headers()

    def do_page(self):
        self.answer(b"<html>Thank you, order 77 is paid</html>")

    def do_huge(self):
        self.send_response(200)
        self.end_headers()
        for _ in range(100):
            self.wfile.write(b"x" * (1 << 20))

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as server:
        yield server
        server.shutdown()


def program(code, **more):
    return {"description": "Tries.", "parameters": TEXT, "command": [sys.executable, "-c", code], **more}


def request(server, path, **more):
    url = f"http://127.0.0.1:{server.port}{path}"
    return {"description": "Tries.", "parameters": TEXT, "url": url, **more}


def results(asked):
    return [m["content"] for m in asked.body["messages"] if m["role"] == "tool"]


def offered(asked):
    return {tool["function"]["name"] for tool in asked.body.get("tools", [])} - {"read_result"}


def ask(weir, models, *calls, wire="stream"):
    """One turn in which the model makes these calls; what it then read of them."""
    models.say(MODEL, list(calls), "Done.")
    told = wires.open(wire, weir, None).ask("go")
    assert (told.error, told.text) == (None, "Done.")
    return results(models.asked[-1])


def eventually(found, what):
    give_up = time.monotonic() + PATIENCE
    while not (result := found()):
        assert time.monotonic() < give_up, what
        time.sleep(0.01)
    return result


def alive(pid):
    try:
        return "\nState:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("wire", ("converse", "stream"))
def test_a_program_and_a_request_answer_on_every_wire(house, models, server, wire):
    weir = house(
        tools={
            "count": program("import json,sys; print(len(json.load(sys.stdin)['text']))"),
            "say": request(server, "/say/{text}", headers={"x-key": "{env:SAY_KEY}"}),
        },
        env={"SAY_KEY": "very-secret-key"},
    )
    read = ask(
        weir,
        models,
        call("count", {"text": "four"}, id="c1"),
        call("say", {"text": "a/../b\r\n"}, id="c2"),
        call("count", {"text": 4}, id="c3"),
        wire=wire,
    )
    assert read[0] == '{"output":4}'
    assert read[1] == '{"output":{"path":"/say/a%2F..%2Fb%0D%0A","key":"***"}}'
    assert "its arguments do not fit" in read[2] and "expected a string" in read[2]
    assert {"count", "say"} <= offered(models.asked[0])
    [(method, path, headers, _)] = server.heard
    assert (method, headers["x-key"]) == ("GET", "very-secret-key")
    assert "very-secret-key" not in weir.log()


def test_no_model_reads_a_secret_however_the_answer_spells_it(house, models, server):
    secret = 'sk-Ab/Cd+"9876'
    units = "".join(f"\\u{ord(c):04x}" for c in secret)
    spoken = [json.dumps(secret), json.dumps(secret).replace("/", "\\/"), f'"{units}"']
    texts = [f'{{"k": {text}}}' for text in spoken]
    texts += [json.dumps(text) for text in texts] + [json.dumps(json.dumps(texts[1]))]
    server.bodies = [text.encode() for text in texts]
    headers = {"x-key": "{env:SAY_KEY}"}
    weir = house(tools={"repeat": request(server, "/repeat", headers=headers)}, env={"SAY_KEY": secret})
    for text in texts:
        [read] = ask(weir, models, call("repeat", {}, id="c1"))
        while isinstance(read, str):  # what a careful reader could make of it
            assert "***" in read and "9876" not in read and "39" not in read, (text, read)
            read = json.loads(read)
            read = read.get("output", read.get("k", 0)) if isinstance(read, dict) else read
            if read == {"k": "***"} or read == "***":
                break


def test_who_has_what_and_what_asks(house, models, server):
    agents = [{"slug": "manager"}, {"slug": "clerk", "tools": ["say", "ask"]}]
    weir = house(
        agents,
        tools={
            "say": request(server, "/say", agents=["clerk"]),
            "ask": request(server, "/say", policy="ask"),
            "hide": request(server, "/say", policy="hidden"),
            "all": request(server, "/say"),
        },
    )
    seen = {}
    for agent in ("manager", "clerk"):
        models.say(MODEL, "Done.")
        assert crawbl.one_turn(weir, "go", agent_id=agent).error is None
        seen[agent] = offered(models.asked[-1])
    assert seen == {"manager": {"ask", "all"}, "clerk": {"say", "ask"}}
    models.say(MODEL, [call("ask", {}, id="c1")], "Done.")
    with weir.http() as http:
        told = http.post("/invoke", json={"input": "go", "session_id": "s"}).json()
        assert told["metadata"]["interrupted"] is True and server.heard == []
        told = http.post("/resume", json={"thread_id": "s", "human_input": "yes"}).json()
    assert told["output"] == "Done." and len(server.heard) == 1


def test_arguments_with_a_member_twice_are_not_passed_on(house, models, server):
    """The schema saw one of them; the program or the server might take the other."""
    weir = house(tools={"say": request(server, "/say/{text}"), "echo": program("", command=["cat"])})
    twice = '{"text": "5", "te\\u0078t": "9999"}'
    read = ask(weir, models, call("say", twice, id="c1"), call("echo", twice, id="c2"))
    for name, said in zip(("say", "echo"), read):
        assert f"tool '{name}' was not called" in said and "'text' stands twice; give it once" in said
    assert server.heard == []


def test_a_hundred_calls_at_once(house, models, server):
    """So many in one turn: bounded, and each answered with its own."""
    echo = program("", command=["sh", "-c", "sleep 0.01; cat"], at_once=8)
    weir = house(
        tools={"count": echo, "say": request(server, "/say/{text}")},
        limits={"tools_at_once": 100},
    )
    calls = [call("count" if i % 2 else "say", {"text": str(i)}, id=f"c{i}") for i in range(100)]
    read = ask(weir, models, *calls)
    for i, said in enumerate(read):
        expected = {"text": str(i)} if i % 2 else {"path": f"/say/{i}", "key": None}
        assert json.loads(said) == {"output": expected}
    assert len(server.heard) == 50


LINGERS = """
import os, pathlib, subprocess, sys, time
folder = pathlib.Path({folder!r})
for start in (False, True):
    child = subprocess.Popen(["sleep", "600"], start_new_session=start)
    (folder / str(child.pid)).touch()
(folder / str(os.getpid())).touch()
time.sleep(600)
"""


def left(folder):
    return [pid for pid in (int(path.name) for path in folder.iterdir()) if alive(pid)]


def test_a_program_that_forks_and_hangs_is_ended_whole(house, models, tmp_path):
    (tmp_path / "pids").mkdir()
    hangs = program(LINGERS.format(folder=str(tmp_path / "pids")), timeout="5s")
    weir = house(tools={"hangs": hangs})
    [read] = ask(weir, models, call("hangs", {}, id="c1"))
    assert "did not answer within 5s; the setting tools.hangs.timeout" in read
    assert "unknown" in read
    assert len(list((tmp_path / "pids").iterdir())) == 3
    eventually(lambda: not left(tmp_path / "pids"), "a process lives on")


@pytest.mark.parametrize("how", ("leave", "SIGTERM", "SIGKILL"))
def test_no_program_outlives_its_turn_or_weir(house, models, tmp_path, how):
    (tmp_path / "pids").mkdir()
    weir = house(tools={"hangs": program(LINGERS.format(folder=str(tmp_path / "pids")))}, limits={"shutdown": "100ms"})
    models.say(MODEL, [call("hangs", {}, id="c1")], "Done.")
    with weir.http() as http, http.stream("POST", "/stream", json={"input": "go"}):
        eventually(lambda: len(list((tmp_path / "pids").iterdir())) == 3, "it never began")
        assert len(left(tmp_path / "pids")) == 3
        if how == "SIGKILL":
            weir.kill()
        elif how == "SIGTERM":
            weir.stop()
    eventually(lambda: not left(tmp_path / "pids"), "a process lives on")


def test_a_hundred_megabytes_end_a_program_and_a_request(house, models, server):
    writes = "import sys\nfor _ in range(100): sys.stdout.write('x' * (1 << 20))"
    weir = house(tools={"writes": program(writes), "huge": request(server, "/huge")})
    read = ask(weir, models, call("writes", {}, id="c1"), call("huge", {}, id="c2"))
    assert "wrote more than 1MiB and was ended" in read[0] and "unknown" in read[0]
    assert "answered with more than 1MiB" in read[1] and "unknown" not in read[1]


def test_a_server_that_drips_hangs_or_breaks_off_ends_its_call_in_time(house, models, server):
    weir = house(
        tools={
            "drip": request(server, "/drip", timeout="300ms"),
            "hang": request(server, "/hang", timeout="300ms", method="POST"),
            "cut": request(server, "/cut", method="POST"),
            "none": {**request(server, "/say"), "url": "http://127.0.0.1:1/"},
            "nowhere": request(server, "/nowhere"),
        }
    )
    names = ("drip", "hang", "cut", "none", "nowhere")
    read = ask(weir, models, *[call(name, {}, id=f"c{name}") for name in names])
    drip, hang, cut, none, nowhere = read
    assert "did not answer within 300ms" in drip and "unknown" not in drip
    assert "did not answer within 300ms" in hang and "unknown" in hang
    assert "did not answer to the end" in cut and "unknown" in cut
    assert "cannot be reached" in none and "unknown" not in none
    assert json.loads(nowhere)["error"].startswith("tool 'nowhere': its server")
    assert server.gone.wait(PATIENCE), "the connection stays open"


def test_a_call_that_may_have_had_its_effect_is_not_made_again(house, models, server):
    """Killed in the middle, and started again: the model reads that nobody knows."""
    weir = house(tools={"hang": request(server, "/hang", method="POST")})
    models.say(MODEL, [call("hang", {}, id="c1")])
    session = {"input": "go", "session_id": "s"}
    with weir.http() as http, http.stream("POST", "/stream", json=session):
        eventually(lambda: server.heard, "it was never sent")
        weir.kill()
    weir.start()
    models.say(MODEL, "Done.")
    with weir.http() as http:
        assert http.post("/invoke", json={**session, "input": "and?"}).json()["output"] == "Done."
    [read] = results(models.asked[-1])
    assert "unknown" in read
    assert len(server.heard) == 1


def test_a_request_that_was_done_is_not_told_as_a_failure(house, models, server):
    """A plain failure would have the model pay twice."""
    weir = house(tools={
        "paid": request(server, "/paid", method="POST"),
        "page": request(server, "/page", method="POST", answer="json"),
        "look": request(server, "/page", answer="json"),
    })
    paid, page, look = ask(weir, models, *(call(name, {}, id=name) for name in ("paid", "page", "look")))
    for read in (paid, page):
        assert json.loads(read)["effect"] == "unknown", read
    assert "303" in paid and "no JSON" in page
    assert "effect" not in json.loads(look) and "no JSON" in look
    assert len(server.heard) == 3


def test_no_two_calls_have_the_same_id_however_a_model_names_them(house, models, server):
    """Some servers name every call `call_0`. Two payments must not leave under one key: not in one
    turn, in one session, of two users, nor when one is approved in another process."""
    refund = request(server, "/say", method="POST", headers={"Idempotency-Key": "{call:id}"})
    note = program("import os; print(os.environ['WEIR_CALL_ID'])")
    weir = house(tools={"refund": refund, "asked": {**refund, "policy": "ask"}, "note": note})
    again = [call("refund", {}, id="call_0"), "Done."]
    held = [call("asked", {}, id="call_0")] * 2 + ["Done."]
    models.say(MODEL, again[0], *again, *again, *again, [call("note", {}, id="call_0")] * 2, "Done.", *held)

    def ask(user="anonymous", path="/invoke", **more):
        body = {"input": "go", "session_id": "s", "config": {"configurable": {"user_id": user}}, **more}
        with weir.http() as http:
            answer = http.post(path, json=body).raise_for_status().json()
        return answer

    for user in ("ann", "ann", "bob", "ann"):
        assert ask(user)["output"] == "Done."
    noted = [json.loads(text)["output"] for text in results(models.asked[-1])[-2:]]
    ask("eve")
    weir.kill()
    weir.start()
    for _ in range(2):
        ask("eve", "/resume", thread_id="s", human_input="yes")
    keys = [headers["Idempotency-Key"] for _, _, headers, _ in server.heard]
    assert len(keys) == 6 and len({*keys, *noted}) == 8
    assert all(re.fullmatch(r"\d+-\d+", key) for key in keys + noted)
    [first, second] = [m["tool_calls"][0]["id"] for m in models.asked[-1].body["messages"] if m.get("tool_calls")]
    assert first == second == "call_0", "the model reads its own names again"


def weir_command(*args, status=0, **env):
    answer = subprocess.run(
        [str(harness.BINARY), *map(str, args)],
        env=harness.clean_environment(env),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == status, answer.stderr
    return answer.stdout if status == 0 else answer.stderr


def test_the_command_line_says_who_has_what_and_tries_one(server, tmp_path):
    (tmp_path / "faults").mkdir()
    mcp_server = [sys.executable, str(pathlib.Path(__file__).parent / "mcp_server.py"), str(tmp_path / "faults")]
    settings = {
        "tools": {
            "count": program("print(7)", timeout="3s"),
            "hangs": program("import time; time.sleep(600)", timeout="200ms"),
            "say": request(server, "/say/{text}", policy="ask", agents=["clerk"], headers={"x-key": "{call:agent}"}),
        },
        "mcp": [
            {"name": "faults", "command": mcp_server, "tools": {"danger_*": "hidden"}},
            {"name": "web", "url": f"http://127.0.0.1:{server.port}/mcp"},
        ],
        "agents": [
            {"slug": "clerk", "provider": "scripted", "tools": ["say", "slow", "nothing_like_it", "calculator"]},
            {"slug": "boss", "provider": "scripted", "delegates": ["clerk"]},
        ],
    }
    file = tmp_path / "weir.yaml"
    file.write_text(json.dumps(settings))
    here = ("-c", file, "--data", tmp_path / "data")
    clerk, boss = json.loads(weir_command("agent", "list", "--json", *here))["agents"]
    have = {t["name"]: (t["from"], t["policy"], t.get("server"), t.get("missing")) for t in clerk["tools"]}
    assert have == {
        "say": ("http", "ask", None, None),
        "slow": ("mcp", "allow", "faults", None),
        "calculator": ("builtin", "allow", None, None),
        "nothing_like_it": ("nowhere", "allow", None, True),
    }
    have = {t["name"]: t["from"] for t in boss["tools"]}
    assert have["count"] == "command" and have["crash"] == have["sky"] == "mcp"
    assert "bad" not in have  # its headers are wrong
    assert not {"say", "calculator", "danger_a"} & set(have) and boss["delegates"] == ["clerk"]
    listed = weir_command("tool", "list", "clerk", *here)
    assert "mcp faults" in listed and "count" not in listed
    assert weir_command("tool", "call", "count", *here) == '{"output":7}\n'
    said = weir_command("tool", "call", "say", '{"text": "a b"}', "--agent", "me", *here)
    assert json.loads(said) == {"output": {"path": "/say/a%20b", "key": "me"}}
    assert weir_command("tool", "call", "slow", '{"text": "hi"}', *here) == '{"output":"slow: hi"}\n'
    said = weir_command("tool", "call", "sky", '{"city": "K\u00f8ln"}', *here)
    assert json.loads(said) == {"output": "K\u00f8ln = =?base64?S8O4bG4=?="}
    assert "did not answer within 200 ms" in weir_command("tool", "call", "hangs", *here, status=1)
    pids = [int(pid) for pid in (tmp_path / "faults/pids").read_text().split()]
    eventually(lambda: not any(map(alive, pids)), "a server lives on")


def test_the_tools_of_the_examples_work(start_weir):
    """examples/tools/weir.yaml, as its first lines say."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shop = subprocess.Popen([sys.executable, str(EXAMPLES / "shop.py"), str(port)])
    try:
        eventually(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, "no shop")
        config = (EXAMPLES / "weir.yaml").read_text().replace("8099", str(port))
        for name in ("script.yaml", "word_count.py"):
            config = config.replace(name, str(EXAMPLES / name))
        weir = start_weir(config=config)
        said = {}
        for text in ("how many?", "my order?", "refund it"):
            with weir.http() as http:
                body = {"input": text, "session_id": text}
                told = http.post("/invoke", json=body).json()
                if told["metadata"]["interrupted"]:
                    told = http.post("/resume", json={"thread_id": text, "human_input": "yes"}).json()
            said[text] = (told["output"], [c["result"] for c in told["history"]])
    finally:
        shop.kill()
        shop.wait()
    assert said["how many?"] == ("Three words.", ['{"output":{"words":3,"longest":"three"}}'])
    assert said["my order?"] == ("It is ready.", ['{"output":{"state":"ready","cents":1250}}'])
    [refund] = said["refund it"][1]
    refund = json.loads(refund)["output"]
    assert refund["amount"] == {"cents": 1250, "currency": "EUR"} and refund["order"] == "A 7"
    assert refund["note"] == "for anonymous" and refund["key"].startswith("default-anonymous-")


def test_no_terminal_obeys_what_a_server_wrote(tmp_path):
    """`weir tool list` is how a person looks at a tool before it is accepted."""
    folder = tmp_path / "faults"
    folder.mkdir()
    evil = "Says \x1b]0;owned\x07\x1b[31m \x9b31m \u202edeveiler\u202c."
    tool = {"name": "say", "description": evil, "inputSchema": {"type": "object"}}
    (folder / "tools.json").write_text(json.dumps([tool]))
    (tmp_path / "weir.yaml").write_text(json.dumps({
        "mcp": [{"name": "faults", "command": [sys.executable, str(harness.ROOT / "test/e2e/mcp_server.py"), str(folder)]}],
        "agents": [{"slug": "clerk"}],
    }))
    here = ("-c", tmp_path / "weir.yaml", "--data", tmp_path / "data")
    for command in (("tool", "list"), ("tool", "list", "--json"), ("agent", "list", "--json"),
                    ("tool", "call", "say", json.dumps({"text": evil}))):
        said = weir_command(*command, *here)
        assert "say" in said and not set("\x1b\x07\x9b\u202e\u202c") & set(said), command
    listed = json.loads(weir_command("tool", "list", "--json", *here))["tools"]
    assert [t["description"] for t in listed if t["name"] == "say"] == [evil]
