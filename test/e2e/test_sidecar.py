"""weir sidecar: what the client sees, and what the agent behind it receives."""
import concurrent.futures
import contextlib
import json
import os
import re
import socket
import subprocess
import threading
import time

import harness
import httpx
import pytest
from raw_agent import DONE, Agent, event, say
from sidecar import TOKEN, Sidecar, deltas, events

RESERVED = {"trace_id", "tokens", "cost_usd", "model", "latency_ms"}
TRACE = "0af7651916cd43dd8448eb211c80319c"
PATIENCE = 30
HASTY = httpx.Timeout(PATIENCE, read=0.1)


@pytest.fixture(scope="module")
def agent():
    with Agent() as agent:
        yield agent


@pytest.fixture(autouse=True)
def manners(agent):
    agent.way = say
    agent.asked.clear()
    while not agent.links.empty():
        agent.links.get()


@contextlib.contextmanager
def running(folder, agent, settings=None, **more):
    sidecar = Sidecar(folder, agent if isinstance(agent, str) else agent.url, settings, **more).start()
    try:
        yield sidecar
    finally:
        sidecar.stop()
        assert not sidecar.sanitizer_log()


@pytest.fixture(scope="module")
def plain(tmp_path_factory, agent):
    """Without guardrails on answers, with short limits."""
    settings = {"first_byte": "400ms", "stall": "400ms", "heartbeat": "100ms"}
    with running(tmp_path_factory.mktemp("plain"), agent, settings) as sidecar:
        yield sidecar


@pytest.fixture(scope="module")
def usual(tmp_path_factory, agent):
    """As it comes: an agent has minutes."""
    with running(tmp_path_factory.mktemp("usual"), agent) as sidecar:
        yield sidecar


@pytest.fixture(scope="module")
def strict(tmp_path_factory, agent):
    """Every text passes the rules, both ways."""
    rules = [
        {"name": "bombs", "type": "keyword", "pattern": "bomb, explosive", "action": "block"},
        {"name": "keys", "type": "regex", "pattern": "sk-[a-z0-9]{8,40}", "replace": "[KEY $0]"},
        {"name": "noted", "type": "keyword", "pattern": "secret", "action": "warn"},
    ]
    settings = {"guardrails": rules, "scan_answers": True}
    with running(tmp_path_factory.mktemp("strict"), agent, settings) as sidecar:
        yield sidecar


def eventually(check):
    give_up = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < give_up
        time.sleep(0.005)


# --- who comes in -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/invoke", "/stream", "/resume", "/anything"])
def test_a_caller_without_a_token_gets_401_and_one_with_a_wrong_one_403(plain, agent, path):
    with plain.http(headers={}) as http:
        for headers, status in [({}, 401), ({"authorization": "Basic x"}, 401), ({"authorization": "Bearer x"}, 403)]:
            answer = http.post(path, json={"input": "x"}, headers=headers)
            assert answer.status_code == status
            assert answer.json()["detail"] == answer.json()["error"]["message"]
            assert answer.headers["x-runtime-contract-version"] == "1"
            assert ("www-authenticate" in answer.headers) == (status == 401)
    assert not agent.asked


def test_a_scheme_in_any_case_and_blanks_around_the_token_are_fine(plain, agent):
    with plain.http(headers={"authorization": f"bearer   {TOKEN}"}) as http:
        assert http.post("/invoke", json={"input": "x"}).status_code == 200
    assert agent.last.header("authorization") == f"bearer   {TOKEN}"


def test_the_published_answer_to_a_wrong_token_can_be_chosen(tmp_path, agent):
    with running(tmp_path, agent, {"wrong_token_401": True}) as sidecar, sidecar.http(headers={}) as http:
        assert http.post("/invoke", json={}, headers={"authorization": "Bearer x"}).status_code == 401


def test_health_openapi_and_cards_are_open(plain, agent):
    agent.way = lambda link: link.answer({"name": "card"})
    with plain.http(headers={}) as http:
        health = http.get("/health").json()
        assert health["agent_name"] == health["agent"] == "behind"
        assert health["guardrails"][0] == "default-pii-ssn"
        assert http.head("/health").status_code == 200
        for path in ("/.well-known/agent.json", "/.well-known/agent-card.json", "/openapi.json"):
            answer = http.get(path)
            assert answer.json() == {"name": "card"} and agent.last.target == path
        assert http.post("/health").status_code == 401


def test_health_is_loading_until_the_agent_answers(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with running(tmp_path, f"http://127.0.0.1:{port}") as sidecar, sidecar.http() as http:
        answer = http.get("/health")
        assert answer.status_code == 200 and answer.json()["status"] == "loading"
        with Agent() as late:
            sidecar.stop()
            sidecar._env["AGENTBREEDER_SIDECAR_AGENT_URL"] = late.url
            sidecar.start()
            with sidecar.http() as http:
                eventually(lambda: http.get("/health").json()["status"] == "healthy")


def test_without_an_openapi_document_of_the_agent_there_is_an_own_one(plain, agent):
    agent.way = lambda link: link.answer({"detail": "no"}, "404 Not Found")
    with plain.http(headers={}) as http:
        answer = http.get("/openapi.json")
        assert answer.status_code == 200
        assert answer.json()["info"]["x-agentbreeder-runtime-contract"] == "1"
        assert "/invoke" in answer.json()["paths"]


def test_another_version_of_the_contract_is_400(plain, agent):
    with plain.http() as http:
        for version in ("2", "abc", "1.0"):
            answer = http.post("/invoke", json={"input": "x"}, headers={"x-runtime-contract-version": version})
            assert answer.status_code == 400
            assert answer.json()["error"]["details"] == {"supported": ["1"], "requested": version}
    assert not agent.asked


@pytest.mark.parametrize(
    "env, settings, said",
    [
        ({"AGENT_NAME": None}, {}, "agent_name is required"),
        ({"AGENT_AUTH_TOKEN": None}, {}, "AGENT_AUTH_TOKEN is required"),
        ({"AGENT_AUTH_TOKEN": "  "}, {}, "only white space"),
        ({}, {"mcp_servers": {"a": {"transport": "pigeon"}}}, "transport is stdio, http or sse"),
        ({}, {"mcp_servers": {"a": {"transport": "stdio"}}}, "needs a command"),
        ({}, {"guardrails": [{"name": "x", "type": "magic", "pattern": "x"}]}, "type is regex or keyword"),
        ({}, {"guardrails": [{"name": "x", "type": "regex", "pattern": "("}]}, "guardrail 'x'"),
        ({}, {"rate_token": "many"}, "10/s"),
        ({"AGENTBREEDER_SIDECAR_AGENT_URL": "nowhere"}, {}, "agent_url"),
        ({}, {"mcp_servers": {"a": {"transport": "http", "url": "nowhere"}}}, "'nowhere' is no URL"),
    ],
)
def test_wrong_settings_end_it_with_1_and_say_why(tmp_path, env, settings, said):
    sidecar = Sidecar(tmp_path, "http://127.0.0.1:9", settings, env=env)
    process = sidecar.spawn()
    assert process.wait(PATIENCE) == 1
    assert said in sidecar.log()


@pytest.mark.parametrize("word", ["disabled", "OFF", "0", "false", "no"])
def test_it_can_be_disabled(tmp_path, word):
    sidecar = Sidecar(tmp_path, "http://127.0.0.1:9", env={"AGENTBREEDER_SIDECAR": word, "AGENT_NAME": None})
    assert sidecar.spawn().wait(PATIENCE) == 0


def test_settings_it_does_not_know_are_ignored_with_a_warning(tmp_path, agent):
    with running(tmp_path, agent, {"gaurdrails": [], "mcp_servers": {}}) as sidecar:
        sidecar.said("'gaurdrails' is no setting")


@pytest.mark.parametrize("endpoint, enabled", [("http://127.0.0.1:9", True), (None, False)])
def test_health_says_whether_spans_are_sent(tmp_path, agent, endpoint, enabled):
    with running(tmp_path, agent, {"otlp_endpoint": endpoint}) as sidecar, sidecar.http() as http:
        assert http.get("/health").json()["otel_enabled"] is enabled


# --- what passes --------------------------------------------------------------------------------


def test_the_agent_gets_the_request_as_it_was_sent(plain, agent):
    agent.way = lambda link: link.answer({"a": 1}, kind="application/json", x_own="yes", connection="x-drop", x_drop="1")
    body = b'{"input": 12345678901234567890.50, "b": "\\u00e9"}'
    headers = {"connection": "x-hop", "x-hop": "1", "x-forwarded-for": "9.9.9.9", "keep-alive": "1", "te": "trailers"}
    with plain.http() as http:
        answer = http.put("/some/path?q=1&r=%20", content=body, headers={**headers, "x-request-id": "r1"})
    asked = agent.last
    assert (asked.method, asked.target, asked.body) == ("PUT", "/some/path?q=1&r=%20", body)
    assert asked.header("host") == f"127.0.0.1:{plain.port('inbound')}"
    assert asked.header("x-forwarded-for") == "9.9.9.9, 127.0.0.1"
    assert asked.header("authorization") == f"Bearer {TOKEN}"
    assert asked.header("x-request-id") == "r1"
    assert not {"x-hop", "keep-alive", "te", "expect", "connection"} & set(asked.headers)
    assert answer.json() == {"a": 1} and answer.headers["x-own"] == "yes"
    assert "x-drop" not in answer.headers
    assert answer.headers["x-trace-id"] == asked.header("x-trace-id")


def test_every_method_status_and_body_passes(plain, agent):
    with plain.http() as http:
        for status in (200, 201, 301, 404, 418, 500):
            agent.way = lambda link, s=status: link.answer(b"\0\1\2", f"{s} X", kind="image/png")
            answer = http.request("DELETE", "/x")
            assert (answer.status_code, answer.content) == (status, b"\0\1\2")
            assert answer.headers["content-type"] == "image/png"
        agent.way = lambda link: link.send("HTTP/1.1 204 No Content\r\n\r\n")
        assert http.get("/x").status_code == 204
        agent.way = lambda link: link.send("HTTP/1.1 200 OK\r\ncontent-length: 77\r\n\r\n")
        assert http.head("/x").headers["content-length"] == "77"
        agent.way = lambda link: link.send("HTTP/1.0 200 OK\r\n\r\nuntil the end")
        assert http.get("/x").text == "until the end"


def test_http2_clients_are_served(plain, agent):
    agent.way = say
    command = ["curl", "-s", "--http2-prior-knowledge", "-H", f"authorization: Bearer {TOKEN}", "-H", "cookie: a=1"]
    command += ["-d", '{"input":"x"}', f"{plain.url}/invoke"]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE).stdout)
    assert answer["output"] == "you said: x"
    assert agent.last.header("cookie") == "a=1"


def test_an_upload_streams_through_without_being_kept(tmp_path, agent):
    seen = threading.Event()

    def way(link):
        pieces = link.pieces(link.asked)
        first = next(pieces)
        seen.set()
        link.answer({"first": len(first), "all": len(first) + sum(map(len, pieces))})

    way.reads_itself = True
    agent.way = way

    def body():
        yield b"a" * 1000
        assert seen.wait(PATIENCE)  # the agent has the first piece before the second is sent
        for _ in range(40):
            yield b"b" * 262144

    with running(tmp_path, agent, {"default_rules": False}) as sidecar, sidecar.http() as http:
        for _ in range(2):
            seen.clear()
            answer = http.post("/upload", content=body()).json()
            assert answer == {"first": 1000, "all": 1000 + 40 * 262144}


def test_a_stream_comes_event_by_event(usual, agent):
    go = threading.Semaphore(0)

    def way(link):
        link.stream(end=False)
        for number in range(3):
            link.piece(event({"delta": str(number)}))
            assert go.acquire(timeout=PATIENCE)
        link.piece(DONE)
        link.send("0\r\n\r\n")

    agent.way = way
    with usual.http() as http, http.stream("POST", "/stream", json={"input": "x"}) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["x-accel-buffering"] == "no"
        seen = ""
        for piece in answer.iter_text():
            seen += piece
            if seen.endswith("\n\n") and "delta" in seen.split("\n\n")[-2]:
                go.release()
    assert deltas([e for e in events(seen) if e[0] is None]) == "012"


@pytest.mark.parametrize("path", ["/invoke", "/stream"])
def test_a_client_that_leaves_closes_the_agents_connection_at_once(usual, agent, path):
    def way(link):
        if path == "/stream":
            link.stream(event({"delta": "x"}), end=False)
        link.wait_closed()

    agent.way = way
    with socket.create_connection(("127.0.0.1", usual.port("inbound"))) as sock:
        body = b'{"input":"x"}'
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: {len(body)}\r\n\r\n"
        sock.sendall(head.encode() + body)
        link = agent.link()
        if path == "/stream":
            assert b"200" in sock.recv(15)
    began = time.monotonic()
    assert link.closed.wait(PATIENCE)
    assert time.monotonic() - began < 10
    with usual.http() as http:
        agent.way = say
        assert http.post("/invoke", json={"input": "again"}).status_code == 200


def test_a_slow_reader_paces_the_agent(tmp_path, agent):
    sent = [0]

    def way(link):
        link.stream(end=False)
        piece = event({"delta": "x" * 8000})
        with contextlib.suppress(OSError):
            for _ in range(4000):
                link.piece(piece)
                sent[0] += len(piece)

    agent.way = way
    with running(tmp_path, agent) as sidecar, socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", sidecar.port("inbound")))
        body = b'{"input":"x"}'
        head = f"POST /stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: {len(body)}\r\n\r\n"
        sock.sendall(head.encode() + body)
        before = -1
        while before != sent[0] or not before:  # until nothing moves any more
            before = sent[0]
            time.sleep(0.5)
        assert before < 24_000_000  # of 32 MB; what is not taken waits in the agent's own socket
        with open(f"/proc/{sidecar.pid}/statm") as statm:
            assert int(statm.read().split()[1]) * 4096 < 600_000_000


# --- the reserved fields ------------------------------------------------------------------------


def test_an_answer_gets_our_fields_and_the_agents_own_ones_go(plain, agent):
    theirs = {"output": {"n": 12345678901234567890}, "tokens": 7, "model": "made-up", "cost_usd": 9, "x": [1.10]}
    agent.way = lambda link: link.answer(theirs)
    with plain.http() as http:
        answer = http.post("/invoke", json={"input": "x"}, headers={"x-trace-id": TRACE})
    assert set(answer.json()) == {"output", "x", "trace_id", "latency_ms"}
    assert answer.json()["trace_id"] == answer.headers["x-trace-id"] == TRACE
    assert '"n": 12345678901234567890' in answer.text and "1.1" in answer.text
    assert int(answer.headers["x-latency-ms"]) >= 0
    assert agent.last.header("x-trace-id") == TRACE
    assert agent.last.header("traceparent").split("-")[1] == TRACE


def test_a_trace_of_the_caller_goes_on_and_nonsense_starts_a_new_one(plain, agent):
    parent = f"00-{TRACE}-b7ad6b7169203331-00"
    with plain.http() as http:
        assert http.post("/invoke", json={"input": "x"}, headers={"traceparent": parent}).json()["trace_id"] == TRACE
        assert agent.last.header("traceparent").startswith(f"00-{TRACE}-") and parent != agent.last.header("traceparent")
        assert agent.last.header("traceparent").endswith("-00")
        for bad in ("0" * 32, "xyz", TRACE.upper(), ""):
            trace = http.post("/invoke", json={"input": "x"}, headers={"x-trace-id": bad}).json()["trace_id"]
            assert len(trace) == 32 and trace != bad and trace == agent.last.header("x-trace-id")


USAGES = [
    ({"usage": {"prompt_tokens": 1000, "completion_tokens": 100}, "metadata": {"model": "gpt-4o"}}, "gpt-4o", 0.0035),
    ({"usage": {"input_tokens": 1000, "output_tokens": 100, "model": "claude-sonnet-4.6"}}, "claude-sonnet-4.6", 0.0045),
    ({"metadata": {"usage": {"promptTokenCount": 1000, "candidatesTokenCount": 100}}}, None, None),
    ({"usage": {"input_tokens": 1000, "output_tokens": 100, "model": "nobody-knows"}}, "nobody-knows", None),
]


@pytest.mark.parametrize("said, model, cost", USAGES)
def test_usage_in_the_answer_is_counted_and_priced(plain, agent, said, model, cost):
    agent.way = lambda link: link.answer({"output": "x", **said})
    with plain.http() as http:
        answer = http.post("/invoke", json={"input": "x"}).json()
    assert answer["tokens"] == {"input": 1000, "output": 100, "total": 1100}
    assert answer.get("model") == model
    assert answer.get("cost_usd") == cost


def test_usage_posted_to_the_cost_helper_wins_and_is_summed(usual, agent):
    def way(link):
        with usual.helper("cost") as cost:
            for model, tokens in (("gpt-4o-mini", 10), ("gpt-4o", 20)):
                posted = {"model": model, "input_tokens": tokens, "output_tokens": 1}
                posted["trace_id"] = link.asked.header("x-trace-id")
                assert cost.post("/cost", json=posted).status_code == 202
        if link.asked.target == "/invoke":
            link.answer({"output": "x", "usage": {"input_tokens": 1, "output_tokens": 1}})
        else:
            link.stream(event({"output": "x", "usage": {"input_tokens": 1}}, "result"), DONE)

    agent.way = way
    with usual.http() as http:
        for _ in range(2):  # a second run of the trace begins anew
            answer = http.post("/invoke", json={"input": "x"}, headers={"x-trace-id": TRACE}).json()
            assert answer["tokens"] == {"input": 30, "output": 2, "total": 32}
            assert answer["model"] == "gpt-4o"
            assert answer["cost_usd"] == pytest.approx(10 * 0.15e-6 + 0.6e-6 + 20 * 2.5e-6 + 10e-6)
        name, done = events(http.post("/stream", json={"input": "x"}).text)[-2]
        assert name == "done" and done["tokens"]["total"] == 32 and done["model"] == "gpt-4o"


def test_unknown_usage_stays_unknown_in_a_sum(usual, agent):
    def way(link):
        with usual.helper("cost") as cost:
            trace = link.asked.header("x-trace-id")
            cost.post("/cost", json={"model": "gpt-4o", "input_tokens": 5, "output_tokens": 5, "trace_id": trace})
            cost.post("/cost", json={"model": "gpt-4o", "input_tokens": 5, "trace_id": trace})
        link.answer({"output": "x"})

    agent.way = way
    with usual.http() as http:
        answer = http.post("/invoke", json={"input": "x"}).json()
    assert answer["tokens"] == {"input": 10} and "cost_usd" not in answer


def test_usage_in_an_answer_is_not_that_of_another_request_with_the_same_trace(usual, agent):
    go = threading.Event()

    def way(link):
        if link.asked.json["input"] == "first":
            link.stream(event({"description": "x", "usage": {"input_tokens": 7, "output_tokens": 8}}, "step"), end=False)
            assert go.wait(PATIENCE)
            link.piece(DONE)
            link.send("0\r\n\r\n")
        else:
            link.answer({"output": "x"})

    agent.way = way
    trace = {"x-trace-id": TRACE}
    with usual.http() as http, http.stream("POST", "/stream", json={"input": "first"}, headers=trace) as first:
        pieces = first.iter_text()
        seen = next(pieces)
        while "usage" not in seen:
            seen += next(pieces)
        second = http.post("/invoke", json={"input": "second"}, headers=trace).json()
        go.set()
        seen += "".join(pieces)
    assert second["trace_id"] == TRACE and not {"tokens", "cost_usd", "model"} & set(second)
    name, done = events(seen)[-2]
    assert name == "done" and done["tokens"] == {"input": 7, "output": 8, "total": 15}


def test_the_form_of_tokens_can_be_chosen(tmp_path, agent):
    agent.way = lambda link: link.answer({"output": "x", "usage": {"input_tokens": 2, "output_tokens": 3}})
    for form, expected in (("total", 5), ("off", None)):
        (tmp_path / form).mkdir()
        with running(tmp_path / form, agent, {"tokens": form}) as sidecar, sidecar.http() as http:
            assert http.post("/invoke", json={"input": "x"}).json().get("tokens") == expected


def test_prices_of_the_settings_come_first(tmp_path, agent):
    prices = [{"model": "house*", "input": 1, "output": 2}, {"model": "house*", "from": "2999-01-01", "input": 9, "output": 9}]
    usage = {"input_tokens": 1_000_000, "output_tokens": 500_000, "model": "own/house-1"}
    agent.way = lambda link: link.answer({"output": "x", "usage": usage})
    with running(tmp_path, agent, {"prices": prices}) as sidecar, sidecar.http() as http:
        assert http.post("/invoke", json={"input": "x"}).json()["cost_usd"] == 2.0


def test_an_agent_ends_its_stream_by_itself_after_done(usual, agent):
    left = []

    def way(link):
        link.stream(event({"delta": "a"}), DONE, end=False)
        link.sock.settimeout(0.3)
        try:
            left.append(link.sock.recv(1))
        except TimeoutError:
            left.append("it waits")
        link.send("0\r\n\r\n")
        link.wait_closed()

    agent.way = way
    with usual.http() as http:
        assert http.post("/stream", json={"input": "x"}).text.endswith("data: [DONE]\n\n")
        eventually(lambda: left)
    assert left == ["it waits"]


def test_done_comes_right_before_done_and_merges_the_agents_own(plain, agent):
    pieces = [event({"delta": "a"}), event({"mood": "fine", "tokens": 5}, "done"), ": hi\n\n", DONE, event({"delta": "late"})]
    agent.way = lambda link: link.stream(*pieces)
    with plain.http() as http:
        text = http.post("/stream", json={"input": "x"}).text
    found = events(text)
    assert [name for name, _ in found] == [None, "done", None]
    assert set(found[1][1]) == {"mood", "trace_id", "latency_ms"}
    assert text.endswith("data: [DONE]\n\n") and text.count("[DONE]") == 1 and ": hi\n\n" in text


def test_failures_of_the_agent_get_the_trace_id(plain, agent):
    agent.way = lambda link: link.answer({"detail": "no", "trace_id": "own"}, "422 Unprocessable")
    with plain.http() as http:
        answer = http.post("/invoke", json={"input": "x"})
    assert answer.status_code == 422
    assert answer.json() == {"detail": "no", "trace_id": answer.headers["x-trace-id"]}


# --- guardrails ---------------------------------------------------------------------------------


def test_personal_data_does_not_reach_the_agent(plain, agent):
    text = "first line\nssn 123-45-6789 and a@b.example\ncard 4111 1111 1111 1111 ok"
    body = {"input": {"messages": [{"content": text}], "n": 1699999999999, "at": "1699999999999"}, "k@e.yy": 1.50}
    with plain.http() as http:
        assert http.post("/invoke", json=body).status_code == 200
    got = agent.last.json
    clean = "first line\nssn [REDACTED-SSN] and [REDACTED-EMAIL]\ncard [REDACTED-CC] ok"
    assert got["input"]["messages"] == [{"content": clean}]
    assert got["input"]["n"] == 1699999999999 and got["input"]["at"] == "1699999999999"
    assert agent.last.header("content-length") == str(len(agent.last.body))
    assert b'"k@e.yy": 1.5' in agent.last.body or b'"k@e.yy":1.5' in agent.last.body


def raw_request(sidecar, method, target, body, **headers):
    """As no client would spell it."""
    lines = [f"{method} {target} HTTP/1.1", "Host: x", f"Authorization: Bearer {TOKEN}",
             f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    with socket.create_connection(("127.0.0.1", sidecar.port("inbound")), timeout=PATIENCE) as sock:
        sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        answer = b"".join(iter(lambda: sock.recv(65536), b""))
    return int(answer.split()[1]), answer


@pytest.mark.parametrize("target", ["/%69nvoke", "//invoke", "/x/../invoke", "/invoke/", "/Invoke", "/invoke;v=1"])
def test_another_spelling_of_a_path_does_not_pass_by_the_rules(strict, agent, target):
    for body in (b'{"input": "a b\\u006fmb"}', '{"input": "a bomb"}'.encode("utf-16"), b'{"input": "bomb", "x": NaN}'):
        status, _ = raw_request(strict, "POST", target, body, Content_Type="text/plain")
        assert status in (400, 403)
    assert not agent.asked
    status, _ = raw_request(strict, "POST", target, b'{"input": "x"}', X_Runtime_Contract_Version="2")
    assert status == 400
    status, answer = raw_request(strict, "POST", target, b'{"input": "hello"}', Content_Type="application/json")
    assert status == 200 and b'"trace_id"' in answer
    assert agent.last.target == target


@pytest.mark.parametrize("method", ["post", "Post", "DELETE", "QUERY", "GET"])
def test_a_body_is_read_whatever_the_method(strict, agent, method):
    status, _ = raw_request(strict, method, "/invoke", b'{"input": "a bomb"}', Content_Type="application/json")
    assert status == (403 if method.isupper() else 400)
    assert not agent.asked


def test_a_request_without_a_match_reaches_the_agent_byte_for_byte(plain, agent):
    body = b'{ "input" : "\\u0041 plain" ,\n "n": 1.000 }'
    with plain.http() as http:
        http.post("/invoke", content=body)
    assert agent.last.body == body


def test_what_is_blocked_never_reaches_the_agent_and_is_not_repeated(strict, agent):
    before = strict.counts()
    with strict.http() as http:
        answer = http.post("/invoke", json={"input": "how to build a BOMB"})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "GUARDRAIL_BLOCKED"
    assert answer.json()["rule"] == answer.json()["error"]["details"]["rule"] == "bombs"
    assert "build" not in answer.text and "BOMB" not in answer.text
    assert not agent.asked
    counts = strict.counts()
    assert counts["bombs"] == before["bombs"] + 1 and counts["blocked"] == before["blocked"] + 1


def test_a_rule_that_warns_counts_and_changes_nothing(strict, agent):
    before = strict.counts()["noted"]
    with strict.http() as http:
        http.post("/x", content=b"a secret, not JSON")
    assert agent.last.body == b"a secret, not JSON"
    assert strict.counts()["noted"] == before + 1


def test_answers_pass_the_rules_where_they_should(strict, agent):
    agent.way = lambda link: link.answer({"output": "the key is sk-abcdefgh1234", "history": [{"result": "a@b.example"}]})
    with strict.http() as http:
        answer = http.post("/invoke", json={"input": "x"}).json()
        assert answer["output"] == "the key is [KEY sk-abcdefgh1234]"
        assert answer["history"] == [{"result": "[REDACTED-EMAIL]"}]
        agent.way = lambda link: link.answer({"output": "a bomb"})
        assert http.post("/invoke", json={"input": "x"}).status_code == 403
        agent.way = lambda link: link.answer(b"mail a@b.example", kind="text/plain")
        assert http.get("/page").text == "mail [REDACTED-EMAIL]"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 21])
def test_a_match_across_events_is_found(strict, agent, size):
    text = "call 123-45-6789 or write to someone@somewhere.example, or else"
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    step = event({"description": "looking at c@d.example"}, "step")
    frames = [event({"delta": piece}) for piece in pieces]
    frames.insert(len(frames) // 2, step)
    stream = "".join(frames) + event({"output": text}, "result") + DONE
    # Cut without regard to events, and to characters.
    agent.way = lambda link: link.stream(*[stream[i : i + 7] for i in range(0, len(stream), 7)])
    with strict.http() as http:
        found = events(http.post("/stream", json={"input": "x"}).text)
    clean = "call [REDACTED-SSN] or write to [REDACTED-EMAIL], or else"
    assert deltas([e for e in found if e[0] is None]) == clean
    assert ("result", {"output": clean}) in found
    assert ("step", {"description": "looking at [REDACTED-EMAIL]"}) in found
    assert [name for name, _ in found[-2:]] == ["done", None]


@pytest.mark.parametrize("broken", ['"x": NaN', '"x": 01', '"x": "\xff"'])
def test_json_that_only_the_client_would_read_does_not_pass(strict, agent, broken):
    words = '{"delta": "a b\\u006fmb", "output": "a b\\u006fmb", %s}' % broken
    words = words.encode("latin-1")
    agent.way = lambda link: link.answer(words)
    with strict.http() as http:
        for path in ("/invoke", "/resume", "/anything"):
            answer = http.post(path, json={"input": "x"})
            assert (answer.status_code, answer.json()["error"]["code"]) == (502, "UPSTREAM_INVALID")
        agent.way = lambda link: link.stream(event({"delta": "first"}), b"data: " + words + b"\n\n", DONE)
        found = events(http.post("/stream", json={"input": "x"}).text)
    assert deltas(found) == "first"
    assert [name for name, _ in found[1:]] == ["error", "done", None] and found[-1][1] == "[DONE]"
    assert found[1][1]["code"] == "UPSTREAM_INVALID"


def test_an_event_named_message_is_one_without_a_name(strict, agent):
    def way(link):
        link.stream(event({"delta": "a bo"}, "message"), event({"delta": "mb"}, "message"), DONE)
    agent.way = way
    with strict.http() as http:
        found = events(http.post("/stream", json={"input": "x"}).text)
        assert "GUARDRAIL_BLOCKED" in [data.get("code") for name, data in found if name == "error"]
        agent.way = lambda link: link.stream(event({"delta": "well"}, "message"), event("[DONE]", "message"))
        found = events(http.post("/stream", json={"input": "x"}).text)
    assert deltas(found) == "well"
    assert [name for name, _ in found[1:]] == ["done", None]


def test_a_blocked_stream_ends_as_the_contract_says_and_the_agent_is_left(strict, agent):
    def way(link):
        link.stream(event({"delta": "this is a bo"}), event({"delta": "mb, take care"}), end=False)
        link.wait_closed()

    agent.way = way
    with strict.http() as http:
        text = http.post("/stream", json={"input": "x"}).text
    found = events(text)
    assert [name for name, _ in found[-3:]] == ["error", "done", None]
    assert found[-3][1]["code"] == "GUARDRAIL_BLOCKED"
    assert "bomb" not in text.replace("bombs", "") and deltas(found[:-3]) == "this is a "
    assert agent.link().closed.wait(PATIENCE)


def test_an_answer_that_grows_past_the_limit_is_502_and_not_cut(tmp_path, agent):
    rules = [{"name": "grow", "type": "keyword", "pattern": "x", "replace": "y" * 100}]
    settings = {"guardrails": rules, "scan_answers": True, "answer_max": "10KiB"}
    agent.way = lambda link: link.answer(b"x" * 9000, kind="text/plain")
    with running(tmp_path, agent, settings) as sidecar, sidecar.http() as http:
        answer = http.get("/page")
    assert answer.status_code == 502 and answer.json()["error"]["code"] == "UPSTREAM_INVALID"


def test_text_that_is_held_back_does_not_pass_for_a_heartbeat(tmp_path, agent):
    def way(link):
        link.stream(event({"delta": "call "}), end=False)
        for digit in "123-45-67":  # one every 60 ms, each of them held back
            time.sleep(0.06)
            link.piece(event({"delta": digit}))
        link.piece(DONE)
        link.send("0\r\n\r\n")

    agent.way = way
    with running(tmp_path, agent, {"scan_answers": True, "heartbeat": "100ms"}) as sidecar, sidecar.http() as http:
        text = http.post("/stream", json={"input": "x"}).text
    assert text.count(": \n\n") >= 2
    assert deltas([e for e in events(text) if e[0] is None]) == "call 123-45-67"


def test_text_that_may_still_become_a_match_comes_when_it_cannot(strict, agent):
    go = threading.Event()

    def way(link):
        link.stream(event({"delta": "number 123-45-"}), end=False)
        assert go.wait(PATIENCE)
        link.piece(event({"delta": "x"}) + DONE)
        link.send("0\r\n\r\n")

    agent.way = way
    with strict.http() as http, http.stream("POST", "/stream", json={"input": "x"}) as answer:
        seen = ""
        for piece in answer.iter_text():
            seen += piece
            if "number " in seen:
                assert "123" not in seen or go.is_set()
                go.set()
    assert deltas([e for e in events(seen) if e[0] is None]) == "number 123-45-x"


@pytest.mark.parametrize("codings", [["gzip"], ["identity", "gzip"], ["", "br"], ["identity, gzip"]])
def test_a_compressed_request_is_refused_where_rules_must_read_it(plain, agent, codings):
    headers = [("authorization", f"Bearer {TOKEN}"), *(("content-encoding", coding) for coding in codings)]
    with plain.http(headers={}) as http:
        answer = http.post("/invoke", content=b"\x1f\x8b", headers=headers)
    assert answer.status_code == 415 and not agent.asked


SECRET = '{"input": "b\\u006fmb", "x": %s}'
HIDDEN = {
    "a number that is none": (SECRET % "NaN").encode(),
    "a byte order mark": (SECRET % "1").encode("utf-8-sig"),
    "UTF-16": (SECRET % "1").encode("utf-16"),
    "UTF-32": (SECRET % "1").encode("utf-32-le"),
}


@pytest.mark.parametrize("how", HIDDEN)
def test_json_that_only_the_agent_would_read_is_refused(strict, agent, how):
    body = HIDDEN[how]
    assert json.loads(body)["input"] == "bomb"
    with strict.http() as http:
        for path, kind in [("/invoke", ""), ("/stream", "text/plain"), ("/resume", ""), ("/own", "application/x+json; a=b")]:
            answer = http.post(path, content=body, headers={"content-type": kind})
            assert answer.status_code == 400 and answer.json()["error"]["code"] == "INVALID_INPUT", path
    assert not agent.asked


def test_a_request_that_is_too_large_is_413(tmp_path, agent):
    with running(tmp_path, agent, {"body_max": "10KiB"}) as sidecar, sidecar.http() as http:
        assert http.post("/invoke", json={"input": "x" * 20000}).status_code == 413
        assert http.post("/invoke", content=(b"x" * 1000 for _ in range(20))).status_code == 413
        assert http.post("/invoke", json={"input": "x" * 5000}).status_code == 200


# --- an agent that fails ------------------------------------------------------------------------


def test_an_agent_that_is_down_is_502_at_once(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with running(tmp_path, f"http://127.0.0.1:{port}") as sidecar, sidecar.http() as http:
        for path in ("/invoke", "/stream", "/resume", "/other"):
            answer = http.post(path, json={"input": "x"})
            assert answer.status_code == 502
            assert answer.json()["error"]["code"] == "UPSTREAM_UNREACHABLE"
            assert answer.json()["trace_id"] == answer.headers["x-trace-id"]
            assert answer.headers["content-type"] == "application/json"
        assert http.get("/openapi.json").status_code == 200


def reuses(agent, http, send):
    """Send until it is tried on a connection that was used before; what the first try saw."""
    agent.way = leave_unless_new
    for _ in range(50):
        agent.asked.clear()
        answer = send()
        if agent.asked[0].on_connection > 1:
            return answer
        agent.way = say
        ask_until_reused(agent, http)
        agent.way = leave_unless_new
    raise AssertionError("no connection was used again")


def leave_unless_new(link):
    """Close a connection that has had a request before, when the next one comes."""
    return say(link) if link.requests == 1 else True


def ask_until_reused(agent, http):
    """A connection is used again once another one was seen to stay open."""
    def reused():
        assert http.post("/invoke", json={"input": "x"}).status_code == 200
        time.sleep(0.05)
        return agent.last.on_connection > 1
    eventually(reused)


def test_connections_that_an_agent_keeps_are_used_again(tmp_path):
    with Agent(keeps=True) as agent, running(tmp_path, agent.url) as sidecar, sidecar.http() as http:
        ask_until_reused(agent, http)
        agent.asked.clear()
        for i in range(20):
            for path in ("/invoke", "/stream", "/anything"):
                answer = http.post(path, json={"input": f"{path} {i}"})
                assert f"you said: {path} {i}" in answer.text
        assert sum(asked.on_connection > 1 for asked in agent.asked) > 30  # one that rested for a second is not
        assert [asked.json["input"] for asked in agent.asked] == [
            f"{path} {i}" for i in range(20) for path in ("/invoke", "/stream", "/anything")]


def test_an_agent_that_closes_after_each_answer_without_saying_so_loses_nothing(tmp_path, agent):
    """The connections that are seen to stay open are none of its, however long it is asked."""
    with running(tmp_path, agent) as sidecar, sidecar.http() as http:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            assert http.post("/invoke", json={"input": "x"}).status_code == 200


def test_an_agent_that_closes_a_kept_connection_gets_new_ones_and_no_post_twice(tmp_path):
    with Agent(keeps=True) as agent, running(tmp_path, agent.url) as sidecar, sidecar.http() as http:
        ask_until_reused(agent, http)
        assert reuses(agent, http, lambda: http.post("/invoke", json={"input": "lost"})).status_code == 502
        assert len(agent.asked) == 1
        for i in range(10):
            assert http.post("/invoke", json={"input": i}).status_code == 200
        assert [asked.on_connection for asked in agent.asked[1:]] == [1] * 10


def test_a_get_is_sent_once_more_when_a_kept_connection_is_closed(tmp_path):
    with Agent(keeps=True) as agent, running(tmp_path, agent.url) as sidecar, sidecar.http() as http:
        ask_until_reused(agent, http)
        assert reuses(agent, http, lambda: http.get("/anything")).status_code == 200
        assert [(asked.method, asked.on_connection > 1) for asked in agent.asked] == [("GET", True), ("GET", False)]


BROKEN = {
    "closes without a word": lambda link: None,
    "resets": lambda link: link.reset(),
    "is no HTTP": lambda link: link.send("SSH-2.0-OpenSSH_9.2\r\n"),
    "has half a head": lambda link: link.send("HTTP/1.1 200 OK\r\ncontent-"),
    "has half a body": lambda link: link.send("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"),
    "has a broken chunk": lambda link: link.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    "is no JSON": lambda link: link.answer(b"<html>", kind="text/html"),
    "is half JSON": lambda link: link.answer(b'{"output": "x"'),
    "is a list": lambda link: link.answer([1]),
    "is empty": lambda link: link.answer(b""),
    "is compressed": lambda link: link.answer(b"\x1f\x8b\x08", content_encoding="gzip"),
    "is compressed, it says later": lambda link: link.send(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: identity\r\n"
        "content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}"
    ),
    "has too many headers": lambda link: link.answer({"output": 1}, **{f"x{i}": "1" for i in range(80)}),
}


@pytest.mark.parametrize("how", BROKEN)
def test_an_answer_that_is_none_is_502(plain, agent, how):
    agent.way = BROKEN[how]
    with plain.http() as http:
        answer = http.post("/invoke", json={"input": "x"})
        assert answer.status_code == 502, answer.text
        assert answer.json()["error"]["code"] in ("UPSTREAM_UNREACHABLE", "UPSTREAM_INVALID")
        agent.way = say
        assert http.post("/invoke", json={"input": "x"}).status_code == 200
    assert len(agent.asked) == 2  # it was not asked twice


@pytest.mark.parametrize("body, why", [
    (b'{"output": NaN}', "JSON 1:12 (byte 11): expected a value but found 'N'"),
    (b'{"output": ' + b"[" * 70 + b"]" * 70 + b"}", "at most 64 levels"),
    (b'[1]', "no JSON object"),
])
def test_an_answer_that_cannot_be_read_says_where(plain, agent, body, why):
    agent.way = lambda link: link.answer(body)
    with plain.http() as http:
        answer = http.post("/invoke", json={"input": "x"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "UPSTREAM_INVALID")
    assert why in answer.json()["error"]["message"]


def hang(link):
    link.wait_closed()


def hang_in_body(link):
    link.send('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"output"')
    link.wait_closed()


def hang_in_head(link):
    link.send("HTTP/1.1 200 OK\r\ncontent-")
    link.wait_closed()


@pytest.mark.parametrize("way", [hang, hang_in_head, hang_in_body])
@pytest.mark.parametrize("path", ["/invoke", "/stream"])
def test_an_agent_that_is_silent_is_504(plain, agent, way, path):
    agent.way = way
    with plain.http() as http:
        answer = http.post(path, json={"input": "x"})
    assert answer.status_code in (504, 502) if way is hang_in_body else answer.status_code == 504
    assert agent.link().closed.wait(PATIENCE)


def cut(link):
    link.stream(event({"delta": "so far"}), end=False)


def cut_in_event(link):
    link.stream(event({"delta": "so far"}), 'data: {"delta":"and', end=False)


def cut_by_reset(link):
    link.stream(event({"delta": "so far"}), end=False)
    time.sleep(0.05)  # RST overtakes data that was not read
    link.reset()


def ends_early(link):
    link.stream(event({"delta": "so far"}))


def silent(link):
    link.stream(event({"delta": "so far"}), end=False)
    link.wait_closed()


def endless_event(link):
    link.stream(event({"delta": "so far"}), end=False)
    with contextlib.suppress(OSError):
        for _ in range(600):
            link.piece("data: " + "x" * 65536)
        link.wait_closed()


@pytest.mark.parametrize("way", [cut, cut_in_event, cut_by_reset, ends_early, silent, endless_event])
def test_a_stream_that_breaks_ends_with_error_done_and_done(plain, agent, way):
    agent.way = way
    with plain.http() as http:
        answer = http.post("/stream", json={"input": "x"})
    found = events(answer.text)
    assert answer.status_code == 200
    assert [name for name, _ in found] == [None, "error", "done", None]
    assert found[0][1] == {"delta": "so far"} and isinstance(found[1][1]["error"], str)
    assert found[2][1]["trace_id"] == answer.headers["x-trace-id"]
    assert answer.text.endswith("data: [DONE]\n\n")


def test_an_event_may_be_as_long_as_an_answer(tmp_path, agent):
    result = event({"output": "x" * (3 << 20)}, "result")
    agent.way = lambda link: link.stream(result, DONE)
    with running(tmp_path, agent, {"answer_max": "4MiB"}) as sidecar, sidecar.http() as http:
        answer = http.post("/stream", json={"input": "x"})
        assert answer.text.startswith(result)
        assert [name for name, _ in events(answer.text)] == ["result", "done", None]
        agent.way = lambda link: link.stream(event({"output": "x" * (5 << 20)}, "result"), DONE)
        answer = http.post("/stream", json={"input": "x"})
        assert events(answer.text)[0][1]["code"] == "UPSTREAM_INVALID"
        assert [name for name, _ in events(answer.text)] == ["error", "done", None]
        assert sidecar.counts()["agent_unreachable"] == 1
        sidecar.said("an event is longer than 4194304 bytes")
        eventually(lambda: sidecar.counts()["bodies_bytes"] == 0)


def test_long_events_in_flight_are_bounded_together(tmp_path, agent):
    go = threading.Event()
    frame = event({"output": "x" * 200000}, "result")

    def way(link):
        link.stream(frame[:150000], end=False)
        assert go.wait(PATIENCE)
        with contextlib.suppress(OSError):
            link.piece(frame[150000:] + DONE)
            link.send("0\r\n\r\n")

    agent.way = way
    with running(tmp_path, agent, {"bodies_max": "256KiB"}) as sidecar:
        with sidecar.http() as http, concurrent.futures.ThreadPoolExecutor(1) as pool:
            first = pool.submit(http.post, "/stream", json={"input": "x"})
            eventually(lambda: sidecar.counts()["bodies_bytes"] >= 150000)
            refused = http.post("/stream", json={"input": "x"}).text
            assert [name for name, _ in events(refused)] == ["error", "done", None]
            assert events(refused)[0][1]["code"] == "UNAVAILABLE"
            go.set()
            assert first.result(PATIENCE).text.startswith(frame)
        assert sidecar.counts()["bodies_full"] == 1
        eventually(lambda: sidecar.counts()["bodies_bytes"] == 0)


def test_a_stream_whose_result_came_is_whole_without_its_end(plain, agent):
    agent.way = lambda link: link.stream(event({"output": "x"}, "result"))
    with plain.http() as http:
        names = [name for name, _ in events(http.post("/stream", json={"input": "x"}).text)]
    assert names == ["result", "done", None]


@pytest.mark.parametrize("failed", [event({"error": "no"}, "error"), event({"error": "no"})])
def test_an_error_of_the_agent_is_the_only_one(plain, agent, failed):
    agent.way = lambda link: link.stream(failed, end=False)
    with plain.http() as http:
        text = http.post("/stream", json={"input": "x"}).text
    assert text.count('"error"') == 1 and text.endswith("data: [DONE]\n\n")


def test_a_stream_that_is_none_is_502(plain, agent):
    agent.way = lambda link: link.answer({"output": "x"})
    with plain.http() as http:
        answer = http.post("/stream", json={"input": "x"})
    assert answer.status_code == 502 and answer.json()["error"]["code"] == "UPSTREAM_INVALID"


def test_a_silent_stream_has_heartbeats(plain, agent):
    def way(link):
        link.stream(event({"delta": "x"}), end=False)
        time.sleep(0.3)
        link.piece(DONE)
        link.send("0\r\n\r\n")

    agent.way = way
    with plain.http() as http:
        assert http.post("/stream", json={"input": "x"}).text.count(": \n\n") >= 1


def test_bodies_in_flight_are_bounded_together(tmp_path, agent):
    go = threading.Event()
    large = {"input": "x" * 40000}

    def way(link):
        if link.asked.json["input"] == "answer":
            link.answer({"output": "x" * 70000})
            return
        assert go.wait(PATIENCE)
        link.answer({"output": "done"})

    agent.way = way
    with running(tmp_path, agent, {"bodies_max": "64KiB"}) as sidecar, sidecar.http() as http:
        first = []
        thread = threading.Thread(target=lambda: first.append(http.post("/invoke", json=large)))
        thread.start()
        eventually(lambda: agent.asked)
        refused = http.post("/invoke", json=large)
        assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
        assert len(agent.asked) == 1
        go.set()
        thread.join(PATIENCE)
        assert first[0].json()["output"] == "done"
        assert http.post("/invoke", json=large).status_code == 200
        assert http.post("/invoke", json={"input": "answer"}).status_code == 503
        counts = sidecar.counts()
        assert counts["bodies_full"] == 2
        eventually(lambda: sidecar.counts()["bodies_bytes"] == 0)


# --- rates and repeats --------------------------------------------------------------------------


def test_too_many_requests_are_429_and_say_when(tmp_path, agent):
    for number, key in enumerate(("rate_token", "rate_agent", "rate_address")):
        folder = tmp_path / key
        folder.mkdir()
        with running(folder, agent, {key: "3/h"}) as sidecar, sidecar.http() as http:
            statuses = [http.post("/invoke", json={"input": "x"}) for _ in range(5)]
            assert [answer.status_code for answer in statuses] == [200] * 3 + [429] * 2
            assert 1 <= int(statuses[-1].headers["retry-after"]) <= 1200
            assert statuses[-1].json()["error"]["code"] == "RATE_LIMITED"
            assert http.get("/health").status_code == 200
        assert len(agent.asked) == 3 * (number + 1)


def test_each_address_has_a_rate_of_its_own_whatever_its_ports(tmp_path, agent):
    with running(tmp_path, agent, {"rate_address": "2/h"}) as sidecar:
        for address in ("127.0.0.1", "127.0.0.2"):
            found = []
            for _ in range(3):
                transport = httpx.HTTPTransport(local_address=address, verify=harness.NO_TLS)
                with sidecar.http(transport=transport) as http:
                    found.append(http.post("/invoke", json={"input": "x"}).status_code)
            assert found == [200, 200, 429]


def test_a_request_with_a_key_runs_once(usual, agent):
    go = threading.Event()

    def way(link):
        assert go.wait(PATIENCE)
        say(link)

    agent.way = way
    with usual.http() as http:
        answers = []
        ask = lambda: answers.append(http.post("/invoke", json={"input": "pay"}, headers={"idempotency-key": "k1"}))
        threads = [threading.Thread(target=ask) for _ in range(5)]
        for thread in threads:
            thread.start()
        agent.link()
        go.set()
        for thread in threads:
            thread.join(PATIENCE)
        ask()
        assert len({answer.text for answer in answers}) == 1 and len(answers) == 6
        assert answers[0].json()["output"] == "you said: pay"
        other = http.post("/invoke", json={"input": "other"}, headers={"x-idempotency-key": "k1"})
        assert other.status_code == 409
        bad = http.post("/invoke", json={"input": "x"}, headers={"idempotency-key": "a", "x-idempotency-key": "b"})
        assert bad.status_code == 400
    assert len(agent.asked) == 1 and agent.last.header("idempotency-key") == "k1"


def test_the_same_words_of_another_session_are_another_request(usual, agent):
    with usual.http() as http:
        def ask(query="", **headers):
            return http.post(f"/invoke{query}", json={"input": "hi"}, headers={"Idempotency-Key": "whose", **headers})
        assert ask(**{"X-Session-Id": "alice"}).status_code == 200
        assert ask(**{"X-Session-Id": "alice"}).status_code == 200
        assert ask(**{"X-Session-Id": "bob"}).status_code == 409
        assert ask().status_code == 409
        assert ask("?tenant=1", **{"X-Session-Id": "alice"}).status_code == 409
    assert len(agent.asked) == 1


def test_a_request_with_a_key_outlives_its_client(usual, agent):
    go = threading.Event()

    def way(link):
        assert go.wait(PATIENCE)
        say(link)

    agent.way = way
    with usual.http() as http:
        with pytest.raises(httpx.ReadTimeout):
            http.post("/invoke", json={"input": "pay"}, headers={"idempotency-key": "k2"}, timeout=HASTY)
        go.set()
        answer = http.post("/invoke", json={"input": "pay"}, headers={"idempotency-key": "k2"})
    assert answer.json()["output"] == "you said: pay" and len(agent.asked) == 1


def test_a_key_is_given_back_where_nothing_ran(usual, agent):
    key = {"idempotency-key": "k3"}
    with usual.http() as http:
        agent.way = lambda link: link.answer({"error": {"code": "AGENT_NOT_LOADED", "message": "x"}}, "503 X")
        assert http.post("/invoke", json={"input": "x"}, headers=key).status_code == 503
        agent.way = say
        assert http.post("/invoke", json={"input": "x"}, headers=key).status_code == 200
        agent.way = lambda link: link.reset()
        key = {"idempotency-key": "k4"}
        assert http.post("/invoke", json={"input": "x"}, headers=key).status_code == 502
        agent.way = say  # it may have had an effect: it is not run again
        assert http.post("/invoke", json={"input": "x"}, headers=key).status_code == 502
    assert len(agent.asked) == 3


# --- the end ------------------------------------------------------------------------------------


def test_it_ends_in_order_while_requests_run(tmp_path, agent):
    agent.way = hang
    sidecar = Sidecar(tmp_path, agent.url, {"stop": "200ms"}).start()
    with sidecar.http() as http:
        results = []

        def ask():
            with contextlib.suppress(httpx.HTTPError):
                results.append(http.post("/invoke", json={"input": "x"}))

        thread = threading.Thread(target=ask)
        thread.start()
        link = agent.link()
        sidecar.stop()
        thread.join(PATIENCE)
        assert link.closed.wait(PATIENCE)
    assert not sidecar.sanitizer_log()


def test_help_says_every_setting():
    text = subprocess.run([str(harness.BINARY), "sidecar", "--help"], capture_output=True, text=True, check=True).stdout
    for name in ("AGENTBREEDER_SIDECAR_AGENT_URL", "guardrails", "a2a_peers", "mcp_servers", "rate_token", "outbox"):
        assert name in text


def test_the_file_can_be_named_as_the_published_sidecar_does(tmp_path, agent):
    sidecar = Sidecar(tmp_path, agent.url, {"guardrails": [{"name": "of-the-file", "type": "keyword", "pattern": "x"}]})
    command = sidecar.command()
    command[command.index("-c")] = "-config"
    sidecar.command = lambda: command
    sidecar.start()
    with sidecar.http() as http:
        assert "of-the-file" in http.get("/health").json()["guardrails"]
    sidecar.stop()


def test_the_page_says_every_setting_and_its_default():
    """What --help prints and docs/sidecar.md cannot drift apart."""
    text = subprocess.run([str(harness.BINARY), "sidecar", "--help"], capture_output=True, text=True, check=True).stdout
    page = (harness.ROOT / "docs/sidecar.md").read_text()
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ")]
    said = {cell.strip(): row for row in rows for cell in (row[1].strip(" `"), row[2].strip(" `"))}
    found = re.findall(r"^  ([a-z0-9_]+)?(?:, )?([A-Z][A-Z_0-9]+)?\n      .*?(?: \(([^()]*)\))?$", text, re.M)
    assert len(found) > 35
    for key, variable, preset in found:
        row = said[key or variable]
        if variable:
            assert f"`{variable}`" in row[2]
        if preset:
            assert preset.removesuffix("s") in row[3], (key, preset)


def test_an_answer_that_was_blocked_is_not_run_again(strict, agent):
    agent.way = lambda link: link.answer({"output": "a bomb"})
    with strict.http() as http:
        answers = [http.post("/invoke", json={"input": "x"}, headers={"idempotency-key": "b1"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [403, 403] and len(agent.asked) == 1
    assert answers[0].json() == answers[1].json()


def test_without_a_token_everybody_may_ask_but_no_foreign_page(tmp_path, agent):
    with running(tmp_path, agent, token=None) as sidecar, sidecar.http() as http:
        assert http.post("/invoke", json={"input": "x"}).status_code == 200
        assert http.post("/invoke", json={"input": "x"}, headers={"host": "agent.pod"}).status_code == 200
        for page in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
            assert http.post("/invoke", json={"input": "x"}, headers=page).status_code == 403
        assert http.get("/health", headers=page).status_code == 200


def test_a_caller_that_leaves_while_it_waits_for_another_ones_run_does_no_harm(usual, agent):
    go = threading.Event()

    def way(link):
        assert go.wait(PATIENCE)
        say(link)

    agent.way = way
    key = {"idempotency-key": "w1"}
    with usual.http() as http, usual.http(timeout=HASTY) as hasty:
        answers = []
        ask = threading.Thread(target=lambda: answers.append(http.post("/invoke", json={"input": "x"}, headers=key)))
        ask.start()
        agent.link()
        for _ in range(3):
            with pytest.raises(httpx.ReadTimeout):
                hasty.post("/invoke", json={"input": "x"}, headers=key)
        go.set()
        ask.join(PATIENCE)
    assert answers[0].status_code == 200 and len(agent.asked) == 1


def test_hundreds_of_turns_leave_nothing_behind(usual, agent):
    def descriptors():
        return len(os.listdir(f"/proc/{usual.pid}/fd"))

    agent.way = say
    with usual.http() as http:
        http.post("/invoke", json={"input": "x"})
        before = descriptors()
        for number in range(300):
            path = ("/invoke", "/stream", "/other")[number % 3]
            assert http.post(path, json={"input": "x"}).status_code == 200
        eventually(lambda: descriptors() <= before + 2)
