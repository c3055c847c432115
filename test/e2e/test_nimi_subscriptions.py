"""Mode D of nimi.runtime.v1: subscriptions (checks.md C9, C10, B2)."""
import contextlib
import time

import grpc
import nimi_client as nimi
from nimi.runtime.v1 import audit_pb2
from subscriptions import Events, assert_in_order, assert_stopped
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
    began = time.monotonic()
    events = [watch_health(client) for _ in range(5)]
    first = [one.next() for one in events]
    assert time.monotonic() - began < 1  # not only with the next beat
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
