"""Vectors, speech, pictures and transcripts of a vendor's API, asked for over nimi.runtime.v1."""
import base64
import email
import email.policy
import struct

import grpc
import nimi_client as nimi
import pytest
import vendors
from nimi_client import common, pb

CONNECTOR = {
    "connectors": [{"id": "house", "provider": "house"}],
    "nimi": {"allow_loopback_provider_endpoint": True},
}
CLOUD = {
    "route_policy": common.ROUTE_POLICY_CLOUD,
    "connector_id": "house",
    "subject_user_id": "anna",
}


@pytest.fixture
def kind():
    return "openai"


@pytest.fixture
def client(house):
    weir = house(**CONNECTOR)
    client = nimi.Client(weir)
    client.weir = weir
    return client


def says(models, model, endpoint, *answers):
    """What the vendor answers at one of its addresses, in order."""
    fixtures = [
        {"match": {"model": model, "endpoint": endpoint, "sequenceIndex": at}, "response": answer}
        for at, answer in enumerate(answers)
    ]
    told = models.aimock.control.post("/fixtures", json={"fixtures": fixtures})
    assert told.status_code == 200, told.text


def questions(models):
    """What the vendor was asked, without the probes of whether it is there."""
    return [asked for asked in models.asked if asked.raw]


def embed(client, *inputs, model="embed-1"):
    asked = pb.ExecuteScenarioRequest(
        head=nimi.head(model_id=model, **CLOUD),
        scenario_type=pb.SCENARIO_TYPE_TEXT_EMBED,
        spec=pb.ScenarioSpec(text_embed=pb.TextEmbedScenarioSpec(inputs=inputs)),
    )
    return client.ask(client.ai.ExecuteScenario, asked)[0]


def speak(client, text, model="tts-1", **spec):
    asked = pb.StreamScenarioRequest(
        head=nimi.head(model_id=model, **CLOUD),
        scenario_type=pb.SCENARIO_TYPE_SPEECH_SYNTHESIZE,
        spec=pb.ScenarioSpec(
            speech_synthesize=pb.SpeechSynthesizeScenarioSpec(text=text, **spec)
        ),
    )
    return client.stream(asked=asked)


def job(client, kind, spec, model):
    """A job from its submission to its end: its last event, and what it made."""
    asked = pb.SubmitScenarioJobRequest(
        head=nimi.head(model_id=model, **CLOUD),
        scenario_type=kind,
        execution_mode=pb.EXECUTION_MODE_ASYNC_JOB,
        spec=spec,
    )
    named = client.metadata()
    job_id = client.ask(client.ai.SubmitScenarioJob, asked)[0].job.job_id
    watched = pb.SubscribeScenarioJobEventsRequest(job_id=job_id)
    events = nimi.Answer(
        client.ai.SubscribeScenarioJobEvents(watched, metadata=named, timeout=nimi.PATIENCE)
    )
    assert events.code == grpc.StatusCode.OK
    made = client.ask(client.ai.GetScenarioArtifacts, pb.GetScenarioArtifactsRequest(job_id=job_id))
    return events.events[-1].job, made[0]


def test_vectors_come_from_the_vendor(client, models):
    says(models, "embed-1", "embedding", {"embedding": [0.5, -0.25, 1e-3]})
    reply = embed(client, "one", "two")
    vectors = [list(v.values) for v in reply.output.text_embed.vectors]
    assert vectors == [[0.5, -0.25, 0.001]] * 2
    assert reply.model_resolved == "embed-1"
    [asked] = questions(models)
    assert asked.path == "/v1/embeddings"
    assert asked.body == {
        "model": "embed-1", "input": ["one", "two"], "encoding_format": "float",
    }
    assert asked.headers["authorization"] == f"Bearer {vendors.KEY}"
    vendors.no_key_in(client.weir, reply)


def test_a_vendor_that_refuses_vectors_is_quoted_without_the_key(client, models):
    refused = vendors.refuse(401, f"Incorrect API key provided: {vendors.KEY}")
    says(models, "embed-1", "embedding", refused)
    with pytest.raises(nimi.Refused) as error:
        embed(client, "one")
    assert error.value.reason == "AI_PROVIDER_AUTH_FAILED"
    vendors.no_key_in(client.weir, error.value.text, error.value.trailers)


def test_a_busy_vendor_is_asked_again(client, models):
    busy = vendors.refuse(503, "busy")
    says(models, "embed-1", "embedding", busy, {"embedding": [1]})
    assert list(embed(client, "one").output.text_embed.vectors[0].values) == [1]
    first, second = questions(models)
    assert first.raw == second.raw


def test_sound_comes_as_the_vendor_made_it(client, models):
    sound = bytes(range(256)) * 40
    answer = {"audio": base64.b64encode(sound).decode(), "format": "mp3"}
    says(models, "tts-1", "speech", answer)
    heard = speak(client, "hello", audio_format="mp3", speed=1.5)
    assert heard.code == grpc.StatusCode.OK, heard.error and heard.error.text
    deltas = [e.delta.artifact for e in heard.events if e.HasField("delta")]
    assert b"".join(d.chunk for d in deltas) == sound
    assert {d.mime_type for d in deltas} == {"audio/mpeg"}
    [asked] = questions(models)
    assert asked.path == "/v1/audio/speech"
    assert asked.body == {
        "model": "tts-1", "input": "hello", "voice": "alloy", "response_format": "mp3",
        "speed": 1.5,
    }
    vendors.no_key_in(client.weir, heard.events)


def test_pcm_at_another_rate_is_resampled(client, models):
    samples = struct.pack("<4h", 0, 100, 200, 100)
    answer = {"audio": base64.b64encode(samples).decode(), "format": "pcm"}
    says(models, "tts-1", "speech", answer)
    heard = speak(client, "hello", audio_format="pcm", sample_rate_hz=48000)
    chunks = b"".join(e.delta.artifact.chunk for e in heard.events if e.HasField("delta"))
    assert struct.unpack("<8h", chunks) == (0, 50, 100, 150, 200, 150, 100, 100)


PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


def test_pictures_are_made_by_a_job(client, models):
    drawn = {"b64Json": base64.b64encode(PNG).decode()}
    says(models, "dall-e-3", "image", {"images": [drawn, {"url": "https://x.test/a.png"}]})
    spec = pb.ScenarioSpec(
        image_generate=pb.ImageGenerateScenarioSpec(prompt="a weir", n=2, size="640x480")
    )
    last, made = job(client, pb.SCENARIO_TYPE_IMAGE_GENERATE, spec, "dall-e-3")
    assert last.status == pb.SCENARIO_JOB_STATUS_COMPLETED, last
    first, second = sorted(made.artifacts, key=lambda artifact: artifact.uri)
    assert first.bytes == PNG and first.mime_type == "image/png"
    assert second.uri == "https://x.test/a.png" and not second.bytes
    assert (second.width, second.height) == (640, 480)
    [asked] = questions(models)
    assert asked.path == "/v1/images/generations"
    assert asked.body == {"model": "dall-e-3", "prompt": "a weir", "n": 2, "size": "640x480"}
    vendors.no_key_in(client.weir, made)


def test_a_transcript_is_made_by_a_job(client, models):
    sound = b"RIFF" + bytes(range(256)) + b"\r\n--weir-form-00000000--\r\n"
    says(models, "whisper-1", "transcription", {"transcription": {"text": "Grüße."}})
    source = pb.SpeechTranscriptionAudioSource(audio_bytes=sound)
    spec = pb.ScenarioSpec(
        speech_transcribe=pb.SpeechTranscribeScenarioSpec(
            mime_type="audio/wav", language="de-AT", prompt="names", audio_source=source
        )
    )
    last, made = job(client, pb.SCENARIO_TYPE_SPEECH_TRANSCRIBE, spec, "whisper-1")
    assert last.status == pb.SCENARIO_JOB_STATUS_COMPLETED, last
    assert made.output.speech_transcribe.text == "Grüße."
    [asked] = questions(models)
    assert asked.path == "/v1/audio/transcriptions"
    form = email.message_from_bytes(
        b"content-type: " + asked.headers["content-type"].encode() + b"\r\n\r\n" + asked.raw,
        policy=email.policy.HTTP,
    )
    parts = {p.get_param("name", header="content-disposition"): p for p in form.iter_parts()}
    assert set(parts) == {"model", "response_format", "language", "prompt", "file"}
    assert parts["language"].get_content().strip() == "de"
    assert parts["file"].get_filename() == "sound.wav"
    assert sound in asked.raw


def test_what_the_vendor_cannot_do_is_refused_before_it_is_asked(client, models):
    heard = speak(client, "hello", audio_format="midi")
    assert heard.events == [] and heard.code == grpc.StatusCode.INVALID_ARGUMENT
    assert "wav, pcm, mp3, opus, aac or flac" in heard.error.text
    assert questions(models) == []


def test_voices_of_a_server_that_is_not_openai_are_not_known(client):
    asked = pb.ListPresetVoicesRequest(
        app_id=nimi.APP, subject_user_id="anna", model_id="tts-1", connector_id="house"
    )
    reply, headers = client.ask(client.ai.ListPresetVoices, asked)
    assert not reply.voices and headers["x-nimi-voice-count"] == "0"
    assert headers["x-nimi-voice-catalog-source"] == "openai"
