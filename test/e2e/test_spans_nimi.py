"""Spans of media calls, of jobs and of workflows, for a collector that is played with the messages of
opentelemetry-proto: whose child each one is, by its id, also after a restart."""
import base64

import harness
import httpx
import nimi_client as nimi
import pytest
import vendors
from collector import Collector, attributes
from nimi_client import pb
from test_media_aimock import CLOUD, CONNECTOR, PNG, questions, says
from test_nimi_jobs import COMPLETED, Jobs, speech_of, until_running, vectors_of
from test_nimi_workflows import Workflows, node
from test_trace import HEADERS, PARENT, STATE, seen

INTERNAL, SERVER, CLIENT, PRODUCER, CONSUMER = range(1, 6)
TRACE, CALLER = PARENT.split("-")[1:3]
UNSAMPLED = PARENT[:-1] + "0"
SCRIPTS = "test/e2e/scripts"


@pytest.fixture
def kind():
    return "openai"


@pytest.fixture
def collector():
    with Collector() as collector:
        yield collector


@pytest.fixture
def cloud(house, collector):
    """A client of a runtime whose media are a vendor's."""
    return Jobs(house(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}, **CONNECTOR))


@pytest.fixture
def scripted(start_weir, collector):
    def start(script):
        return start_weir(script=f"{SCRIPTS}/{script}.yaml", env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})

    return start


def traced(client, headers=HEADERS):
    return [*client.metadata(), *headers]


def named(spans, name):
    return [span for span in spans if span.name == name]


def parent(span):
    return span.parent_span_id.hex()


def in_trace(span):
    return (span.trace_id.hex(), span.trace_state) == (TRACE, STATE)


def passed_on(span):
    return (f"00-{span.trace_id.hex()}-{span.span_id.hex()}-{span.flags:02x}", span.trace_state or None)


def embed(client, metadata, *inputs):
    asked = pb.ExecuteScenarioRequest(
        head=nimi.head(model_id="embed-1", **CLOUD),
        scenario_type=pb.SCENARIO_TYPE_TEXT_EMBED,
        spec=pb.ScenarioSpec(text_embed=pb.TextEmbedScenarioSpec(inputs=inputs)),
    )
    return client.ask(client.ai.ExecuteScenario, asked, metadata)[0]


def test_vectors_are_a_span_of_the_callers_trace_that_the_vendor_gets_as_parent(cloud, models, collector):
    says(models, "embed-1", "embedding", {"embedding": [0.5, -0.25, 1e-3]})
    embed(cloud, traced(cloud), "secret one", "secret two")
    [span] = collector.wait(1)
    assert (span.name, span.kind, parent(span)) == ("embeddings embed-1", CLIENT, CALLER) and in_trace(span)
    found = attributes(span)
    assert (found["gen_ai.operation.name"], found["gen_ai.provider.name"]) == ("embeddings", "house")
    assert (found["gen_ai.request.model"], found["gen_ai.response.model"]) == ("embed-1", "embed-1")
    assert found["weir.run"] > 0 and "gen_ai.output.type" not in found and span.status.code == 0
    assert "secret" not in str(span)
    assert [seen(asked) for asked in questions(models)] == [passed_on(span)]


def test_a_vendor_that_refuses_media_is_an_error_of_the_span(cloud, models, collector):
    says(models, "embed-1", "embedding", vendors.refuse(401))
    with pytest.raises(nimi.Refused):
        embed(cloud, cloud.metadata(), "one")
    [span] = collector.wait(1)
    assert span.status.code == 2 and attributes(span)["error.type"] and not span.parent_span_id
    assert [seen(asked) for asked in questions(models)] == [passed_on(span)]


def test_a_caller_that_does_not_sample_gets_no_span_and_its_trace_goes_on(cloud, models, collector):
    says(models, "embed-1", "embedding", {"embedding": [1]}, {"embedding": [1]})
    embed(cloud, traced(cloud, [("traceparent", UNSAMPLED)]), "one")
    embed(cloud, traced(cloud), "two")
    assert [in_trace(span) for span in collector.wait(1)] == [True]
    assert [seen(asked) for asked in questions(models)] == [(UNSAMPLED, None), passed_on(collector.spans[0])]


def test_sound_is_a_span(cloud, models, collector):
    says(models, "tts-1", "speech", {"audio": base64.b64encode(bytes(2000)).decode(), "format": "mp3"})
    asked = pb.StreamScenarioRequest(
        head=nimi.head(model_id="tts-1", **CLOUD),
        scenario_type=pb.SCENARIO_TYPE_SPEECH_SYNTHESIZE,
        spec=pb.ScenarioSpec(speech_synthesize=pb.SpeechSynthesizeScenarioSpec(text="secret", audio_format="mp3")),
    )
    cloud.stream(asked=asked, metadata=traced(cloud))
    [span] = collector.wait(1)
    assert (span.name, span.kind, parent(span)) == ("generate_content tts-1", CLIENT, CALLER) and in_trace(span)
    assert attributes(span)["gen_ai.output.type"] == "speech" and "secret" not in str(span)


PICTURE = pb.ScenarioSpec(image_generate=pb.ImageGenerateScenarioSpec(prompt="secret"))
SOUND = pb.ScenarioSpec(
    speech_transcribe=pb.SpeechTranscribeScenarioSpec(
        mime_type="audio/wav", audio_source=pb.SpeechTranscriptionAudioSource(audio_bytes=b"RIFF" + bytes(99))
    )
)


@pytest.mark.parametrize(
    "model, endpoint, answer, scenario, spec, output",
    [
        ("dall-e-3", "image", {"images": [{"b64Json": base64.b64encode(PNG).decode()}]},
         pb.SCENARIO_TYPE_IMAGE_GENERATE, PICTURE, "image"),
        ("whisper-1", "transcription", {"transcription": {"text": "secret"}},
         pb.SCENARIO_TYPE_SPEECH_TRANSCRIBE, SOUND, "text"),
    ],
)  # fmt: skip
def test_what_a_job_makes_is_a_child_of_its_attempt(cloud, models, collector, model, endpoint, answer, scenario, spec, output):
    says(models, model, endpoint, answer)
    job = cloud.submit(kind=scenario, spec=spec, metadata=traced(cloud), model_id=model, **CLOUD)
    assert cloud.events(job.job_id).events[-1].event_type == COMPLETED
    collector.wait(2)
    [attempt], [made] = named(collector.spans, "process nimi-job"), named(collector.spans, f"generate_content {model}")
    assert len(collector.spans) == 2 and in_trace(attempt) and in_trace(made)
    assert (attempt.kind, parent(attempt)) == (CONSUMER, CALLER)
    assert (made.kind, made.parent_span_id) == (CLIENT, attempt.span_id)
    assert attributes(made)["gen_ai.output.type"] == output and "secret" not in str(collector.spans)
    found = attributes(attempt)
    assert (found["messaging.operation.type"], found["messaging.destination.name"]) == ("process", "nimi-job")
    assert found["weir.job.attempt"] == 1 and found["weir.run"] > 0 and attempt.status.code == 0
    assert [seen(asked) for asked in questions(models)] == [passed_on(made)]


def test_a_job_without_a_callers_trace_begins_one(scripted, collector):
    client = Jobs(scripted("quick"))
    client.events(client.submit().job_id)
    collector.wait(2)
    [attempt] = named(collector.spans, "process nimi-job")
    [chat] = [span for span in collector.spans if span.name.startswith("chat")]
    assert not attempt.parent_span_id and attempt.trace_id == chat.trace_id
    assert chat.parent_span_id == attempt.span_id and attributes(chat)["gen_ai.operation.name"] == "chat"


def test_a_job_that_is_not_sampled_has_no_spans(scripted, collector):
    client = Jobs(scripted("quick"))
    client.events(client.submit(metadata=traced(client, [("traceparent", UNSAMPLED)])).job_id)
    client.events(client.submit(metadata=traced(client)).job_id)
    assert {span.trace_id.hex() for span in collector.wait(2)} == {TRACE} and len(collector.spans) == 2


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_job_is_in_its_submitters_trace_after_a_restart_too(scripted, collector, end):
    weir = scripted("slow")
    client = Jobs(weir)
    job = client.submit("for ever", metadata=traced(client)).job_id
    until_running(client, job)
    getattr(weir, end)()
    first = {"stop": 2, "kill": 0}[end]  # what a process that is killed has not sent is lost
    assert len(collector.spans) == first
    weir.start()
    client = Jobs(weir)
    until_running(client, job, attempt=2)
    client.cancel(job)
    collector.wait(first + 2)
    attempts = named(collector.spans, "process nimi-job")
    chats = [span for span in collector.spans if span.name.startswith("chat")]
    assert len(attempts) + len(chats) == len(collector.spans) and all(in_trace(span) for span in collector.spans)
    assert {parent(span) for span in attempts} == {CALLER}
    assert [chat.parent_span_id for chat in chats] == [span.span_id for span in attempts]
    assert len({span.span_id for span in collector.spans}) == first + 2
    told = [(attributes(span)["weir.job.attempt"], attributes(span)["error.type"]) for span in attempts]
    assert told == [(1, "process_ended"), (2, "cancelled")][-len(attempts):]


def test_a_job_that_fails_says_why(scripted, collector):
    client = Jobs(scripted("slow"))
    client.events(client.submit("fail", metadata=traced(client)).job_id)
    collector.wait(2)
    for span in collector.spans:
        assert span.status.code == 2 and attributes(span)["error.type"]


def test_the_jobs_of_a_workflow_are_children_of_its_span(scripted, collector):
    client = Workflows(scripted("quick"))
    task = client.submit(
        [node("one", "generate", prompt="secret"), node("two", "embed", inputs=["secret"], model_id="hash-256")],
        metadata=traced(client),
    )
    client.events(task)
    collector.wait(5)
    [flow] = named(collector.spans, "process nimi-workflow")
    jobs = named(collector.spans, "process nimi-job")
    asked = [span for span in collector.spans if span.kind == CLIENT]
    assert len(collector.spans) == 5 and all(in_trace(span) for span in collector.spans)
    assert (flow.kind, parent(flow)) == (CONSUMER, CALLER)
    assert [span.parent_span_id for span in jobs] == [flow.span_id] * 2
    assert {span.parent_span_id for span in asked} == {span.span_id for span in jobs}
    assert {span.name.split()[0] for span in asked} == {"chat", "embeddings"}
    assert "secret" not in str(collector.spans)


def test_vectors_of_the_openai_door_are_a_span_of_its_callers_trace(house, models, collector):
    weir = house(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}, openai_api={"media": True}, **CONNECTOR)
    says(models, "embed-1", "embedding", {"embedding": [1]})
    with weir.http(headers=[*HEADERS, ("authorization", "Bearer " + harness.token())]) as http:
        answer = http.post("/v1/embeddings", json={"model": "embed-1", "input": "secret"})
    assert answer.status_code == httpx.codes.OK, answer.text
    [span] = collector.wait(1)
    assert (span.name.split()[0], parent(span)) == ("embeddings", CALLER) and in_trace(span)
    assert "secret" not in str(span)
