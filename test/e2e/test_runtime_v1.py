"""The Runtime Contract v1 over HTTP: /health, /invoke, /stream. Each test names its row or its
section of the HTTP sheet."""
import concurrent.futures
import contextlib
import json
import re
import socket
import subprocess
import threading
import time
import uuid

import pytest
from replicas import eventually
from test_leaving import reader

pytestmark = pytest.mark.weir(script="test/e2e/scripts/contract.yaml")

VERSION = "x-runtime-contract-version"
BODY = {"input": "hello"}
SSE_FRAME = re.compile(r"(event: [a-z_]+\n)?data: [^\r\n]+\n\n|: ?[^\r\n]*\n\n")


class Events:
    """The bytes of an event stream, checked against 2.1 and taken apart."""

    def __init__(self, text):
        self.text = text
        assert "\r" not in text
        assert SSE_FRAME.sub("", text) == "", "bytes that are no frame"
        frames = [frame for frame in text.split("\n\n") if frame and not frame.startswith(":")]
        assert frames.count("data: [DONE]") == 1 and frames[-1] == "data: [DONE]"
        assert text.endswith("data: [DONE]\n\n")
        self.items = [self._item(frame) for frame in frames[:-1]]

    @staticmethod
    def _item(frame):
        head, _, data = frame.rpartition("data: ")
        name = head.removeprefix("event: ").strip() or "delta"
        return name, json.loads(data)

    @property
    def names(self):
        return [name for name, _ in self.items]

    def of(self, name):
        return [data for kind, data in self.items if kind == name]

    @property
    def delta(self):
        for data in self.of("delta"):
            assert set(data) == {"delta"} and data["delta"], data
        return "".join(data["delta"] for data in self.of("delta"))


def invoke(weir, body, **headers):
    with weir.http() as http:
        return http.post("/invoke", json=body, headers=headers)


def stream(weir, body, **headers):
    with weir.http() as http:
        answer = http.post("/stream", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return Events(answer.content.decode())


def output(weir, body):
    answer = invoke(weir, body)
    assert answer.status_code == 200, answer.text
    return answer.json()["output"]


def raw(weir, request, timeout=10):
    """Send bytes, and read until the daemon closes."""
    with socket.create_connection(("127.0.0.1", weir.port("http")), timeout) as peer:
        peer.sendall(request)
        received = b""
        while part := peer.recv(65536):
            received += part
    return received


def post(path, body, version="1.1", *lines):
    text = json.dumps(body) if not isinstance(body, str) else body
    head = [f"POST {path} HTTP/{version}", "Host: localhost", "Content-Type: application/json"]
    head += [f"Content-Length: {len(text.encode())}", *lines, "", text]
    return "\r\n".join(head).encode()


# --- health ---------------------------------------------------------------------------


def test_health_names_the_agent_and_its_version(weir):
    """1.6"""
    with weir.http() as http:
        answer = http.get("/health")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert body["status"] == "healthy"
    assert isinstance(body["agent_name"], str) and re.match(r"\d+\.\d+\.\d+", body["version"])


@pytest.mark.weir(env={"AGENT_NAME": "tiny", "AGENT_VERSION": "2.3.4"})
def test_health_takes_name_and_version_from_the_environment(weir):
    """1.6"""
    with weir.http() as http:
        body = http.get("/health").json()
    assert (body["agent_name"], body["version"]) == ("tiny", "2.3.4")


def test_health_answers_head_without_a_body(weir):
    """1.6"""
    with weir.http() as http:
        answer = http.head("/health")
    assert answer.status_code == 200 and answer.content == b"" and answer.headers[VERSION] == "1"


# --- invoke ---------------------------------------------------------------------------


def test_invoke_answers_with_output_a_new_session_and_the_tools_that_were_used(weir):
    """1.7"""
    answer = invoke(weir, BODY)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert body["output"] == "manager heard: hello"
    assert uuid.UUID(body["session_id"]).version == 4
    assert body["history"] == []


def test_a_caller_may_name_the_agent_and_a_wrong_name_is_refused(weir):
    """An extra field that the contract allows; without it the first agent answers."""
    assert output(weir, {**BODY, "agent": "eve"}) == "eve heard: hello"
    assert output(weir, {**BODY, "agent": None}) == "manager heard: hello"
    assert output(weir, {**BODY, "agent": ""}) == "manager heard: hello"
    assert stream(weir, {**BODY, "agent": "wally"}).text.count("wally heard: hello") > 0
    for path in ("/invoke", "/stream"):
        with weir.http() as http:
            answer = http.post(path, json={**BODY, "agent": "wallly"})
            kind = http.post(path, json={**BODY, "agent": 7})
        assert answer.status_code == 404 and kind.status_code == 422
        error = answer.json()["error"]
        assert error["code"] == "AGENT_NOT_FOUND"
        said = "no agent named 'wallly'; there are: manager, wally, eve; did you mean 'wally'?"
        assert error["message"] == said


def test_an_agent_leaves_the_reserved_fields_to_the_sidecar(weir):
    """1.7"""
    reserved = {"trace_id", "tokens", "cost_usd", "model", "latency_ms"}
    assert not reserved & set(invoke(weir, {"input": "three tools"}).json())


def test_history_lists_each_tool_with_its_arguments_result_and_time(weir):
    """1.7"""
    history = invoke(weir, {"input": "three tools"}).json()["history"]
    assert [entry["name"] for entry in history] == ["look_up", "broken", "wait_short"]
    for entry in history:
        assert isinstance(entry["args"], dict)
        assert isinstance(entry["result"], str)
        assert isinstance(entry["duration_ms"], int) and entry["duration_ms"] >= 0
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", entry["started_at"])
    assert history[0]["args"]["what"] == 'a "pencil" & <ink>'
    assert history[2]["duration_ms"] >= 100


def test_numbers_survive_as_they_were_written(weir):
    """1.14: no double conversion of large integers"""
    answer = invoke(weir, {"input": "three tools"})
    assert "12345678901234567890" in answer.text


ALIASES = {
    "input": {"input": "hello"},
    "input_message": {"input_message": "hello", "context": {"a": 1}},
    "messages": {"messages": [{"role": "user", "content": "hello"}]},
    "input.message": {"input": {"message": "hello"}},
    "input.input": {"input": {"input": "hello"}},
    "input.query": {"input": {"query": "hello"}},
    "input.question": {"input": {"question": "hello"}},
    "input.prompt": {"input": {"prompt": "hello"}},
    "input.text": {"input": {"text": "hello"}},
    "input.messages": {
        "input": {"messages": [{"role": "user", "content": "x"}, {"content": "hello"}]}
    },
    "input first": {"input": "hello", "input_message": "no", "messages": [{"content": "no"}]},
    "unknown keys": {"input": "hello", "surprise": {"deep": [1, 2, {}]}, "stream": True},
    "config and metadata": {"input": "hello", "config": {"x": 1}, "metadata": {"y": []}},
    "nulls": {"input": "hello", "session_id": None, "config": None, "metadata": None},
}


@pytest.mark.parametrize("name", ALIASES)
def test_a_text_arrives_by_this_name(weir, name):
    """1.7: what real callers send"""
    heard = output(weir, ALIASES[name])
    assert "hello" in (heard if isinstance(heard, str) else json.dumps(heard))
    assert "no" not in str(heard).replace("know", "")


def test_text_in_is_text_out(weir):
    """1.7: mirror the kind of input; the dashboard rejects anything else"""
    for text in ("hello", "three tools", "hand over", "say nothing", "umlauts"):
        assert isinstance(output(weir, {"input": text}), str), text
    assert output(weir, {"input": "say nothing"}) == ""


def test_an_object_or_a_list_is_taken(weir):
    """1.7"""
    for value in ({"message": "hello"}, {"anything": 1}, [{"content": "hello"}], ["hello"]):
        answer = invoke(weir, {"input": value})
        assert answer.status_code == 200, answer.text
        assert isinstance(answer.json()["output"], (str, dict, list))


SESSIONS = [
    ({"session_id": "a", "thread_id": "b"}, "a"),
    ({"thread_id": "b", "config": {"thread_id": "c"}}, "b"),
    ({"config": {"thread_id": "c", "session_id": "d"}}, "c"),
    ({"config": {"session_id": "d", "configurable": {"thread_id": "e"}}}, "d"),
    ({"config": {"configurable": {"thread_id": "e"}}}, "e"),
    ({}, "header"),
    ({"session_id": ""}, "header"),
    ({"session_id": None}, "header"),
]


@pytest.mark.parametrize("fields, expected", SESSIONS, ids=str)
def test_the_session_comes_from_the_first_place_that_names_it(weir, fields, expected):
    """1.7, 1.2: body before header"""
    headers = {"X-Session-Id": "header"}
    assert invoke(weir, {**BODY, **fields}, **headers).json()["session_id"] == expected
    result = stream(weir, {**BODY, **fields}, **headers).of("result")[0]
    assert result["session_id"] == expected


def test_callers_that_say_thread_id_get_one_back(weir):
    """1.7"""
    body = invoke(weir, {**BODY, "thread_id": "t-1"}).json()
    assert body["thread_id"] == body["session_id"] == "t-1"


# --- what is refused ------------------------------------------------------------------

BAD_BODIES = {
    "nothing": (b"", 400),
    "no JSON": (b"{", 400),
    "garbage behind": (b'{"input":"x"} x', 400),
    "two documents": (b'{"input":"x"}{"input":"y"}', 400),
    "single quotes": (b"{'input':'x'}", 400),
    "bad utf-8": (b'{"input":"\xff\xfe"}', 400),
    "half a surrogate": (b'{"input":"\\ud800"}', 400),
    "65 levels": (b'{"input":' + b"[" * 64 + b"]" * 64 + b"}", 400),
    "a million brackets": (b"[" * 1_000_000, 400),
    "no input": (b"{}", 400),
    "a number": (b'{"input":5}', 422),
    "null": (b'{"input":null}', 422),
    "a truth": (b'{"input":true}', 422),
    "a list": (b"[]", 422),
    "a string": (b'"hello"', 422),
    "a session that is a number": (b'{"input":"x","session_id":5}', 422),
    "a config that is a list": (b'{"input":"x","config":[]}', 422),
    "a metadata that is a string": (b'{"input":"x","metadata":"y"}', 422),
}


@pytest.mark.parametrize("path", ["/invoke", "/stream"])
@pytest.mark.parametrize("what", BAD_BODIES)
def test_a_body_is_refused_that_is(weir, path, what):
    """P9, K7, I2, 1.12"""
    content, status = BAD_BODIES[what]
    with weir.http() as http:
        answer = http.post(path, content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == status, answer.text
        error = answer.json()["error"]
        assert error["code"] == "INVALID_INPUT" and error["message"]
        assert answer.headers[VERSION] == "1"
        assert answer.headers["content-type"] == "application/json"
        assert http.post("/invoke", json=BODY).status_code == 200


def test_64_levels_of_json_are_taken(weir):
    """I2"""
    content = b'{"input":' + b"[" * 63 + b"]" * 63 + b"}"
    with weir.http() as http:
        answer = http.post("/invoke", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("path", ["/nothing", "/", "/cancel", "/metrics", "/runs/x"])
def test_this_path_is_not_found(weir, path):
    """P9"""
    with weir.http() as http:
        for method in ("GET", "POST"):
            answer = http.request(method, path)
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "NOT_FOUND"
            assert answer.headers[VERSION] == "1"


@pytest.mark.parametrize(
    "method, path, allowed",
    [
        ("GET", "/invoke", "POST"),
        ("PUT", "/invoke", "POST"),
        ("DELETE", "/stream", "POST"),
        ("HEAD", "/stream", "POST"),
        ("HEAD", "/invoke", "POST"),
        ("POST", "/health", "GET"),
        ("OPTIONS", "/invoke", "POST"),
    ],
)
def test_this_method_is_not_allowed_and_the_answer_says_which_is(weir, method, path, allowed):
    """P9, S7, 1.12"""
    with weir.http() as http:
        answer = http.request(method, path)
    assert answer.status_code == 405
    assert allowed in [name.strip() for name in answer.headers["Allow"].split(",")]
    assert answer.headers[VERSION] == "1"
    if method == "HEAD":
        assert answer.content == b""
    else:
        assert answer.json()["error"]["code"] == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize(
    "kind, status",
    [
        ("text/plain", 400),
        ("application/x-www-form-urlencoded", 400),
        ("application/jsonx", 400),
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("application/vnd.api+json", 200),
        (None, 200),
    ],
)
def test_a_body_of_this_type_is_answered(weir, kind, status):
    """P9, 1.2: unknown type is 400, not 415"""
    headers = {"Content-Type": kind} if kind else {}
    with weir.http() as http:
        answer = http.post("/invoke", content=b'{"input":"hello"}', headers=headers)
    assert answer.status_code == status, answer.text
    if status == 400:
        assert answer.json()["error"]["code"] == "INVALID_INPUT"


WRONG_VERSIONS = ["2", "1.0", "abc", "", "1, 1", "01"]


@pytest.mark.parametrize("wanted", WRONG_VERSIONS)
def test_another_version_of_the_contract_is_refused(weir, wanted):
    """1.5"""
    with weir.http() as http:
        for path in ("/invoke", "/stream"):
            answer = http.post(path, json=BODY, headers={VERSION: wanted})
            assert answer.status_code == 400, answer.text
            assert answer.json()["error"]["code"] == "UNSUPPORTED_CONTRACT_VERSION"
            assert answer.headers[VERSION] == "1"
        assert http.get("/health", headers={VERSION: wanted}).status_code == 200


def test_version_1_of_the_contract_is_served(weir):
    """1.5"""
    for wanted in ("1", "  1 "):
        lines = (f"{VERSION}: {wanted}", "Connection: close")
        assert raw(weir, post("/invoke", BODY, "1.1", *lines)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.weir(env={"AGENT_AUTH_TOKEN": "s3cret"})
def test_the_checks_come_in_the_order_of_the_sheet(weir):
    """1.13: path, method, token, version, type, size, JSON, shape"""
    good = {"Authorization": "Bearer s3cret"}
    steps = [
        ("GET", "/nothing", {}, b"", 404),
        ("GET", "/invoke", {VERSION: "2"}, b"", 405),
        ("POST", "/invoke", {VERSION: "2", "Content-Type": "text/plain"}, b"{", 401),
        ("POST", "/invoke", {VERSION: "2", "Authorization": "Bearer x"}, b"{", 403),
        ("POST", "/invoke", {VERSION: "2", "Content-Type": "text/plain", **good}, b"{", 400),
    ]
    with weir.http() as http:
        for method, path, headers, content, status in steps:
            answer = http.request(method, path, headers=headers, content=content)
            assert answer.status_code == status, (method, path, headers)
        assert answer.json()["error"]["code"] == "UNSUPPORTED_CONTRACT_VERSION"
        # Too large is said before the body is read, and before its JSON is looked at.
        declared = {"Content-Type": "text/plain", **good}
        answer = http.post("/invoke", headers=declared, content=b"x" * (9 << 20))
        assert answer.json()["error"]["code"] == "INVALID_INPUT"


def test_a_body_above_8_mib_is_too_large_before_it_is_read(weir):
    """P7, 1.12"""
    head = post("/invoke", "", "1.1", "Expect: 100-continue", "Connection: close")
    head = head.replace(b"Content-Length: 0", b"Content-Length: 8388609")
    answer = raw(weir, head)
    assert answer.startswith(b"HTTP/1.1 413 ") and b"PAYLOAD_TOO_LARGE" in answer
    assert b"100 Continue" not in answer


@pytest.mark.weir(env={"AGENT_AUTH_TOKEN": "s3cret"})
def test_a_client_that_asks_first_is_not_told_to_go_on_with_a_bad_token(weir):
    """P7"""
    lines = ("Expect: 100-continue", "Authorization: Bearer x")
    head = post("/invoke", "", "1.1", *lines).replace(b"Length: 0", b"Length: 8388608")
    answer = raw(weir, head)
    assert answer.startswith(b"HTTP/1.1 403 ") and b"100 Continue" not in answer


def test_a_client_that_asks_first_is_told_to_go_on(weir):
    """1.14"""
    with socket.create_connection(("127.0.0.1", weir.port("http")), 10) as peer:
        whole = post("/invoke", BODY, "1.1", "Expect: 100-continue", "Connection: close")
        head, _, body = whole.partition(b"\r\n\r\n")
        peer.sendall(head + b"\r\n\r\n")
        assert peer.recv(1000).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        peer.sendall(body)
        assert peer.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("message", ["fail UNAVAILABLE", "fail INTERNAL", "fail eof"])
def test_a_failed_turn_is_an_answer_with_the_error_envelope(weir, message):
    """1.12: 500 MUST use the envelope"""
    answer = invoke(weir, {"input": message})
    assert answer.status_code in (500, 503)
    error = answer.json()["error"]
    assert re.fullmatch(r"[A-Z][A-Z0-9_]*", error["code"]) and error["message"]
    assert answer.headers[VERSION] == "1"


# --- event streams --------------------------------------------------------------------


def test_a_stream_has_the_headers_of_the_contract(weir):
    """1.3"""
    with weir.http() as http, http.stream("POST", "/stream", json=BODY) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["x-accel-buffering"] == "no"
        assert answer.headers["connection"].lower() == "keep-alive"
        assert answer.headers[VERSION] == "1"
        answer.read()


def test_a_stream_is_deltas_then_the_result_then_done(weir):
    """S1, 2.1"""
    with weir.http() as http:
        answer = http.post("/stream", json={"input": "hi", "session_id": "s"})
    expected = 'data: {"delta":"manage"}\n\n'
    assert answer.text.startswith(expected)
    events = Events(answer.text)
    assert events.names[-1] == "result" and set(events.names[:-1]) == {"delta"}
    assert events.delta == events.of("result")[0]["output"] == "manager heard: hi"
    assert events.of("result")[0]["session_id"] == "s"


def test_a_stream_tells_of_tools_in_order(weir):
    """2.1, S1: a tool's error is no failure"""
    events = stream(weir, {"input": "three tools"})
    calls = events.of("tool_call")
    assert [call["name"] for call in calls] == ["look_up", "broken", "wait_short"]
    assert calls[0]["args"]["what"] == 'a "pencil" & <ink>' and calls[1]["args"] == {}
    for step in events.of("step"):
        assert isinstance(step["description"], str)
    assert not events.of("error") and len(events.of("result")) == 1
    assert events.names.index("tool_call") < len(events.names) - 1 - events.names[::-1].index("delta")


def test_a_stream_without_text_ends_like_any_other(weir):
    """S1: empty answer"""
    for message in ("say nothing", "empty text"):
        events = stream(weir, {"input": message})
        assert events.names == ["result"] and events.of("result")[0]["output"] == ""


FAILURES = [
    "fail UNAVAILABLE",
    "fail INTERNAL",
    "fail RESOURCE_EXHAUSTED",
    "fail UNAUTHENTICATED",
    "fail INVALID_ARGUMENT",
    "fail DEADLINE_EXCEEDED",
    "fail eof",
    "fail after a tool",
    "always a tool",
    "to and fro",
]


@pytest.mark.parametrize("message", FAILURES)
def test_a_stream_whose_turn_fails_says_error_and_then_done(weir, message):
    """S1, 2.3, U2: status stays 200"""
    events = stream(weir, {"input": message})
    assert events.names.count("error") == 1 and events.names[-1] == "error"
    assert isinstance(events.of("error")[0]["error"], str) and events.of("error")[0]["error"]
    assert "result" not in events.names
    if message in ("fail UNAVAILABLE", "fail eof"):
        assert events.delta == "Part"


def test_each_delta_is_valid_utf_8_though_the_model_s_stream_is_cut_everywhere(weir):
    """S3"""
    events = stream(weir, {"input": "umlauts"})
    assert events.delta == "Grüße 系统 😀 é"
    assert "\ufffd" not in events.text
    assert "\ufffd" in stream(weir, {"input": "broken bytes"}).delta


def test_reasoning_is_no_answer(weir):
    """b6: omit or step"""
    assert stream(weir, {"input": "think aloud"}).delta == "Said."
    assert output(weir, {"input": "think aloud"}) == "Said."


def states(weir, session):
    """Of its runs, the oldest first."""
    with reader(weir) as http:
        return [run["state"] for run in http.get("/weir/v1/runs", params={"session_id": session}).json()["runs"]]


@contextlib.contextmanager
def begun_stream(weir, session):
    """A turn of 30 seconds whose first words have come."""
    with weir.http() as http:
        with http.stream("POST", "/stream", json={"input": "long while", "session_id": session}) as answer:
            parts = answer.iter_raw()
            assert next(parts) == b'data: {"delta":"begin"}\n\n'
            yield


def test_deltas_arrive_while_the_turn_runs(weir):
    """S4, 2.2: flush every event"""
    with begun_stream(weir, "runs"):
        assert states(weir, "runs") == ["running"]


def test_a_client_that_leaves_cancels_its_turn_and_frees_the_session(weir):
    """S6, 2.3"""
    for message in ("long while", "stay silent", "endless tool", "fail stall"):
        for path in ("/stream", "/invoke"):
            session = message.replace(" ", "-") + path.replace("/", "-")
            peer = socket.create_connection(("127.0.0.1", weir.port("http")), 10)
            peer.sendall(post(path, {"input": message, "session_id": session}))
            if path == "/stream":
                assert peer.recv(1000).startswith(b"HTTP/1.1 200 ")
            eventually(lambda: states(weir, session) == ["running"])  # noqa: B023  it is over here
            peer.close()
            assert invoke(weir, {"input": "hello", "session_id": session}).status_code == 200
            assert states(weir, session) == ["cancelled", "done"]


def test_ten_streams_at_once_do_not_wait_for_each_other(weir):
    """S1"""
    with contextlib.ExitStack() as opened:
        for number in range(10):
            opened.enter_context(begun_stream(weir, f"s{number}"))
        for number in range(10):
            assert states(weir, f"s{number}") == ["running"]


def test_a_second_turn_of_a_busy_session_waits(weir):
    """design: queue"""
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        both = [
            pool.submit(stream, weir, {"input": "short while", "session_id": "one"})
            for _ in range(2)
        ]
        assert all(future.result().delta == "beginend" for future in both)
    assert time.monotonic() - started > 0.5


def test_last_event_id_is_ignored(weir):
    """S7"""
    assert stream(weir, BODY, **{"Last-Event-ID": "7"}).names[-1] == "result"


def test_a_client_of_http_1_0_gets_a_body_that_ends_with_the_connection(weir):
    """S7"""
    answer = raw(weir, post("/stream", BODY, "1.0"))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head.lower() and b" 200 " in head.split(b"\r\n")[0]
    assert Events(body.decode()).delta == "manager heard: hello"
    answer = raw(weir, post("/invoke", BODY, "1.0"))
    assert answer.endswith(b"}") and b'"output":"manager heard: hello"' in answer


def test_the_body_of_a_stream_is_chunked_and_the_connection_goes_on(weir):
    """2.1: nothing follows [DONE], then the chunked body ends"""
    with socket.create_connection(("127.0.0.1", weir.port("http")), 10) as peer:
        for _ in range(2):
            peer.sendall(post("/stream", BODY))
            received = b""
            while not received.endswith(b"0\r\n\r\n"):
                part = peer.recv(65536)
                assert part, "the connection was closed"
                received += part
            head = received.partition(b"\r\n\r\n")[0].lower()
            assert b"transfer-encoding: chunked" in head and b"content-length" not in head
            assert received.count(b"data: [DONE]\n\n") == 1


# --- a person is asked ----------------------------------------------------------------


def test_a_turn_that_waits_for_a_person_says_so(weir):
    """3.2: text in, so the question is text; metadata tells"""
    body = invoke(weir, {"input": "ask me", "session_id": "p-1"}).json()
    assert body["metadata"]["interrupted"] is True
    assert isinstance(body["metadata"]["awaiting"], list)
    assert body["session_id"] == body["thread_id"] == "p-1"
    assert isinstance(body["output"], str) and "Shall I book it?" in body["output"]


def test_a_stream_whose_turn_waits_for_a_person_ends_with_a_result_that_says_so(weir):
    """3.2"""
    events = stream(weir, {"input": "ask me", "session_id": "p-2"})
    result = events.of("result")[0]
    assert result["metadata"]["interrupted"] is True and "Shall I book it?" in result["output"]


def test_a_turn_that_waits_for_a_person_with_an_object_gives_an_object(weir):
    """3.2: LangGraph's"""
    body = invoke(weir, {"input": {"message": "ask me"}, "session_id": "p-3"}).json()
    assert body["output"]["status"] == "interrupted" and body["output"]["thread_id"] == "p-3"
    assert isinstance(body["output"]["awaiting"], list)
    assert body["metadata"]["interrupted"] is True


def test_a_new_invoke_of_a_session_that_waits_for_a_person_is_a_conflict(weir):
    """design: `waiting`: a new /invoke gets 409"""
    assert invoke(weir, {"input": "ask me", "session_id": "p-4"}).status_code == 200
    assert invoke(weir, {"input": "hello", "session_id": "p-4"}).status_code == 409


# --- the transport --------------------------------------------------------------------


def test_http_2_by_prior_knowledge_gets_the_same_answers(weir):
    """design: one socket takes HTTP/1.1 and h2c alike; K5"""
    with weir.http(http1=False, http2=True) as http:
        assert http.get("/health").http_version == "HTTP/2"
        assert http.post("/invoke", json=BODY).json()["output"] == "manager heard: hello"
        answer = http.post("/stream", json=BODY)
        assert "connection" not in answer.headers and "transfer-encoding" not in answer.headers
        assert answer.headers["content-type"] == "text/event-stream"
        assert Events(answer.text).delta == "manager heard: hello"
        assert http.post("/invoke", content=b"{").status_code == 400
        assert http.get("/nothing").status_code == 404
        assert http.post("/nothing").headers[VERSION] == "1"


def test_an_upgrade_to_http_2_is_ignored(weir):
    """P11"""
    lines = ("Connection: Upgrade, HTTP2-Settings, close", "Upgrade: h2c")
    lines += ("HTTP2-Settings: AAMAAABkAAQAAP__",)
    answer = raw(weir, post("/invoke", BODY, "1.1", *lines))
    assert answer.startswith(b"HTTP/1.1 200 ") and b" 101 " not in answer


def test_the_version_header_stands_on_every_answer(weir):
    """1.3"""
    requests = [("GET", "/health"), ("GET", "/nothing"), ("GET", "/invoke"), ("POST", "/invoke")]
    with weir.http() as http:
        for method, path in requests:
            assert http.request(method, path).headers[VERSION] == "1"


def test_query_absolute_target_and_header_case_do_not_matter(weir):
    """1.14"""
    with weir.http() as http:
        assert http.get("/health?probe=1").status_code == 200
    target = f"http://127.0.0.1:{weir.port('http')}/invoke?x=y"
    request = post(target, BODY, "1.1", "Connection: close").replace(b"Content-", b"cOnTeNt-")
    assert raw(weir, request).startswith(b"HTTP/1.1 200 ")


def test_a_chunked_request_is_read(weir):
    """1.14"""
    with weir.http() as http:
        parts = (part for part in (b'{"inp', b'ut":"he', b'llo"}'))
        answer = http.post("/invoke", content=parts, headers={"content-type": "application/json"})
        assert answer.json()["output"] == "manager heard: hello"


def test_pipelined_requests_are_answered_in_order(weir):
    """P6"""
    good = [post("/invoke", {"input": f"n{n}"}) for n in range(3)]
    good.append(post("/invoke", {"input": "n3"}, "1.1", "Connection: close"))
    answer = raw(weir, b"".join(good))
    places = [answer.index(b"heard: n%d" % n) for n in range(4)]
    assert places == sorted(places) and answer.count(b"HTTP/1.1 200 ") == 4


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: +5",
        "Content-Length: 0x5",
        "Content-Length: 5,5",
        "Content-Length: -0",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding:\r\n chunked",
        "Content-Length : 5",
        "X-A: a\0b",
        "X-A: a\r\n b",
    ],
    ids=repr,
)
def test_a_request_with_this_framing_is_refused_and_nothing_behind_it_runs(weir, lines):
    """P2, P4"""
    request = f"POST /invoke HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n\r\n".encode()
    answer = raw(weir, request + post("/invoke", {"input": "smuggled"}))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"smuggled" not in answer and answer.count(b"HTTP/1.1 ") == 1


def test_too_many_header_fields_and_too_long_targets_are_refused(weir):
    """P4"""
    many = "".join(f"X-{n}: y\r\n" for n in range(100))
    cases = [
        (f"GET /health HTTP/1.1\r\nHost: localhost\r\n{many}\r\n", b"431"),
        (f"GET /health HTTP/1.1\r\nHost: localhost\r\nX: {'y' * 17000}\r\n\r\n", b"431"),
        (f"GET /{'x' * 9000} HTTP/1.1\r\nHost: localhost\r\n\r\n", b"414"),
    ]
    for request, status in cases:
        assert raw(weir, request.encode()).split(b" ")[1] == status


def test_a_body_that_comes_byte_by_byte_is_read(weir):
    """1.14"""
    with socket.create_connection(("127.0.0.1", weir.port("http")), 10) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in post("/invoke", BODY, "1.1", "Connection: close"):
            peer.sendall(bytes([byte]))
        assert peer.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.weir(config="limits:\n  header: 300ms\n  idle: 300ms\n")
def test_silent_peers_are_sent_away(weir):
    """H9, P8"""
    started = time.monotonic()
    assert re.match(rb"(HTTP/1\.1 408 .*)?$", raw(weir, b"POST /inv"), re.S)
    assert raw(weir, b"") == b""
    assert time.monotonic() - started < 5


@pytest.mark.weir(config="limits:\n  write_stall: 300ms\n")
def test_a_reader_that_reads_nothing_is_cut_and_its_session_goes_on(weir):
    """H11, K9"""
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with contextlib.closing(peer):
        peer.connect(("127.0.0.1", weir.port("http")))
        peer.sendall(post("/stream", {"input": "a flood", "session_id": "stalled"}))
        started = time.monotonic()
        answer = invoke(weir, {"input": "hello", "session_id": "stalled"})
        assert answer.status_code == 200 and time.monotonic() - started < 5


def test_a_flood_arrives_whole_at_a_reader_that_reads(weir):
    """K9"""
    events = stream(weir, {"input": "a flood"})
    assert events.delta == events.of("result")[0]["output"] == "0123456789abcdef" * 180000


def test_many_threads_with_one_connection_each_get_their_own_answers(weir):
    """M1"""
    wrong = []

    def talk(name):
        with weir.http() as http:
            for number in range(20):
                text = f"{name}-{number}"
                answer = http.post("/invoke", json={"input": text, "session_id": name}).json()
                if answer["output"] != f"manager heard: {text}" or answer["session_id"] != name:
                    wrong.append(answer)

    threads = [threading.Thread(target=talk, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_curl_streams_over_both_versions_of_http(weir):
    """the README's client"""
    for option in ("--http1.1", "--http2-prior-knowledge"):
        answer = subprocess.run(
            ["curl", "-sSN", option, f"{weir.url}/stream", "--json", '{"input":"hello"}'],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout
        assert Events(answer).delta == "manager heard: hello"


@pytest.mark.weir(config="limits:\n  heartbeat: 50ms\n")
def test_a_silent_stream_is_kept_alive_by_comments(weir):
    """S5"""
    events = stream(weir, {"input": "short while"})
    assert events.delta == "beginend"
    assert 'begin"}\n\n:' in events.text, "no comment in 300 ms of silence"


def test_pipelined_requests_are_answered_up_to_the_first_bad_one(weir):
    """P6: valid, invalid, valid: the third is never executed"""
    good = [post("/invoke", {"input": f"n{n}"}) for n in range(3)]
    answer = raw(weir, good[0] + good[1] + b"BAD\r\n\r\n" + good[2])
    assert answer.index(b"heard: n0") < answer.index(b"heard: n1") < answer.index(b" 400 ")
    assert b"n2" not in answer


@pytest.mark.parametrize("wanted", WRONG_VERSIONS)
def test_a_refused_version_is_told_beside_those_that_are_served(weir, wanted):
    """1.5: details"""
    details = invoke(weir, BODY, **{VERSION: wanted}).json()["error"]["details"]
    assert details == {"supported": ["1"], "requested": wanted}


def test_the_version_header_stands_even_where_the_request_was_no_http(weir):
    """1.3: every response"""
    for broken in (b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
        answer = raw(weir, broken)
        assert re.match(rb"HTTP/1\.1 (400|505) ", answer), answer
        assert b"x-runtime-contract-version: 1\r\n" in answer.lower()
