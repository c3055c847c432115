"""The official Python client of A2A against weir, in one of its bindings and versions."""
import asyncio
import uuid

import harness
import httpx
from a2a.client import ClientConfig, create_client
from a2a.client.card_resolver import parse_agent_card
from a2a.types import a2a_pb2 as a2a

PATIENCE = 60
CONFIG = "agents: [{slug: manager, tools: {pay: ask, look: allow}}, {slug: clerk}]\n"
DIALECTS = {"1.0": ("JSONRPC", "1.0"), "rest": ("HTTP+JSON", "1.0"), "0.3": ("JSONRPC", "0.3")}


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))


async def collect(stream):
    return [event async for event in stream]


class Agent:
    """A client of one binding and version, in an async with."""

    def __init__(self, weir, dialect=DIALECTS["1.0"], streaming=True, path="", **token):
        self.url, self.dialect, self.streaming, self.path = weir.url, dialect, streaming, path
        self.headers = {"authorization": "Bearer " + harness.token(**token)}

    async def __aenter__(self):
        self.http = httpx.AsyncClient(headers=self.headers, timeout=PATIENCE)
        answer = await self.http.get(self.url + self.path + "/.well-known/agent-card.json")
        self.card = parse_agent_card(answer.json())
        kept = [
            i
            for i in self.card.supported_interfaces
            if (i.protocol_binding, i.protocol_version) == self.dialect
        ]
        assert len(kept) == 1
        del self.card.supported_interfaces[:]
        self.card.supported_interfaces.extend(kept)
        config = ClientConfig(
            httpx_client=self.http,
            streaming=self.streaming,
            supported_protocol_bindings=[self.dialect[0]],
        )
        self.client = await create_client(self.card, config)
        return self

    async def __aexit__(self, *_):
        await self.http.aclose()

    def send(self, text, task="", context="", data=None, **configuration):
        part = a2a.Part(text=text)
        if data is not None:
            part = a2a.Part()
            part.data.struct_value.update(data)
        message = a2a.Message(
            message_id=str(uuid.uuid4()),
            role=a2a.ROLE_USER,
            parts=[part],
            task_id=task,
            context_id=context,
        )
        request = a2a.SendMessageRequest(message=message)
        for name, value in configuration.items():
            setattr(request.configuration, name, value)
        return self.client.send_message(request)

    async def ask(self, text, **more):
        """Every event of the answer."""
        return await collect(self.send(text, **more))

    async def task(self, id):
        return await self.client.get_task(a2a.GetTaskRequest(id=id))

    def subscribe(self, id):
        return self.client.subscribe(a2a.SubscribeToTaskRequest(id=id))

    async def cancel(self, id):
        return await self.client.cancel_task(a2a.CancelTaskRequest(id=id))


def kinds(events):
    return [event.WhichOneof("payload") for event in events]


def state(thing):
    return a2a.TaskState.Name(thing.status.state).removeprefix("TASK_STATE_")


def text_of(parts):
    return "".join(part.text for part in parts)
