"""ListPresetVoices of nimi.runtime.v1: whose voices, with which headers, and who may ask."""
import grpc
import nimi_client as nimi
import pytest
from nimi_client import pb

QUICK = pytest.mark.weir(script="test/e2e/scripts/quick.yaml")

CONNECTORS = """
connectors:
  - {id: here, provider: builtin}
  - {id: house, provider: builtin, local: false, owner: anna}
  - {id: off, provider: builtin, local: false, enabled: false}
  - {id: words, provider: scripted}
"""


def voices(client, **fields):
    asked = pb.ListPresetVoicesRequest(**{"app_id": nimi.APP, **fields})
    return client.ask(client.ai.ListPresetVoices, asked)


def refusal(client, **fields):
    with pytest.raises(nimi.Refused) as refused:
        voices(client, **fields)
    return refused.value.reason, refused.value.code


@QUICK
def test_this_machine_has_the_voices_of_espeak(weir):
    client = nimi.Client(weir)
    for model in ("speech/espeak-ng", "espeak-ng", "local/espeak-ng"):
        reply, headers = voices(client, model_id=model)
        assert reply.model_resolved == "espeak-ng" and reply.trace_id
        assert headers["x-nimi-voice-count"] == str(len(reply.voices))
        assert headers["x-nimi-voice-catalog-source"] == "local"
        assert len(headers["x-nimi-voice-catalog-version"]) == 16
        by_id = {v.voice_id: v for v in reply.voices}
        assert len(by_id) == len(reply.voices) > 50, "each id is there once"
        english = by_id["en-US"]
        assert english.name == "English_(America)" and english.lang == "en-us"
        assert list(english.supported_langs) == ["en-us"] and english.category == "preset"
        assert english.labels["gender"] == "male"
    again, same = voices(client, target_model_id="espeak-ng", model_id="else")
    assert same["x-nimi-voice-catalog-version"] == headers["x-nimi-voice-catalog-version"]
    assert again.voices == reply.voices, "the target's model counts"


@QUICK
def test_a_model_that_does_not_speak_has_no_voices(weir):
    for model in ("m", "hash-256"):
        reply, headers = voices(nimi.Client(weir), model_id=model)
        assert not reply.voices and headers["x-nimi-voice-count"] == "0"


@QUICK
def test_what_is_wrong_with_the_question_is_said(weir):
    client, bad = nimi.Client(weir), grpc.StatusCode.INVALID_ARGUMENT
    assert refusal(client, model_id="m", app_id="") == ("AI_APP_ID_REQUIRED", bad)
    assert refusal(client, model_id="m", app_id="other") == ("AI_APP_ID_CONFLICT", bad)
    assert refusal(client) == ("AI_MODEL_ID_REQUIRED", bad)
    assert refusal(client, model_id="llama/espeak-ng") == ("AI_MODEL_PROVIDER_MISMATCH", bad)
    assert refusal(client, model_id="m", connector_id="x") == ("PROTOCOL_ENVELOPE_INVALID", bad)


@pytest.mark.weir(script="test/e2e/scripts/quick.yaml", config=CONNECTORS)
def test_voices_are_those_of_the_connector(weir):
    client, missing = nimi.Client(weir), grpc.StatusCode.NOT_FOUND
    assert len(voices(client, model_id="speech/espeak-ng")[0].voices) > 50
    anna = {"model_id": "espeak-ng", "subject_user_id": "anna"}
    assert len(voices(client, connector_id="house", **anna)[0].voices) > 50
    assert not voices(client, connector_id="words", **anna)[0].voices
    bob = {**anna, "subject_user_id": "bob"}
    assert refusal(client, connector_id="house", **bob) == ("AI_CONNECTOR_NOT_FOUND", missing)
    assert refusal(client, connector_id="none", **bob) == ("AI_CONNECTOR_NOT_FOUND", missing)
    assert refusal(client, connector_id="off", **bob)[0] == "AI_CONNECTOR_DISABLED"
    assert refusal(client, connector_id="here", **bob)[0] == "AI_CONNECTOR_INVALID"
    assert refusal(client, model_id="speech/other")[0] == "AI_LOCAL_MODEL_UNAVAILABLE"
