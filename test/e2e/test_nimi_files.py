"""What jobs of nimi.runtime.v1 made, as its command line reads it: in the snapshot, or by HTTP."""
import base64
import contextlib
import hashlib
import http.server
import json
import re
import socket
import sqlite3
import threading
import time

import crawbl
import httpx
import nimi_client as nimi
import pytest
from nimi_client import common, pb

KIB, MIB = 1 << 10, 1 << 20
COMPLETED = 4
SAID = "What was said: Grüße."


def noise(size, seed=7):
    """Bytes in which no two stretches are alike."""
    block = hashlib.shake_256(bytes([seed])).digest(64 * KIB)
    return (block * (size // len(block) + 1))[:size]


class Maker(http.server.ThreadingHTTPServer):
    """A server of the OpenAI dialect that says, draws and writes down what the test wants."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.sound, self.pictures, self.text = b"", [], SAID
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def config(self):
        return (
            "providers:\n  - {name: maker, kind: openai, key_env: HOUSE_KEY, "
            f"base_url: 'http://127.0.0.1:{self.server_port}/v1'}}\n"
            "nimi: {allow_loopback_provider_endpoint: true, probe_interval: 0}\n"
            "connectors:\n  - {id: maker, provider: maker}\n"
        )


class Answers(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        maker, kind = self.server, "application/json"
        if self.path.endswith("/audio/speech"):
            kind, body = "audio/mpeg", maker.sound
        elif self.path.endswith("/images/generations"):
            data = [{"b64_json": base64.b64encode(p).decode()} for p in maker.pictures]
            body = json.dumps({"created": 1, "data": data}).encode()
        else:
            body = json.dumps({"text": maker.text}).encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def maker():
    server = Maker()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def weir(start_weir, maker):
    return start_weir(config=maker.config, env={"HOUSE_KEY": "k"})


SPECS = {
    "speech": (
        pb.SCENARIO_TYPE_SPEECH_SYNTHESIZE,
        pb.ScenarioSpec(
            speech_synthesize=pb.SpeechSynthesizeScenarioSpec(text="hello", audio_format="mp3")
        ),
    ),
    "image": (
        pb.SCENARIO_TYPE_IMAGE_GENERATE,
        pb.ScenarioSpec(image_generate=pb.ImageGenerateScenarioSpec(prompt="a weir", n=2)),
    ),
    "transcript": (
        pb.SCENARIO_TYPE_SPEECH_TRANSCRIBE,
        pb.ScenarioSpec(
            speech_transcribe=pb.SpeechTranscribeScenarioSpec(
                mime_type="audio/wav",
                audio_source=pb.SpeechTranscriptionAudioSource(audio_bytes=b"RIFF"),
            )
        ),
    ),
}


class Client(nimi.Client):
    def make(self, kind, key=""):
        """A job from its submission to its end; its last snapshot, as a subscriber hears it."""
        scenario, spec = SPECS[kind]
        asked = pb.SubmitScenarioJobRequest(
            head=nimi.head(
                model_id="m-1",
                connector_id="maker",
                subject_user_id="anna",
                route_policy=common.ROUTE_POLICY_CLOUD,
            ),
            scenario_type=scenario,
            execution_mode=pb.EXECUTION_MODE_ASYNC_JOB,
            spec=spec,
            idempotency_key=key,
        )
        job = self.ask(self.ai.SubmitScenarioJob, asked)[0].job
        if job.status == COMPLETED:
            return job
        named = pb.SubscribeScenarioJobEventsRequest(job_id=job.job_id)
        answer = nimi.Answer(
            self.ai.SubscribeScenarioJobEvents(
                named, metadata=self.metadata(), timeout=nimi.PATIENCE
            )
        )
        assert answer.error is None, answer.error
        last = answer.events[-1].job
        assert last.status == COMPLETED, last.reason_detail
        assert not any(a.bytes for event in answer.events[:-1] for a in event.job.artifacts)
        return last

    def get(self, job_id, metadata=None):
        return self.ask(
            self.ai.GetScenarioJob, pb.GetScenarioJobRequest(job_id=job_id), metadata
        )[0].job

    def result(self, job_id, metadata=None):
        asked = pb.GetScenarioArtifactsRequest(job_id=job_id)
        return self.ask(self.ai.GetScenarioArtifacts, asked, metadata)[0]


def save(job):
    """What `nimi ai tts`, `image` and `stt` write to a file, or why they do not."""
    assert job.artifacts, "completed without artifacts"
    return job.artifacts[0].bytes


# --- snapshots ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 300 * KIB, 3 * MIB + 5])
def test_the_command_line_saves_the_sound_of_a_snapshot(weir, maker, size):
    maker.sound = noise(size)
    client = Client(weir)
    job = client.make("speech", key="k-1")
    assert save(job) == maker.sound
    assert job.artifacts[0].size_bytes == size and not job.artifacts[0].uri
    assert job.artifacts[0].sha256 == hashlib.sha256(maker.sound).hexdigest()
    assert client.get(job.job_id) == job
    assert client.make("speech", key="k-1") == job  # the key's job, as it is by now


def test_the_command_line_saves_a_picture_and_a_transcript(weir, maker):
    png = b"\x89PNG\r\n\x1a\n"
    maker.pictures = [png + noise(200 * KIB), png + noise(100 * KIB, 8)]
    client = Client(weir)
    job = client.make("image")
    assert [a.bytes for a in job.artifacts] == maker.pictures
    assert save(client.get(job.job_id)) == maker.pictures[0]
    job = client.make("transcript")
    assert save(job).decode() == SAID
    (written,) = job.artifacts
    assert written.mime_type == "text/plain" and written.size_bytes == len(SAID.encode())
    result = client.result(job.job_id)
    assert result.output.speech_transcribe.text == SAID
    (named,) = result.output.speech_transcribe.artifacts
    assert named.artifact_id == written.artifact_id and not named.bytes
    assert result.artifacts[0].bytes.decode() == SAID


def test_a_transcript_of_silence_is_an_empty_file(weir, maker):
    maker.text = ""
    job = Client(weir).make("transcript")
    assert save(job) == b"" and job.artifacts[0].mime_type == "text/plain"


# --- by HTTP ------------------------------------------------------------------------------------


def make_large(weir, maker, size=6 * MIB + 17):
    maker.sound = noise(size)
    client = Client(weir)
    job = client.make("speech")
    (artifact,) = job.artifacts
    assert not artifact.bytes and artifact.size_bytes == size
    assert client.get(job.job_id) == job
    result = client.result(job.job_id)
    assert result.artifacts[0] == artifact
    return client, job, artifact.uri


def test_what_is_larger_than_a_message_has_an_address(weir, maker):
    _, job, uri = make_large(weir, maker)
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/v1/artifacts/([0-9a-f]{48})", uri)
    assert int(found[1]) == weir.ports["nimi_http"]
    answer = httpx.get(uri)
    assert answer.status_code == 200 and answer.content == maker.sound
    assert answer.headers["content-type"] == "audio/mpeg"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["content-length"] == str(len(maker.sound))
    assert job.artifacts[0].sha256 == hashlib.sha256(answer.content).hexdigest()


def test_two_jobs_have_nothing_in_common_in_their_addresses(weir, maker):
    _, first, one = make_large(weir, maker)
    _, second, other = make_large(weir, maker)
    one, other = one.rsplit("/")[-1], other.rsplit("/")[-1]
    assert one != other and first.job_id not in one
    same = sum(a == b for a, b in zip(one, other))
    assert same < 16  # of 48 digits, 3 by chance


def test_a_head_says_what_a_get_would(weir, maker):
    _, _, uri = make_large(weir, maker)
    answer = httpx.head(uri)
    assert answer.status_code == 200 and answer.content == b""
    assert answer.headers["content-length"] == str(len(maker.sound))
    part = httpx.head(uri, headers={"range": "bytes=0-9"})
    assert part.status_code == 206 and part.headers["content-length"] == "10"
    assert part.headers["content-range"] == f"bytes 0-9/{len(maker.sound)}"


@pytest.mark.parametrize(
    "asked, first, last",
    [
        ("bytes=0-0", 0, 0),
        ("bytes=100-199", 100, 199),
        ("bytes=262143-262144", 262143, 262144),
        ("bytes=1000000-", 1000000, None),
        ("bytes=-5", -5, None),
        ("bytes=6291400-99999999", 6291400, None),
        ("BYTES = 1-2", None, None),  # no form of ours: the whole, as RFC 9110 14.2 has it
        ("bytes=1-2,5-6", None, None),
        ("bytes=9-3", None, None),
        ("lines=1-2", None, None),
    ],
)
def test_one_range_of_bytes_is_served(weir, maker, asked, first, last):
    _, _, uri = make_large(weir, maker)
    size = len(maker.sound)
    answer = httpx.get(uri, headers={"range": asked})
    if first is None:
        assert answer.status_code == 200 and answer.content == maker.sound
        return
    first = first % size
    last = size - 1 if last is None else last
    assert answer.status_code == 206
    assert answer.content == maker.sound[first : last + 1]
    assert answer.headers["content-range"] == f"bytes {first}-{last}/{size}"


def test_a_range_behind_the_end_is_416_and_one_of_another_version_is_whole(weir, maker):
    _, _, uri = make_large(weir, maker)
    size = len(maker.sound)
    for asked in (f"bytes={size}-", "bytes=-0"):
        answer = httpx.get(uri, headers={"range": asked})
        assert (answer.status_code, answer.reason_phrase) == (416, "Range Not Satisfiable")
        assert answer.headers["content-range"] == f"bytes */{size}"
    tag = httpx.head(uri).headers["etag"]
    same = httpx.get(uri, headers={"range": "bytes=1-2", "if-range": tag})
    assert same.status_code == 206
    other = httpx.get(uri, headers={"range": "bytes=1-2", "if-range": '"another"'})
    assert other.status_code == 200 and len(other.content) == size


def test_an_address_that_nobody_was_told_is_404(weir, maker):
    _, job, uri = make_large(weir, maker)
    base, token = uri.rsplit("/", 1)
    other = token[:-1] + ("0" if token[-1] != "0" else "1")
    for wrong in (other, token.upper() + "0", token[:-2], job.job_id, "1", "..%2f1"):
        assert httpx.get(f"{base}/{wrong}").status_code == 404, wrong
    assert httpx.post(uri).status_code == 405


def test_another_app_is_told_no_address(weir, maker):
    client, job, uri = make_large(weir, maker)
    stranger = client.metadata(app_id="other.app")
    for ask in (client.get, client.result):
        with pytest.raises(nimi.Refused) as refused:
            ask(job.job_id, stranger)
        assert refused.value.reason == "APP_SCOPE_FORBIDDEN"
        assert uri.rsplit("/")[-1] not in refused.value.text


def test_an_address_survives_a_restart(weir, maker):
    _, job, uri = make_large(weir, maker)
    again = weir.restart()
    token = uri.rsplit("/")[-1]
    told = Client(again).get(job.job_id).artifacts[0].uri
    assert told.endswith(token)  # the port may be another one
    assert httpx.get(told).content == maker.sound


def test_an_address_goes_with_its_artifact(weir, maker):
    _, job, uri = make_large(weir, maker)
    weir.stop()
    with contextlib.closing(sqlite3.connect(weir.data / "weir.db")) as database:
        database.execute("DELETE FROM artifact")
        database.commit()
    client = Client(weir.start())
    base, token = f"http://127.0.0.1:{weir.ports['nimi_http']}", uri.rsplit("/")[-1]
    assert httpx.get(f"{base}/v1/artifacts/{token}").status_code == 404
    for (artifact,) in (client.get(job.job_id).artifacts, client.result(job.job_id).artifacts):
        assert artifact.size_bytes == len(maker.sound)  # what it was
        assert not artifact.bytes and not artifact.uri


def test_without_a_listener_it_says_what_is_missing(start_weir, maker):
    weir = start_weir(
        config=maker.config, env={"HOUSE_KEY": "k"}, args=["--nimi-http", "off"]
    )
    client, job, uri = make_large(weir, maker)
    assert uri == ""
    (artifact,) = client.result(job.job_id).artifacts
    assert "listen.nimi_http" in artifact.metadata.fields["bytes_omitted"].string_value


def test_a_listener_on_every_address_is_told_by_the_name_the_caller_used(start_weir, maker):
    weir = start_weir(
        config=maker.config, env={"HOUSE_KEY": "k"}, args=["--nimi-http", "0.0.0.0:0"]
    )
    maker.sound = noise(5 * MIB)
    client = Client(weir, target=f"localhost:{weir.ports['nimi_grpc']}")
    uri = client.make("speech").artifacts[0].uri
    assert uri.startswith(f"http://localhost:{weir.ports['nimi_http']}/v1/artifacts/")
    assert httpx.get(uri).content == maker.sound


# --- readers ------------------------------------------------------------------------------------


def resident_kib(weir):
    with open(f"/proc/{weir.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def test_ten_readers_that_stop_hold_pieces_and_not_the_whole(start_weir, maker):
    size = 16 * MIB
    weir = start_weir(config=maker.config + "threads: 1\n", env={"HOUSE_KEY": "k"})
    _, _, uri = make_large(weir, maker, size)
    path = uri.split("/", 3)[3]
    assert httpx.get(uri).content == maker.sound
    before = resident_kib(weir)
    peers = []
    for _ in range(10):
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * KIB)
        peer.connect(("127.0.0.1", weir.ports["nimi_http"]))
        peer.sendall(f"GET /{path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        peers.append(peer)
    time.sleep(1)
    more = resident_kib(weir) - before
    assert more <= 10 * 1024 or crawbl.is_sanitized(), f"{more} KiB more for ten readers"
    assert httpx.get(uri, headers={"range": "bytes=5-6"}).content == maker.sound[5:7]
    received = b""  # and one of them reads on
    while received.partition(b"\r\n\r\n")[2] != maker.sound:
        got = peers[0].recv(MIB)
        assert got, len(received)
        received += got
    for peer in peers:
        peer.close()


def test_the_listeners_are_among_those_that_are_logged(weir):
    text = weir.said("nimi_http listens on")
    for name in ("nimi_grpc", "nimi_http"):
        assert f"{name} listens on" in text and str(weir.ports[name]) in text
