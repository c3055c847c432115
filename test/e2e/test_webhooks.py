"""Push notifications of A2A: the official client names a webhook, and a real server is told."""
import asyncio
import sqlite3

import harness
import pytest
from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import (
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
)
from a2a_agent import CONFIG, DIALECTS, Agent, run, state
from webhook_receiver import Receiver

ANY = CONFIG + "a2a: {webhooks: any}\n"
SCRIPT = "test/e2e/scripts/a2a.yaml"


@pytest.fixture(scope="module")
def weir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("webhooks")
    daemon = harness.Daemon(folder, script=SCRIPT, config=ANY).start()
    yield daemon
    daemon.stop()
    assert not daemon.sanitizer_log()


@pytest.fixture
def receiver():
    with Receiver() as server:
        yield server


@pytest.fixture(params=DIALECTS)
def dialect(request):
    return DIALECTS[request.param]


def webhook(url, task="", **more):
    return a2a.TaskPushNotificationConfig(task_id=task, url=url, **more)


def bearer(credentials):
    return a2a.AuthenticationInfo(scheme="Bearer", credentials=credentials)


def send(agent, text, config, **configuration):
    """A message that brings a webhook; the client's configuration is not changed by hand."""
    message = a2a.Message(message_id="m", role=a2a.ROLE_USER, parts=[a2a.Part(text=text)])
    request = a2a.SendMessageRequest(message=message)
    request.configuration.task_push_notification_config.CopyFrom(config)
    for name, value in configuration.items():
        setattr(request.configuration, name, value)
    return agent.client.send_message(request)


async def begin(agent, text, config):
    """A task that goes on by itself."""
    (answer,) = [event async for event in send(agent, text, config, return_immediately=True)]
    return answer.task


async def asks(agent, id):
    """Wait until a task waits for an answer."""
    while state(await agent.task(id)) != "INPUT_REQUIRED":
        pass


async def soon(call, *args):
    """The receiver's answer, without holding up the client's loop."""
    return await asyncio.to_thread(call, *args)


# --- what arrives ------------------------------------------------------------------------------


def test_a_message_names_a_webhook_that_gets_the_task(weir, receiver, dialect):
    async def work():
        async with Agent(weir, dialect, streaming=False) as agent:
            config = webhook(receiver.url, token="known", authentication=bearer("s3cret"))
            stream = send(agent, "look there", config)
            (answer,) = [event async for event in stream]
            told = (await soon(receiver.until, "completed"))[-1]
            assert told.task["id"] == answer.task.id
            assert told.answer == "I look it up.\n\nThere is a pencil."
            assert told.headers["authorization"] == "Bearer s3cret"
            assert told.headers["x-a2a-notification-token"] == "known"
            assert told.headers["a2a-notification-token"] == "known"
            old = dialect[1] == "0.3"
            media = "application/json" if old else "application/a2a+json"
            assert told.headers["content-type"] == media
            assert ("kind" in told.body) == old and ("task" in told.body) != old

    run(work())


def test_a_question_and_its_answer_are_told(weir, receiver, dialect):
    async def work():
        async with Agent(weir, dialect, streaming=False) as agent:
            task = await begin(agent, "pay", webhook(receiver.url))
            asked = (await soon(receiver.until, "input_required" if dialect[1] == "1.0" else
                                "input-required"))[-1]
            assert asked.task["id"] == task.id and asked.task["status"]["message"]["parts"]
            await agent.ask("yes", task=task.id)
            told = await soon(receiver.until, "completed")
            assert told[-1].answer.startswith("Done: ")
            await asyncio.sleep(0)
            assert receiver.empty()

    run(work())


def test_a_failure_and_a_cancellation_are_told(weir, receiver, dialect):
    async def work():
        async with Agent(weir, dialect, streaming=False) as agent:
            await begin(agent, "fail", webhook(receiver.url))
            assert (await soon(receiver.until, "failed"))[-1].answer == "Let me see."
            task = await begin(agent, "for ever", webhook(receiver.url))
            await soon(receiver.until, "working")
            await agent.cancel(task.id)
            assert (await soon(receiver.until, "canceled"))[-1].task["id"] == task.id

    run(work())


def test_a_task_that_is_over_is_told_once(weir, receiver, dialect):
    async def work():
        async with Agent(weir, dialect, streaming=False) as agent:
            (answer,) = await agent.ask("hello")
            await agent.client.create_task_push_notification_config(
                webhook(receiver.url, answer.task.id)
            )
            assert [n.state for n in await soon(receiver.until, "completed")] == ["completed"]

    run(work())


# --- configurations ----------------------------------------------------------------------------


def test_webhooks_are_put_read_and_deleted(weir, receiver, dialect):
    async def work():
        async with Agent(weir, dialect, streaming=False) as agent:
            (answer,) = await agent.ask("pay")
            client, id = agent.client, answer.task.id
            for name in ("", "b", "b"):
                put = await client.create_task_push_notification_config(
                    webhook(receiver.url, id, id=name, token="t", authentication=bearer("c"))
                )
                assert (put.task_id, put.id, put.url) == (id, name or id, receiver.url)
                assert put.authentication == a2a.AuthenticationInfo(scheme="Bearer")
            asked = a2a.GetTaskPushNotificationConfigRequest(task_id=id, id="b")
            assert await client.get_task_push_notification_config(asked) == put
            page = a2a.ListTaskPushNotificationConfigsRequest(task_id=id)
            listed = await client.list_task_push_notification_configs(page)
            assert [config.id for config in listed.configs] == [id, "b"]
            gone = a2a.DeleteTaskPushNotificationConfigRequest(task_id=id, id="b")
            for _ in range(2):
                await client.delete_task_push_notification_config(gone)
            with pytest.raises(TaskNotFoundError):
                await client.get_task_push_notification_config(asked)
            listed = await client.list_task_push_notification_configs(page)
            assert [config.id for config in listed.configs] == [id]

    run(work())


def test_one_that_was_deleted_is_told_nothing(weir, receiver):
    async def work():
        async with Agent(weir, streaming=False) as agent:
            task = await begin(agent, "pay", webhook(receiver.url, id="a"))
            await soon(receiver.until, "input_required")
            with Receiver() as other:
                await agent.client.create_task_push_notification_config(
                    webhook(other.url, task.id, id="b")
                )
                await soon(other.until, "input_required")
                gone = a2a.DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="a")
                await agent.client.delete_task_push_notification_config(gone)
                await agent.ask("yes", task=task.id)
                await soon(other.until, "completed")
            assert receiver.empty()

    run(work())


def test_strangers_neither_see_nor_change_them(weir, receiver, dialect):
    async def work():
        async with Agent(weir, dialect, streaming=False) as agent:
            (answer,) = await agent.ask("pay")
            id = answer.task.id
            mine = webhook(receiver.url, id, id="mine")
            await agent.client.create_task_push_notification_config(mine)
        for who in ({"user": "another"}, {"workspace": "elsewhere"}):
            async with Agent(weir, dialect, **who) as stranger:
                client = stranger.client
                with pytest.raises(TaskNotFoundError):
                    await client.create_task_push_notification_config(mine)
                with pytest.raises(TaskNotFoundError):
                    await client.get_task_push_notification_config(
                        a2a.GetTaskPushNotificationConfigRequest(task_id=id, id="mine")
                    )
                with pytest.raises(TaskNotFoundError):
                    await client.list_task_push_notification_configs(
                        a2a.ListTaskPushNotificationConfigsRequest(task_id=id)
                    )
                with pytest.raises(TaskNotFoundError):
                    await client.delete_task_push_notification_config(
                        a2a.DeleteTaskPushNotificationConfigRequest(task_id=id, id="mine")
                    )
        async with Agent(weir, dialect) as agent:
            listed = await agent.client.list_task_push_notification_configs(
                a2a.ListTaskPushNotificationConfigsRequest(task_id=id)
            )
            assert [config.id for config in listed.configs] == ["mine"]

    run(work())


def test_what_cannot_be_called_is_refused(weir, dialect):
    async def work():
        async with Agent(weir, dialect, streaming=False) as agent:
            (answer,) = await agent.ask("hello")
            refused = [
                {"url": "ftp://a.example/x"},
                {"url": ""},
                {"url": "https://a.example/x", "token": "two\r\nlines"},
                {"url": "https://a.example/" + "x" * 2048},
                {"url": "https://a.example/", "authentication": a2a.AuthenticationInfo(scheme="a b")},
            ]
            for config in refused:
                with pytest.raises(InvalidParamsError):
                    await agent.client.create_task_push_notification_config(
                        a2a.TaskPushNotificationConfig(task_id=answer.task.id, **config)
                    )
            with pytest.raises(TaskNotFoundError):
                await agent.client.create_task_push_notification_config(
                    webhook("https://a.example/x", "18446744073709551615")
                )

    run(work())


# --- a webhook that is away --------------------------------------------------------------------


def test_a_post_that_fails_is_repeated(weir):
    async def work():
        with Receiver(statuses=[500, 429]) as server:
            async with Agent(weir, streaming=False) as agent:
                (answer,) = await agent.ask("hello")
                await agent.client.create_task_push_notification_config(
                    webhook(server.url, answer.task.id)
                )
                for _ in range(3):
                    assert (await soon(server.next)).state == "completed"

    run(work())


def test_a_refusal_is_not_repeated(weir):
    async def work():
        with Receiver(statuses=[400]) as server:
            async with Agent(weir, streaming=False) as agent:
                task = await begin(agent, "pay", webhook(server.url))
                refused = await soon(server.next)
                weir.said("it answered 400")
                await asks(agent, task.id)
                await agent.ask("yes", task=task.id)
                later = await soon(server.until, "completed")
                assert refused.body not in [one.body for one in later]

    run(work())


def test_a_slow_webhook_gets_the_newest_state(weir, receiver):
    async def work():
        receiver.held.clear()
        async with Agent(weir, streaming=False) as agent:
            task = await begin(agent, "pay", webhook(receiver.url))
            first = await soon(receiver.next)
            await asks(agent, task.id)
            await agent.ask("yes", task=task.id)
            receiver.held.set()
            told = [first, *await soon(receiver.until, "completed")]
            assert len(told) <= 3 and receiver.empty()

    run(work())


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_webhooks_outlive_a_restart(weir, how):
    async def before(server):
        async with Agent(weir, streaming=False) as agent:
            task = await begin(agent, "pay", webhook(server.url, token="t"))
            await soon(server.until, "input_required")
            cut = await begin(agent, "look and go on", webhook(server.url))
            await soon(server.until, "working")
            while not (await agent.task(cut.id)).artifacts:
                pass  # its tool's call is on disk before the answer comes
            over = await begin(agent, "hello", webhook(server.url))
            await soon(server.until, "completed")
            return task.id, cut.id, over.id

    async def after(server, waits, cut, over):
        async with Agent(weir, streaming=False) as agent:
            await agent.ask("yes", task=waits)
            told = {}
            while {waits, cut} - {id for id, n in told.items() if n.state in ENDED}:
                notification = await soon(server.next)
                told[notification.task["id"]] = notification
            assert told[waits].state == "completed" and told[cut].state in ("failed", "canceled")
            assert told[waits].headers["x-a2a-notification-token"] == "t"
            for id in (waits, cut, over):
                listed = await agent.client.list_task_push_notification_configs(
                    a2a.ListTaskPushNotificationConfigsRequest(task_id=id)
                )
                assert len(listed.configs) == 1

    with Receiver() as server:
        tasks = run(before(server))
        getattr(weir, how)()
        weir.start()
        run(after(server, *tasks))


ENDED = ("completed", "failed", "canceled")


def test_a_session_is_erased_with_its_webhooks(tmp_path, receiver):
    daemon = harness.Daemon(tmp_path, script=SCRIPT, config=ANY).start()

    async def work():
        async with Agent(daemon, streaming=False) as agent:
            for text in ("hello", "keep me"):
                task = await begin(agent, text, webhook(receiver.url, id="w"))
                await soon(receiver.until, "completed")
                tasks.append(task)

    tasks = []
    run(work())
    with daemon.http(headers={"authorization": "Bearer " + harness.token()}) as http:
        assert http.delete(f"/weir/v1/sessions/{tasks[0].context_id}").is_success
    daemon.stop()
    with sqlite3.connect(tmp_path / "data" / "weir.db") as db:
        keys = {key.decode() for (key,) in db.execute("SELECT key FROM kept")}
    assert keys == {f"{tasks[1].id}-w"}


def test_nothing_of_an_erased_session_is_posted_again(tmp_path):
    daemon = harness.Daemon(tmp_path, script=SCRIPT, config=ANY).start()

    async def work(server):
        async with Agent(daemon, streaming=False) as agent:
            task = await begin(agent, "hello", webhook(server.url, id="w"))
            await soon(server.until, "completed")
            return task

    with Receiver(statuses=[503] * 20) as server:
        task = run(work(server))
        with daemon.http(headers={"authorization": "Bearer " + harness.token()}) as http:
            assert http.delete(f"/weir/v1/sessions/{task.context_id}").is_success
        daemon.said(f"is not told of task {task.id}: the task is gone")
        assert server.empty()
    daemon.stop()
    with sqlite3.connect(tmp_path / "data" / "weir.db") as db:
        assert db.execute("SELECT count(*) FROM kept").fetchone() == (0,)


# --- where they are called ----------------------------------------------------------------------


def test_only_public_addresses_are_called_unless_told_otherwise(tmp_path, receiver):
    daemon = harness.Daemon(tmp_path, script=SCRIPT, config=CONFIG).start()

    async def work():
        async with Agent(daemon, streaming=False) as agent:
            (answer,) = await agent.ask("hello")
            port = receiver.server.server_port
            for host in ("127.0.0.1", "localhost", "[::1]", "2130706433", "10.0.0.1",
                         "169.254.169.254", "user@a.example", "[::ffff:127.0.0.1]"):
                with pytest.raises(InvalidParamsError):
                    await agent.client.create_task_push_notification_config(
                        webhook(f"http://{host}:{port}/", answer.task.id)
                    )
            assert receiver.empty()

    run(work())
    daemon.stop()


def test_they_can_be_off(tmp_path, receiver, dialect):
    off = CONFIG + "a2a: {webhooks: 'off'}\n"
    daemon = harness.Daemon(tmp_path, script=SCRIPT, config=off).start()

    async def work():
        async with Agent(daemon, dialect, streaming=False) as agent:
            assert not agent.card.capabilities.push_notifications
            agent.card.capabilities.push_notifications = True  # the client would refuse by itself
            with pytest.raises(PushNotificationNotSupportedError):
                await agent.client.create_task_push_notification_config(
                    webhook(receiver.url, "1")
                )
            with pytest.raises(PushNotificationNotSupportedError):
                await begin(agent, "hello", webhook(receiver.url))

    run(work())
    daemon.stop()
