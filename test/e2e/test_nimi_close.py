"""How streams of nimi.runtime.v1 end that do not end by themselves (checks.md B1, C10)."""
import socket
import threading
import time

import attack
import crawbl
import grpc
import nimi_client as nimi
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from nimi_client import common, pb

KIB, MIB = 1 << 10, 1 << 20
EACH = 250  # streams of each mode
SLACK = 10 if crawbl.is_sanitized() else 5  # for a client of 750 streams on a busy machine


# --- C10 ----------------------------------------------------------------------------------------


def kept_open():
    """An upload that sends its first chunk and goes on for ever."""
    yield pb.UploadArtifactRequest(
        metadata=pb.UploadArtifactMetadata(app_id=nimi.APP, mime_type="audio/wav")
    )
    yield pb.UploadArtifactRequest(chunk=pb.UploadArtifactChunk(bytes=b"x"))
    threading.Event().wait(nimi.PATIENCE)


def subscribe_to_a_job(client):
    submitted = pb.SubmitScenarioJobRequest(
        head=nimi.head(),
        scenario_type=pb.SCENARIO_TYPE_TEXT_GENERATE,
        execution_mode=pb.EXECUTION_MODE_ASYNC_JOB,
        spec=nimi.text_spec("for ever"),
    )
    job = client.ask(client.ai.SubmitScenarioJob, submitted)[0].job
    request = pb.SubscribeScenarioJobEventsRequest(job_id=job.job_id)
    return client.ai.SubscribeScenarioJobEvents(
        request, metadata=client.metadata(), timeout=nimi.PATIENCE
    )


@pytest.mark.weir(
    script="test/e2e/scripts/slow.yaml", config="nimi: {slots: 0, slots_per_app: 0}\n"
)
def test_stopping_cancels_250_streams_of_each_mode_and_forges_nothing(weir):
    client = nimi.Client(weir)
    health = health_pb2_grpc.HealthStub(client.channel)
    job = pb.SubmitScenarioJobRequest(
        head=nimi.head(),
        scenario_type=pb.SCENARIO_TYPE_TEXT_GENERATE,
        execution_mode=pb.EXECUTION_MODE_ASYNC_JOB,
        spec=nimi.text_spec("for ever"),
    )
    job_id = client.ask(client.ai.SubmitScenarioJob, job)[0].job.job_id
    subscription = pb.SubscribeScenarioJobEventsRequest(job_id=job_id)
    jobs = [
        client.ai.SubscribeScenarioJobEvents(
            subscription, metadata=client.metadata(), timeout=nimi.PATIENCE
        )
        for _ in range(EACH)
    ]
    for call in jobs:
        assert next(call).job.job_id == job_id
    runs = [client.open(nimi.request("for ever")) for _ in range(EACH)]
    jobs = [subscribe_to_a_job(client) for _ in range(EACH)]
    watches = [health.Watch(health_pb2.HealthCheckRequest()) for _ in range(EACH)]
    for call in runs:
        assert next(call).HasField("started")
    for call in watches:
        assert next(call).status == health_pb2.HealthCheckResponse.SERVING
    for call in jobs:
        assert next(call).event_type == pb.SCENARIO_JOB_EVENT_SUBMITTED
    weir.signal(15)
    began = time.monotonic()
    answers = [nimi.Answer(call) for call in runs]
    followed = [nimi.Answer(call) for call in jobs]
    ends = [list_until_end(call) for call in watches]
    stories = [nimi.Answer(call) for call in jobs]
    assert time.monotonic() - began < SLACK
    for answer in answers:  # A
        assert answer.code == grpc.StatusCode.CANCELLED
        assert answer.error.text == "runtime shutting down"
        assert set(answer.kinds) <= {"delta"} and not any(e.frame.done for e in answer.events)
    for answer in followed:
        assert answer.code == grpc.StatusCode.CANCELLED
        assert answer.error.text == "runtime shutting down"
        assert all(e.event_type <= pb.SCENARIO_JOB_EVENT_RUNNING for e in answer.events)
    for story in stories:  # B
        assert story.code == grpc.StatusCode.CANCELLED
        assert story.error.text == "runtime shutting down"
        assert all(event.event_type < pb.SCENARIO_JOB_EVENT_COMPLETED for event in story.events)
    for states, code in ends:  # D
        assert code == grpc.StatusCode.CANCELLED
        assert states == [health_pb2.HealthCheckResponse.NOT_SERVING]
    assert weir.wait() == 0


def list_until_end(call):
    states = []
    try:
        for reply in call:
            states.append(reply.status)
    except grpc.RpcError:
        pass
    return states, call.code()


@pytest.mark.weir(script="test/e2e/scripts/slow.yaml")
def test_stopping_cancels_those_that_wait_for_a_slot(weir):
    """C10: nothing was sent to them, and nothing is now."""
    client = nimi.Client(weir)
    calls = [client.open(nimi.request("for ever")) for _ in range(40)]
    uploads = [
        client.ai.UploadArtifact.future(kept_open(), timeout=nimi.PATIENCE) for _ in range(10)
    ]
    peek = pb.PeekSchedulingRequest(app_id=nimi.APP)
    give_up = time.monotonic() + nimi.PATIENCE
    while client.ask(client.ai.PeekScheduling, peek)[0].occupancy.app_used != 2:
        assert time.monotonic() < give_up
    weir.signal(15)
    answers = [nimi.Answer(call) for call in calls]
    assert {answer.code for answer in answers} == {grpc.StatusCode.CANCELLED}
    assert sum(bool(answer.events) for answer in answers) == 2  # those that had one
    assert not any(event.frame.done for answer in answers for event in answer.events)
    for call in uploads:
        assert call.code() == grpc.StatusCode.CANCELLED
    assert weir.wait() == 0


# --- B1 -----------------------------------------------------------------------------------------

DELTA = 'data: {"model":"big-1","choices":[{"index":0,"delta":{"content":"' + "x" * 100 + '"}}]}\n\n'
CHUNK = DELTA.encode() * 40
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
LAST = (
    b'data: {"model":"big-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


class Torrent:
    """A model that says so many bytes, a number for each call."""

    def __init__(self, *sizes):
        self.sizes = iter(sizes)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.sent = []  # bytes that were taken from us, for each call
        self.left = threading.Event()  # one was hung up on
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer:
                self.answer(peer, next(self.sizes))

    def answer(self, peer, size):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * KIB)
        while not peer.recv(65536).endswith(b"}"):
            pass
        self.sent.append(0)
        try:
            peer.sendall(HEAD)
            while self.sent[-1] < size:
                peer.sendall(CHUNK)
                self.sent[-1] += len(CHUNK)
            peer.sendall(LAST)
        except OSError:
            self.left.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    @property
    def config(self):
        port = self.listener.getsockname()[1]
        return (
            f"providers:\n  - {{name: flood, kind: openai, base_url: 'http://127.0.0.1:{port}/v1', "
            "key_env: HOUSE_KEY}\n"
            "nimi: {allow_loopback_provider_endpoint: true, probe_interval: 0}\n"
            "connectors:\n  - {id: flood, provider: flood}\n"
        )


def asked():
    return nimi.request(
        "go on", connector_id="flood", subject_user_id="anna", route_policy=common.ROUTE_POLICY_CLOUD
    )


def held_kib(weir):
    """Of its own: pages of the program come and go with what it does."""
    with open(f"/proc/{weir.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))


def open_raw(weir):
    """A call whose client gives no more window than it must: 64 KiB."""
    body = asked().SerializeToString()
    fields = {name.replace("-", "_"): value for name, value in nimi.HEADERS.items()}
    fields.update(attack.GRPC, path="/nimi.runtime.v1.RuntimeAiService/StreamScenario")
    peer = attack.dial(weir.port("nimi_grpc"))
    peer.settimeout(attack.PATIENCE)
    peer.sendall(
        attack.START
        + attack.frame(attack.HEADERS, attack.END_HEADERS, 1, attack.request(**fields))
        + attack.frame(
            attack.DATA, attack.END_STREAM, 1, b"\0" + len(body).to_bytes(4, "big") + body
        )
    )
    return peer


def test_a_reader_that_stops_pauses_the_provider_and_is_ended(start_weir):  # B1
    with Torrent(4 * MIB, 100 * MIB, 4 * KIB) as torrent:
        # One loop, so that what is measured is not what its first call costs each of them.
        config = torrent.config + "threads: 1\nlimits: {write_stall: 8s}\n"
        weir = start_weir(config=config, env={"HOUSE_KEY": "k"})
        client = nimi.Client(weir)
        whole = client.stream(asked=asked())
        assert whole.kinds[-1] == "completed", whole.error and whole.error.text
        assert len(whole.text) > MIB
        before = most = held_kib(weir)
        with open_raw(weir) as peer:
            ending = attack.Ending()
            peer.settimeout(0.02)
            give_up = time.monotonic() + attack.PATIENCE
            while ending.count(attack.RESET) == 0 and time.monotonic() < give_up:
                try:
                    ending.received += peer.recv(262144)
                except TimeoutError:
                    pass
                most = max(most, held_kib(weir))
        reset = [payload for kind, _, _, payload in ending.frames if kind == attack.RESET]
        # What gRPC clients show as RESOURCE_EXHAUSTED; trailers could not pass the full window.
        assert reset == [attack.ENHANCE_YOUR_CALM.to_bytes(4, "big")]
        data = b"".join(payload for kind, _, _, payload in ending.frames if kind == attack.DATA)
        assert len(data) == 65535
        assert torrent.left.wait(attack.PATIENCE)
        assert torrent.sent[1] < 4 * MIB  # our 256 KiB, and what the kernel's buffers took
        assert most - before <= 512 or crawbl.is_sanitized(), f"{most - before} KiB more"
        assert client.stream(asked=asked()).kinds[-1] == "completed"
