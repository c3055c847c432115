"""Requests of nimi.runtime.v1 as large as a message may be (checks.md B, K).

Each of them once ended the daemon, or cost it far more than it cost the caller. Nobody is logged
in here: any peer can send them.
"""
import contextlib
import http.server
import json
import struct
import threading
import time

import attack
import crawbl
import grpc
import hpack
import nimi_client as nimi
import pytest
from google.rpc import status_pb2
from nimi.runtime.v1 import account_pb2, account_pb2_grpc, app_pb2, app_pb2_grpc, audit_pb2, auth_pb2
from nimi.runtime.v1 import local_pb2, local_pb2_grpc, memory_pb2
from nimi.runtime.v1 import realtime_pb2 as rt
from nimi.runtime.v1 import realtime_pb2_grpc
from test_nimi_close import held_kib
from test_nimi_memory import Memory, episode, place
from test_nimi_realtime import Session

LONGEST = 4 * 1024 * 1024  # of a message
AI_OUTPUT_INVALID = 207
OUTPUT = (grpc.StatusCode.INTERNAL, "AI_OUTPUT_INVALID")
INVALID = (grpc.StatusCode.INVALID_ARGUMENT, "PROTOCOL_ENVELOPE_INVALID")
ANY_SIZE = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


def filled(request, text):
    """A text with which the request is about as long as a message may be."""
    return text * (LONGEST - request("").ByteSize() - 16)  # tags and lengths


def execute(text):
    return nimi.request("hi", kind=nimi.pb.ExecuteScenarioRequest, model_id=text)


def open_session(text):
    return rt.OpenRealtimeSessionRequest(head=nimi.head(model_id=text))


def send(text):
    return app_pb2.SendAppMessageRequest(
        from_app_id=nimi.APP, to_app_id="to.app", message_type=text
    )


def login(text):
    caller = account_pb2.AccountCaller(
        app_id=nimi.APP,
        app_instance_id="one",
        device_id="d",
        mode=account_pb2.ACCOUNT_CALLER_MODE_LOCAL_FIRST_PARTY_APP,
    )
    return account_pb2.BeginLoginRequest(caller=caller, callback_origin=text)


CALLS = {
    "model": (execute, lambda c: c.ai.ExecuteScenario),
    "session": (
        open_session,
        lambda c: realtime_pb2_grpc.RuntimeAiRealtimeServiceStub(c.channel).OpenRealtimeSession,
    ),
    "message_type": (send, lambda c: app_pb2_grpc.RuntimeAppServiceStub(c.channel).SendAppMessage),
    "callback_origin": (
        login,
        lambda c: account_pb2_grpc.RuntimeAccountServiceStub(c.channel).BeginLogin,
    ),
}


@pytest.mark.parametrize("key", [None, "k"], ids=["once", "keyed"])
@pytest.mark.parametrize("name", CALLS)
def test_a_name_as_long_as_a_message_is_refused(weir, name, key):
    client = nimi.Client(weir, options=ANY_SIZE)
    request, method = CALLS[name]
    metadata = client.metadata(idempotency_key=key, caller_id="c" * 4000)
    for text in (filled(request, "m"), "m" * 1025):
        with pytest.raises(nimi.Refused) as found:
            client.ask(method(client), request(text), metadata)
        assert (found.value.code, found.value.reason) == INVALID, found.value.text
    assert client.execute("hello").output.text_generate.text  # it lives


def test_a_quote_that_is_cut_is_text(weir):
    """A long name is shown up to a length, which may be inside a character: the details of the
    status were no protobuf."""
    client = nimi.Client(weir)
    for pad in ("", "x"):
        with pytest.raises(nimi.Refused) as found:
            client.execute(connector_id=pad + "ä" * 60, subject_user_id="anna")
        status = status_pb2.Status.FromString(found.value.trailers["grpc-status-details-bin"])
        assert found.value.reason == "AI_CONNECTOR_NOT_FOUND" and "ä" * 39 in status.message


def embed(inputs):
    spec = nimi.pb.ScenarioSpec(text_embed=nimi.pb.TextEmbedScenarioSpec(inputs=["x"] * inputs))
    return nimi.pb.ExecuteScenarioRequest(
        head=nimi.head(model_id="local/hash-256"),
        scenario_type=nimi.pb.SCENARIO_TYPE_TEXT_EMBED,
        spec=spec,
    )


@pytest.mark.weir(script="test/e2e/scripts/nimi.yaml")
def test_a_reply_that_is_too_long_is_not_asked_for_again(weir):
    client = nimi.Client(weir, options=ANY_SIZE)
    with pytest.raises(nimi.Refused) as found:
        client.ask(client.ai.ExecuteScenario, embed(2100))
    assert found.value.code == grpc.StatusCode.INTERNAL
    assert found.value.reason == "AI_OUTPUT_INVALID" and not found.value.message["retryable"]
    assert client.ask(client.ai.ExecuteScenario, embed(2))[0].output


def test_half_a_reply_is_no_reply(start_weir, tmp_path):
    """A text beyond limits.reply once came back cut, as if it were all."""
    script = tmp_path / "long.yaml"
    script.write_text(
        "script: 1\nmodel: m\nagents: [{slug: manager}]\ntools: []\nscenes:\n"
        "  - match: long\n    reply:\n      - repeat: {times: 3000, text: 'word after word, and on '}\n"
        "        pace: {every: 0ms}\n"
        "  - reply: ['A short one, of a few words.']\n"
    )
    weir = start_weir(config=f"script: {script}\nlimits: {{reply: 64KiB}}\n")
    client = nimi.Client(weir)
    assert len(client.stream("long").text) == 3000 * 24  # deltas need no such room
    with pytest.raises(nimi.Refused) as found:
        client.execute("long")
    assert (found.value.code, found.value.reason) == OUTPUT, found.value.text
    assert not found.value.message["retryable"]
    # Nor does a conversation remember half of one.
    session = Session(client)
    events = session.read()
    session.append("long")
    failed = events.until(lambda event: event.HasField("failed") or event.HasField("completed"))
    assert failed.failed.reason_code == AI_OUTPUT_INVALID, failed
    session.append("hello")
    assert events.until(lambda event: event.HasField("completed"))
    events.cancel()
    assert client.execute("hello").output.text_generate.text == "A short one, of a few words."


class LongModel:
    """Speaks OpenAI's API, and does not stop by itself."""

    def __init__(self):
        self.asked = 0
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_POST(self):
                model.asked += 1
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                chunk = {"choices": [{"index": 0, "delta": {"content": "a" * 100_000}}]}
                with contextlib.suppress(OSError):  # it is hung up on
                    while True:
                        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def config(self):
        return (
            "nimi: {allow_loopback_provider_endpoint: true, probe_interval: 0s}\n"
            "providers:\n  - {name: long, kind: openai, key_env: LONG_KEY,"
            f" base_url: 'http://127.0.0.1:{self.server.server_address[1]}/v1'}}\n"
            "connectors:\n  - {id: here, provider: long, local: true}\n"
        )


def test_an_answer_that_is_not_taken_whole_is_not_asked_for_again(start_weir):
    """More than 16 MiB: the same request would end in the same way, so no mode calls it temporary."""
    model = LongModel()
    weir = start_weir(config=model.config, env={"LONG_KEY": "k"})
    client = nimi.Client(weir, options=ANY_SIZE)
    answer = client.stream("hi")
    assert answer.code == grpc.StatusCode.OK and len(answer.text) > 15 * 1024 * 1024
    assert answer.last.frame.reason_code == answer.last.failed.reason_code == AI_OUTPUT_INVALID
    with pytest.raises(nimi.Refused) as found:
        client.execute("hi")
    assert (found.value.code, found.value.reason) == OUTPUT, found.value.text
    assert not found.value.message["retryable"]
    submitted = nimi.pb.SubmitScenarioJobRequest(
        head=nimi.head(),
        scenario_type=nimi.pb.SCENARIO_TYPE_TEXT_GENERATE,
        execution_mode=nimi.pb.EXECUTION_MODE_ASYNC_JOB,
        spec=nimi.text_spec("hi"),
    )
    job = client.ask(client.ai.SubmitScenarioJob, submitted)[0].job.job_id
    watched = nimi.pb.SubscribeScenarioJobEventsRequest(job_id=job)
    *_, last = client.ai.SubscribeScenarioJobEvents(watched, metadata=client.metadata())
    assert last.event_type == nimi.pb.SCENARIO_JOB_EVENT_FAILED
    assert last.job.reason_code == AI_OUTPUT_INVALID, last.job
    assert model.asked == 3
    model.server.shutdown()
    model.server.server_close()


def ask_with(weir, path, request, **changes):
    """The status of a call with these headers, whose values may be any bytes."""
    names = {name.replace("-", "_"): value for name, value in nimi.HEADERS.items()}
    names.update(attack.GRPC, path=path, **changes)
    body = request.SerializeToString()
    call = attack.frame(attack.HEADERS, attack.END_HEADERS, 1, attack.request(**names))
    call += attack.frame(
        attack.DATA, attack.END_STREAM, 1, b"\0" + len(body).to_bytes(4, "big") + body
    )
    decoder, found = hpack.Decoder(), {}
    with attack.dial(weir.port("nimi_grpc")) as peer:
        peer.settimeout(attack.PATIENCE)
        peer.sendall(attack.START + call)
        ending = attack.Ending()
        while "grpc-status" not in found:
            part = peer.recv(262144)
            assert part, ending.received
            ending.received += part
            decoder, found = hpack.Decoder(), {}
            for kind, _, _, payload in ending.frames:
                if kind == attack.HEADERS:
                    found.update(decoder.decode(payload))
    return int(found["grpc-status"])


@pytest.mark.parametrize("name", ["caller_id", "surface_id", "trace_id", "participant_id"])
def test_a_header_that_is_no_text_is_in_nobodys_list(weir, name):
    """It was kept as it came, and no client could read a list with such a record."""
    client = nimi.Client(weir)
    path = "/nimi.runtime.v1.RuntimeAuthService/RegisterApp"
    request = auth_pb2.RegisterAppRequest(app_id=nimi.APP, app_instance_id="one")
    status = ask_with(weir, path, request, **{f"x_nimi_{name}": b"caller\xff\xfe"})
    assert status == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert ask_with(weir, path, request, **{f"x_nimi_{name}": "Grüße".encode()}) == 0
    found, give_up = [], time.monotonic() + nimi.PATIENCE  # the log is written behind the calls
    while not found and time.monotonic() < give_up:
        asked = audit_pb2.ListAuditEventsRequest()
        found = [
            event
            for event in client.ask(client.audit.ListAuditEvents, asked)[0].events
            if event.operation == "RegisterApp"
        ]
    assert len(found) == 1


def unread(weir, path, request, streams):
    """A connection with this many calls, which grants no window."""
    names = {name.replace("-", "_"): value for name, value in nimi.HEADERS.items()}
    names.update(attack.GRPC, path=path)
    body = request.SerializeToString()
    body = b"\0" + len(body).to_bytes(4, "big") + body
    no_window = attack.frame(attack.SETTINGS, 0, 0, struct.pack(">HI", 4, 0))
    calls = b"".join(
        attack.frame(attack.HEADERS, attack.END_HEADERS, number, attack.request(**names))
        + attack.frame(attack.DATA, attack.END_STREAM, number, body)
        for number in range(1, 2 * streams, 2)
    )
    peer = attack.dial(weir.port("nimi_grpc"))
    peer.settimeout(attack.PATIENCE)
    peer.sendall(attack.PREFACE + no_window + calls)
    return peer


def await_answers(peer, streams):
    """What came, once each call has the head of an answer, or was cut because too much waits."""
    ending, answers = attack.Ending(), (attack.HEADERS, attack.RESET)
    while len({n for kind, _, n, _ in ending.frames if kind in answers}) < streams:
        part = peer.recv(262144)
        assert part, "the connection was closed"
        ending.received += part
    return ending


@pytest.mark.parametrize("what", ["artifacts", "history"])
def test_replies_that_nobody_reads_have_a_ceiling(start_weir, what):  # L2
    """Each call has a reply of 3 MiB made, which waits to be read."""
    ceiling, streams = 64 * 1024, 90  # KiB
    weir = start_weir(config="threads: 1\nlimits: {memory: 64MiB, write_stall: 10m}\n")
    client = nimi.Client(weir)
    if what == "artifacts":
        spec = nimi.pb.SpeechSynthesizeScenarioSpec(text="Good morning to all of you. " * 50)
        submitted = nimi.pb.SubmitScenarioJobRequest(
            head=nimi.head(model_id="speech/espeak-ng"),
            scenario_type=nimi.pb.SCENARIO_TYPE_SPEECH_SYNTHESIZE,
            execution_mode=nimi.pb.EXECUTION_MODE_ASYNC_JOB,
            spec=nimi.pb.ScenarioSpec(speech_synthesize=spec),
        )
        job = client.ask(client.ai.SubmitScenarioJob, submitted)[0].job.job_id
        watched = nimi.pb.SubscribeScenarioJobEventsRequest(job_id=job)
        *_, last = client.ai.SubscribeScenarioJobEvents(watched, metadata=client.metadata())
        assert len(last.job.artifacts[0].bytes) > 2 * 1024 * 1024
        path = "/nimi.runtime.v1.RuntimeAiService/GetScenarioArtifacts"
        request = nimi.pb.GetScenarioArtifactsRequest(job_id=job)
    else:
        memory = Memory(weir, app=nimi.APP)
        memory.create()
        memory.retain(*(episode("x" * 60000) for _ in range(50)))
        path = "/nimi.runtime.v1.RuntimeCognitionService/History"
        request = memory_pb2.HistoryRequest(context=memory.context, bank=place("w"))
    with unread(weir, path, request, streams) as peer:
        heads = [n for kind, _, n, _ in await_answers(peer, streams).frames if kind == attack.HEADERS]
        refused = len(heads) - len(set(heads))  # their trailers came, too
        # What is on its way from the store is not asked for beforehand, but it does not stay.
        give_up = time.monotonic() + attack.PATIENCE
        while held_kib(weir) > 2 * ceiling and not crawbl.is_sanitized():  # once: 4 times
            assert time.monotonic() < give_up, f"{held_kib(weir)} KiB are held"
            time.sleep(0.05)
        assert refused > streams // 3
    # What they held is free again.
    give_up = time.monotonic() + attack.PATIENCE
    while time.monotonic() < give_up:
        with contextlib.suppress(nimi.Refused):
            if what == "artifacts":
                client.ask(client.ai.GetScenarioArtifacts, request)
            else:
                memory.history()
            return
    raise AssertionError("nothing is answered any more")


def test_pages_and_times_that_are_negative_are_refused(weir):
    client = nimi.Client(weir)
    local = local_pb2_grpc.RuntimeLocalServiceStub(client.channel)
    before = audit_pb2.ExportAuditEventsRequest(app_id=nimi.APP, format="json")
    before.to_time.seconds = -5
    for method, request in (
        (client.audit.ListAuditEvents, audit_pb2.ListAuditEventsRequest(page_size=-1)),
        (client.audit.ListUsageStats, audit_pb2.ListUsageStatsRequest(page_size=-1)),
        (local.ListLocalAssets, local_pb2.ListLocalAssetsRequest(page_size=-1)),
    ):
        with pytest.raises(nimi.Refused) as found:
            client.ask(method, request)
        assert (found.value.code, found.value.reason) == INVALID, found.value.text
    with pytest.raises(grpc.RpcError) as error:
        list(client.audit.ExportAuditEvents(before, metadata=client.metadata()))
    refused = nimi.Refused(error.value)
    assert (refused.code, refused.reason) == INVALID, refused.text


@pytest.mark.parametrize("option", ["temperature", "top_p"])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_number_that_is_none_does_not_reach_a_model(weir, option, value):
    client = nimi.Client(weir)
    answer = client.stream(asked=nimi.request(spec=nimi.text_spec("hi", **{option: value})))
    assert answer.code == grpc.StatusCode.INVALID_ARGUMENT, answer.events
    assert answer.error.reason == "AI_INPUT_INVALID"
