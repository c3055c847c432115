"""UploadArtifact with Google's client: what is kept, what is refused, what a restart leaves."""
import concurrent.futures
import contextlib
import hashlib
import random
import sqlite3
import time

import crawbl
import grpc
import nimi_client as nimi
import pytest
from nimi_client import pb

pytestmark = pytest.mark.weir(script="test/e2e/scripts/quick.yaml")
MIB = 1 << 20
MUCH = random.Random(7).randbytes(32 * MIB)


def metadata(**fields):
    whole = {"app_id": nimi.APP, "subject_user_id": "anna", "mime_type": "audio/wav"}
    return pb.UploadArtifactRequest(metadata=pb.UploadArtifactMetadata(**{**whole, **fields}))


def chunks(data, step=4 * MIB):
    for number, at in enumerate(range(0, len(data), step)):
        chunk = pb.UploadArtifactChunk(sequence=number, bytes=data[at : at + step])
        yield pb.UploadArtifactRequest(chunk=chunk)


def upload(client, messages, headers=()):
    """The artifact, or Refused. As the real SDK does it, without the protocol's headers."""
    try:
        return client.ai.UploadArtifact(
            iter(messages), metadata=headers, timeout=nimi.PATIENCE
        ).artifact
    except grpc.RpcError as error:
        raise nimi.Refused(error) from None


def rows(weir, question):
    """Ask the store, beside its owner if that runs."""
    with contextlib.closing(sqlite3.connect(f"file:{weir.data}/weir.db?mode=ro", uri=True)) as store:
        return store.execute(question).fetchall()


def kept(weir):
    """What the store has: the bytes of each upload, by its id."""
    found = {}
    for row, name in rows(weir, "select id, name from upload where state = 1"):
        pieces = rows(weir, f"select bytes from upload_piece where upload = {row} order by place")
        found[name.decode()] = b"".join(piece for (piece,) in pieces)
    return found


def assert_left(weir, uploads, pieces):
    """What is over is deleted some pieces at a time, behind the answer."""
    question = "select (select count(*) from upload), (select count(*) from upload_piece)"
    give_up = time.monotonic() + nimi.PATIENCE
    while rows(weir, question) != [(uploads, pieces)] and time.monotonic() < give_up:
        time.sleep(0.01)
    assert rows(weir, question) == [(uploads, pieces)]


def peak_kib(weir):
    with open(f"/proc/{weir.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def test_an_upload_is_answered_with_its_sum_and_outlives_a_restart(weir):
    client = nimi.Client(weir)
    small = upload(client, [metadata(mime_type="image/PNG"), *chunks(b"picture")])
    assert small.artifact_id.startswith("artifact_") and len(small.artifact_id) == 35
    assert small.mime_type == "image/png" and small.size_bytes == 7 and not small.bytes
    assert small.sha256 == hashlib.sha256(b"picture").hexdigest()
    before = peak_kib(weir)
    large = upload(client, [metadata(), *chunks(MUCH)])
    assert large.sha256 == hashlib.sha256(MUCH).hexdigest() and large.size_bytes == len(MUCH)
    if not crawbl.is_sanitized():
        assert peak_kib(weir) - before < 24 * 1024  # of 32 MiB; 10 of it are the upload's own
    weir.restart()
    weir.stop()
    assert kept(weir) == {small.artifact_id: b"picture", large.artifact_id: MUCH}


def test_violations_are_told_with_their_reason_and_leave_nothing(weir):
    client = nimi.Client(weir)
    good, first = metadata(), next(chunks(b"x"))
    invalid = [
        [],
        [first],
        [good],
        [good, good],
        [good, first, first],
        [good, pb.UploadArtifactRequest()],
        [good, pb.UploadArtifactRequest(chunk=pb.UploadArtifactChunk())],
        [good, pb.UploadArtifactRequest(chunk=pb.UploadArtifactChunk(sequence=1, bytes=b"x"))],
        [metadata(app_id="")],
        [metadata(mime_type="text/plain")],
        [metadata(mime_type="")],
    ]
    for messages in invalid:
        with pytest.raises(nimi.Refused) as refused:
            upload(client, messages)
        assert refused.value.reason == "AI_ARTIFACT_UPLOAD_INVALID", messages
        assert refused.value.code == grpc.StatusCode.INVALID_ARGUMENT
    for messages in (
        [good, *chunks(MUCH[: 4 * MIB + 1], 4 * MIB + 1)],
        [good, *chunks(MUCH[: 6 * MIB], 6 * MIB)],
        [good, *chunks(MUCH + b"x")],
    ):
        with pytest.raises(nimi.Refused) as refused:
            upload(client, messages)
        assert refused.value.reason == "AI_ARTIFACT_UPLOAD_TOO_LARGE"
        assert refused.value.code == grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(nimi.Refused) as refused:
        upload(client, [good, first], headers=client.metadata(app_id="other"))
    assert refused.value.reason == "AI_APP_ID_CONFLICT"
    assert upload(client, [good, first]).size_bytes == 1
    assert_left(weir, 1, 1)


def test_the_same_key_makes_an_upload_once(weir):
    client = nimi.Client(weir)
    key = client.metadata(idempotency_key="k")
    first = upload(client, [metadata(), *chunks(MUCH[: 3 * MIB])], headers=key)
    assert upload(client, [metadata(), *chunks(MUCH[: 3 * MIB])], headers=key) == first
    with pytest.raises(nimi.Refused) as refused:
        upload(client, [metadata(), *chunks(b"other")], headers=key)
    assert refused.value.reason == "PROTOCOL_ENVELOPE_INVALID"


def test_two_at_once_under_one_key_are_one_artifact(weir):
    """Over two connections, so on two loops as often as not."""
    local = [("grpc.use_local_subchannel_pool", 1)]
    clients = [nimi.Client(weir, options=local) for _ in range(2)]
    for client in clients:
        client.health()

    def ask(asked):
        client, number, data = asked
        headers = client.metadata(idempotency_key=f"k{number}")
        try:
            return upload(client, [metadata(), *chunks(data)], headers=headers).artifact_id
        except nimi.Refused as refused:
            return refused.reason

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for number in range(10):
            same = list(pool.map(ask, [(client, number, b"same") for client in clients]))
            assert len(set(same)) == 1 and same[0].startswith("artifact_"), same
            other = list(
                pool.map(ask, [(c, 100 + number, b"%d" % i) for i, c in enumerate(clients)])
            )
            assert sorted(one[:8] for one in other) == ["PROTOCOL", "artifact"], other
    assert rows(weir, "SELECT count(*) FROM upload")[0][0] == 20


class Endless:
    """Chunks for as long as they are asked for."""

    def __init__(self):
        self.sent = 0

    def __iter__(self):
        yield metadata()
        for message in chunks(MUCH, MIB):
            yield message
            self.sent += 1
            while self.sent >= 4:
                time.sleep(0.05)


def test_who_leaves_in_the_middle_and_who_dies_leave_nothing_behind(weir):
    client = nimi.Client(weir)
    for kill in (False, True):
        messages = Endless()
        call = client.ai.UploadArtifact.future(iter(messages), timeout=nimi.PATIENCE)
        give_up = time.monotonic() + nimi.PATIENCE
        while messages.sent < 4 and time.monotonic() < give_up:
            time.sleep(0.01)
        if kill:
            weir.kill()
            weir.start()
            client = nimi.Client(weir)
        else:
            call.cancel()
        assert upload(client, [metadata(), *chunks(b"x")]).size_bytes == 1
    assert_left(weir, 2, 2)


def test_stopping_cancels_an_upload(weir):
    messages = Endless()
    call = nimi.Client(weir).ai.UploadArtifact.future(iter(messages), timeout=nimi.PATIENCE)
    while messages.sent < 4:
        time.sleep(0.01)
    weir.signal(15)
    with pytest.raises(grpc.RpcError) as error:
        call.result()
    assert error.value.code() == grpc.StatusCode.CANCELLED
    assert error.value.details() == "runtime shutting down"
    assert weir.wait() == 0
