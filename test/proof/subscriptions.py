#!/usr/bin/env python3
"""subscriptions: mode D of nimi.runtime.v1 in full numbers.

    test/proof/subscriptions.py [ROUNDS [SUBSCRIPTIONS]]        100 and 10,000 without numbers

stops     250 subscriptions of each kind and SIGTERM, ROUNDS times: all CANCELLED in plain words
ending    SUBSCRIPTIONS on 10 connections while SIGTERM comes: each that was opened is CANCELLED
stalled   1,000 that read nothing beside 100 that do: the latter get everything, at most twice as
          late as alone (row B4), and each stalled one costs at most 64 KiB: what half of them add
          to the other half, because with the first ones the buffers of those that read, 59 KiB
          each, cannot go back to the system between two events any more
"""
import asyncio
import contextlib
import pathlib
import sys
import tempfile
import time

import clients  # noqa: F401  first: it finds the others
import grpc
import harness
import nimi_client as nimi
import test_nimi_subscriptions as subs
from nimi.runtime.v1 import app_pb2, app_pb2_grpc
from subscriptions import STOPPED, assert_stopped

CONNECTIONS = 10


@contextlib.contextmanager
def daemon(config="limits: {connections: 2000}\n"):
    with tempfile.TemporaryDirectory() as folder:
        weir = harness.Daemon(pathlib.Path(folder), config=config).start()
        try:
            yield weir
        finally:
            weir.kill()


def stops(rounds):
    slowest = 0
    for _ in range(rounds):
        with daemon() as weir:
            client = nimi.Client(weir)
            events = [subs.App(client, "app.ben").subscribe() for _ in range(subs.EACH)]
            health = [subs.watch_health(client) for _ in range(subs.EACH)]
            events += [subs.watch_providers(client) for _ in range(subs.EACH)]
            for one in health:
                one.next()
            weir.signal(15)
            began = time.monotonic()
            for one in events + health:
                assert_stopped(one)
            slowest = max(slowest, time.monotonic() - began)
            assert weir.wait() == 0
    print(f"stops    {rounds} rounds of {3 * subs.EACH}: the slowest {slowest:.2f} s")


def subscribe(stub, app):
    metadata = tuple(nimi.Client.metadata(app_id=app))
    return stub.SubscribeAppMessages(
        app_pb2.SubscribeAppMessagesRequest(app_id=app), metadata=metadata
    )


async def one_ending(stub, opened):
    call = subscribe(stub, "app.ben")
    headers = False
    try:
        headers = await call.initial_metadata() is not None and not call.done()
        opened.append(call)
        async for _ in call:
            pass
    except grpc.aio.AioRpcError:
        pass
    return headers, await call.code(), await call.details()


async def ending(count):
    with daemon() as weir:
        options = [("grpc.use_local_subchannel_pool", 1)]
        target = f"127.0.0.1:{weir.ports['nimi_grpc']}"
        channels = [grpc.aio.insecure_channel(target, options) for _ in range(CONNECTIONS)]
        stubs = [app_pb2_grpc.RuntimeAppServiceStub(channel) for channel in channels]
        opened = []
        ends = [
            asyncio.ensure_future(one_ending(stubs[i % CONNECTIONS], opened)) for i in range(count)
        ]
        while len(opened) < count * 3 // 4:
            await asyncio.sleep(0.01)
        weir.signal(15)
        found = {}
        for headers, code, details in await asyncio.gather(*ends):
            if code == grpc.StatusCode.CANCELLED:
                assert details == STOPPED, details
            else:  # it came when no connection was taken any more
                assert code == grpc.StatusCode.UNAVAILABLE and not headers, (code, details)
            found[code.name] = found.get(code.name, 0) + 1
        for channel in channels:
            await channel.close()
        assert weir.wait() == 0
        assert found.get("CANCELLED", 0) >= count * 3 // 4, found
        print(f"ending   {count} subscriptions: {found}")


async def deliver(stub, healthy, sender, rounds):
    """Send, and note when the last of the healthy has each message."""
    took = []
    for i in range(rounds):
        request = app_pb2.SendAppMessageRequest(
            from_app_id=f"{sender}.{i}", to_app_id="app.ben", message_type="x" * 60000
        )
        metadata = tuple(nimi.Client.metadata(app_id=f"{sender}.{i}"))
        began = time.monotonic()
        await stub.SendAppMessage(request, metadata=metadata)
        for event in await asyncio.gather(*(call.read() for call in healthy)):
            assert event.from_app_id == f"{sender}.{i}", event.from_app_id
        took.append(1000 * (time.monotonic() - began))
    return sorted(took)[int(rounds * 0.99)]


async def stalled(count=1000, healthy_count=100, rounds=50):
    with daemon("threads: 1\nlimits: {connections: 2000}\n") as weir:
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{weir.ports['nimi_grpc']}")
        stub = app_pb2_grpc.RuntimeAppServiceStub(channel)
        healthy = [subscribe(stub, "app.ben") for _ in range(healthy_count)]
        for call in healthy:
            await call.initial_metadata()
        await deliver(stub, healthy, "warm", rounds)
        alone = await deliver(stub, healthy, "alone", rounds)
        with subs.stall(weir, "app.ben", count // 2):
            await deliver(stub, healthy, "half", rounds)
            half = subs.held_kib(weir)
            with subs.stall(weir, "app.ben", count - count // 2):
                beside = await deliver(stub, healthy, "beside", rounds)
                each = (subs.held_kib(weir) - half) / (count - count // 2)
        for call in healthy:
            call.cancel()
        await channel.close()
    print(
        f"stalled  {count} beside {healthy_count}: p99 {beside:.1f} ms, alone {alone:.1f} ms; "
        f"{each:.1f} KiB for each stalled one"
    )
    return beside <= 2 * alone and each <= 64  # of these, 59 are the event that waits


def main(rounds=100, count=10000):
    stops(rounds)
    asyncio.run(ending(count))
    sys.exit(not asyncio.run(stalled()))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
