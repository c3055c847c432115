"""weir as an A2A agent, for the official Python client: 1.0 by JSON-RPC and by HTTP+JSON, 0.3 by
JSON-RPC. The JavaScript client is in node/a2a.test.js."""
import asyncio
import json

import harness
import pytest
from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import (
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a_agent import CONFIG, DIALECTS, PATIENCE, Agent, collect, kinds, run, state, text_of
from google.protobuf.json_format import MessageToDict


@pytest.fixture(scope="module")
def weir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a2a")
    daemon = harness.Daemon(folder, script="test/e2e/scripts/a2a.yaml", config=CONFIG).start()
    yield daemon
    daemon.stop()
    assert not daemon.sanitizer_log()


@pytest.fixture(params=DIALECTS)
def dialect(request):
    return DIALECTS[request.param]


class Seen:
    """What a reader of a stream knows in the end: the task, and the updates applied to it."""

    def __init__(self, events):
        assert kinds(events)[0] == "task"
        self.task = events[0].task
        self.states = [state(self.task)]
        self.steps = []
        self.answer = text_of(self.task.artifacts[0].parts) if self.task.artifacts else ""
        self.closed = False
        for event in events[1:]:
            self.take(event)

    def take(self, event):
        assert not self.closed or event.HasField("status_update")
        if event.HasField("artifact_update"):
            update = event.artifact_update
            assert update.append == bool(self.answer)
            self.answer += text_of(update.artifact.parts)
            self.closed = update.last_chunk
        else:
            self.status = event.status_update.status
            self.states.append(state(event.status_update))
            for part in self.status.message.parts:
                if part.HasField("data"):
                    self.steps.append(MessageToDict(part)["data"])
        update = getattr(event, event.WhichOneof("payload"))
        assert (update.task_id, update.context_id) == (self.task.id, self.task.context_id)


def weirs_own(weir, run_id):
    """The texts of the run, as /weir/v1 has them."""
    texts = []
    with weir.http(timeout=PATIENCE) as http:
        url = f"/weir/v1/runs/{run_id}/events"
        headers = {"authorization": "Bearer " + harness.token()}
        with http.stream("GET", url, headers=headers) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    event = json.loads(line[6:])
                    if event.get("kind", event.get("type")) == "text":
                        texts.append(event["text"])
    return texts


# --- the card -------------------------------------------------------------------------------


def test_both_paths_have_the_card(weir):
    with weir.http() as http:
        new = http.get("/.well-known/agent-card.json").json()
        old = http.get("/.well-known/agent.json").json()
    assert [skill["id"] for skill in new["skills"]] == ["manager", "clerk"]
    assert old["endpoints"]["invoke"] == "/invoke"  # the Runtime Contract's
    assert {k: v for k, v in old.items() if k in new} == new
    assert new["url"] == weir.url + "/a2a"
    assert new["capabilities"]["pushNotifications"]


def test_the_extended_card_says_the_same(weir):
    async def work():
        async with Agent(weir, DIALECTS["rest"]) as agent:
            request = a2a.GetExtendedAgentCardRequest()
            card = await agent.client.get_extended_agent_card(request)
            assert [skill.id for skill in card.skills] == ["manager", "clerk"]

    run(work())


# --- a turn ---------------------------------------------------------------------------------


def test_a_message_is_a_task_and_its_answer_an_artifact(weir, dialect):
    async def work():
        async with Agent(weir, dialect, streaming=False) as agent:
            (answer,) = await agent.ask("hello there", context="c-1")
            task = answer.task
            assert (state(task), task.context_id) == ("COMPLETED", "c-1")
            (artifact,) = task.artifacts
            assert text_of(artifact.parts) == "heard: hello there"
            assert text_of(task.history[0].parts) == "hello there"
            assert await agent.task(task.id) == task
            assert weirs_own(weir, task.id)

    run(work())


def test_a_stream_says_what_the_run_says(weir, dialect):
    async def work():
        async with Agent(weir, dialect) as agent:
            seen = Seen(await agent.ask("look there"))
            assert seen.states[0] == "WORKING" and seen.states[-1] == "COMPLETED"
            assert seen.answer == "I look it up.\n\nThere is a pencil." and seen.closed
            called, answered = seen.steps
            assert called["toolCall"]["tool"] == "look"
            assert answered["toolResult"]["result"] == {"found": "a pencil"}
            stored = await agent.task(seen.task.id)
            assert text_of(stored.artifacts[0].parts) == seen.answer
            own = "".join(weirs_own(weir, seen.task.id))
            assert own == seen.answer.replace("\n\n", "")

    run(work())


@pytest.mark.parametrize("dialect", ["1.0", "rest"])
def test_another_agent_has_a_path_and_a_card_of_its_own(weir, dialect):
    async def work():
        named = DIALECTS[dialect]
        async with Agent(weir, named, path="/a2a/clerk", streaming=False) as agent:
            assert [skill.id for skill in agent.card.skills] == ["clerk"]
            (answer,) = await agent.ask("a paper")
            assert text_of(answer.task.artifacts[0].parts) == "filed: a paper"

    run(work())


def test_a_failure_is_a_state(weir, dialect):
    async def work():
        async with Agent(weir, dialect) as agent:
            seen = Seen(await agent.ask("fail"))
            assert seen.states[-1] == "FAILED" and seen.answer == "Let me see."
            task = await agent.task(seen.task.id)
            assert task.status.message == seen.status.message
            assert task.status.message.parts[0].text

    run(work())


# --- a person who decides --------------------------------------------------------------------


def test_a_question_requires_input_and_a_message_answers_it(weir, dialect):
    async def work():
        async with Agent(weir, dialect) as agent:
            seen = Seen(await agent.ask("pay"))
            assert seen.states[-1] == "INPUT_REQUIRED"
            asked = seen.steps[-1]
            assert (asked["tool"], asked["args"]) == ("pay", {"eur": 300})
            task = seen.task
            again = await agent.ask("perhaps", task=task.id)
            assert Seen(again).states == ["INPUT_REQUIRED", "INPUT_REQUIRED"]
            with pytest.raises(UnsupportedOperationError):
                await agent.ask("hello", context=task.context_id)
            done = Seen(await agent.ask("", task=task.id, data={"decision": "approve"}))
            assert done.states[-1] == "COMPLETED" and done.task.id == task.id
            assert done.answer.startswith("Done: ")
            with pytest.raises(UnsupportedOperationError):
                await agent.ask("more", task=task.id)

    run(work())


# --- ways to read ---------------------------------------------------------------------------


def test_who_does_not_wait_can_poll_subscribe_and_cancel(weir, dialect):
    async def work():
        async with Agent(weir, dialect, streaming=False) as agent:
            (answer,) = await agent.ask("go on for ever", return_immediately=True)
            task = answer.task
            assert state(task) in ("SUBMITTED", "WORKING")
            assert text_of(task.history[0].parts) == "go on for ever"
        async with Agent(weir, dialect) as agent:
            first, second = agent.subscribe(task.id), agent.subscribe(task.id)
            events = [await anext(first), await anext(first), await anext(first)]
            others = [await anext(second)]
            await first.aclose()  # the task goes on
            cancelled = await agent.cancel(task.id)
            assert state(cancelled) == "CANCELED"
            others += [event async for event in second]
            assert Seen(others).states[-1] == "CANCELED"
            assert Seen(others).answer == text_of(cancelled.artifacts[0].parts)
            heard = Seen(events).answer
            assert heard and ("on " * len(heard)).startswith(heard)
            assert Seen(others).answer.startswith(heard)
            with pytest.raises(TaskNotCancelableError):
                await agent.cancel(task.id)

    run(work())


def test_readers_who_come_at_any_time_read_the_same(weir, dialect):
    async def work():
        async with Agent(weir, dialect) as agent:
            stream = agent.send("in a while")
            seen = [await anext(stream)]
            id = seen[0].task.id
            own = asyncio.create_task(asyncio.to_thread(weirs_own, weir, id))
            readers = []
            for _ in range(2):
                seen.append(await anext(stream))
                readers.append(asyncio.create_task(collect(agent.subscribe(id))))
            seen += await collect(stream)
            assert Seen(seen).answer == "on " * 20 == "".join(await own)
            for reader in readers:
                assert Seen(await reader).answer == "on " * 20

    run(work())


def test_tasks_are_listed(weir):
    async def work():
        async with Agent(weir, user="lister", streaming=False) as agent:
            for i in range(3):
                await agent.ask(f"one {i}", context="l-1")
            await agent.ask("another", context="l-2")
            request = a2a.ListTasksRequest(context_id="l-1", page_size=2)
            page = await agent.client.list_tasks(request)
            rest = await agent.client.list_tasks(
                a2a.ListTasksRequest(context_id="l-1", page_token=page.next_page_token)
            )
            said = [text_of(task.history[0].parts) for task in [*page.tasks, *rest.tasks]]
            assert said == ["one 2", "one 1", "one 0"] and not rest.next_page_token
            everything = await agent.client.list_tasks(a2a.ListTasksRequest())
            assert {task.context_id for task in everything.tasks} == {"l-1", "l-2"}
        async with Agent(weir, DIALECTS["rest"], user="lister") as agent:
            same = await agent.client.list_tasks(a2a.ListTasksRequest())
            assert [task.id for task in same.tasks] == [task.id for task in everything.tasks]
            newest = everything.tasks[0].status.timestamp
            since = a2a.ListTasksRequest(status_timestamp_after=newest)
            found = (await agent.client.list_tasks(since)).tasks
            assert [task.id for task in found] == [everything.tasks[0].id]
            newest.FromMilliseconds(newest.ToMilliseconds() + 1)
            later = a2a.ListTasksRequest(status_timestamp_after=newest)
            assert not (await agent.client.list_tasks(later)).tasks
            none = a2a.ListTasksRequest(status=a2a.TASK_STATE_FAILED)
            assert not (await agent.client.list_tasks(none)).tasks

    run(work())


def test_a_long_context_is_listed_to_its_end(weir):
    """A page looks at a thousand runs; what is older is on the pages after it."""
    headers = {"authorization": "Bearer " + harness.token(user="long")}
    message = {"messageId": "m", "role": "ROLE_USER", "contextId": "long"}
    with weir.http(headers=headers) as http:

        def send(text):
            body = {"message": {**message, "parts": [{"text": text}]}}
            answer = http.post("/message:send", json=body).json()["task"]
            return answer["id"], answer["status"]["state"]

        def pages(**query):
            token = ""
            while True:
                page = http.get("/tasks", params={**query, "pageToken": token}).json()
                yield page["tasks"]
                token = page["nextPageToken"]
                if not token:
                    return

        failed, ended = send("fail")
        assert ended == "TASK_STATE_FAILED"
        made = [failed] + [send("hello")[0] for _ in range(1010)]
        wanted = {"contextId": "long", "status": "TASK_STATE_FAILED", "pageSize": 100}
        assert [[task["id"] for task in page] for page in pages(**wanted)] == [[], [failed]]
        seen = [task["id"] for page in pages(contextId="long", pageSize=100) for task in page]
        assert seen == made[::-1]
        with_all = [task["id"] for page in pages(pageSize=100) for task in page]
        assert with_all == seen


def test_a_filter_that_cannot_be_read_is_refused(weir):
    with weir.http(headers={"authorization": "Bearer " + harness.token()}) as http:
        for query in ("contextId=%ff", "status=%2", "pageToken=%zz", "contextId=" + "x" * 17_000):
            refused = http.get("/tasks?" + query)
            name = query.partition("=")[0]
            assert refused.status_code in (400, 414, 431), refused.text
            if len(query) < 100:
                assert refused.status_code == 400 and name in refused.text


# --- refusals -------------------------------------------------------------------------------


def test_what_is_refused(weir, dialect):
    async def work():
        async with Agent(weir, dialect, streaming=False) as agent:
            (mine,) = await agent.ask("hello")
            for id in ("18446744073709551615", "no-number"):
                with pytest.raises(TaskNotFoundError):
                    await agent.task(id)
                with pytest.raises(TaskNotFoundError):
                    await agent.ask("hello", task=id)
        async with Agent(weir, dialect, user="another") as other:
            with pytest.raises(TaskNotFoundError):
                await other.task(mine.task.id)
            with pytest.raises(TaskNotFoundError):
                await other.cancel(mine.task.id)
            with pytest.raises(TaskNotFoundError):
                await collect(other.subscribe(mine.task.id))

    run(work())


def test_parts_are_checked(weir):
    async def work():
        async with Agent(weir, streaming=False) as agent:
            message = a2a.Message(message_id="m", role=a2a.ROLE_USER)
            request = a2a.SendMessageRequest(message=message)
            with pytest.raises(InvalidParamsError, match="message.parts"):
                await collect(agent.client.send_message(request))
            part = {"raw": b"two words", "media_type": "text/plain", "filename": "a.txt"}
            request.message.parts.add(**part)
            (answer,) = await collect(agent.client.send_message(request))
            assert text_of(answer.task.artifacts[0].parts) == "heard: a.txt:\ntwo words"

    run(work())


def test_another_version_is_refused(weir):
    headers = {"authorization": "Bearer " + harness.token(), "a2a-version": "2.0"}
    call = {"jsonrpc": "2.0", "id": 7, "method": "GetTask", "params": {"id": "1"}}
    with weir.http(headers=headers) as http:
        answer = http.post("/a2a", json=call).json()
        assert (answer["id"], answer["error"]["code"]) == (7, -32009)
        (why,) = http.get("/tasks/1").json()["error"]["details"]
        assert why["reason"] == "VERSION_NOT_SUPPORTED"
        answer = http.post("/a2a", content="{", headers={"content-type": "application/json"})
        assert answer.json()["error"]["code"] == -32700
        http.headers.pop("authorization")
        assert http.post("/a2a", json=call).status_code == 401


# --- a restart, and AgentBreeder --------------------------------------------------------------


def breeder(weir, method, **params):
    headers = {"authorization": "Bearer " + harness.token()}
    call = {"jsonrpc": "2.0", "id": "b", "method": method, "params": params}
    with weir.http(headers=headers, timeout=PATIENCE) as http:
        return http.post("/a2a", json=call)


def test_agentbreeders_clients_have_their_own_method(weir):
    answer = breeder(weir, "tasks/send", message="look", context={}).json()
    result = answer["result"]
    assert answer["error"] is None
    assert (result["status"], result["tokens"], result["artifacts"]) == ("completed", 7, [])
    assert result["output"] == "I look it up.\n\nThere is a pencil."
    assert breeder(weir, "tasks/get", task_id=result["task_id"]).json()["result"] == result
    unknown = breeder(weir, "tasks/get", task_id="none")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, -32001)
    failed = breeder(weir, "tasks/send", message="fail")
    assert (failed.status_code, failed.json()["error"]["code"]) == (500, -32000)


def test_tasks_outlive_a_restart(weir):
    async def before():
        async with Agent(weir, streaming=False) as agent:
            (done,) = await agent.ask("hello")
            (waits,) = await agent.ask("pay")
            return done.task, waits.task

    async def after(done, waits):
        async with Agent(weir, DIALECTS["rest"], streaming=False) as agent:
            assert await agent.task(done.id) == done
            assert await agent.task(waits.id) == waits
            (answer,) = await agent.ask("yes", task=waits.id)
            assert state(answer.task) == "COMPLETED"
            assert [message.role for message in answer.task.history] == [
                a2a.ROLE_USER,
                a2a.ROLE_AGENT,
                a2a.ROLE_USER,
            ]

    tasks = run(before())
    weir.restart()
    run(after(*tasks))
