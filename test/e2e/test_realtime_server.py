"""The server of test_nimi_live.py is true to the wire: the vendor's own client talks to it."""
import pytest
from realtime_server import RealtimeServer
from sdks import openai


@pytest.mark.parametrize("modality, text", [("text", "output_text"), ("audio", "output_audio_transcript")])
def test_the_vendors_client_reads_every_event(modality, text):
    with RealtimeServer() as server:
        client = openai.OpenAI(api_key="k", base_url=f"http://127.0.0.1:{server.port}/v1",
                               websocket_base_url=f"ws://127.0.0.1:{server.port}/v1")
        with client.realtime.connect(model="gpt-realtime") as connection:
            connection.session.update(
                session={"type": "realtime", "output_modalities": [modality]}
            )
            content = [{"type": "input_text", "text": "hello"}]
            connection.conversation.item.create(
                item={"type": "message", "role": "user", "content": content}
            )
            connection.response.create()
            said, kinds = "", []
            for event in connection:
                kinds.append(event.type)
                if event.type == f"response.{text}.delta":
                    said += event.delta
                if event.type == "response.done":
                    break
    assert said == "You said: hello. Grüße 🌊, and that was all of it, I believe."
    assert event.response.status == "completed" and event.response.usage.input_tokens == 17
    assert kinds[:2] == ["session.created", "session.updated"]
    assert ("response.output_audio.delta" in kinds) == (modality == "audio")
