"""Spans of weir sidecar, for a collector that is played with the messages of opentelemetry-proto."""
import contextlib
import json
import sys

import pytest
from collector import Collector, attributes
from raw_agent import Agent
from sidecar import Sidecar
from test_sidecar_helpers import HERE, Platform

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{CALLER}-01"
INTERNAL, SERVER, CLIENT = 1, 2, 3


@pytest.fixture
def agent():
    with Agent() as agent:
        yield agent


@pytest.fixture
def collector():
    with Collector() as collector:
        yield collector


@contextlib.contextmanager
def running(folder, agent, collector, env=None, **settings):
    sidecar = Sidecar(folder, agent, {"otlp_endpoint": collector.url, **settings}, env).start()
    try:
        yield sidecar
    finally:
        sidecar.stop()
        assert not sidecar.sanitizer_log()


def by_name(spans):
    found = {span.name: span for span in spans}
    assert len(found) == len(spans), sorted(found)
    return found


def test_a_request_the_agent_and_the_rules_are_spans_of_the_callers_trace(tmp_path, agent, collector):
    usage = {"model": "gpt-4o", "usage": {"prompt_tokens": 10, "completion_tokens": 2}}
    agent.way = lambda link: link.answer({"output": "private", "metadata": usage})
    headers = {"OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b"}
    with running(tmp_path, agent.url, collector, headers, scan_answers=True) as sidecar, sidecar.http() as http:
        asked = http.post("/invoke", json={"input": "secret"}, headers={"traceparent": PARENT, "tracestate": "a=1"})
        assert asked.status_code == 200
    spans = by_name(collector.wait(4))
    assert set(spans) == {"request /invoke", "guardrails request", "ask agent", "guardrails answer"}
    whole, ask = spans["request /invoke"], spans["ask agent"]
    assert {span.trace_id.hex() for span in spans.values()} == {TRACE}
    assert whole.kind == SERVER and whole.parent_span_id.hex() == CALLER
    assert ask.kind == CLIENT and spans["guardrails answer"].kind == INTERNAL
    assert {s.parent_span_id for s in spans.values() if s is not whole} == {whole.span_id}
    assert agent.asked[-1].header("traceparent") == f"00-{TRACE}-{ask.span_id.hex()}-01"
    assert agent.asked[-1].header("tracestate") == "a=1"
    found = attributes(whole)
    assert (found["http.response.status_code"], found["url.path"], found["gen_ai.agent.name"]) == (200, "/invoke", "behind")
    assert (found["gen_ai.usage.input_tokens"], found["gen_ai.usage.output_tokens"]) == (10, 2)
    assert "secret" not in str(spans) and "private" not in str(spans)
    path, sent = collector.asked[0]
    assert path == "/v1/traces" and sent["x-key"] == "a b"
    assert collector.resources[0]["service.name"] == "behind"


def test_failures_say_why_and_a_caller_that_does_not_sample_gets_none(tmp_path, collector):
    with running(tmp_path, "http://127.0.0.1:9", collector) as sidecar, sidecar.http() as http:
        assert http.post("/invoke", json={"input": "x"}, headers={"traceparent": PARENT[:-1] + "0"}).status_code == 502
        assert http.post("/invoke", json={"input": "x"}, headers={"authorization": "Bearer no"}).status_code == 403
        assert http.post("/stream", json={"input": "x"}).status_code == 502
    spans = by_name(collector.wait(3))
    assert set(spans) == {"request /stream", "guardrails request", "ask agent"}
    for name in ("request /stream", "ask agent"):
        assert spans[name].status.code == 2
        assert attributes(spans[name])["error.type"] == "UPSTREAM_UNREACHABLE"


def test_a_stream_is_one_span_with_its_usage(tmp_path, agent, collector):
    with running(tmp_path, agent.url, collector) as sidecar, sidecar.http() as http:
        assert "[DONE]" in http.post("/stream", json={"input": "x"}, headers={"traceparent": PARENT}).text
    spans = by_name(collector.wait(3))
    assert attributes(spans["request /stream"])["http.response.status_code"] == 200
    assert spans["request /stream"].status.code == 0


def test_what_the_agent_asks_by_the_helpers_are_spans_of_its_own_trace(tmp_path, collector):
    with Platform() as platform:
        platform.status = 200
        servers = {"web": {"transport": "http", "url": f"{platform.url}/mcp"}}
        command = {"transport": "stdio", "command": sys.executable, "args": [str(HERE / "mcp_server.py"), str(tmp_path)]}
        settings = {"mcp_servers": {**servers, "own": command}, "a2a_peers": {"peer": f"{platform.url}/"}}
        with running(tmp_path, "http://127.0.0.1:9", collector, **settings) as sidecar, sidecar.helper("mcp") as helper:
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            for path in ("/mcp/web", "/mcp/own", "/a2a/peer"):
                helper.post(path, json=ping, headers={"traceparent": PARENT})
        heard = {path: headers.get("traceparent") for path, _, headers in platform.got}
    spans = by_name(collector.wait(3))
    assert set(spans) == {"mcp web", "mcp own", "a2a peer"}
    for span in spans.values():
        assert (span.trace_id.hex(), span.parent_span_id.hex(), span.kind) == (TRACE, CALLER, CLIENT)
    assert heard["/mcp"] == f"00-{TRACE}-{spans['mcp web'].span_id.hex()}-01"
    assert heard["/a2a"] == f"00-{TRACE}-{spans['a2a peer'].span_id.hex()}-01"


def said_to_program(tmp_path):
    heard = [json.loads(line) for line in (tmp_path / "heard").read_text().splitlines()]
    return [message["params"] for message in heard if message["method"] == "tools/call"]


def test_an_mcp_server_that_is_a_program_gets_the_span_in_meta(tmp_path, collector):
    command = {"transport": "stdio", "command": sys.executable, "args": [str(HERE / "mcp_server.py"), str(tmp_path)]}
    other = PARENT.replace("b7ad", "c7ad")
    say = {"name": "say", "arguments": {"text": "x", "_meta": {"traceparent": "kept"}}}
    asked = [
        (say, {"traceparent": PARENT, "tracestate": "a=1"}),
        ({**say, "_meta": {"progressToken": 7, "traceparent": other, "tracestate": "b=2"}}, {"traceparent": PARENT}),
        ({**say, "_meta": {"traceparent": "nonsense", "x": [1, {"y": None}]}}, {}),
    ]
    with running(tmp_path, "http://127.0.0.1:9", collector, mcp_servers={"own": command}) as sidecar, sidecar.helper("mcp") as helper:
        for number, (params, headers) in enumerate(asked):
            call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            assert "result" in helper.post("/mcp/own", json=call, headers=headers).json()
    spans = collector.wait(3)
    assert {span.name for span in spans} == {"mcp own"}
    parents = [span.parent_span_id.hex() for span in spans]
    assert parents == [CALLER, "c7ad6b7169203331", ""]
    metas = [params["_meta"] for params in said_to_program(tmp_path)]
    assert [meta["traceparent"] for meta in metas] == [f"00-{span.trace_id.hex()}-{span.span_id.hex()}-01" for span in spans]
    assert [meta.get("tracestate") for meta in metas] == ["a=1", "b=2", None]
    assert [spans[0].trace_id.hex(), spans[1].trace_id.hex()] == [TRACE, TRACE] and spans[2].trace_id.hex() != TRACE
    assert metas[1]["progressToken"] == 7 and metas[2]["x"] == [1, {"y": None}]
    for params in said_to_program(tmp_path):
        assert {name: params[name] for name in say} == say


def test_without_spans_a_program_gets_what_the_agent_said_and_nothing_else(tmp_path):
    command = {"transport": "stdio", "command": sys.executable, "args": [str(HERE / "mcp_server.py"), str(tmp_path)]}
    say = {"name": "say", "arguments": {"text": "x"}}
    sidecar = Sidecar(tmp_path, "http://127.0.0.1:9", {"mcp_servers": {"own": command}}).start()
    with sidecar.helper("mcp") as helper:
        for headers in ({}, {"traceparent": PARENT, "tracestate": "a=1"}):
            helper.post("/mcp/own", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": say}, headers=headers)
    sidecar.stop()
    assert said_to_program(tmp_path) == [say, {**say, "_meta": {"traceparent": PARENT, "tracestate": "a=1"}}]
