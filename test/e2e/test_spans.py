"""Spans of turns, for a collector that is played with the messages of opentelemetry-proto."""
import http.server
import signal
import threading
import time

import nimi_client as nimi
import pytest
import vendors
from collector import Collector, attributes
from test_trace import HEADERS, MODEL, PARENT, STATE, invoke, seen
from vendors import call

SERVER, CLIENT, INTERNAL = 2, 3, 1
TRACE, CALLER = PARENT.split("-")[1:3]


@pytest.fixture
def kind():
    return "openai"


@pytest.fixture
def collector():
    with Collector() as collector:
        yield collector


@pytest.fixture
def watched(house, collector):
    def start(agents=({"tools": ["calculator"]},), **more):
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url + "/", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=k1%20%25, x-more=a"}
        return house(agents, env={**env, "OTEL_SERVICE_NAME": "tested"}, **more)

    return start


def said(models, *first):
    models.say(MODEL, *first, [call("calculator", {"expression": "6*7"}, id="c1")], "Done.")


def test_a_turn_its_models_and_its_tools_are_spans_of_the_callers_trace(watched, models, collector):
    weir = watched()
    said(models)
    before = time.time_ns()
    assert invoke(weir, "secret words", HEADERS, session_id="s").json()["output"] == "Done."
    spans = {span.name: span for span in collector.wait(4)}
    chats = [span for span in collector.spans if span.name == f"chat {MODEL}"]
    turn, tool = spans["invoke_agent manager"], spans["execute_tool calculator"]
    assert len(collector.spans) == 4 and len(chats) == 2
    for span in collector.spans:
        assert span.trace_id.hex() == TRACE and span.trace_state == STATE
        assert before - 10**9 <= span.start_time_unix_nano <= span.end_time_unix_nano <= time.time_ns() + 10**9
        assert attributes(span)["gen_ai.conversation.id"] == "s" and span.status.code == 0
        assert "secret" not in str(span) and "6*7" not in str(span)
    assert (turn.kind, tool.kind, chats[0].kind) == (SERVER, INTERNAL, CLIENT)
    assert turn.parent_span_id.hex() == CALLER
    assert {span.parent_span_id for span in (*chats, tool)} == {turn.span_id}
    assert len({span.span_id for span in collector.spans}) == 4
    asked = [seen(asked) for asked in models.asked]
    assert asked == [(f"00-{TRACE}-{span.span_id.hex()}-01", STATE) for span in chats]
    found = attributes(chats[0])
    assert found["gen_ai.provider.name"] == "house" and found["gen_ai.request.model"] == MODEL
    assert found["gen_ai.operation.name"] == "chat" and found["gen_ai.usage.input_tokens"] > 0
    assert attributes(tool)["gen_ai.tool.call.id"] == "c1"
    path, headers = collector.asked[0]
    assert path == "/v1/traces" and headers["content-type"] == "application/x-protobuf"
    assert (headers["x-key"], headers["x-more"]) == ("k1 %", "a")
    assert collector.resources[0]["service.name"] == "tested"


def test_a_trace_begins_here_where_the_caller_has_none_and_failures_say_so(watched, models, collector):
    weir = watched()
    models.say(MODEL, vendors.refuse(401))
    assert invoke(weir, "go").status_code >= 400
    chat, turn = sorted(collector.wait(2), key=lambda span: span.name)
    assert chat.trace_id == turn.trace_id and chat.parent_span_id == turn.span_id and not turn.parent_span_id
    assert seen(models.asked[0])[0].split("-")[1:3] == [chat.trace_id.hex(), chat.span_id.hex()]
    for span in (chat, turn):
        assert span.status.code == 2 and attributes(span)["error.type"]


def test_a_caller_that_does_not_sample_gets_no_spans(watched, models, collector):
    weir = watched()
    unsampled = PARENT[:-1] + "0"
    models.say(MODEL, "Done.", "Done.")
    invoke(weir, "go", [("traceparent", unsampled)])
    invoke(weir, "go", HEADERS)
    assert {span.trace_id.hex() for span in collector.wait(2)} == {TRACE} and len(collector.spans) == 2
    assert seen(models.asked[0]) == (unsampled, None)


def test_a_human_who_is_asked_is_a_span(watched, models, collector):
    weir = watched([{"tools": {"calculator": "ask"}}])
    said(models)
    assert invoke(weir, "go", HEADERS, session_id="s").json()["metadata"]["interrupted"]
    with weir.http() as http:
        assert http.post("/resume", json={"thread_id": "s", "human_input": "yes"}).json()["output"] == "Done."
    weir.stop()  # what is left is sent then
    names = [span.name for span in collector.wait(5)]
    assert sorted(names) == sorted(
        [f"chat {MODEL}", "approval calculator", "execute_tool calculator", f"chat {MODEL}", "invoke_agent manager"]
    )


def test_nothing_waits_for_a_collector_that_refuses_or_is_away(watched, models, collector, house):
    collector.status = 503
    weir = watched()
    models.say(MODEL, *["Done."] * 5)
    for _ in range(4):
        assert invoke(weir, "go").json()["output"] == "Done."
    collector.wait(8)
    weir.said("did not take")
    away = house(env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert invoke(away, "go").json()["output"] == "Done."
    off = house(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SDK_DISABLED": "true"})
    models.say(MODEL, "Done.")
    assert invoke(off, "go").status_code == 200 and seen(models.asked[-1]) == (None, None)


def test_the_batch_that_is_out_at_a_stop_is_sent_again_with_what_came_after(watched, models, collector):
    collector.holds = cut = threading.Event()
    weir = watched()
    models.say(MODEL, "Done.", "Done.")
    invoke(weir, "one", HEADERS)
    collector.wait_held()
    invoke(weir, "two", HEADERS)
    assert not collector.spans
    weir.signal(signal.SIGTERM)
    cut.set()
    assert weir.wait() == 0
    names = sorted(span.name for span in collector.spans)
    assert names == sorted([f"chat {MODEL}", "invoke_agent manager"] * 2)


def test_a_collector_that_never_answers_does_not_hold_up_a_stop(watched, models, collector):
    collector.holds = cut = threading.Event()
    weir = watched()
    models.say(MODEL, "Done.")
    invoke(weir, "one", HEADERS)
    collector.wait_held()
    weir.signal(signal.SIGTERM)
    assert weir.wait() == 0
    weir.said("spans are lost")
    cut.set()


@pytest.mark.parametrize(
    "headers, said",
    [
        (",".join(f"h{n}=1" for n in range(17)), "more than 16 headers"),
        ("no-value", "header 1 has no '='"),
        ("key=secret%0", "the value of key has a % without two"),
    ],
)
def test_headers_that_cannot_be_sent_end_it_with_the_reason(house, collector, headers, said):
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_HEADERS": headers}
    with pytest.raises(AssertionError, match=said) as ended:
        house(env=env)
    assert "secret" not in str(ended.value)


def test_a_call_of_nimi_is_a_span_of_its_callers_trace(watched, models, collector):
    weir = watched(
        connectors=[{"id": "own", "provider": "house"}],
        nimi={"probe_interval": "0s", "allow_loopback_provider_endpoint": True},
    )
    cloud = {"route_policy": nimi.common.ROUTE_POLICY_CLOUD, "connector_id": "own", "subject_user_id": "u", "model_id": MODEL}
    client = nimi.Client(weir)
    models.say(MODEL, "Done.", vendors.refuse(401))
    told = client.stream("go", metadata=[*client.metadata(), *HEADERS], **cloud)
    assert told.text == "Done.", told.error
    client.stream("go", **cloud)
    spans = collector.wait(2)
    good, bad = sorted(spans, key=lambda span: span.status.code)
    assert {span.name for span in spans} == {f"chat {MODEL}"} and {span.kind for span in spans} == {CLIENT}
    assert (good.trace_id.hex(), good.parent_span_id.hex(), good.trace_state) == (TRACE, CALLER, STATE)
    assert attributes(good)["gen_ai.usage.input_tokens"] > 0
    assert seen(models.asked[0]) == (f"00-{TRACE}-{good.span_id.hex()}-01", STATE)
    assert not bad.parent_span_id and bad.trace_id.hex() != TRACE and attributes(bad)["error.type"]
    assert seen(models.asked[1])[0].split("-")[1:3] == [bad.trace_id.hex(), bad.span_id.hex()]


def test_a_tool_of_the_settings_that_asks_a_server_passes_the_trace_on(watched, models, collector):
    heard = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            heard.append((self.headers["traceparent"], self.headers["tracestate"]))
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    tool = {"description": "Asks.", "url": f"http://127.0.0.1:{server.server_address[1]}/"}
    weir = watched([{"tools": ["ask"]}], tools={"ask": tool})
    models.say(MODEL, [call("ask", {}, id="c1")], "Done.")
    assert invoke(weir, "go", HEADERS).json()["output"] == "Done."
    server.shutdown()
    thread.join()
    server.server_close()
    spans = {span.name: span for span in collector.wait(4)}
    assert heard == [(f"00-{TRACE}-{spans['execute_tool ask'].span_id.hex()}-01", STATE)]
