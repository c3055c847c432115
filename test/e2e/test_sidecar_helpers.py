"""The helpers of weir sidecar: cost with its outbox, A2A, MCP over HTTP and stdio."""
import contextlib
import http.server
import json
import pathlib
import sys
import threading
import time

import httpx
import pytest
from raw_agent import Agent, event
from sidecar import Sidecar

PATIENCE = 30
HERE = pathlib.Path(__file__).parent


def eventually(check):
    give_up = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < give_up
        time.sleep(0.005)


class Platform:
    """The platform's API: keeps what it gets; `status` is what it answers."""

    def __init__(self, port=0):
        self.got = []
        self.status = 201
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if outer.status < 500:
                    outer.got.append((self.path, body, dict(self.headers)))
                self.send_response(outer.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def posted(self, path="/api/v1/costs"):
        return [body for where, body, _ in self.got if where == path]


@contextlib.contextmanager
def running(folder, settings=None, env=None, agent="http://127.0.0.1:9"):
    sidecar = Sidecar(folder, agent, settings, env=env).start()
    try:
        yield sidecar
    finally:
        sidecar.stop()
        assert not sidecar.sanitizer_log()


def cost(sidecar, name="cost", **event):
    with sidecar.helper(name) as helper:
        return helper.post("/cost", json={"model": "gpt-4o", "input_tokens": 10, "output_tokens": 2, **event})


# --- cost ---------------------------------------------------------------------------------------


def test_every_helper_port_has_all_of_them(tmp_path):
    with running(tmp_path) as sidecar:
        for name in ("a2a", "mcp", "cost"):
            assert cost(sidecar, name).status_code == 202
            with sidecar.helper(name) as helper:
                assert helper.get("/health").json()["agent"] == "behind"
                assert helper.post("/mcp/none", json={}).status_code == 502
                assert helper.post("/a2a/none", json={}).status_code == 502
                assert helper.post("/a2a/none", content=b"{").status_code == 400


@pytest.mark.parametrize(
    "bad", [b"{", b"[]", b'{"input_tokens":1}', b'{"model":"m","input_tokens":-1}', b'{"model":"m","cost_usd":"x"}', b'{"model":7}']
)
def test_a_wrong_event_of_cost_is_400(tmp_path, bad):
    with running(tmp_path) as sidecar, sidecar.helper() as helper:
        assert helper.post("/cost", content=bad).status_code == 400


def test_web_pages_may_not_use_the_helpers(tmp_path):
    with running(tmp_path) as sidecar, sidecar.helper() as helper:
        for path in ("/cost", "/mcp/x", "/a2a/x"):
            assert helper.post(path, json={}, headers={"origin": "http://evil.example"}).status_code == 403
            assert helper.post(path, json={}, headers={"host": "evil.example"}).status_code == 403


def test_an_event_becomes_two_calls_of_the_platform(tmp_path):
    with Platform() as platform:
        env = {"AGENTBREEDER_API_URL": platform.url + "/", "AGENTBREEDER_API_TOKEN": "api", "AGENT_VERSION": "1.2.3"}
        with running(tmp_path, env=env) as sidecar:
            assert cost(sidecar, provider="openai", trace_id="t1").status_code == 202
            eventually(lambda: len(platform.got) == 2)
    (path, body, headers), (audit_path, audit, _) = platform.got
    assert path == "/api/v1/costs" and audit_path == "/api/v1/audit"
    assert headers["Authorization"] == "Bearer api" and headers["Idempotency-Key"].startswith("weir-")
    moment = body.pop("occurred_at")
    assert moment.startswith("20") and audit["timestamp"] == moment
    assert body == {
        "agent": "behind", "agent_version": "1.2.3", "model": "gpt-4o", "provider": "openai",
        "input_tokens": 10, "output_tokens": 2, "cost_usd": 0.000045, "trace_id": "t1",
    }  # fmt: skip
    assert audit["event_type"] == "cost.recorded" and audit["actor"] == "sidecar" and audit["resource"] == "behind"
    assert audit["metadata"] == {k: body[k] for k in ("model", "input_tokens", "output_tokens", "cost_usd", "trace_id")}


def test_the_platforms_real_routes_can_be_chosen(tmp_path):
    with Platform() as platform:
        settings = {"api_base_url": platform.url, "api_routes": "platform", "team": "blue"}
        with running(tmp_path, settings) as sidecar:
            cost(sidecar, provider="openai", cost_usd=0.5)
            eventually(lambda: platform.got)
    assert [path for path, _, _ in platform.got] == ["/api/v1/costs/events"]
    body = platform.got[0][1]
    assert body["team"] == "blue" and body["model_name"] == "gpt-4o" and body["agent_name"] == "behind"
    assert body["provider"] == "openai" and body["cost_usd"] == 0.5


def test_a_platform_that_is_away_loses_nothing_and_delays_nobody(tmp_path):
    with Platform() as platform:
        platform.status = 503
        with running(tmp_path, {"api_base_url": platform.url}) as sidecar:
            began = time.monotonic()
            for number in range(50):
                assert cost(sidecar, trace_id=str(number)).status_code == 202
            assert time.monotonic() - began < PATIENCE
            assert sidecar.counts()["events_waiting"] == 100
            platform.status = 201
            eventually(lambda: len(platform.got) == 100)
            assert [body["trace_id"] for body in platform.posted()] == [str(n) for n in range(50)]
            eventually(lambda: sidecar.counts()["events_waiting"] == 0)


def test_an_event_that_the_platform_refuses_is_dropped_and_counted(tmp_path):
    with Platform() as platform:
        platform.status = 422
        with running(tmp_path, {"api_base_url": platform.url}) as sidecar:
            cost(sidecar)
            eventually(lambda: sidecar.counts()["events_refused"] == 2)
            platform.status = 201
            cost(sidecar)
            eventually(lambda: sidecar.counts()["events_sent"] == 2)


def test_the_outbox_survives_a_kill(tmp_path):
    outbox = tmp_path / "outbox"
    with Platform() as platform:
        platform.status = 503
        settings = {"api_base_url": platform.url, "outbox": str(outbox)}
        sidecar = Sidecar(tmp_path, "http://127.0.0.1:9", settings).start()
        for number in range(20):
            assert cost(sidecar, trace_id=str(number)).status_code == 202
        sidecar.kill()
        with open(outbox, "ab") as file:
            file.write(b'{"id":99,"path":"/api/v1/costs","bo')  # a write that was cut
        sidecar.start()
        cost(sidecar, trace_id="20")
        platform.status = 201
        eventually(lambda: len(platform.got) == 42)  # a cost and an audit record for each
        assert [body["trace_id"] for body in platform.posted()] == [str(n) for n in range(21)]
        keys = [headers["Idempotency-Key"] for _, _, headers in platform.got]
        assert len(set(keys)) == len(keys) == 42
        eventually(lambda: sidecar.counts()["events_waiting"] == 0)
        sidecar.stop()
        sidecar.start()  # nothing is sent again
        cost(sidecar, trace_id="21")
        eventually(lambda: len(platform.got) == 44)
        sidecar.stop()
        assert len(platform.posted()) == 22 and len(platform.got) == 44 and not sidecar.sanitizer_log()


def test_two_sidecars_may_not_share_an_outbox(tmp_path):
    settings = {"api_base_url": "http://127.0.0.1:9", "outbox": str(tmp_path / "outbox")}
    with running(tmp_path, settings):
        (tmp_path / "two").mkdir()
        second = Sidecar(tmp_path / "two", "http://127.0.0.1:9", settings)
        assert second.spawn().wait(PATIENCE) == 1
        assert "another process has it" in second.log()


# --- A2A ----------------------------------------------------------------------------------------


def test_a_peer_is_asked_in_the_dialect_of_the_platform(tmp_path):
    result = {"task_id": "1", "status": "completed", "output": "hi", "tokens": 3}

    def way(link):
        link.answer({"jsonrpc": "2.0", "id": link.asked.json["id"], "result": result, "error": None})

    with Agent() as peer:
        peer.way = way
        peers = {"one": peer.url + "/", "two": f"own-token@@{peer.url}"}
        with running(tmp_path, {"a2a_peers": peers}) as sidecar, sidecar.helper("a2a") as helper:
            answer = helper.post("/a2a/one", json={"params": {"message": "hello"}})
            assert answer.status_code == 200 and answer.json()["result"] == result
            asked = peer.last
            assert (asked.method, asked.target) == ("POST", "/a2a")
            assert asked.json["method"] == "tasks/send" and asked.json["params"] == {"message": "hello"}
            assert len(asked.json["id"]) == 32 and asked.header("authorization") == "Bearer side-token"
            helper.post("/a2a/two", json={"method": "tasks/get", "params": {"task_id": "1"}})
            assert peer.last.json["method"] == "tasks/get"
            assert peer.last.header("authorization") == "Bearer own-token"
            peer.way = lambda link: link.answer({"jsonrpc": "2.0", "id": "x", "error": {"code": -32601, "message": "no"}})
            assert helper.post("/a2a/one", json={}).status_code == 200
            for way_of in (lambda link: link.reset(), lambda link: link.answer(b"<html>"), lambda link: link.answer({}, "500 X")):
                peer.way = way_of
                assert helper.post("/a2a/one", json={}).status_code == 502


# --- MCP ----------------------------------------------------------------------------------------


def test_an_mcp_server_over_http_is_passed_through_as_it_is(tmp_path):
    def way(link):
        if link.asked.method == "POST":
            link.stream(event({"jsonrpc": "2.0", "id": 1, "result": {}}), kind="text/event-stream")
        else:
            link.answer({"gone": True}, "404 Not Found", mcp_session_id="s2")

    with Agent() as server:
        server.way = way
        servers = {"files": {"transport": "streamable_http", "url": f"{server.url}/mcp?key=k%20"}}
        env = {"AGENTBREEDER_SIDECAR_MCP_SERVERS": json.dumps(servers)}
        with running(tmp_path, env=env) as sidecar, sidecar.helper("mcp") as helper:
            headers = {"mcp-session-id": "s1", "authorization": "Bearer for-us", "accept": "application/json, text/event-stream"}
            answer = helper.post("/mcp/files", json={"jsonrpc": "2.0", "id": 1, "method": "x"}, headers=headers)
            assert answer.headers["content-type"] == "text/event-stream"
            assert answer.text == event({"jsonrpc": "2.0", "id": 1, "result": {}})
            assert server.last.target == "/mcp?key=k%20" and server.last.header("mcp-session-id") == "s1"
            assert server.last.header("authorization") is None
            assert server.last.header("host") == f"127.0.0.1:{server.port}"
            gone = helper.delete("/mcp/files?x=1")
            assert gone.status_code == 404 and gone.headers["mcp-session-id"] == "s2"
            assert server.last.target == "/mcp?key=k%20&x=1"


OUR_VARIABLES = ("AGENTBREEDER_API_TOKEN", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "WEIR_SIDECAR_TEAM")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    server = {"transport": "stdio", "command": sys.executable, "args": [str(HERE / "mcp_server.py"), str(folder), "silent"]}
    env = {name: "secret" for name in OUR_VARIABLES} | {"PASSED_ON": "yes"}
    env["AGENTBREEDER_SIDECAR_MCP_SERVERS"] = json.dumps({"other": {"transport": "http", "url": "http://h/?key=secret"}})
    env["OTEL_EXPORTER_OTLP_HEADERS"] = "authorization=secret"
    with running(folder, {"mcp_servers": {"tools": server}, "first_byte": "5s"}, env) as sidecar:
        yield sidecar


def rpc(sidecar, method, params=None, number=1, timeout=PATIENCE):
    message = {"jsonrpc": "2.0", "method": method} | ({"params": params} if params else {})
    if number is not None:
        message["id"] = number
    with sidecar.helper("mcp") as helper:
        return helper.post("/mcp/tools", json=message, timeout=timeout)


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.mark.timeout(60)
def test_an_answer_with_nulls_or_without_sense_ends_its_request_at_once(tmp_path):
    server = {"transport": "stdio", "command": sys.executable, "args": [str(HERE / "mcp_server.py"), str(tmp_path), "nulls"]}
    with running(tmp_path, {"mcp_servers": {"tools": server}, "first_byte": "1h"}) as sidecar:
        greeted = rpc(sidecar, "initialize", HELLO).json()
        assert greeted["result"]["serverInfo"] and "error" not in greeted
        assert rpc(sidecar, "tools/list").json()["result"]["tools"]
        unknown = rpc(sidecar, "what").json()
        assert unknown["error"]["code"] == -32601 and "result" not in unknown
        broken = rpc(sidecar, "tools/call", {"name": "broken", "arguments": {}})
        assert (broken.status_code, broken.json()["error"]["code"]) == (502, "UPSTREAM_INVALID")
        sidecar.said("'tools': the MCP server's message cannot be read: JSON-RPC: an error without")


def test_a_program_is_an_mcp_server_for_many_clients(program):
    first = rpc(program, "initialize", HELLO, number="a").json()
    assert first["id"] == "a" and first["result"]["serverInfo"]
    assert rpc(program, "notifications/initialized", number=None).status_code == 202
    again = rpc(program, "initialize", HELLO, number=7).json()
    assert again == {**first, "id": 7}
    answers = {}

    def ask(number):
        params = {"name": "say", "arguments": {"text": f"hi {number}"}}
        answers[number] = rpc(program, "tools/call", params, number=1).json()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    for number, answer in answers.items():
        assert answer["id"] == 1 and f"hi {number}" in json.dumps(answer["result"])
    heard = (program.folder / "heard").read_text()
    assert heard.count('"initialize"') == 1


def heard(program):
    return [json.loads(line) for line in (program.folder / "heard").read_text().splitlines()]


def call(program, tool, text="x", **more):
    return rpc(program, "tools/call", {"name": tool, "arguments": {"text": text}}, **more)


def test_a_program_gets_none_of_our_secrets(program):
    eventually(lambda: rpc(program, "initialize", HELLO).status_code == 200)
    pid = (program.folder / "pids").read_text().split()[-1]
    environment = pathlib.Path(f"/proc/{pid}/environ").read_text()
    environment = "\0".join(line for line in environment.split("\0") if not line.startswith("PYTEST_"))
    assert "PASSED_ON=yes" in environment and "PATH=" in environment
    assert "secret" not in environment and "side-token" not in environment


def test_a_program_that_ends_is_502_and_is_initialized_again_before_the_next_call(program):
    eventually(lambda: rpc(program, "initialize", HELLO).status_code == 200)
    assert call(program, "crash").status_code == 502
    before = len(heard(program))
    eventually(lambda: call(program, "say", "again").status_code == 200)
    hello, told, asked = heard(program)[before : before + 3]
    assert (hello["method"], hello["params"]) == ("initialize", HELLO)
    assert told["method"] == "notifications/initialized"
    assert asked["method"] == "tools/call"
    again = rpc(program, "initialize", HELLO).json()  # its client need not know
    assert again["result"]["serverInfo"] and len(heard(program)) == before + 3


def test_many_clients_wait_for_one_program_that_is_initialized(program):
    eventually(lambda: rpc(program, "initialize", HELLO).status_code == 200)
    assert call(program, "crash").status_code == 502
    before, found = len(heard(program)), []

    def ask():
        eventually(lambda: call(program, "say", "many").status_code == 200)
        found.append(1)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    methods = [message["method"] for message in heard(program)[before:]]
    assert len(found) == 8 and methods == ["initialize", "notifications/initialized"] + ["tools/call"] * 8


def cancelled(program, why):
    return [m for m in heard(program) if m["method"] == "notifications/cancelled" and m["params"]["reason"] == why]


def test_a_program_that_hangs_is_504_and_is_told(program):
    eventually(lambda: rpc(program, "initialize", HELLO).status_code == 200)
    assert call(program, "hang").status_code == 504
    eventually(lambda: len(cancelled(program, "it took too long")) == 1)


def test_a_client_that_leaves_cancels_its_call(program):
    eventually(lambda: rpc(program, "initialize", HELLO).status_code == 200)
    with pytest.raises(httpx.ReadTimeout):
        call(program, "hang", "left", timeout=0.2)
    eventually(lambda: len(cancelled(program, "the client left")) == 1)
    asked = next(m for m in heard(program) if m.get("params", {}).get("arguments") == {"text": "left"})
    assert cancelled(program, "the client left")[0]["params"]["requestId"] == asked["id"]


@pytest.mark.parametrize("body, code", [(b"{", -32700), (b"[1]", -32600), (b'{"jsonrpc":"2.0"}', -32600)])
def test_what_is_no_message_is_refused(program, body, code):
    with program.helper("mcp") as helper:
        answer = helper.post("/mcp/tools", content=body)
        assert answer.status_code == 400 and answer.json()["error"]["code"] == code
        assert helper.get("/mcp/tools").status_code == 405
