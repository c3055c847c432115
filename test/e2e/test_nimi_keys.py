"""Who asks nimi.runtime.v1 twice under one key gets one answer (checks.md K28)."""
import concurrent.futures
import json
import socket
import threading
import time

import grpc
import nimi_client as nimi
import pytest
from nimi_client import common, pb

CALLERS = 6
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
REFUSAL = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
    b'{"error":{"message":"not so","type":"invalid_request_error"}}'
)


def chunk(text, finish="null"):
    choice = '{"index":0,"delta":{"content":"%s"},"finish_reason":%s}' % (text, finish)
    return ('data: {"model":"m-1","choices":[%s]}\n\n' % choice).encode()


class Model:
    """A model that answers when it is told to, and says who asked it and who hung up."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.asked = []  # the bodies of requests, in their order
        self.refuses = False
        self.release = threading.Event()
        self.hung_up = threading.Semaphore(0)
        self.came = threading.Semaphore(0)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(peer,), daemon=True).start()

    def answer(self, peer):
        with peer:
            received = b""
            while b"\r\n\r\n" not in received:
                received += peer.recv(65536)
            head, body = received.split(b"\r\n\r\n", 1)
            length = next(
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            )
            while len(body) < length:
                body += peer.recv(65536)
            self.asked.append(json.loads(body))
            number = len(self.asked)
            self.came.release()
            if self.refuses:
                peer.sendall(REFUSAL)
                return
            peer.sendall(HEAD + chunk("Answer "))
            peer.settimeout(0.02)
            while not self.release.is_set():
                try:
                    if not peer.recv(1):
                        self.hung_up.release()
                        return
                except TimeoutError:
                    continue
                except OSError:
                    self.hung_up.release()
                    return
            peer.settimeout(None)
            peer.sendall(chunk(f"number {number}.", '"stop"') + b"data: [DONE]\n\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release.set()
        self.listener.close()

    @property
    def config(self):
        port = self.listener.getsockname()[1]
        return (
            f"providers:\n  - {{name: held, kind: openai, base_url: 'http://127.0.0.1:{port}/v1', "
            "key_env: HOUSE_KEY}\n"
            "nimi: {allow_loopback_provider_endpoint: true, probe_interval: 0, slots: 0, "
            "slots_per_app: 0}\n"
            "connectors:\n  - {id: held, provider: held}\n"
            "threads: 4\n"
        )


@pytest.fixture
def model():
    with Model() as model:
        yield model


@pytest.fixture
def held(start_weir, model):
    return start_weir(config=model.config, env={"HOUSE_KEY": "k"})


def asked(words="hello", kind=pb.ExecuteScenarioRequest, app=nimi.APP):
    return nimi.request(
        words,
        kind=kind,
        app_id=app,
        connector_id="held",
        subject_user_id="anna",
        route_policy=common.ROUTE_POLICY_CLOUD,
    )


def start(client, key, request=None, app=nimi.APP):
    metadata = client.metadata(idempotency_key=key, app_id=app, participant_id=app)
    return client.ai.ExecuteScenario.future(
        request or asked(app=app), metadata=metadata, timeout=nimi.PATIENCE
    )


def start_all(weir, key="k-1"):
    """Callers with a connection each, so that several loops have some. The first is ahead."""
    clients = [nimi.Client(weir) for _ in range(CALLERS)]
    return [start(client, key) for client in clients]


def all_wait(model):
    """The model was asked, and the others have had the time to ask it too."""
    assert model.came.acquire(timeout=nimi.PATIENCE)
    time.sleep(0.3)


def test_six_at_once_ask_the_model_once(held, model):
    calls = start_all(held)
    all_wait(model)
    model.release.set()
    replies = [call.result(nimi.PATIENCE) for call in calls]
    assert len(model.asked) == 1
    assert replies[0].output.text_generate.text == "Answer number 1."
    assert all(reply == replies[0] for reply in replies)  # also the trace
    assert start(nimi.Client(held), "k-1").result(nimi.PATIENCE) == replies[0]
    assert len(model.asked) == 1


def test_five_of_six_leave_and_the_sixth_is_answered(held, model):
    calls = start_all(held)
    all_wait(model)
    for call in calls[:-1]:
        call.cancel()
    assert not model.hung_up.acquire(timeout=0.5)
    model.release.set()
    reply = calls[-1].result(nimi.PATIENCE)
    assert reply.output.text_generate.text == "Answer number 1."
    assert len(model.asked) == 1


def test_all_leave_and_the_model_is_hung_up_on(held, model):
    calls = start_all(held)
    all_wait(model)
    for call in calls:
        call.cancel()
    assert model.hung_up.acquire(timeout=nimi.PATIENCE)
    model.release.set()
    again = start(nimi.Client(held), "k-1").result(nimi.PATIENCE)
    assert again.output.text_generate.text == "Answer number 2."
    assert len(model.asked) == 2  # what nobody waited for is not the key's


def test_a_failure_is_everybodys_and_is_not_kept(held, model):
    model.refuses = True
    calls = start_all(held, "k-2")
    errors = [call.exception(nimi.PATIENCE) for call in calls]
    assert {error.code() for error in errors} == {grpc.StatusCode.INVALID_ARGUMENT}
    assert all("AI_" in error.details() for error in errors)
    failed = len(model.asked)
    model.refuses = False
    model.release.set()
    again = start(nimi.Client(held), "k-2").result(nimi.PATIENCE)
    assert again.output.text_generate.text == f"Answer number {failed + 1}."


def test_another_request_under_a_live_key_is_a_conflict(held, model):
    first = start(nimi.Client(held), "k-3")
    assert model.came.acquire(timeout=nimi.PATIENCE)
    other = start(nimi.Client(held), "k-3", asked("other words"))
    assert other.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert nimi.Refused(other.exception()).reason == "PROTOCOL_ENVELOPE_INVALID"
    model.release.set()
    assert first.result(nimi.PATIENCE).output.text_generate.text == "Answer number 1."
    assert len(model.asked) == 1


def test_apps_do_not_share_a_key(held, model):
    model.release.set()
    one = start(nimi.Client(held), "k-4").result(nimi.PATIENCE)
    other = start(nimi.Client(held), "k-4", app="other.app").result(nimi.PATIENCE)
    assert one.trace_id != other.trace_id and len(model.asked) == 2


def test_a_key_on_a_stream_joins_nothing_and_a_cancel_stops_the_model(held, model):
    clients = [nimi.Client(held) for _ in range(2)]
    streams = [
        client.open(
            asked(kind=pb.StreamScenarioRequest), metadata=client.metadata(idempotency_key="k-5")
        )
        for client in clients
    ]
    for stream in streams:
        assert next(stream).WhichOneof("payload") == "started"
        assert model.came.acquire(timeout=nimi.PATIENCE)
    assert len(model.asked) == 2
    streams[0].cancel()
    assert model.hung_up.acquire(timeout=nimi.PATIENCE)
    model.release.set()
    rest = nimi.Answer(streams[1])
    assert rest.kinds[-1] == "completed"


def test_two_cancels_with_one_key_hear_the_same(held, model):
    client = nimi.Client(held)
    submit = pb.SubmitScenarioJobRequest(
        head=asked().head,
        scenario_type=pb.SCENARIO_TYPE_TEXT_GENERATE,
        execution_mode=pb.EXECUTION_MODE_ASYNC_JOB,
        spec=nimi.text_spec("for ever"),
    )
    job = client.ask(client.ai.SubmitScenarioJob, submit)[0].job
    assert model.came.acquire(timeout=nimi.PATIENCE)
    cancel = pb.CancelScenarioJobRequest(job_id=job.job_id, reason="enough")
    key = client.metadata(idempotency_key="k-7")
    calls = [
        nimi.Client(held).ai.CancelScenarioJob.future(cancel, metadata=key, timeout=nimi.PATIENCE)
        for _ in range(3)
    ]
    first, *others = [call.result(nimi.PATIENCE).job for call in calls]
    assert first.reason_detail == "enough" and all(other == first for other in others)
    assert model.hung_up.acquire(timeout=nimi.PATIENCE)
    assert client.ask(client.ai.CancelScenarioJob, cancel, key)[0].job == first


def test_a_deadline_of_one_caller_is_not_the_others(held, model):
    client = nimi.Client(held)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        patient = start(client, "k-6")
        assert model.came.acquire(timeout=nimi.PATIENCE)
        hasty = pool.submit(
            client.ai.ExecuteScenario,
            asked(),
            metadata=client.metadata(idempotency_key="k-6"),
            timeout=0.3,
        )
        assert hasty.exception(nimi.PATIENCE).code() == grpc.StatusCode.DEADLINE_EXCEEDED
    model.release.set()
    assert patient.result(nimi.PATIENCE).output.text_generate.text == "Answer number 1."
    assert len(model.asked) == 1
