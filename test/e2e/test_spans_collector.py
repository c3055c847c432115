"""A collector that is slow, away, full, or takes only small requests: what it gets then, and that no turn
notices."""
import re

import httpx
import pytest
from collector import Collector, Refusal
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTracePartialSuccess

QUICK = "test/e2e/scripts/quick.yaml"


@pytest.fixture
def collector():
    with Collector() as collector:
        yield collector


@pytest.fixture
def weir(start_weir, collector):
    return start_weir(script=QUICK, env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "WEIR_LOG_LEVEL": "debug"})


def turns(weir, count):
    with weir.http() as http:
        for number in range(count):
            assert http.post("/invoke", json={"input": f"turn {number}"}).status_code == httpx.codes.OK


def pauses(weir, count):
    """Milliseconds before each further try, as the log says of so many or more."""
    text = weir.said("spans are sent again in", times=count)
    return [int(pause) for pause in re.findall(r"spans are sent again in (\d+) ms", text)]


def ids(collector):
    found = [span.span_id for span in collector.spans]
    assert len(found) == len(set(found)), "a span came twice"
    return found


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc", "http/json"])
def test_another_protocol_than_ours_is_warned_of_and_spans_are_sent(start_weir, collector, protocol):
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
    weir = start_weir(script=QUICK, env=env)
    turns(weir, 1)
    collector.wait(2)
    warned = f"OTEL_EXPORTER_OTLP_PROTOCOL) says '{protocol}'" in weir.log()
    assert warned == (protocol != "http/protobuf")


def test_a_batch_that_is_refused_for_a_while_is_sent_again_as_it_was(weir, collector):
    """Each time after a longer pause."""
    collector.first = [Refusal(429), Refusal(503), Refusal(502), Refusal(504)]
    turns(weir, 1)
    collector.wait(2)
    assert [status for _, status, _ in collector.refused] == [429, 503, 502, 504]
    assert {body for _, _, body in collector.refused} == {collector.bodies[0]}
    assert len(ids(collector)) == 2
    found = pauses(weir, 4)
    assert len(found) == 4
    assert all(0.75 * 2**number <= pause / 1000 <= 1.25 * 2**number for number, pause in enumerate(found))


@pytest.mark.parametrize("status", [429, 503])
def test_a_collector_that_names_a_time_is_given_it(weir, collector, status):
    collector.first = [Refusal(status, retry_after="4"), Refusal(400)]
    turns(weir, 1)
    assert [refusal[1] for refusal in collector.wait_refused(2)] == [status, 400]
    assert pauses(weir, 1) == [4000]


def test_a_stop_does_not_wait_for_the_time_that_a_collector_names(weir, collector):
    collector.first = [Refusal(503, retry_after="100")]
    turns(weir, 1)
    collector.wait_refused(1)
    weir.stop()
    assert len(ids(collector)) == 2


def test_what_a_collector_does_not_want_is_lost_with_its_reason_and_the_rest_is_not(weir, collector):
    collector.first = [Refusal(400, body=Status(code=3, message="no such tenant").SerializeToString())]
    turns(weir, 1)
    collector.wait_refused(1)
    weir.said("did not take 2 spans, which are lost: status 400, no such tenant")
    turns(weir, 1)
    weir.stop()
    assert len(ids(collector)) == 2 and len(collector.refused) == 1


def test_a_batch_that_is_too_large_is_sent_in_parts(weir, collector):
    collector.body_max_bytes = 2000
    turns(weir, 20)
    weir.stop()
    assert len(ids(collector)) == 40
    assert collector.refused and {status for _, status, _ in collector.refused} == {413}
    assert max(len(body) for body in collector.bodies) <= 2000
    for resource in collector.resources:
        assert resource["service.name"] == "weir"


def test_the_size_that_a_collector_takes_is_remembered(weir, collector):
    collector.body_max_bytes = 2000
    turns(weir, 20)
    collector.wait(40)
    refused = len(collector.refused)
    turns(weir, 20)
    weir.stop()
    assert len(ids(collector)) == 80 and len(collector.refused) == refused


def test_a_span_that_is_too_large_by_itself_is_lost_alone(weir, collector):
    collector.body_max_bytes = 100  # less than any
    turns(weir, 1)
    weir.stop()
    weir.said("1 spans, which are lost", times=2)
    assert not collector.spans


def test_spans_that_are_refused_one_by_one_are_told_of(weir, collector):
    collector.partial.partial_success.CopyFrom(ExportTracePartialSuccess(rejected_spans=1, error_message="too old"))
    turns(weir, 1)
    weir.stop()
    assert len(collector.asked) == 1  # they are not sent again
    weir.said("refused 1 of 2 spans: too old")


def test_thousands_of_spans_come_in_few_requests(weir, collector):
    turns(weir, 1500)
    weir.stop()
    assert len(ids(collector)) == 3000
    assert len(collector.asked) < 300
    assert max(len(body) for body in collector.bodies) < 300 * 1024


def test_a_text_that_is_not_utf8_does_not_spoil_the_batch(weir, collector):
    headers = {"x-amzn-bedrock-agentcore-runtime-session-id": b"caf\xe9" * 10}
    with weir.http() as http:
        http.post("/invocations", json={"prompt": "hello"}, headers=headers)
        http.post("/invoke", json={"input": "hello", "session_id": "é" * 100})
    weir.stop()
    assert len(ids(collector)) >= 2
