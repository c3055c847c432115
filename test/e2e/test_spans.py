"""Spans of turns, for a collector that is played with the messages of opentelemetry-proto."""
import time

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
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url + "/", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=k1, x-more=a"}
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
    assert path == "/v1/traces" and headers["content-type"] == "application/json"
    assert (headers["x-key"], headers["x-more"]) == ("k1", "a")
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
    weir.said("did not take them")
    away = house(env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert invoke(away, "go").json()["output"] == "Done."
    off = house(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SDK_DISABLED": "true"})
    models.say(MODEL, "Done.")
    assert invoke(off, "go").status_code == 200 and seen(models.asked[-1]) == (None, None)
