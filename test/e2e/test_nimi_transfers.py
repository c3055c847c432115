"""RuntimeLocalService: downloads of models by a local model server (sheet 1.13, 6.7)."""
import contextlib
import datetime
import json
import threading

import grpc
import nimi_client as nimi
import ollama
import pytest
from nimi.runtime.v1 import local_pb2, local_pb2_grpc, transfer_pb2
from nimi_client import common
from subscriptions import Events, assert_stopped

MODELS = ["small", "large", "third", "team/x:7b"]


@pytest.fixture
def server():
    with contextlib.closing(ollama.Server()) as server:
        yield server


def config_of(server, silence="20s", models=MODELS):
    return f"""
nimi:
  probe_interval: 0
  allow_loopback_provider_endpoint: true
  transfer_silence: {silence}
providers:
  - {{name: box, kind: openai, base_url: "http://127.0.0.1:{server.server_port}/v1"}}
connectors:
  - {{id: home, provider: box, local: true, models: {json.dumps(models)}}}
"""


@pytest.fixture
def local(start_weir, server):
    return Local(start_weir(config=config_of(server)))


class Local:
    """A client of RuntimeLocalService."""

    def __init__(self, weir):
        self.weir = weir
        self.connect()

    def connect(self):
        self.client = nimi.Client(self.weir)
        self.stub = local_pb2_grpc.RuntimeLocalServiceStub(self.client.channel)

    def install(self, asset, **fields):
        """Begin; the result is a future, whose code() waits for the end."""
        request = local_pb2.InstallVerifiedAssetRequest(template_id=asset, **fields)
        return self.stub.InstallVerifiedAsset.future(
            request, metadata=self.client.metadata(), timeout=60
        )

    def refused(self, asset, **fields):
        with pytest.raises(nimi.Refused) as refused:
            self.client.ask(
                self.stub.InstallVerifiedAsset,
                local_pb2.InstallVerifiedAssetRequest(template_id=asset, **fields),
            )
        return refused.value

    def watch(self):
        return Events(
            self.stub.WatchLocalTransfers(
                transfer_pb2.WatchLocalTransfersRequest(),
                metadata=self.client.metadata(),
                timeout=nimi.PATIENCE,
            )
        )

    def list(self):
        request = transfer_pb2.ListLocalTransfersRequest()
        return list(self.client.ask(self.stub.ListLocalTransfers, request)[0].transfers)

    def order(self, what, transfer):
        method = getattr(self.stub, what + "LocalTransfer")
        request = getattr(transfer_pb2, what + "LocalTransferRequest")(install_session_id=transfer)
        return self.client.ask(method, request)[0].transfer


def state_is(*states):
    return lambda event: event.state in states


def test_an_install_is_watched_to_its_end(local, server):
    events = local.watch()
    done = local.install("local/small")
    queued = events.next()
    assert (queued.state, queued.session_kind, queued.done) == ("queued", "download", False)
    assert queued.install_session_id.startswith("transfer_") and len(queued.install_session_id) == 35
    assert (queued.asset_id, queued.local_asset_id) == ("local/small", "home/small")
    datetime.datetime.fromisoformat(queued.created_at)
    pull = server.pull()
    assert pull.asked == {"model": "small", "stream": True}
    assert events.next().state == "running"

    pull.say(status="pulling manifest")
    assert events.until(lambda e: e.phase == "manifest").bytes_total == 0
    pull.layer("sha256:aaaaaaaaaaaaaaaaaaaa", total=1000, completed=0)
    events.until(lambda e: e.bytes_total == 1000)
    # What it says faster than four times a second is told later, in sum.
    for completed in range(0, 1001, 10):
        pull.layer("sha256:aaaaaaaaaaaaaaaaaaaa", total=1000, completed=completed)
    pull.layer("sha256:bbbbbbbbbbbbbbbbbbbb", total=500, completed=500)
    assert events.until(lambda e: e.bytes_received == 1500).bytes_total == 1500
    late = local.watch()  # it gets what is there at once
    assert late.next().state == "running"
    pull.success()
    last = events.until(lambda e: e.done)
    assert (last.state, last.success, last.reason_code) == ("completed", True, "")
    assert last.bytes_received == last.bytes_total == 1500
    assert last.updated_at >= last.created_at
    received = [event.bytes_received for event in events.all]
    assert received == sorted(received) and len(received) < 30
    assert {e.phase for e in events.all} >= {"manifest", "download"}
    assert late.until(lambda e: e.done).install_session_id == last.install_session_id
    asset = done.result().asset
    assert (asset.asset_id, asset.local_asset_id) == ("local/small", "home/small")
    assert asset.kind == local_pb2.LOCAL_ASSET_KIND_CHAT
    assert [t.state for t in local.list()] == ["completed"]
    assert events.cancel() and events.code == grpc.StatusCode.CANCELLED


def test_pause_resume_and_cancel(local, server):
    events = local.watch()
    done = local.install("home/large")
    first = server.pull()
    first.layer("sha256:aaaaaaaaaaaaaaaaaaaa", total=1000, completed=400)
    transfer = events.until(lambda e: e.bytes_received == 400).install_session_id
    # Asked again it joins the transfer that is there.
    joined = local.install("large")
    assert len(local.list()) == 1

    paused = local.order("Pause", transfer)
    assert (paused.state, paused.bytes_received, paused.retryable) == ("paused", 400, False)
    assert paused.speed_bytes_per_sec == paused.eta_seconds == 0
    first.left()  # to pause is to close the connection
    assert local.order("Pause", transfer).state == "paused"  # once more changes nothing
    assert not done.done()

    assert local.order("Resume", transfer).state == "queued"
    second = server.pull()
    second.layer("sha256:aaaaaaaaaaaaaaaaaaaa", total=1000, completed=server.kept["sha256:aaaaaaaaaaaaaaaaaaaa"] + 1)
    events.until(lambda e: e.state == "running" and e.bytes_received == 401)

    cancelled = local.order("Cancel", transfer)
    assert (cancelled.state, cancelled.reason_code) == ("cancelled", "LOCAL_TRANSFER_CANCELLED")
    second.left()
    last = events.until(lambda e: e.done)
    assert (last.state, last.success) == ("cancelled", False)
    for call in (done, joined):
        assert call.code() == grpc.StatusCode.CANCELLED
    for what in ("Pause", "Resume", "Cancel"):  # it is over, whatever is ordered
        assert local.order(what, transfer).state == "cancelled"
    with pytest.raises(nimi.Refused) as refused:
        local.order("Pause", "transfer_00000000000000000000000000")
    assert refused.value.code == grpc.StatusCode.NOT_FOUND
    with pytest.raises(nimi.Refused) as refused:
        local.order("Cancel", " ")
    assert refused.value.code == grpc.StatusCode.INVALID_ARGUMENT


def test_two_run_at_once_and_the_others_wait(local, server):
    events = local.watch()
    calls = [local.install(model) for model in MODELS]
    pulls = [server.pull(), server.pull()]
    while len(local.list()) < len(MODELS):
        pass
    waiting = {t.local_asset_id for t in local.list() if t.state == "queued"}
    assert len(waiting) == 2 and server.idle()
    for pull in pulls:  # at the same moment
        pull.success()
    others = [server.pull(), server.pull()]
    assert {f"home/{pull.model}" for pull in others} == waiting
    for pull in others:
        pull.success()
    assert {call.code() for call in calls} == {grpc.StatusCode.OK}
    while sum(e.done for e in events.all) < len(MODELS):
        events.next()


def test_one_that_is_paused_before_its_turn_lets_the_next_go(local, server):
    calls = [local.install(model) for model in MODELS]
    pulls = [server.pull(), server.pull()]
    while len(transfers := local.list()) < len(MODELS):
        pass
    first, second = sorted(
        (t for t in transfers if t.state == "queued"), key=lambda t: t.install_session_id
    )
    assert local.order("Pause", first.install_session_id).state == "paused"
    pulls[0].success()
    next_ = server.pull()
    assert f"home/{next_.model}" == second.local_asset_id
    assert local.order("Resume", first.install_session_id).state == "queued"
    next_.success()
    last = server.pull()
    assert f"home/{last.model}" == first.local_asset_id
    last.success()
    pulls[1].success()
    assert {call.code() for call in calls} == {grpc.StatusCode.OK}


HOSTILE = {
    "garbage": (b"<html>hello</html>\n", "JSON", False),
    "no status": (b'{"total": 5}\n', "neither a status nor an error", False),
    "negative": (b'{"status":"pulling a","digest":"sha256:a","total":-5}\n', "no number", False),
    "too much": (
        b'{"status":"pulling a","digest":"sha256:a","total":5,"completed":6}\n',
        "more bytes have come (6) than there are (5)",
        False,
    ),
    "not true": (
        b'{"status":"x","digest":"sha256:a","total":9223372036854775807}\n'
        b'{"status":"x","digest":"sha256:b","total":1}\n',
        "cannot be true",
        False,
    ),
    "its own error": (b'{"error":"pull model manifest: file does not exist"}\n', "file does not exist", True),
    "half a line": (b'{"status":"pulling man', "JSON", False),
    "nothing": (b"", "ended before the model was there", True),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_true_fails(local, server, name):
    data, words, retryable = HOSTILE[name]
    done = local.install("small")
    pull = server.pull()
    pull.raw(data)
    pull.end()
    assert done.code() == grpc.StatusCode.INTERNAL
    assert json.loads(done.details())["reasonCode"] == "AI_LOCAL_DOWNLOAD_FAILED"
    (failed,) = local.list()
    assert (failed.state, failed.reason_code) == ("failed", "AI_LOCAL_DOWNLOAD_FAILED")
    assert failed.retryable == retryable
    assert words in failed.message


def test_a_line_without_an_end_fails(local, server):
    done = local.install("small")
    pull = server.pull()
    with contextlib.suppress(OSError):
        for _ in range(1000):
            pull.raw(b'{"status":"' + b"x" * 10000)
    pull.end()
    assert done.code() == grpc.StatusCode.INTERNAL
    assert "longer than" in local.list()[0].message


def test_a_digest_that_differs_has_its_own_reason(local, server):
    done = local.install("small")
    pull = server.pull()
    pull.say(error="digest mismatch, file must be downloaded again")
    pull.end()
    assert done.code() == grpc.StatusCode.DATA_LOSS
    assert local.list()[0].reason_code == "AI_LOCAL_DOWNLOAD_HASH_MISMATCH"


def test_a_broken_connection_may_be_resumed(local, server):
    events = local.watch()
    done = local.install("small")
    pull = server.pull()
    pull.layer("sha256:aaaaaaaaaaaaaaaaaaaa", total=10, completed=5)
    events.until(lambda e: e.bytes_received == 5)
    pull.cut()
    failed = events.until(lambda e: e.done)
    assert (failed.state, failed.retryable) == ("failed", True)
    assert done.code() == grpc.StatusCode.INTERNAL
    assert local.order("Resume", failed.install_session_id).state == "queued"
    server.pull().success()
    assert events.until(lambda e: e.success).install_session_id == failed.install_session_id


def test_silence_fails(start_weir, server):
    local = Local(start_weir(config=config_of(server, silence="300ms")))
    done = local.install("small")
    pull = server.pull()
    pull.say(status="pulling manifest")
    assert done.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    (failed,) = local.list()
    assert (failed.state, failed.reason_code) == ("failed", "AI_PROVIDER_TIMEOUT")
    assert failed.retryable
    pull.end()


def test_a_server_that_installs_nothing_says_so(local, server):
    server.refusal = (404, b"404 page not found")
    done = local.install("small")
    assert done.code() == grpc.StatusCode.INTERNAL
    assert "it installs no models" in local.list()[0].message
    assert not local.list()[0].retryable
    server.refusal = (500, b'{"error":"no space left on device"}')
    assert local.install("small").code() == grpc.StatusCode.INTERNAL
    newest = local.list()[0]
    assert newest.retryable and "the server answered 500: no space left" in newest.message


def test_only_what_the_operator_listed_is_installed(local, server):
    assert local.refused("local/huge").reason == "AI_LOCAL_TEMPLATE_NOT_FOUND"
    assert local.refused("").code == grpc.StatusCode.NOT_FOUND
    refused = local.refused("small", endpoint="http://169.254.169.254")
    assert refused.reason == "PROTOCOL_ENVELOPE_INVALID"
    assert local.list() == [] and server.idle()
    done = local.install("local/team/x:7b")
    server.pull().success()
    assert done.result().asset.local_asset_id == "home/team/x:7b"


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_new_process_goes_on(local, server, how):
    done, other = local.install("large"), local.install("small")
    pulls = [server.pull(), server.pull()]
    waiting = local.install("third")
    events = local.watch()
    pulls[0].layer("sha256:aaaaaaaaaaaaaaaaaaaa", total=1000, completed=400)
    events.until(lambda e: e.bytes_received == 400)
    while len(local.list()) < 3:
        pass
    paused = next(t for t in local.list() if t.local_asset_id == "home/" + pulls[1].model)
    local.order("Pause", paused.install_session_id)
    third = server.pull()  # there is room now
    before = {t.install_session_id: t for t in local.list()}
    if how == "stop":
        local.weir.signal(15)
        assert_stopped(events)
        assert {c.code() for c in (done, other, waiting)} == {grpc.StatusCode.CANCELLED}
        assert local.weir.wait() == 0
    else:
        local.weir.kill()
    for pull in (pulls[0], pulls[1], third):
        pull.left()

    local.weir.start()
    local.connect()
    again = {pull.model: pull for pull in (server.pull(), server.pull())}
    assert set(again) == {pulls[0].model, "third"}
    events = local.watch()
    after = {t.install_session_id: t for t in local.list()}
    assert set(after) == set(before)
    assert after[paused.install_session_id].state == "paused"
    assert after[paused.install_session_id].created_at == paused.created_at
    for pull in again.values():
        pull.success()
    while sum(t.state == "completed" for t in local.list()) < 2:
        events.next()
    assert local.order("Cancel", paused.install_session_id).state == "cancelled"
    local.weir.kill()
    local.weir.start()
    local.connect()
    # What was answered was stored.
    states = {t.install_session_id: t.state for t in local.list()}
    while len(states) < 3:  # they are read soon after the start
        states = {t.install_session_id: t.state for t in local.list()}
    assert states[paused.install_session_id] == "cancelled" and server.idle()


def test_the_same_key_installs_once(local, server):
    """As the protocol's own SDK asks: every write has a key."""
    metadata = local.client.metadata(idempotency_key="key-1")
    request = local_pb2.InstallVerifiedAssetRequest(template_id="small")
    calls = [
        local.stub.InstallVerifiedAsset.future(request, metadata=metadata, timeout=60)
        for _ in range(4)
    ]
    server.pull().success()
    assert {call.result().asset.local_asset_id for call in calls} == {"home/small"}
    again, _ = local.client.ask(local.stub.InstallVerifiedAsset, request, metadata)
    assert again.asset.local_asset_id == "home/small"
    assert len(local.list()) == 1 and server.idle()


def test_a_client_that_leaves_stops_nothing(local, server):
    events = local.watch()
    call = local.install("small")
    pull = server.pull()
    call.cancel()
    pull.layer("sha256:aaaaaaaaaaaaaaaaaaaa", total=10, completed=5)
    events.until(lambda e: e.bytes_received == 5)
    pull.success()
    assert events.until(lambda e: e.done).success


def test_orders_from_many_at_once_end_in_one_state(local, server):
    """Pauses, resumes and cancels of many connections, while the server goes on talking."""
    events = local.watch()
    installing = local.install("small")
    transfer = events.until(state_is("running")).install_session_id

    def talk():
        while (pull := server.pull()) is not None:
            with contextlib.suppress(OSError):
                while True:  # until the daemon closes the connection
                    pull.layer("sha256:aaaaaaaaaaaaaaaaaaaa", total=100, completed=7)
                    pull.over.wait(0.001)
            pull.end()

    threading.Thread(target=talk, daemon=True).start()

    def order(names):
        one = Local(local.weir)
        for name in names:
            one.order(name, transfer)

    threads = [
        threading.Thread(target=order, args=(names,))
        for names in (["Pause", "Resume"] * 20, ["Resume", "Pause"] * 20, ["Resume"] * 40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert local.order("Cancel", transfer).state == "cancelled"
    last = events.until(state_is("cancelled"))
    assert last.done
    assert local.list()[0].state == "cancelled"
    assert installing.code() == grpc.StatusCode.CANCELLED
    server.pulls.put(None)
