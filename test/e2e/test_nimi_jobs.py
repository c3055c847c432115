"""nimi.runtime.v1 jobs (mode B) with Google's client: asked once, watched by anybody, kept."""
import hashlib
import os
import pathlib
import shutil
import struct
import subprocess
import threading
import time

import attack
import crawbl
import grpc
import harness
import nimi_client as nimi
import pytest
from nimi_client import common, pb

QUICK = pytest.mark.weir(script="test/e2e/scripts/quick.yaml")
SLOW = pytest.mark.weir(script="test/e2e/scripts/slow.yaml")

SUBMITTED, QUEUED, RUNNING, COMPLETED, FAILED, CANCELED, TIMEOUT = range(1, 8)
TERMINAL = {COMPLETED, FAILED, CANCELED, TIMEOUT}


class Jobs(nimi.Client):
    def submit(self, message="hello", metadata=None, **fields):
        reply = self.ask(self.ai.SubmitScenarioJob, self.request(message, **fields), metadata)[0]
        return reply.job

    @staticmethod
    def request(message="hello", key="", kind=None, spec=None, mode=3, **head):
        return pb.SubmitScenarioJobRequest(
            head=nimi.head(**head),
            scenario_type=kind or pb.SCENARIO_TYPE_TEXT_GENERATE,
            execution_mode=mode,
            spec=spec or nimi.text_spec(message),
            idempotency_key=key,
        )

    def get(self, job_id, metadata=None):
        request = pb.GetScenarioJobRequest(job_id=job_id)
        return self.ask(self.ai.GetScenarioJob, request, metadata)[0].job

    def cancel(self, job_id, reason="", metadata=None):
        request = pb.CancelScenarioJobRequest(job_id=job_id, reason=reason)
        return self.ask(self.ai.CancelScenarioJob, request, metadata)[0].job

    def result(self, job_id, metadata=None):
        request = pb.GetScenarioArtifactsRequest(job_id=job_id)
        return self.ask(self.ai.GetScenarioArtifacts, request, metadata)[0]

    def open_events(self, job_id, metadata=None, timeout=nimi.PATIENCE):
        request = pb.SubscribeScenarioJobEventsRequest(job_id=job_id)
        return self.ai.SubscribeScenarioJobEvents(
            request, metadata=metadata or self.metadata(), timeout=timeout
        )

    def events(self, job_id, metadata=None):
        return nimi.Answer(self.open_events(job_id, metadata))


def until(client, job_id, state, attempt=1):
    """Its events up to the one that says that state (of the nth attempt)."""
    call = client.open_events(job_id)
    seen = []
    for event in call:
        seen.append(event)
        if event.event_type == state and event.job.retry_count >= attempt - 1:
            call.cancel()
            return seen
    raise AssertionError(f"it ended before that: {seen[-1]}")


def until_running(client, job_id, attempt=1):
    return until(client, job_id, RUNNING, attempt)


def check_story(answer, last):
    """What every subscriber may rely on."""
    assert answer.code == grpc.StatusCode.OK, answer.error
    types = [e.event_type for e in answer.events]
    assert types[-1] == last and not TERMINAL & set(types[:-1]), types
    assert types[0] == SUBMITTED
    assert [e.sequence for e in answer.events] == list(range(1, len(types) + 1))
    assert all(e.job.status == e.event_type for e in answer.events)
    assert len({(e.job.job_id, e.trace_id, e.job.trace_id) for e in answer.events}) == 1
    moments = [e.timestamp.ToNanoseconds() for e in answer.events]
    assert moments == sorted(moments)
    return types


@QUICK
def test_a_job_is_asked_for_watched_and_fetched(weir):
    client = Jobs(weir)
    job = client.submit("a question")
    assert len(job.job_id) == 26 and len(job.trace_id) == 26
    assert job.head.app_id == nimi.APP and job.head.model_id == "local/m"
    assert job.scenario_type == pb.SCENARIO_TYPE_TEXT_GENERATE
    assert job.execution_mode == pb.EXECUTION_MODE_ASYNC_JOB
    assert job.route_decision == common.ROUTE_POLICY_LOCAL and job.model_resolved == "m"
    assert job.reason_code == common.ACTION_EXECUTED and job.retry_count == 0

    answer = client.events(job.job_id)
    assert check_story(answer, COMPLETED) == [SUBMITTED, QUEUED, RUNNING, COMPLETED]
    last = answer.events[-1].job
    assert last.progress_percent == 100 and last.reason_code == common.ACTION_EXECUTED
    assert (last.usage.input_tokens, last.usage.output_tokens) == (7, 11)
    assert client.get(job.job_id) == last

    result = client.result(job.job_id)
    said = "You said: a question. Grüße, and that was all."
    assert result.output.text_generate.text == said
    assert result.job_id == job.job_id and not result.artifacts
    with pytest.raises(nimi.Refused) as refused:
        client.cancel(job.job_id)
    assert refused.value.reason == "AI_MEDIA_JOB_NOT_CANCELLABLE"
    assert refused.value.code == grpc.StatusCode.FAILED_PRECONDITION


@SLOW
def test_late_and_early_subscribers_hear_the_same_story(weir):
    client = Jobs(weir)
    job = client.submit("hello")
    early = []
    thread = threading.Thread(target=lambda: early.append(client.events(job.job_id)))
    thread.start()
    until_running(client, job.job_id)
    joined = client.events(job.job_id)
    thread.join()
    late = client.events(job.job_id)
    check_story(late, COMPLETED)
    assert late.events == joined.events == early[0].events
    assert client.get(job.job_id) == late.events[-1].job


@SLOW
def test_a_cancel_is_in_its_own_reply_and_stops_the_work(weir):
    client = Jobs(weir)
    job = client.submit("for ever")
    until_running(client, job.job_id)
    assert client.get(job.job_id).status == RUNNING
    gone = client.cancel(job.job_id, "not needed any more")
    assert gone.status == CANCELED and gone.reason_detail == "not needed any more"
    assert gone.reason_code == common.ACTION_EXECUTED
    answer = client.events(job.job_id)
    check_story(answer, CANCELED)
    assert answer.events[-1].job == gone == client.get(job.job_id)
    peek = client.ask(client.ai.PeekScheduling, pb.PeekSchedulingRequest(app_id=nimi.APP))[0]
    assert peek.occupancy.global_used == 0
    with pytest.raises(nimi.Refused) as refused:
        client.cancel(job.job_id)
    assert refused.value.reason == "AI_MEDIA_JOB_NOT_CANCELLABLE"


@SLOW
def test_a_failure_is_the_jobs_and_says_why(weir):
    client = Jobs(weir)
    job = client.submit("fail")
    answer = client.events(job.job_id)
    check_story(answer, FAILED)
    last = answer.events[-1].job
    assert last.reason_code == common.AI_PROVIDER_UNAVAILABLE and last.reason_detail
    assert last.reason_metadata["provider_message"] == last.reason_detail
    assert not client.result(job.job_id).HasField("output")


@SLOW
def test_a_job_that_takes_too_long_times_out(weir):
    client = Jobs(weir)
    job = client.submit("for ever", timeout_ms=300)
    answer = client.events(job.job_id)
    check_story(answer, TIMEOUT)
    assert answer.events[-1].job.reason_code == common.AI_PROVIDER_TIMEOUT


@SLOW
def test_jobs_wait_for_a_slot_of_their_app(weir):
    client = Jobs(weir)
    running = [client.submit("for ever").job_id for _ in range(2)]
    for job_id in running:
        until_running(client, job_id)
    waiting = client.submit("quick").job_id
    until(client, waiting, QUEUED)
    assert client.get(waiting).status == QUEUED
    client.cancel(running[0])
    check_story(client.events(waiting), COMPLETED)
    client.cancel(running[1])


def vectors_of(*texts):
    spec = pb.ScenarioSpec(text_embed=pb.TextEmbedScenarioSpec(inputs=texts))
    return {"kind": pb.SCENARIO_TYPE_TEXT_EMBED, "spec": spec}


def speech_of(text, **fields):
    spec = pb.ScenarioSpec(speech_synthesize=pb.SpeechSynthesizeScenarioSpec(text=text, **fields))
    return {"kind": pb.SCENARIO_TYPE_SPEECH_SYNTHESIZE, "spec": spec}


@QUICK
def test_vectors_are_made_by_a_job_that_says_how_far_it_is(weir):
    client = Jobs(weir)
    texts = [f"sentence number {i}" for i in range(5)]
    job = client.submit(model_id="hash-256", **vectors_of(*texts))
    answer = client.events(job.job_id)
    check_story(answer, COMPLETED)
    running = [e.job for e in answer.events if e.event_type == RUNNING]
    assert running[0].progress_total_steps == 0
    assert all(j.progress_total_steps == 5 for j in running[1:])
    result = client.result(job.job_id)
    vectors = [list(v.values) for v in result.output.text_embed.vectors]
    assert len(vectors) == 5 and len({len(v) for v in vectors}) == 1 and len(vectors[0]) > 8
    assert vectors[0] != vectors[1]


@QUICK
@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="nobody here speaks")
def test_speech_is_an_artifact_that_survives_a_restart(weir):
    client = Jobs(weir)
    job = client.submit(model_id="espeak-ng", **speech_of("hello there", audio_format="wav"))
    answer = client.events(job.job_id)
    check_story(answer, COMPLETED)
    (shown,) = answer.events[-1].job.artifacts
    assert shown.mime_type == "audio/wav" and len(shown.bytes) == shown.size_bytes
    assert shown.artifact_id.startswith("artifact_") and len(shown.artifact_id) == 9 + 26
    assert shown.duration_ms > 0 and shown.sample_rate_hz > 0
    for daemon in (weir, weir.restart()):
        result = Jobs(daemon).result(job.job_id)
        (artifact,) = result.artifacts
        assert artifact.bytes[:4] == b"RIFF" and len(artifact.bytes) == artifact.size_bytes
        assert hashlib.sha256(artifact.bytes).hexdigest() == artifact.sha256
        assert artifact.sha256 == shown.sha256
        (made,) = result.output.speech_synthesize.artifacts
        assert made.artifact_id == shown.artifact_id
    with pytest.raises(nimi.Refused) as refused:
        Jobs(weir).result(job.job_id, client.metadata(app_id="other.app"))
    assert refused.value.reason == "APP_SCOPE_FORBIDDEN"


@QUICK
@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="nobody here speaks")
def test_what_is_larger_than_a_message_is_told_with_an_address(weir):
    client = Jobs(weir)
    for repeats, fits in ((90, True), (180, False)):
        spec = speech_of("hello there my friend. " * repeats, audio_format="wav")
        job_id = client.submit(model_id="espeak-ng", **spec).job_id
        check_story(client.events(job_id), COMPLETED)
        (artifact,) = client.result(job_id).artifacts
        assert (artifact.size_bytes < 4 << 20) == fits and len(artifact.sha256) == 64
        assert len(artifact.bytes) == (artifact.size_bytes if fits else 0)
        assert bool(artifact.uri) == (not fits)


@QUICK
def test_only_its_own_app_sees_a_job(weir):
    client = Jobs(weir)
    job_id = client.submit("mine", subject_user_id="anna").job_id
    stranger = client.metadata(app_id="other.app")
    nobody = client.metadata(app_id=None)
    calls = [client.get, client.cancel, client.result]
    for metadata in (stranger, nobody):
        for call in calls:
            with pytest.raises(nimi.Refused) as refused:
                call(job_id, metadata=metadata)
            assert refused.value.reason == "APP_SCOPE_FORBIDDEN"
            assert refused.value.code == grpc.StatusCode.PERMISSION_DENIED
        answer = client.events(job_id, metadata)
        assert not answer.events and answer.error.reason == "APP_SCOPE_FORBIDDEN"
    assert client.get(job_id).head.subject_user_id == "anna"


@QUICK
def test_an_id_that_is_no_jobs_is_not_found(weir):
    client = Jobs(weir)
    job_id = client.submit().job_id
    check_story(client.events(job_id), COMPLETED)
    other = job_id[:-1] + ("0" if job_id[-1] != "0" else "1")
    turned = job_id[:13] + ("0" if job_id[13] != "0" else "1") + job_id[14:]
    for wrong in (other, turned, "x", "0" * 26, "Z" * 26, "7" * 26, job_id.lower(), job_id + "0"):
        for call in (client.get, client.cancel, client.result):
            with pytest.raises(nimi.Refused) as refused:
                call(wrong)
            assert refused.value.reason == "AI_MEDIA_JOB_NOT_FOUND", wrong
            assert refused.value.code == grpc.StatusCode.NOT_FOUND
        assert client.events(wrong).error.reason == "AI_MEDIA_JOB_NOT_FOUND"
    for call in (client.get, client.cancel, client.result):
        with pytest.raises(nimi.Refused) as refused:
            call(" ")
        assert refused.value.reason == "PROTOCOL_ENVELOPE_INVALID"


VIDEO = pb.ScenarioSpec(video_generate=pb.VideoGenerateScenarioSpec(prompt="a cat"))
MUSIC = pb.ScenarioSpec(music_generate=pb.MusicGenerateScenarioSpec(prompt="a song"))
REFUSALS = [
    ({"app_id": ""}, "AI_APP_ID_REQUIRED"),
    ({"app_id": "other"}, "AI_APP_ID_CONFLICT"),
    ({"model_id": " "}, "AI_MODEL_ID_REQUIRED"),
    ({"model_id": "m" * 2000}, "PROTOCOL_ENVELOPE_INVALID"),
    ({"mode": 1}, "AI_ROUTE_UNSUPPORTED"),
    ({"mode": 2}, "AI_ROUTE_UNSUPPORTED"),
    ({"message": None}, "AI_INPUT_INVALID"),
    ({"kind": 4, "spec": VIDEO}, "AI_MODALITY_NOT_SUPPORTED"),
    ({"kind": 9, "spec": MUSIC}, "AI_MODALITY_NOT_SUPPORTED"),
]


@QUICK
def test_what_nobody_offers_is_refused_before_there_is_a_job(weir):
    client = Jobs(weir)
    for fields, reason in REFUSALS:
        with pytest.raises(nimi.Refused) as refused:
            client.submit(**{"message": "hi", **fields})
        assert refused.value.reason == reason, (fields, refused.value.text)


@SLOW
def test_a_key_stands_for_one_job(weir):
    client = Jobs(weir)
    first = client.submit("quick", key="k-1")
    assert client.submit("quick", key="k-1").job_id == first.job_id
    check_story(client.events(first.job_id), COMPLETED)
    again = client.submit("quick", key="k-1")
    assert again.job_id == first.job_id and again.status == COMPLETED
    assert client.submit("quick", key="k-2").job_id != first.job_id
    # The header's key counts where the body has none.
    by_header = client.metadata(idempotency_key="h-1")
    one = client.submit("quick", metadata=by_header).job_id
    assert client.submit("quick", metadata=by_header).job_id == one
    # It counts within app, subject, model and type.
    assert client.submit("quick", key="k-1", subject_user_id="anna").job_id != first.job_id
    assert client.submit("quick", key="k-1", model_id="local/n").job_id != first.job_id
    with pytest.raises(nimi.Refused) as refused:
        client.submit("hello", key="k-1")
    assert refused.value.reason == "AI_MEDIA_IDEMPOTENCY_CONFLICT"
    assert refused.value.code == grpc.StatusCode.ALREADY_EXISTS
    with pytest.raises(nimi.Refused) as refused:
        client.submit("quick", key="k-1", metadata=client.metadata(app_id="other.app"))
    assert refused.value.reason == "AI_APP_ID_CONFLICT"
    with pytest.raises(nimi.Refused) as refused:
        client.submit("quick", key="k" * 257)
    assert refused.value.reason == "AI_MEDIA_SPEC_INVALID"
    assert client.submit("quick", key="ü" * 256).job_id

    weir.restart()
    client = Jobs(weir)
    assert client.submit("quick", key="k-1").job_id == first.job_id
    with pytest.raises(nimi.Refused) as refused:
        client.submit("hello", key="k-1")
    assert refused.value.reason == "AI_MEDIA_IDEMPOTENCY_CONFLICT"


@SLOW
def test_of_many_submits_with_one_key_at_once_one_begins(weir):
    client = Jobs(weir)
    asked = Jobs.request("quick", key="race")
    calls = [
        client.ai.SubmitScenarioJob.future(asked, metadata=client.metadata(), timeout=20)
        for _ in range(40)
    ]
    assert len({call.result().job.job_id for call in calls}) == 1


#
@pytest.mark.parametrize("end", ["stop", "kill"])
@SLOW
def test_a_job_survives_a_restart(weir, end):
    client = Jobs(weir)
    done = client.submit("quick").job_id
    check_story(client.events(done), COMPLETED)
    before, result = client.get(done), client.result(done)
    job_id = client.submit("hello").job_id
    endless = client.submit("for ever").job_id
    until_running(client, job_id)
    until_running(client, endless)
    getattr(weir, end)()
    weir.start()
    started = time.monotonic()

    client = Jobs(weir)
    assert client.get(done) == before
    assert client.result(done).output == result.output
    check_story(client.events(done), COMPLETED)
    seen = until_running(client, endless, attempt=2)
    assert time.monotonic() - started < 5 or crawbl.is_sanitized()
    assert [e.event_type for e in seen][-3:] == [RUNNING, QUEUED, RUNNING]
    assert client.get(endless).retry_count == 1
    answer = client.events(job_id)
    types = check_story(answer, COMPLETED)
    assert types.count(RUNNING) == 2 and answer.events[-1].job.retry_count == 1
    assert client.result(job_id).output.text_generate.text == "on " * 10
    assert client.cancel(endless, "enough").status == CANCELED


def heard(events):
    return [(event.event_type, event.sequence) for event in events]


# what was acknowledged is there, and what a subscriber heard stays true.
@pytest.mark.weir(
    script="test/e2e/scripts/slow.yaml", config="nimi: {slots: 0, slots_per_app: 0}\n"
)
def test_kills_at_any_moment_lose_no_job_and_take_nothing_back(weir):
    jobs = {}
    for kill in range(6):
        client = Jobs(weir)
        for i in range(1 + 4 * kill):
            key = f"{kill}-{i}"
            jobs[key] = client.submit("quick", key=key).job_id
        calls = [(job_id, client.open_events(job_id)) for job_id in list(jobs.values())[-4:]]
        before = [(job_id, [next(call), next(call)]) for job_id, call in calls]
        weir.kill()
        weir.start()
        client = Jobs(weir)
        for job_id, events in before:
            assert heard(client.events(job_id).events)[:2] == heard(events)
    for key, job_id in jobs.items():
        assert client.submit("quick", key=key).job_id == job_id
        check_story(client.events(job_id), COMPLETED)


def node(weir, *part):
    script = pathlib.Path(__file__).parent / "node" / "nimi_jobs.js"
    environment = {
        **os.environ,
        "WEIR_NIMI": f"127.0.0.1:{weir.ports['nimi_grpc']}",
        "WEIR_PROTO": str(harness.ROOT / "proto"),
    }
    return subprocess.Popen(
        [shutil.which("node"), str(script), *part],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@SLOW
def test_the_job_scenario_with_grpc_js_across_a_restart(weir):
    with node(weir, "before") as before:
        job_id = before.stdout.readline().strip()
        weir.restart()
        error = before.stderr.read()
    assert before.returncode == 0 and len(job_id) == 26, error
    with node(weir, "after", job_id) as after:
        error = after.stderr.read()
    assert after.returncode == 0, error


# K20: whoever does not read hears neither the end nor anything else.
@pytest.mark.weir(script="test/e2e/scripts/quick.yaml", config="limits: {write_stall: 1s}\n")
def test_a_subscriber_that_takes_nothing_is_ended_without_the_end(weir):
    client = Jobs(weir)
    job_id = client.submit().job_id
    body = pb.SubscribeScenarioJobEventsRequest(job_id=job_id).SerializeToString()
    fields = {name.replace("-", "_"): value for name, value in nimi.HEADERS.items()}
    method = "/nimi.runtime.v1.RuntimeAiService/SubscribeScenarioJobEvents"
    fields.update({**attack.GRPC, "path": method})
    no_window = attack.frame(attack.SETTINGS, 0, 0, struct.pack(">HI", 4, 0))
    ending = attack.Ending()
    with attack.dial(weir.port("nimi_grpc")) as peer:
        peer.settimeout(attack.PATIENCE)
        peer.sendall(
            attack.PREFACE
            + no_window
            + attack.frame(attack.HEADERS, attack.END_HEADERS, 1, attack.request(**fields))
            + attack.frame(
                attack.DATA, attack.END_STREAM, 1, b"\0" + len(body).to_bytes(4, "big") + body
            )
        )
        while ending.count(attack.RESET) == 0:
            received = peer.recv(65536)
            assert received
            ending.received += received
    reset = [payload for kind, _, _, payload in ending.frames if kind == attack.RESET]
    assert reset == [attack.ENHANCE_YOUR_CALM.to_bytes(4, "big")]  # RESOURCE_EXHAUSTED
    assert ending.count(attack.DATA) == 0 and ending.count(attack.HEADERS) <= 1
    check_story(client.events(job_id), COMPLETED)


@SLOW
def test_a_job_is_not_begun_for_ever(weir):
    client = Jobs(weir)
    job_id = client.submit("for ever").job_id
    for attempt in range(1, 6):
        until_running(Jobs(weir), job_id, attempt)
        weir.kill()
        weir.start()
    client = Jobs(weir)
    answer = client.events(job_id)
    types = check_story(answer, FAILED)
    assert types.count(RUNNING) == 5
    assert answer.events[-1].job.reason_code == common.AI_PROVIDER_UNAVAILABLE
    assert "5 times" in answer.events[-1].job.reason_detail


@SLOW
def test_stopping_cuts_subscribers_and_forges_nothing(weir):
    client = Jobs(weir)
    job_id = client.submit("for ever").job_id
    until_running(client, job_id)
    call = client.open_events(job_id)
    assert next(call).event_type == SUBMITTED
    weir.signal(15)
    answer = nimi.Answer(call)
    assert answer.code == grpc.StatusCode.CANCELLED
    assert answer.error.text == "runtime shutting down"
    assert not TERMINAL & {e.event_type for e in answer.events}
    assert weir.wait() == 0
