"""nimi.runtime.v1 with Google's client: models answer, errors travel, health is told."""
import threading
import time

import grpc
import httpx
import nimi_client as nimi
import pytest
from google.protobuf import json_format
from grpc_health.v1 import health_pb2, health_pb2_grpc
from nimi_client import common, pb

QUICK = pytest.mark.weir(script="test/e2e/scripts/quick.yaml")
SLOW = pytest.mark.weir(script="test/e2e/scripts/slow.yaml")


@QUICK
def test_a_text_call_starts_streams_and_completes(weir):
    answer = nimi.Client(weir).stream("a question of some length, so that it is cut")
    assert answer.code == grpc.StatusCode.OK
    assert answer.kinds[0] == "started" and answer.kinds[-1] == "completed"
    assert set(answer.kinds[1:-1]) == {"delta"}
    said = "You said: a question of some length, so that it is cut. Grüße, and that was all."
    assert answer.text == said
    assert [e.sequence for e in answer.events] == list(range(1, len(answer.events) + 1))
    assert all(len(d.encode()) >= 32 for d in answer.deltas[:-1])
    assert all(d == d.strip() and d for d in answer.deltas)
    assert len({e.trace_id for e in answer.events}) == 1
    started = answer.events[0].started
    assert started.model_resolved == "m" and started.route_decision == common.ROUTE_POLICY_LOCAL


@QUICK
def test_the_frame_says_the_same_as_the_event(weir):
    answer = nimi.Client(weir).stream()
    assert not answer.events[0].HasField("frame")
    for event in answer.events[1:-1]:
        assert not event.frame.done and event.frame.text_delta == event.delta.text.text
    last = answer.last
    assert last.frame.usage == last.completed.usage
    assert (last.frame.usage.input_tokens, last.frame.usage.output_tokens) == (7, 11)
    assert last.frame.usage.compute_ms == -1
    assert last.frame.reason_code == 0 and not last.frame.audio_chunk
    assert last.completed.finish_reason == common.FINISH_REASON_STOP


@QUICK
def test_a_caller_may_ask_for_deltas_without_frames(weir):
    client = nimi.Client(weir)
    answer = client.stream(metadata=client.metadata(stream_frame="terminal"))
    assert not any(e.HasField("frame") for e in answer.events[:-1])
    assert answer.last.frame.done


@SLOW
def test_a_failure_after_the_start_is_a_frame_and_ok(weir):
    answer = nimi.Client(weir).stream("fail")
    assert answer.code == grpc.StatusCode.OK and answer.kinds[-1] == "failed"
    assert answer.text == "Let me see."
    last = answer.last
    assert last.frame.reason_code == last.failed.reason_code == common.AI_PROVIDER_UNAVAILABLE
    assert last.failed.action_hint.startswith("AI_PROVIDER_UNAVAILABLE: ")
    assert last.frame.usage.input_tokens == -1


REFUSALS = [
    ({"app_id": ""}, {}, "AI_APP_ID_REQUIRED", "INVALID_ARGUMENT"),
    ({"app_id": "other"}, {}, "AI_APP_ID_CONFLICT", "INVALID_ARGUMENT"),
    ({"model_id": " "}, {}, "AI_MODEL_ID_REQUIRED", "INVALID_ARGUMENT"),
    ({"model_id": "a,b"}, {}, "AI_ROUTE_UNSUPPORTED", "FAILED_PRECONDITION"),
    ({"model_id": "speech/x"}, {}, "AI_MODEL_PROVIDER_MISMATCH", "INVALID_ARGUMENT"),
    ({"message": None}, {}, "AI_INPUT_INVALID", "INVALID_ARGUMENT"),
    ({"mode": 3}, {}, "AI_ROUTE_UNSUPPORTED", "INVALID_ARGUMENT"),
    ({"connector_id": "none", "subject_user_id": "u"}, {}, "AI_CONNECTOR_NOT_FOUND", "NOT_FOUND"),
    ({"connector_id": "none"}, {}, "PROTOCOL_ENVELOPE_INVALID", "INVALID_ARGUMENT"),
    ({"route_policy": 2, "subject_user_id": "u"}, {}, "AI_CONNECTOR_ID_REQUIRED", "INVALID_ARGUMENT"),
    ({}, {"key_source": "managed"}, "AI_CONNECTOR_ID_REQUIRED", "INVALID_ARGUMENT"),
    ({}, {"key_source": "inline"}, "AI_REQUEST_CREDENTIAL_MISSING", "INVALID_ARGUMENT"),
    (
        {"connector_id": "c", "subject_user_id": "u"},
        {"provider_api_key": "sk-secret"},
        "AI_REQUEST_CREDENTIAL_CONFLICT",
        "INVALID_ARGUMENT",
    ),
    ({}, {"domain": None}, "PROTOCOL_ENVELOPE_INVALID", "INVALID_ARGUMENT"),
    ({}, {"protocol_version": "1.0"}, "PROTOCOL_ENVELOPE_INVALID", "INVALID_ARGUMENT"),
    ({}, {"participant_protocol_version": "1.1.0"}, "PROTOCOL_ENVELOPE_INVALID", "INVALID_ARGUMENT"),
    ({}, {"caller_kind": "somebody"}, "PROTOCOL_ENVELOPE_INVALID", "INVALID_ARGUMENT"),
    ({}, {"trace_id": "x" * 4097}, "PROTOCOL_ENVELOPE_INVALID", "INVALID_ARGUMENT"),
]


@QUICK
def test_before_the_start_every_fault_is_a_status_in_every_carrier(weir):
    client = nimi.Client(weir)
    for fields, headers, reason, code in REFUSALS:
        answer = client.stream(metadata=client.metadata(**headers), **{"message": "hi", **fields})
        assert answer.events == [], (fields, headers)
        assert answer.error.reason == reason, (fields, headers, answer.error.text)
        assert answer.code.name == code, (fields, headers)
        assert set(answer.error.message) == {
            "reasonCode", "actionHint", "traceId", "retryable", "message",
        }  # fmt: skip
        assert "sk-secret" not in answer.error.text
        assert answer.headers["x-nimi-runtime-version"].startswith("0.")
    assert client.stream().code == grpc.StatusCode.OK


@QUICK
def test_a_bearer_that_nobody_issued_never_makes_its_caller_anonymous(weir):
    client = nimi.Client(weir)
    answer = client.stream(metadata=client.metadata() + [("authorization", "Bearer x.y.z")])
    assert answer.code == grpc.StatusCode.UNAUTHENTICATED
    assert answer.error.reason == "AUTH_TOKEN_INVALID"


@QUICK
def test_the_same_call_at_once(weir):
    client = nimi.Client(weir)
    reply = client.execute("hello")
    assert reply.output.text_generate.text == "You said: hello. Grüße, and that was all."
    assert reply.finish_reason == common.FINISH_REASON_STOP
    assert reply.usage.output_tokens == 11 and len(reply.trace_id) == 26
    with pytest.raises(nimi.Refused) as refused:
        client.execute(None)
    assert refused.value.reason == "AI_INPUT_INVALID"


@SLOW
def test_a_unary_failure_is_a_status_with_its_reason(weir):
    with pytest.raises(nimi.Refused) as refused:
        nimi.Client(weir).execute("fail")
    assert refused.value.reason == "AI_PROVIDER_UNAVAILABLE"
    assert refused.value.code == grpc.StatusCode.UNAVAILABLE and refused.value.message["retryable"]


@QUICK
def test_a_write_with_the_same_key_is_made_once(weir):
    client = nimi.Client(weir)
    key = client.metadata(idempotency_key="k-1")
    first = client.execute("hello", metadata=key)
    assert client.execute("hello", metadata=key) == first  # also its trace_id
    assert client.execute("hello").trace_id != first.trace_id
    with pytest.raises(nimi.Refused) as refused:
        client.execute("other words", metadata=key)
    assert refused.value.reason == "PROTOCOL_ENVELOPE_INVALID"


@SLOW
def test_stopping_cuts_a_stream_cancelled_and_forges_nothing(weir):
    client = nimi.Client(weir)
    call = client.open(nimi.request("for ever"))
    events = [next(call), next(call)]
    assert events[0].HasField("started") and events[1].HasField("delta")
    threading.Timer(0.2, lambda: weir.signal(15)).start()
    began = time.monotonic()
    answer = nimi.Answer(call)
    assert answer.code == grpc.StatusCode.CANCELLED and time.monotonic() - began < 3
    assert answer.error.text == "runtime shutting down"
    assert set(answer.kinds) <= {"delta"}
    assert weir.wait() == 0
    assert "shutdown.completed forced=false" in weir.log()


@SLOW
def test_an_app_has_two_slots_and_the_next_call_waits(weir):
    client = nimi.Client(weir)
    calls = [client.open(nimi.request("for ever")) for _ in range(2)]
    for call in calls:
        next(call)
    peek = pb.PeekSchedulingRequest(app_id=nimi.APP, targets=[pb.SchedulingEvaluationTarget()])
    reply, _ = client.ask(client.ai.PeekScheduling, peek)
    assert (reply.occupancy.app_used, reply.occupancy.app_cap) == (2, 2)
    assert (reply.occupancy.global_used, reply.occupancy.global_cap) == (2, 8)
    assert reply.aggregate_judgement.state == pb.SCHEDULING_STATE_QUEUE_REQUIRED
    third = client.open(nimi.request("fail"))
    other = client.metadata(app_id=None)
    assert client.stream("fail", metadata=other, app_id="other.app").kinds[-1] == "failed"
    calls[0].cancel()
    answer = nimi.Answer(third)
    assert answer.kinds[-1] == "failed" and int(answer.trailers["x-nimi-queue-wait-ms"]) >= 0
    calls[1].cancel()


@QUICK
def test_what_is_not_served_says_so(weir):
    client = nimi.Client(weir)
    speech = pb.StreamScenarioRequest(
        head=nimi.head(),
        scenario_type=pb.SCENARIO_TYPE_SPEECH_SYNTHESIZE,
        spec=pb.ScenarioSpec(speech_synthesize=pb.SpeechSynthesizeScenarioSpec(text="hi")),
    )
    answer = client.stream(asked=speech)
    assert answer.events == [] and answer.error.reason == "AI_MODALITY_NOT_SUPPORTED"
    assert answer.code == grpc.StatusCode.FAILED_PRECONDITION
    unknown = client.channel.unary_unary("/nimi.runtime.v1.RuntimeAiService/DeleteVoiceAsset")
    with pytest.raises(grpc.RpcError) as error:
        unknown(b"", metadata=client.metadata(), timeout=nimi.PATIENCE)
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED


@QUICK
def test_profiles_and_voices(weir):
    client = nimi.Client(weir)
    reply, _ = client.ask(client.ai.ListScenarioProfiles, pb.ListScenarioProfilesRequest())
    text = next(p for p in reply.profiles if p.scenario_type == pb.SCENARIO_TYPE_TEXT_GENERATE)
    assert list(text.supported_execution_modes) == [1, 2, 3] and text.description
    none = pb.ListScenarioProfilesRequest(model_id="sidecar/none")
    assert not client.ask(client.ai.ListScenarioProfiles, none)[0].profiles
    asked = pb.ListPresetVoicesRequest(app_id=nimi.APP, model_id="m")
    reply, headers = client.ask(client.ai.ListPresetVoices, asked)
    assert list(reply.voices) == [] and headers["x-nimi-voice-count"] == "0"


@QUICK
def test_ready_of_the_sdk_finds_what_it_looks_for(weir):
    reply, headers = nimi.Client(weir).health()
    assert reply.status == 3 and headers["x-nimi-runtime-version"].startswith("0.")
    assert reply.memory_bytes > 0


@QUICK
def test_the_version_stands_on_what_is_refused_before_any_method(weir):
    client = nimi.Client(weir)
    service = "/nimi.runtime.v1.RuntimeAiService/"
    for method, body, code in [
        ("Nothing", b"", grpc.StatusCode.UNIMPLEMENTED),
        ("ExecuteScenario", b"x" * (9 * 1024 * 1024), grpc.StatusCode.RESOURCE_EXHAUSTED),
    ]:
        with pytest.raises(grpc.RpcError) as error:
            client.channel.unary_unary(service + method)(
                body, metadata=client.metadata(), timeout=nimi.PATIENCE
            )
        assert error.value.code() == code
        assert dict(error.value.initial_metadata())["x-nimi-runtime-version"].startswith("0.")


@QUICK
def test_probes_need_no_envelope(weir):
    stub = health_pb2_grpc.HealthStub(nimi.Client(weir).channel)
    for name in ("", "nimi.runtime.v1.RuntimeAiService"):
        reply = stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=nimi.PATIENCE)
        assert reply.status == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.RpcError) as error:
        stub.Check(health_pb2.HealthCheckRequest(service="x"), timeout=nimi.PATIENCE)
    assert error.value.code() == grpc.StatusCode.NOT_FOUND


@QUICK
def test_health_over_http(weir):
    base = f"http://127.0.0.1:{weir.ports['nimi_http']}"
    with httpx.Client(base_url=base) as http:
        assert http.get("/livez").json() == {"ok": True}
        for path in ("/readyz", "/healthz"):
            reply = http.get(path)
            assert reply.status_code == 200 and reply.json()["status"] == "READY"
            assert set(reply.json()) == {"ok", "status", "reason", "sampled_at"}
        whole = http.get("/v1/runtime/health")
        assert whole.json()["status_code"] == 3 and whole.json()["ai_providers"] == []
        assert whole.headers["cache-control"] == "no-store"
        assert whole.headers["x-content-type-options"] == "nosniff"
        assert http.head("/readyz").status_code == 200
        refused = http.post("/readyz")
        assert refused.status_code == 405 and "GET" in refused.headers["allow"]


CONNECTORS = """
connectors:
  - {id: mine, provider: scripted, owner: anna}
  - {id: off, provider: scripted, enabled: false}
  - {id: near, provider: scripted, local: true, models: [tiny]}
"""


@pytest.mark.weir(script="test/e2e/scripts/quick.yaml", config=CONNECTORS)
def test_connectors_are_looked_at_in_their_order(weir):
    client = nimi.Client(weir)

    def outcome(**fields):
        answer = client.stream("hi", **fields)
        return answer.error.reason if answer.error else answer.kinds[-1]

    cloud = {"route_policy": common.ROUTE_POLICY_CLOUD, "subject_user_id": "anna"}
    assert outcome(connector_id="mine", **cloud) == "completed"
    assert outcome(connector_id="mine", **{**cloud, "subject_user_id": "bob"}) == (
        "AI_CONNECTOR_NOT_FOUND"
    )
    assert outcome(connector_id="off", **cloud) == "AI_CONNECTOR_DISABLED"
    assert outcome(connector_id="near", **cloud) == "AI_CONNECTOR_INVALID"
    assert outcome(model_id="local/tiny") == "completed"
    assert outcome(model_id="local/other") == "AI_LOCAL_MODEL_UNAVAILABLE"


# 169.254.169.254, where clouds serve the credentials of a machine, as one number.
METADATA = """
nimi: {probe_interval: 0s}
providers:
  - {name: far, kind: openai, base_url: "https://2852039166/v1", key_env: HOUSE_KEY}
  - {name: near, kind: openai, base_url: "http://2852039166:9/v1", key_env: HOUSE_KEY}
connectors:
  - {id: far, provider: far}
  - {id: near, provider: near, local: true, models: [m]}
"""


@pytest.mark.weir(
    script="test/e2e/scripts/quick.yaml", config=METADATA, env={"HOUSE_KEY": "secret-of-the-house"}
)
def test_a_link_local_endpoint_is_never_asked_however_it_is_spelled(weir):
    client = nimi.Client(weir)
    cloud = {"route_policy": common.ROUTE_POLICY_CLOUD, "subject_user_id": "anna"}
    refused = client.stream("hi", connector_id="far", **cloud)
    assert not refused.events and refused.error.reason == "AI_PROVIDER_ENDPOINT_FORBIDDEN"
    dialled = client.stream("hi", model_id="local/m").last  # a local one is judged at the dial
    assert dialled.failed.reason_code == common.AI_PROVIDER_ENDPOINT_FORBIDDEN
    assert dialled.frame.reason_code == common.AI_PROVIDER_ENDPOINT_FORBIDDEN


@QUICK
def test_events_read_as_json_too(weir):
    last = nimi.Client(weir).stream().last
    assert json_format.MessageToDict(last)["frame"]["done"] is True


@QUICK
def test_a_taken_port_is_a_clear_error(weir, start_weir):
    port = weir.ports["nimi_grpc"]
    with pytest.raises(AssertionError) as error:
        start_weir(args=["--nimi-grpc", f"127.0.0.1:{port}"])
    assert f"cannot listen on 127.0.0.1:{port}" in str(error.value)
