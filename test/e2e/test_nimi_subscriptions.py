"""Mode D of nimi.runtime.v1: subscriptions (checks.md C9, C10, B2)."""
import contextlib
import time

import attack
import crawbl
import grpc
import nimi_client as nimi
import pytest
import test_nimi_identity as identity
from google.protobuf import struct_pb2
from nimi.runtime.v1 import app_pb2, app_pb2_grpc, audit_pb2
from subscriptions import Events, assert_in_order, assert_stopped
from test_nimi_close import held_kib
from test_nimi_identity import issuer  # noqa: F401  a fixture
from test_nimi_probe import Vendor

READY, DEGRADED, STOPPING = 3, 4, 5


def watch_health(client, **options):
    request = audit_pb2.SubscribeRuntimeHealthEventsRequest()
    return Events(
        client.audit.SubscribeRuntimeHealthEvents(
            request, metadata=client.metadata(), timeout=nimi.PATIENCE, **options
        )
    )


def watch_providers(client):
    request = audit_pb2.SubscribeAIProviderHealthEventsRequest()
    return Events(
        client.audit.SubscribeAIProviderHealthEvents(
            request, metadata=client.metadata(), timeout=nimi.PATIENCE
        )
    )


# --- the health of the runtime ------------------------------------------------------------------


def test_runtime_health_comes_at_once_and_every_second(weir):
    client = nimi.Client(weir)
    events = [watch_health(client) for _ in range(5)]
    first = [one.next() for one in events]
    snapshot = client.health()[0]
    for event in first:
        assert event.status == READY == snapshot.status
        assert event.reason == "ready" and event.memory_bytes > 0 and event.sampled_at.seconds
    for one in events:
        one.next()
        one.next()
        assert_in_order(one)
    # All get the same events with the same numbers.
    assert len({one.all[-1].SerializeToString() for one in events if one.all[-1].sequence ==
                events[0].all[-1].sequence}) == 1
    # A client that leaves is gone at once, and the others go on.
    events[0].cancel()
    assert events[0].code == grpc.StatusCode.CANCELLED
    events[1].next()
    weir.signal(15)
    for one in events[1:]:
        assert_stopped(one)
        assert one.all[-1].status == STOPPING
        assert_in_order(one)
    assert weir.wait() == 0


def test_provider_health_is_told_as_it_changes(start_weir):
    with contextlib.closing(Vendor()) as vendor:
        config = f"""
nimi: {{probe_interval: 100ms, allow_loopback_provider_endpoint: true}}
providers:
  - {{name: house, kind: openai, base_url: "http://127.0.0.1:{vendor.server_port}/v1", key_env: HOUSE_KEY}}
connectors:
  - {{id: first, provider: house}}
"""
        weir = start_weir(config=config, env={"HOUSE_KEY": "secret-of-the-house"})
        client = nimi.Client(weir)
        events, health = watch_providers(client), watch_health(client)
        up = events.until(lambda event: event.state == "healthy")
        assert (up.provider_name, up.reason, up.consecutive_failures) == ("house", "", 0)
        vendor.status = 503
        down = events.until(lambda event: event.state == "unhealthy")
        assert (down.reason, down.consecutive_failures) == ("it answers 503", 1)
        assert down.last_changed_at.ToNanoseconds() >= up.last_changed_at.ToNanoseconds()
        degraded = health.until(lambda event: event.status == DEGRADED)
        assert degraded.reason == "ai-provider:house unavailable"
        # Whoever comes now gets the newest state, and no earlier one.
        late = watch_providers(client)
        assert late.next().state == "unhealthy"
        vendor.status = 200
        events.until(lambda event: event.state == "healthy")
        late.until(lambda event: event.state == "healthy")
        health.until(lambda event: event.status == READY)
        weir.signal(15)
        for one in (events, late, health):
            assert_stopped(one)
            assert_in_order(one)
        assert weir.wait() == 0


# --- messages between apps ----------------------------------------------------------------------


class App:
    """One app that sends and receives."""

    def __init__(self, client, name):
        self.client, self.name = client, name
        self.stub = app_pb2_grpc.RuntimeAppServiceStub(client.channel)
        self.metadata = client.metadata(app_id=name, participant_id=name, caller_id=name)

    def send(self, to, text="", payload=None, **fields):
        payload = payload or struct_pb2.Struct(fields={"text": struct_pb2.Value(string_value=text)})
        fields = {"message_type": "note", "payload": payload, **fields}
        request = app_pb2.SendAppMessageRequest(from_app_id=self.name, to_app_id=to, **fields)
        return self.client.ask(self.stub.SendAppMessage, request, metadata=self.metadata)[0]

    def subscribe(self, **fields):
        request = app_pb2.SubscribeAppMessagesRequest(**{"app_id": self.name, **fields})
        call = self.stub.SubscribeAppMessages(
            request, metadata=self.metadata, timeout=nimi.PATIENCE
        )
        call.initial_metadata()  # they come at once
        return Events(call)


def texts(events):
    return [event.payload["text"] for event in events]


def test_apps_send_each_other_messages(weir):
    client = nimi.Client(weir)
    anna, ben, carl = (App(client, name) for name in ("app.anna", "app.ben", "app.carl"))
    to_ben, to_carl = ben.subscribe(), carl.subscribe()
    only_anna, only_u1 = ben.subscribe(from_app_ids=["app.anna"]), ben.subscribe(
        subject_user_id="u1"
    )
    sent = anna.send("app.ben", "one", subject_user_id="u1", require_ack=True)
    assert sent.accepted and sent.reason_code == nimi.common.ACTION_EXECUTED
    carl.send("app.ben", "two", subject_user_id="u2")
    anna.send("app.ben", "three", subject_user_id="u2")
    ben.send("app.carl", "four")

    got = [to_ben.next() for _ in range(4)]
    assert texts(got) == ["one", "one", "two", "three"]
    assert [event.event_type for event in got] == [1, 2, 1, 1]
    assert got[0].message_id == got[1].message_id == sent.message_id
    assert got[0].from_app_id == "app.anna" and got[0].to_app_id == "app.ben"
    assert got[0].subject_user_id == "u1" and got[0].trace_id and got[0].timestamp.seconds
    first = got[0].sequence
    assert [event.sequence for event in got] == [first, first + 1, first + 2, first + 3]
    assert texts(only_anna.next() for _ in range(3)) == ["one", "one", "three"]
    assert texts(only_u1.next() for _ in range(2)) == ["one", "one"]
    assert texts([to_carl.next()]) == ["four"]

    # A cursor: what came after it; a lost one: all that is kept, and the gap shows.
    assert texts(ben.subscribe(cursor=str(first + 1)).next() for _ in range(1)) == ["two"]
    again = ben.subscribe(cursor=str(first + 3))
    lost = ben.subscribe(cursor="7")
    assert [lost.next().sequence for _ in range(4)] == [first + i for i in range(4)]
    anna.send("app.ben", "five")
    assert texts([again.next()]) == ["five"]
    for one in (to_ben, to_carl, only_anna, only_u1, again, lost):
        one.cancel()
        assert not any(event.to_app_id != "app.ben" for event in one.all if one is not to_carl)
    assert texts(to_carl.all) == ["four"]  # and nothing of ben's


def test_a_subject_hears_only_its_own(start_weir, issuer):  # M3
    """With issuers the subject is the token's, whatever a subscription or a message says."""
    key = issuer.key("k")
    issuer.keys = [key]
    client = nimi.Client(start_weir(config=identity.configured(issuer)))
    apps = {}
    for user in ("anna", "ben"):
        apps[user] = App(client, "app.shared")
        apps[user].metadata += [("authorization", f"Bearer {key.sign(issuer.url, user)}")]
    events = {user: app.subscribe() for user, app in apps.items()}
    for user, app in apps.items():
        assert app.send("app.shared", f"of {user}").accepted
    for user, app in apps.items():
        assert texts([events[user].next()]) == [f"of {user}"]
        assert texts(events[user].cancel()) == [f"of {user}"]  # and nothing more
        again = app.subscribe(cursor="0")
        assert texts([again.next()]) == [f"of {user}"]
        assert texts(again.cancel()) == [f"of {user}"]
    foreign = apps["anna"].subscribe(subject_user_id="ben")
    assert foreign.rest() == [] and foreign.code == grpc.StatusCode.PERMISSION_DENIED
    nobody = App(client, "app.shared").subscribe()
    assert nobody.rest() == [] and nobody.code == grpc.StatusCode.UNAUTHENTICATED


def refused(call, *args, **fields):
    with pytest.raises(nimi.Refused) as found:
        call(*args, **fields)
    return found.value.code, found.value.reason


def test_a_subscriber_names_at_most_a_hundred_apps(weir):
    client = nimi.Client(weir)
    anna, ben = App(client, "app.anna"), App(client, "app.ben")
    others = [f"app.{i}" for i in range(99)]
    for names in ([*others, "app.anna", "app.more"], ["a\nb"], [""], ["a" * 300_000] * 9):
        events = ben.subscribe(from_app_ids=names)
        events.rest()
        assert events.code == grpc.StatusCode.INVALID_ARGUMENT, events.text
        assert "from_app_ids" in events.text
    events = ben.subscribe(from_app_ids=[*others, "app.anna"])
    App(client, "app.more").send("app.ben", "not this")
    anna.send("app.ben", "this")
    assert texts([events.next()]) == ["this"]
    events.cancel()


def test_what_an_app_may_not_send(weir):
    client = nimi.Client(weir)
    anna, ben = App(client, "app.anna"), App(client, "app.ben")
    code = grpc.StatusCode
    big = struct_pb2.Struct(fields={"x": struct_pb2.Value(string_value="x" * 65536)})
    assert refused(anna.send, "") == (code.INVALID_ARGUMENT, "PROTOCOL_ENVELOPE_INVALID")
    assert refused(anna.send, "a\nb") == (code.INVALID_ARGUMENT, "PROTOCOL_ENVELOPE_INVALID")
    assert refused(anna.send, "app.ben", payload=big) == (
        code.INVALID_ARGUMENT,
        "APP_MESSAGE_PAYLOAD_TOO_LARGE",
    )
    invalid = (code.INVALID_ARGUMENT, "PROTOCOL_ENVELOPE_INVALID")
    assert refused(anna.send, "app.ben", message_type="m" * 1025) == invalid
    events = ben.subscribe()
    anna.send("app.ben", message_type="m" * 1024)
    assert events.next().message_type == "m" * 1024
    events.cancel()
    assert refused(anna.send, "runtime.agent") == (code.PERMISSION_DENIED, "APP_SCOPE_FORBIDDEN")
    conflict = (code.INVALID_ARGUMENT, "PROTOCOL_DOMAIN_FIELD_CONFLICT")
    foreign = App(client, "app.anna")
    foreign.metadata = ben.metadata
    assert refused(foreign.send, "app.ben") == conflict
    for fields, reason in (
        ({"app_id": "app.ben"}, "PROTOCOL_DOMAIN_FIELD_CONFLICT"),
        ({"app_id": ""}, "PROTOCOL_ENVELOPE_INVALID"),
        ({"cursor": "x"}, "PROTOCOL_ENVELOPE_INVALID"),
        ({"cursor": "-1"}, "PROTOCOL_ENVELOPE_INVALID"),
    ):
        events = anna.subscribe(**fields)
        assert events.rest() == [] and events.code == code.INVALID_ARGUMENT
        assert reason in events.text


# --- slow subscribers, and the end --------------------------------------------------------------


def fields_of(app):
    names = {name.replace("-", "_"): value for name, value in nimi.HEADERS.items()}
    path = "/nimi.runtime.v1.RuntimeAppService/SubscribeAppMessages"
    return {**names, **attack.GRPC, "x_nimi_app_id": app, "path": path}


def stall(weir, app, streams):
    """One connection whose streams subscribe and whose client never reads nor grants a window."""
    body = app_pb2.SubscribeAppMessagesRequest(app_id=app).SerializeToString()
    peer = attack.dial(weir.port("nimi_grpc"))
    peer.settimeout(attack.PATIENCE)
    asked = b"".join(
        attack.frame(
            attack.HEADERS, attack.END_HEADERS, number, attack.request(**fields_of(app))
        )
        + attack.frame(
            attack.DATA, attack.END_STREAM, number, b"\0" + len(body).to_bytes(4, "big") + body
        )
        for number in range(1, 2 * streams, 2)
    )
    peer.sendall(attack.START + asked)
    return peer


def test_a_slow_subscriber_is_ended_and_costs_nobody(start_weir):  # B2
    """40 that read nothing beside 10 that do; what the former leave is bounded by the window."""
    weir = start_weir(config="threads: 1\nlimits: {write_stall: 4s}\n")
    client = nimi.Client(weir)
    healthy = [App(client, "app.ben").subscribe() for _ in range(10)]
    # Those that take nothing at all: the window of the stream fills, then they are reset.
    with stall(weir, "app.ben", 40) as peer:
        payload = struct_pb2.Struct(fields={"x": struct_pb2.Value(string_value="x" * 60000)})
        for i in range(12):  # three times the window
            App(client, f"app.sender.{i}").send("app.ben", payload=payload)
            assert {one.next().from_app_id for one in healthy} == {f"app.sender.{i}"}
        ending = attack.Ending()
        peer.settimeout(0.1)
        give_up = time.monotonic() + attack.PATIENCE
        while ending.count(attack.RESET) < 40 and time.monotonic() < give_up:
            with contextlib.suppress(TimeoutError):
                ending.received += peer.recv(262144)
        reset = [payload for kind, _, _, payload in ending.frames if kind == attack.RESET]
        # What gRPC clients show as RESOURCE_EXHAUSTED; trailers could not pass the full window.
        assert reset == [attack.ENHANCE_YOUR_CALM.to_bytes(4, "big")] * 40
    assert held_kib(weir) < 120 * 1024 or crawbl.is_sanitized()
    App(client, "app.carl").send("app.ben", "after")
    for one in healthy:
        assert texts([one.next()]) == ["after"]
        assert_in_order(one)
        one.cancel()


EACH = 250


def test_stopping_cancels_250_subscriptions_of_each_kind(weir):  # C10
    client = nimi.Client(weir)
    apps = [App(client, "app.ben").subscribe() for _ in range(EACH)]
    health = [watch_health(client) for _ in range(EACH)]
    providers = [watch_providers(client) for _ in range(EACH)]
    for one in health:
        one.next()
    weir.signal(15)
    for one in apps + health + providers:
        assert_stopped(one)
        assert_in_order(one)
    assert all(one.all[-1].status == STOPPING for one in health)
    assert not any(one.all for one in apps)
    assert weir.wait() == 0


def test_a_client_that_leaves_frees_its_subscriptions(weir):
    client = nimi.Client(weir)
    for _ in range(3):
        with grpc.insecure_channel(f"127.0.0.1:{weir.ports['nimi_grpc']}") as channel:
            other = nimi.Client(weir)
            other.channel = channel
            events = [App(other, "app.ben").subscribe() for _ in range(50)]
        App(client, "app.carl").send("app.ben", "nobody hears it")
        for one in events:
            one.rest()
            assert one.code == grpc.StatusCode.CANCELLED
    late = App(client, "app.ben").subscribe(cursor="0")
    assert texts(late.next() for _ in range(3)) == ["nobody hears it"] * 3
    late.cancel()
