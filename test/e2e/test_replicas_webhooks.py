"""Webhooks of A2A where several replicas share a store in PostgreSQL: put, read and deleted at any of
them, and each is called by one. They run in `make check` and not in `make test`:
WEIR_WITH_POSTGRES=1 scripts/e2e test/e2e/test_replicas_webhooks.py."""
import asyncio
import collections
import re
import signal

import pytest
from a2a.client.errors import A2AClientError
from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import A2AError, InternalError, TaskNotFoundError
from a2a_agent import DIALECTS, Agent, run, state
from replicas import NEED_POSTGRES, eventually, replicas, server, size  # noqa: F401  fixtures
from test_webhooks import ANY, SCRIPT, asks, bearer, begin, soon, webhook
from webhook_receiver import Receiver

pytestmark = NEED_POSTGRES

# What a task may be, in order: it is asked once, and works again once it was answered.
ONCE = re.compile("(working )?(input_required )?(working )?((completed|failed|canceled) )?")
AGAIN = re.compile("(working )*(input_required )*(working )*((completed|failed|canceled) )*")
ENDS = ("completed", "failed", "canceled")


def start(replicas, count=2, **more):
    replicas.start(count, script=SCRIPT, config=ANY, **more)
    return replicas.all


@pytest.fixture
def receiver():
    with Receiver() as server:
        yield server


@pytest.fixture(params=DIALECTS)
def dialect(request):
    return DIALECTS[request.param]


async def listed(agent, id):
    page = a2a.ListTaskPushNotificationConfigsRequest(task_id=id)
    return [c.id for c in (await agent.client.list_task_push_notification_configs(page)).configs]


async def put(agent, url, task, **more):
    return await agent.client.create_task_push_notification_config(webhook(url, task, **more))


async def delete(agent, task, id):
    await agent.client.delete_task_push_notification_config(
        a2a.DeleteTaskPushNotificationConfigRequest(task_id=task, id=id))


async def known(agent, id):
    """A task that another replica has begun is in the store a moment later."""
    while True:
        try:
            return await agent.task(id)
        except TaskNotFoundError:
            await asyncio.sleep(0.02)


def claims(replicas):
    return replicas.sql("SELECT count(*) FROM kept WHERE space = 6")


def told_of(receiver, seen):
    """What has arrived until now, by the task and the webhook's path."""
    while not receiver.empty():
        told = receiver.next()
        seen[told.task["id"], told.path].append(told)
    return seen


def states(told):
    return "".join(n.state + " " for n in told)


def assert_in_order(told):
    """Perhaps some of them again, but none after a later one."""
    assert AGAIN.fullmatch(states(told)), states(told)


def assert_once(told):
    assert ONCE.fullmatch(states(told)), states(told)


# --- at any replica ----------------------------------------------------------------------------


def test_webhooks_are_put_read_and_deleted_at_any_replica(replicas, receiver, dialect):
    first, second = start(replicas)

    async def work():
        async with Agent(first, dialect, streaming=False) as one, \
                Agent(second, dialect, streaming=False) as two:
            assert two.card.capabilities.push_notifications
            (answer,) = await one.ask("pay")
            id = answer.task.id
            for agent, name in ((one, ""), (two, "b"), (one, "b")):
                made = await put(agent, receiver.url, id, id=name, token="t",
                                 authentication=bearer("c"))
                assert (made.id, made.url) == (name or id, receiver.url)
            asked = a2a.GetTaskPushNotificationConfigRequest(task_id=id, id="b")
            for agent in (one, two):
                assert await agent.client.get_task_push_notification_config(asked) == made
                assert await listed(agent, id) == [id, "b"]
            await delete(two, id, "b")
            await delete(one, id, "b")
            for agent in (one, two):
                with pytest.raises(TaskNotFoundError):
                    await agent.client.get_task_push_notification_config(asked)
                assert await listed(agent, id) == [id]

    run(work())


def test_a_webhook_is_told_by_one_replica_wherever_it_was_put(replicas, receiver):
    """A run waits at the first replica; its webhooks are put at both."""
    first, second = start(replicas)

    async def work(other):
        async with Agent(first, streaming=False) as one, \
                Agent(second, streaming=False) as two:
            task = await begin(one, "pay", webhook(receiver.url, id="a", token="mine"))
            await soon(receiver.until, "input_required")
            await put(two, other.url, task.id, id="b", authentication=bearer("s3cret"))
            told = await soon(other.until, "input_required")
            assert told[-1].headers["authorization"] == "Bearer s3cret"
            await one.ask("yes", task=task.id)
            assert_once(await soon(receiver.until, "completed"))
            assert_once(told + await soon(other.until, "completed"))
            eventually(lambda: claims(replicas) == "0")
            assert receiver.empty() and other.empty()
            assert await listed(one, task.id) == await listed(two, task.id) == ["a", "b"]

    with Receiver() as other:
        run(work(other))


def test_one_that_is_put_while_its_task_ends_elsewhere_is_told_the_end_once(replicas, receiver):
    first, second = start(replicas)

    async def work():
        async with Agent(first, streaming=False) as one, \
                Agent(second, streaming=False) as two:
            for n in range(size("WEBHOOK_RACES", 24)):
                task = await begin(one, "look there", webhook(receiver.url))
                await known(two, task.id)
                await put(two, receiver.url + "/2", task.id, id="2")

    run(work())
    eventually(lambda: claims(replicas) == "0")
    seen = told_of(receiver, collections.defaultdict(list))
    assert len(seen) == 2 * size("WEBHOOK_RACES", 24)
    for told in seen.values():
        assert_once(told)
        assert told[-1].state == "completed"


def test_one_that_was_deleted_at_another_replica_is_told_nothing(replicas, receiver):
    first, second = start(replicas)

    async def work(other):
        async with Agent(first, streaming=False) as one, \
                Agent(second, streaming=False) as two:
            task = await begin(one, "pay", webhook(receiver.url, id="a"))
            await soon(receiver.until, "input_required")
            await put(one, other.url, task.id, id="b")
            await soon(other.until, "input_required")
            await delete(two, task.id, "a")
            await one.ask("yes", task=task.id)
            await soon(other.until, "completed")
            eventually(lambda: claims(replicas) == "0")
            assert receiver.empty()
            assert await listed(one, task.id) == ["b"]

    with Receiver() as other:
        run(work(other))


def test_one_that_is_deleted_while_another_replica_posts_leaves_nothing(replicas, receiver):
    """Its post may arrive; what comes of it is kept nowhere, and no other follows."""
    first, second = start(replicas)

    async def work():
        async with Agent(first, streaming=False) as one, \
                Agent(second, streaming=False) as two:
            receiver.held.clear()
            task = await begin(one, "pay", webhook(receiver.url, id="a"))
            await soon(receiver.next)
            await asks(one, task.id)
            await delete(two, task.id, "a")
            assert await listed(one, task.id) == []
            receiver.held.set()
            await one.ask("yes", task=task.id)
            with Receiver() as other:
                await put(one, other.url, task.id, id="b")
                await soon(other.until, "completed")
            eventually(lambda: claims(replicas) == "0")
            assert replicas.sql("SELECT count(*) FROM kept") == "2"
            assert receiver.empty()

    run(work())


def test_a_session_is_erased_with_its_webhooks_at_any_replica(replicas, receiver):
    first, second = start(replicas)

    async def work():
        async with Agent(first, streaming=False) as one:
            with Receiver(statuses=[503] * 20) as away:
                task = await begin(one, "hello", webhook(receiver.url, id="w"))
                await put(one, away.url, task.id, id="v")
                await soon(receiver.until, "completed")
                await soon(away.until, "completed")
                with second.http(headers=one.headers) as http:
                    eventually(lambda: http.delete(
                        f"/weir/v1/sessions/{task.context_id}").is_success)
                first.said(f"is not told of task {task.id}: the task is gone")
            assert replicas.sql("SELECT count(*) FROM kept") == "0"

    run(work())


def test_the_same_put_at_another_replica_takes_its_place(replicas, receiver):
    """Each time it is told the state as it is then; what follows comes once."""
    first, second = start(replicas)

    async def work():
        async with Agent(first, streaming=False) as one, \
                Agent(second, streaming=False) as two:
            task = await begin(one, "pay", webhook(receiver.url, id="w", token="0"))
            await soon(receiver.until, "input_required")
            for n, agent in enumerate((two, one, two, two, one), 1):
                await put(agent, receiver.url, task.id, id="w", token=str(n))
                told = await soon(receiver.next)
                assert told.state == "input_required"
                assert told.headers["x-a2a-notification-token"] == str(n)
            assert claims(replicas) == "1"
            await two.ask("yes", task=task.id)
            told = await soon(receiver.until, "completed")
            assert_once(told)
            assert {n.headers["x-a2a-notification-token"] for n in told} == {"5"}
            eventually(lambda: claims(replicas) == "0")
            assert receiver.empty()

    run(work())


def test_limits_hold_over_all_replicas(replicas, receiver):
    first, second = start(replicas)

    async def work():
        async with Agent(first, streaming=False) as one, \
                Agent(second, streaming=False) as two:
            (answer,) = await one.ask("pay")
            id = answer.task.id
            for n in range(16):
                await put((one, two)[n % 2], receiver.url, id, id=f"w{n}")
            for agent in (one, two):
                with pytest.raises(InternalError, match="too many webhooks"):
                    await put(agent, receiver.url, id, id="more")
            with pytest.raises(InternalError, match="too many webhooks"):
                async for _ in agent.client.send_message(a2a.SendMessageRequest(
                        message=a2a.Message(message_id="m", role=a2a.ROLE_USER, task_id=id,
                                            parts=[a2a.Part(text="yes")]),
                        configuration=a2a.SendMessageConfiguration(
                            task_push_notification_config=webhook(receiver.url, id="more")))):
                    pass
            await put(two, receiver.url, id, id="w0")
            await delete(two, id, "w1")
            await put(one, receiver.url, id, id="more")
            assert len(await listed(two, id)) == 16

    run(work())


# --- a replica that ends -----------------------------------------------------------------------


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_another_replica_goes_on_when_one_ends(replicas, how):
    """Runs of it that wait, that are at work, and one that is over while the post is on its way;
    the webhooks were put at both."""
    first, second = start(replicas)
    seen = collections.defaultdict(list)
    waiting, working, over = [], [], []

    async def before(server):
        async with Agent(first, streaming=False) as one, \
                Agent(second, streaming=False) as two:
            for _ in range(4):
                task = await begin(one, "pay", webhook(server.url, token="t"))
                waiting.append(task.id)
                await asks(one, task.id)
                await put(two, server.url + "/2", task.id, id="b", token="t")
                task = await begin(one, "for ever", webhook(server.url, token="t"))
                working.append(task.id)
            while len(told_of(server, seen)) < 12 or \
                    any(seen[id, "/told"][-1].state != "input_required" for id in waiting):
                await asyncio.sleep(0.02)
            server.held.clear()
            (answer,) = await one.ask("hello")
            over.append(answer.task.id)
            await put(one, server.url, answer.task.id, token="t")
            while not told_of(server, seen)[over[0], "/told"]:
                await asyncio.sleep(0.02)

    async def after():
        async with Agent(second, streaming=False) as two:
            for id in waiting:
                await asks(two, id)
                await two.ask("yes", task=id)

    with Receiver() as server:
        run(before(server))
        getattr(first, how)()
        server.held.set()
        run(after())
        eventually(lambda: claims(replicas) == "0")
        told_of(server, seen)
    assert len(seen) == 13
    for (id, path), told in seen.items():
        assert all(n.headers["x-a2a-notification-token"] == "t" for n in told)
        (assert_once if path == "/told/2" else assert_in_order)(told)
        ends = [n.state for n in told if n.state in ENDS]
        assert ends[0] in (("failed", "canceled") if id in working else ("completed",))
        # The one whose post was cut is told again.
        assert len(ends) == 1 or (id in over and len(ends) == 2), states(told)


def test_who_stood_still_posts_nothing_when_another_one_has_taken_over(replicas):
    """It was about to repeat a post that had failed."""
    first, second = start(replicas)

    async def before(receiver):
        async with Agent(first, streaming=False) as one:
            task = await begin(one, "pay", webhook(receiver.url, id="w"))
            await asks(one, task.id)
            while not receiver.statuses == []:
                await asyncio.sleep(0.01)
            return task.id

    async def after(receiver, id):
        async with Agent(second, streaming=False) as two:
            await asks(two, id)
            await two.ask("yes", task=id)
            return await soon(receiver.until, "completed")

    with Receiver(statuses=[503]) as receiver:
        id = run(before(receiver))
        first.signal(signal.SIGSTOP)
        assert receiver.next()
        eventually(lambda: replicas.sql("SELECT count(*) FROM kept WHERE space = 6 AND"
                                        " convert_from(bytes, 'UTF8') LIKE '2-%'") == "1")
        assert_in_order(run(after(receiver, id)))
        first.signal(signal.SIGCONT)
        assert first.wait() != 0
        assert receiver.empty()


def test_cut_connections_to_the_store_lose_and_double_nothing(replicas, receiver):
    """Tasks that are answered, and told, while both replicas lose their connections again and again."""
    first, second = start(replicas)
    count = size("WEBHOOK_CUTS", 8)

    async def work():
        async with Agent(first, streaming=False) as one, \
                Agent(second, streaming=False) as two:
            tasks = [(await begin((one, two)[n % 2], "pay", webhook(receiver.url))).id
                     for n in range(count)]
            seen = collections.defaultdict(list)
            while sum("input_required" in states(told) for told in seen.values()) < count:
                told_of(receiver, seen)
                await asyncio.sleep(0.02)
            for n, id in enumerate(tasks):
                await soon(replicas.cut)
                await answered((two, one)[n % 2], id)
                await soon(replicas.cut, (first, second)[n % 2])
            while any(states(seen[id, "/told"])[-10:] != "completed " for id in tasks):
                told_of(receiver, seen)
                await asyncio.sleep(0.02)
            eventually(lambda: claims(replicas) == "0")
            assert receiver.empty() and len(seen) == count
            for told in seen.values():
                assert_once(told)

    run(work())


async def answered(agent, id):
    """Answer it, as often as needed."""
    while True:
        try:
            task = await agent.task(id)
            if state(task) == "INPUT_REQUIRED":
                await agent.ask("yes", task=id)
            if state(await agent.task(id)) == "COMPLETED":
                return
        except (A2AError, A2AClientError):
            await asyncio.sleep(0.05)


def test_all_that_was_left_by_all_goes_on_at_the_next_start(replicas, receiver):
    first, second = start(replicas)

    async def before():
        async with Agent(first, streaming=False) as one, \
                Agent(second, streaming=False) as two:
            tasks = [await begin(agent, "pay", webhook(receiver.url, id="w"))
                     for agent in (one, two)]
            for _ in tasks:
                await soon(receiver.until, "input_required")
            return [task.id for task in tasks]

    async def after(agent, tasks):
        async with agent:
            for id in tasks:
                await agent.ask("yes", task=id)
                assert_once(await soon(receiver.until, "completed"))

    tasks = run(before())
    first.kill()
    second.kill()
    third = replicas.start(script=SCRIPT, config=ANY)
    eventually(lambda: claims(replicas) == "2")
    run(after(Agent(third, streaming=False), tasks))
    eventually(lambda: claims(replicas) == "0")
    assert receiver.empty()
