"""nimi.runtime.v1: speech by a stream, vectors at once, and how a reply ended."""
import contextlib
import http.server
import io
import json
import sqlite3
import threading
import time
import wave

import grpc
import httpx
import nimi_client as nimi
import pytest
from nimi_client import common, pb

QUICK = pytest.mark.weir(script="test/e2e/scripts/quick.yaml")
PIECE = 32 * 1024
WORDS = "The quick brown fox jumps over the lazy dog, and it does not mind at all. "


def speech(text="Good morning.", model_id="speech/espeak-ng", head=None, **fields):
    spec = pb.SpeechSynthesizeScenarioSpec(text=text, **fields)
    return pb.StreamScenarioRequest(
        head=nimi.head(model_id=model_id, **(head or {})),
        scenario_type=pb.SCENARIO_TYPE_SPEECH_SYNTHESIZE,
        spec=pb.ScenarioSpec(speech_synthesize=spec),
    )


def embedding(*inputs, model_id="hash-256", head=None):
    return pb.ExecuteScenarioRequest(
        head=nimi.head(model_id=model_id, **(head or {})),
        scenario_type=pb.SCENARIO_TYPE_TEXT_EMBED,
        spec=pb.ScenarioSpec(text_embed=pb.TextEmbedScenarioSpec(inputs=inputs)),
    )


def sound_of(answer):
    """What the deltas of a speech hold, each of them as the rules have it."""
    deltas = [e for e in answer.events if e.HasField("delta")]
    for event in deltas:
        assert event.delta.artifact.mime_type and event.delta.artifact.chunk
        assert not event.frame.done and event.frame.audio_chunk == event.delta.artifact.chunk
        assert len(event.delta.artifact.chunk) <= PIECE
    assert all(len(e.delta.artifact.chunk) == PIECE for e in deltas[:-1])
    assert len({e.delta.artifact.mime_type for e in deltas}) == 1
    return b"".join(e.delta.artifact.chunk for e in deltas), deltas[0].delta.artifact.mime_type


def seconds_of(sound):
    with wave.open(io.BytesIO(sound)) as file:
        assert file.getnchannels() == 1 and file.getsampwidth() == 2
        return file.getnframes() / file.getframerate()


# --- speech, by espeak-ng itself ---------------------------------------------------------------


@QUICK
def test_a_speech_call_starts_sounds_tells_its_usage_and_completes(weir):
    answer = nimi.Client(weir).stream(asked=speech(WORDS))
    assert answer.code == grpc.StatusCode.OK, answer.error
    assert answer.kinds[0] == "started" and answer.kinds[-2:] == ["usage", "completed"]
    assert set(answer.kinds[1:-2]) == {"delta"} and len(answer.kinds) > 5
    assert answer.events[0].started.model_resolved == "espeak-ng"
    assert [e.sequence for e in answer.events] == list(range(1, len(answer.events) + 1))
    assert len({e.trace_id for e in answer.events}) == 1
    sound, kind = sound_of(answer)
    assert kind == "audio/wav" and 2 < seconds_of(sound) < 20
    last = answer.last
    assert not last.frame.audio_chunk and last.frame.reason_code == 0
    assert last.completed.usage == last.frame.usage == answer.events[-2].usage
    assert last.completed.usage.compute_ms == -1
    assert not answer.events[-2].HasField("frame")
    assert last.completed.finish_reason == common.FINISH_REASON_STOP
    assert int(answer.trailers["x-nimi-queue-wait-ms"]) >= 0


@QUICK
def test_the_sound_is_as_the_request_wants_it(weir):
    client = nimi.Client(weir)

    def sound(**fields):
        answer = client.stream(asked=speech(WORDS, **fields))
        assert answer.kinds[-1] == "completed", answer.error or answer.last
        return sound_of(answer)

    plain, _ = sound(sample_rate_hz=24000)
    raw, kind = sound(audio_format="pcm", sample_rate_hz=24000)
    assert kind == "audio/pcm" and plain[-len(raw) :] == raw, "pcm is wav without its head"
    assert abs(seconds_of(plain) - len(raw) / 2 / 24000) < 0.01
    fast, _ = sound(speed=2)
    assert seconds_of(fast) < 0.75 * seconds_of(plain)
    english = pb.VoiceReference(kind=pb.VOICE_REFERENCE_KIND_PRESET, preset_voice_id="en-US")
    german = pb.VoiceReference(kind=pb.VOICE_REFERENCE_KIND_PRESET, preset_voice_id="de")
    assert sound(voice_ref=english)[0] != sound(voice_ref=german)[0]


@QUICK
def test_a_caller_may_ask_for_sound_without_frames(weir):
    client = nimi.Client(weir)
    answer = client.stream(asked=speech(), metadata=client.metadata(stream_frame="terminal"))
    assert not any(e.HasField("frame") for e in answer.events[:-1]) and answer.last.frame.done


def voice(kind, **reference):
    return {"voice_ref": pb.VoiceReference(kind=kind, **reference)}


REFUSALS = [
    ({"text": "  \n"}, "AI_INPUT_INVALID", "INVALID_ARGUMENT"),
    ({"text": WORDS * 300}, "AI_INPUT_INVALID", "INVALID_ARGUMENT"),  # half an hour
    ({"audio_format": "mp3"}, "AI_MEDIA_OPTION_UNSUPPORTED", "INVALID_ARGUMENT"),
    ({"sample_rate_hz": 192001}, "AI_MEDIA_SPEC_INVALID", "INVALID_ARGUMENT"),
    ({"sample_rate_hz": -1}, "AI_MEDIA_SPEC_INVALID", "INVALID_ARGUMENT"),
    ({"speed": 4.5}, "AI_MEDIA_SPEC_INVALID", "INVALID_ARGUMENT"),
    ({"speed": float("nan")}, "AI_MEDIA_SPEC_INVALID", "INVALID_ARGUMENT"),
    ({"pitch": -24.5}, "AI_MEDIA_SPEC_INVALID", "INVALID_ARGUMENT"),
    ({"volume": 5}, "AI_MEDIA_SPEC_INVALID", "INVALID_ARGUMENT"),
    ({"emotion": "glad"}, "AI_MEDIA_OPTION_UNSUPPORTED", "INVALID_ARGUMENT"),
    ({"timing_mode": 2}, "AI_MEDIA_OPTION_UNSUPPORTED", "INVALID_ARGUMENT"),
    (
        {"voice_render_hints": pb.VoiceRenderHints(stability=0.5)},
        "AI_MEDIA_OPTION_UNSUPPORTED",
        "INVALID_ARGUMENT",
    ),
    (voice(1, preset_voice_id="nobody"), "AI_VOICE_INPUT_INVALID", "INVALID_ARGUMENT"),
    (voice(2, preset_voice_id="en-US"), "AI_VOICE_INPUT_INVALID", "INVALID_ARGUMENT"),
    (voice(1), "AI_VOICE_INPUT_INVALID", "INVALID_ARGUMENT"),
    (voice(2, voice_asset_id="va-1"), "AI_VOICE_ASSET_NOT_FOUND", "NOT_FOUND"),
    ({"language": "xx-none"}, "AI_MEDIA_OPTION_UNSUPPORTED", "INVALID_ARGUMENT"),
    ({"model_id": "speech/none"}, "AI_MODALITY_NOT_SUPPORTED", "FAILED_PRECONDITION"),
    ({"model_id": "llama/espeak-ng"}, "AI_MODEL_PROVIDER_MISMATCH", "INVALID_ARGUMENT"),
    ({"model_id": "hash-256"}, "AI_MODALITY_NOT_SUPPORTED", "FAILED_PRECONDITION"),
]


@QUICK
def test_what_no_voice_can_is_a_status_in_every_carrier(weir):
    client = nimi.Client(weir)
    for fields, reason, code in REFUSALS:
        answer = client.stream(asked=speech(**fields))
        assert answer.events == [], fields
        assert answer.error.reason == reason, (fields, answer.error.text)
        assert answer.code.name == code, fields
        assert answer.headers["x-nimi-runtime-version"].startswith("0.")
    assert client.stream(asked=speech()).kinds[-1] == "completed"


@QUICK
def test_sound_that_turns_out_too_long_is_the_inputs_fault(weir):
    """Eight minutes: what no count of letters tells for sure is found while it is said."""
    client = nimi.Client(weir)
    answer = client.stream(asked=speech(WORDS * 110, head={"timeout_ms": 120000}))
    assert answer.error is None and answer.kinds[0] == "started"
    assert "delta" not in answer.kinds
    assert common.ReasonCode.Name(answer.last.failed.reason_code) == "AI_INPUT_INVALID"
    assert answer.last.frame.reason_code == answer.last.failed.reason_code
    assert client.stream(asked=speech()).kinds[-1] == "completed"


@QUICK
def test_a_slow_reader_gets_a_long_sound_whole(weir):
    client = nimi.Client(weir)
    asked = speech(WORDS * 30, audio_format="pcm", head={"timeout_ms": 120000})
    whole, _ = sound_of(client.stream(asked=asked))
    assert len(whole) > 2 * 1024 * 1024
    call = client.open(asked, timeout=90)
    first = [next(call), next(call)]
    time.sleep(1)  # nothing is read: what comes stops at the windows, and behind them the feed
    answer = nimi.Answer(call)
    answer.events = first + answer.events
    again, _ = sound_of(answer)
    assert again == whole and answer.kinds[-1] == "completed"


@pytest.mark.weir(
    script="test/e2e/scripts/quick.yaml",
    config=f"http:\n  workspace: {nimi.APP}\n",
    env={"AGENT_AUTH_TOKEN": "agent-secret"},
)
def test_what_was_asked_is_counted(weir):
    nimi.Client(weir).stream(asked=speech("Count me."))
    asked = {"by": "model", "workspace": nimi.APP}
    usage = httpx.get(
        f"http://127.0.0.1:{weir.port('http')}/weir/v1/usage",
        params=asked,
        headers={"authorization": "Bearer agent-secret"},
    )
    assert usage.status_code == 200 and "espeak-ng" in usage.text, usage.text


# --- a house that does what the test says ------------------------------------------------------


class House(http.server.ThreadingHTTPServer):
    """A vendor on loopback: says what is in `play`, or nothing until it is closed."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.play, self.closing = None, threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # who asked is gone

    def close(self):
        self.closing.set()
        self.shutdown()
        self.server_close()

    def config(self):
        return f"""
nimi: {{allow_loopback_provider_endpoint: true}}
providers:
  - {{name: house, kind: openai, base_url: "http://127.0.0.1:{self.server_port}/v1", key_env: HOUSE_KEY}}
connectors:
  - {{id: house, provider: house}}
"""


class Answers(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        if self.server.play is None:
            self.server.closing.wait(30)
            return
        status, kind, body = self.server.play
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def house():
    with contextlib.closing(House()) as server:
        yield server


def at(house, start_weir):
    return start_weir(config=house.config(), env={"HOUSE_KEY": "secret-of-the-house"})


CLOUD = {
    "connector_id": "house",
    "subject_user_id": "anna",
    "route_policy": common.ROUTE_POLICY_CLOUD,
}


def in_cloud(**fields):
    return speech(model_id="tts-1", head={**CLOUD, **fields})


def test_a_speech_that_fails_after_the_start_is_a_frame_and_ok(house, start_weir):
    client = nimi.Client(at(house, start_weir))
    refusal = {"error": {"message": "no such key", "type": "invalid_request_error"}}
    house.play = (401, "application/json", json.dumps(refusal).encode())
    answer = client.stream(asked=in_cloud())
    assert answer.code == grpc.StatusCode.OK and answer.kinds == ["started", "failed"]
    last = answer.last
    assert last.frame.reason_code == last.failed.reason_code == common.AI_PROVIDER_AUTH_FAILED
    assert last.failed.action_hint.startswith("AI_PROVIDER_AUTH_FAILED: ")
    assert not last.frame.audio_chunk and last.frame.usage.input_tokens == -1
    assert "secret-of-the-house" not in str(last)


def test_a_provider_that_says_nothing_is_timed_out_in_the_stream(house, start_weir):
    client = nimi.Client(at(house, start_weir))
    answer = client.stream(asked=in_cloud(timeout_ms=300))
    assert answer.code == grpc.StatusCode.OK and answer.kinds == ["started", "failed"]
    assert answer.last.failed.reason_code == common.AI_PROVIDER_TIMEOUT


def test_stopping_cuts_a_speech_cancelled_and_forges_nothing(house, start_weir):
    weir = at(house, start_weir)
    call = nimi.Client(weir).open(in_cloud())
    assert next(call).HasField("started")
    threading.Timer(0.2, lambda: weir.signal(15)).start()
    answer = nimi.Answer(call)
    assert answer.code == grpc.StatusCode.CANCELLED and answer.events == []
    assert answer.error.text == "runtime shutting down"
    assert weir.wait() == 0


def rows(weir, query):
    store = f"file:{weir.data}/weir.db?mode=ro"
    with contextlib.closing(sqlite3.connect(store, uri=True)) as database:
        return database.execute(query).fetchall()


def test_a_speech_that_a_kill_cut_is_over_at_the_next_start(house, start_weir):
    """K26: its record is failed `interrupted`, like a turn's."""
    weir = at(house, start_weir)
    call = nimi.Client(weir).open(in_cloud())
    assert next(call).HasField("started")
    until = time.monotonic() + nimi.PATIENCE
    while not rows(weir, "select 1 from log where length(bytes) > 0"):  # its beginning
        assert time.monotonic() < until
        time.sleep(0.05)
    weir.process.kill()  # before the caller's channel is closed, which would cancel it
    weir.kill()
    weir.start()
    house.play = (401, "application/json", b'{"error": {"message": "no"}}')
    answer = nimi.Client(weir).stream(asked=in_cloud())
    assert answer.kinds == ["started", "failed"]
    weir.stop()
    states = rows(weir, "select state from run")
    assert states == [(12,), (12,)], "both have failed"


def chunks(*contents, finish):
    told = [{"delta": {"content": text}} for text in contents] + [
        {"delta": {}, "finish_reason": finish}
    ]
    lines = [json.dumps({"model": "big-1", "choices": [{"index": 0, **t}]}) for t in told]
    text = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
    return 200, "text/event-stream", text.encode()


def test_how_a_reply_ended_is_told(house, start_weir):
    client = nimi.Client(at(house, start_weir))
    for finish, reason in [
        ("stop", common.FINISH_REASON_STOP),
        ("length", common.FINISH_REASON_LENGTH),
        ("content_filter", common.FINISH_REASON_CONTENT_FILTER),
    ]:
        house.play = chunks("First words, ", "and then some.", finish=finish)
        answer = client.stream("hi", model_id="big", **CLOUD)
        assert answer.kinds[-1] == "completed", (finish, answer.last)
        assert answer.last.completed.finish_reason == reason, finish
        assert answer.text == "First words, and then some."
        assert client.execute("hi", model_id="big", **CLOUD).finish_reason == reason
    house.play = chunks(finish="content_filter")
    answer = client.stream("hi", model_id="big", **CLOUD)
    assert answer.last.failed.reason_code == common.AI_CONTENT_FILTER_BLOCKED


# --- vectors -----------------------------------------------------------------------------------


@QUICK
def test_vectors_stand_in_the_order_of_their_inputs(weir):
    client = nimi.Client(weir)
    texts = ["a red apple", "a green apple", "an unrelated sentence"]
    reply, _ = client.ask(client.ai.ExecuteScenario, embedding(*texts))
    vectors = [list(v.values) for v in reply.output.text_embed.vectors]
    assert [len(v) for v in vectors] == [256] * 3
    for text, vector in zip(texts, vectors):
        alone, _ = client.ask(client.ai.ExecuteScenario, embedding(text))
        assert list(alone.output.text_embed.vectors[0].values) == vector
    assert reply.model_resolved == "hash-256" and len(reply.trace_id) == 26
    assert reply.finish_reason == common.FINISH_REASON_STOP


@QUICK
def test_an_embedding_that_cannot_be_made_is_a_status(weir):
    client = nimi.Client(weir)
    for asked, reason in [
        (embedding(), "AI_INPUT_INVALID"),
        (embedding("a", " "), "AI_INPUT_INVALID"),
        (embedding("a", model_id="m"), "AI_MODALITY_NOT_SUPPORTED"),
        (embedding("a", model_id="speech/hash-256"), "AI_MODEL_PROVIDER_MISMATCH"),
    ]:
        with pytest.raises(nimi.Refused) as refused:
            client.ask(client.ai.ExecuteScenario, asked)
        assert refused.value.reason == reason


@QUICK
def test_vectors_longer_than_a_message_are_refused_not_cut(weir):
    client = nimi.Client(weir)
    with pytest.raises(nimi.Refused) as refused:
        client.ask(client.ai.ExecuteScenario, embedding(*["word"] * 2100))
    assert refused.value.code == grpc.StatusCode.INTERNAL
    assert refused.value.reason == "AI_OUTPUT_INVALID"
    assert not refused.value.message["retryable"]
    assert client.stream(asked=speech()).kinds[-1] == "completed"


# --- who serves what ---------------------------------------------------------------------------


@QUICK
def test_profiles_tell_what_is_served(weir):
    client = nimi.Client(weir)

    def profiles(model_id=""):
        asked = pb.ListScenarioProfilesRequest(model_id=model_id)
        reply, _ = client.ask(client.ai.ListScenarioProfiles, asked)
        return {p.scenario_type: list(p.supported_execution_modes) for p in reply.profiles}

    text, vectors, voices = (
        pb.SCENARIO_TYPE_TEXT_GENERATE,
        pb.SCENARIO_TYPE_TEXT_EMBED,
        pb.SCENARIO_TYPE_SPEECH_SYNTHESIZE,
    )
    assert profiles() == {text: [1, 2, 3], vectors: [1, 3], voices: [2, 3]}
    assert voices in profiles("speech/espeak-ng") and text not in profiles("speech/espeak-ng")
    assert profiles("media/none") == {}


@QUICK
def test_types_that_nobody_serves_are_refused_before_they_begin(weir):
    client = nimi.Client(weir)
    types = {
        pb.SCENARIO_TYPE_IMAGE_GENERATE: pb.ScenarioSpec(
            image_generate=pb.ImageGenerateScenarioSpec(prompt="a cat")
        ),
        pb.SCENARIO_TYPE_VOICE_CLONE: pb.ScenarioSpec(
            voice_clone=pb.VoiceCloneScenarioSpec(target_model_id="m")
        ),
    }
    for kind, spec in types.items():
        asked = pb.StreamScenarioRequest(head=nimi.head(), scenario_type=kind, spec=spec)
        answer = client.stream(asked=asked)
        assert answer.events == [] and answer.error.reason == "AI_ROUTE_UNSUPPORTED"
        assert answer.code == grpc.StatusCode.INVALID_ARGUMENT
