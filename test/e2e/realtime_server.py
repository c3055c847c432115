"""realtime_server: a server of OpenAI's Realtime API that misbehaves on demand.

    with RealtimeServer() as server:
        weir = start_weir(config=server.config())

The last word of a turn says what the answer does ("hello", "slowly", "die", ...); the model's name
says what the opening handshake does ("realtime-429", ...). All that arrives is kept in
`server.seen`, one list a connection. GA names and forms are spoken, or with beta=True those of the
beta.
"""
import asyncio
import base64
import contextlib
import http
import itertools
import json
import threading

import websockets
from websockets.asyncio.server import serve

USAGE = {
    "total_tokens": 30,
    "input_tokens": 17,
    "output_tokens": 13,
    "input_token_details": {"text_tokens": 9, "audio_tokens": 8, "cached_tokens": 4},
    "output_token_details": {"text_tokens": 5, "audio_tokens": 8},
}


class RealtimeServer:
    def __init__(self, beta=False):
        self.beta, self.seen, self.closes, self.headers = beta, [], [], []
        self.sessions = []
        self.ids = itertools.count(1)
        self.loop = asyncio.new_event_loop()
        self.ready, self.stop = threading.Event(), None
        self.go = threading.Event()  # what "wait" waits for
        self.thread = threading.Thread(target=self.loop.run_until_complete, args=(self.run(),))

    def __enter__(self):
        self.thread.start()
        self.ready.wait()
        return self

    def __exit__(self, *_):
        self.go.set()
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join()

    def abort(self):
        """Break all connections."""
        for session in self.sessions:
            self.loop.call_soon_threadsafe(session.socket.transport.abort)

    async def run(self):
        self.stop = asyncio.Event()
        options = {"process_request": self.handshake, "process_response": self.handshaken}
        async with serve(self.talk, "127.0.0.1", 0, max_size=None, **options) as server:
            self.port = server.sockets[0].getsockname()[1]
            self.ready.set()
            await self.stop.wait()

    def config(self, more="", provider=""):
        return f"""
nimi: {{probe_interval: 0, allow_loopback_provider_endpoint: true}}
providers:
  - {{name: house, kind: openai, base_url: "http://127.0.0.1:{self.port}/v1",
      key_env: HOUSE_KEY{provider}}}
connectors:
  - {{id: home, provider: house, local: true}}
{more}"""

    # --- the handshake ------------------------------------------------------------------------

    async def handshake(self, connection, request):
        self.headers.append(dict(request.headers.raw_items()))
        if "realtime-429" in request.path:
            text = json.dumps({"error": {"message": "too fast", "code": "rate_limit_exceeded"}})
            return connection.respond(http.HTTPStatus.TOO_MANY_REQUESTS, text)
        if "realtime-401" in request.path:
            text = json.dumps({"error": {"message": "bad key", "code": "invalid_api_key"}})
            return connection.respond(http.HTTPStatus.UNAUTHORIZED, text)
        if "realtime-never" in request.path:
            await self.stop.wait()

    def handshaken(self, connection, request, response):
        if "realtime-accept" in request.path:
            response.headers["Sec-WebSocket-Accept"] = "AAAAAAAAAAAAAAAAAAAAAAAAAAA="
        if "realtime-upgrade" in request.path:
            response.headers["Upgrade"] = "h2c"
        return response

    # --- a session ----------------------------------------------------------------------------

    async def talk(self, socket):
        session = Session(self, socket)
        self.seen.append(session.seen)
        self.sessions.append(session)
        with contextlib.suppress(websockets.ConnectionClosed):
            await session.run()
        session.drop()
        self.closes.append(socket.close_code)


class Session:
    def __init__(self, server, socket):
        self.server, self.socket, self.seen = server, socket, []
        self.buffer, self.said, self.task, self.speaks = b"", [], None, False

    def drop(self):
        if self.task:
            self.task.cancel()

    async def send(self, kind, **members):
        event = {"type": kind, "event_id": f"event_{next(self.server.ids)}", **members}
        await self.socket.send(json.dumps(event))

    def name(self, beta):
        """An event's name: the GA says output_text where the beta said text."""
        return beta if self.server.beta else beta.replace("response.", "response.output_")

    def session(self):
        if self.server.beta:
            return {"id": "sess_1", "object": "realtime.session", "modalities": ["text", "audio"]}
        return {"type": "realtime", "id": "sess_1", "object": "realtime.session",
                "output_modalities": ["audio"]}

    async def run(self):
        if "realtime-error" in self.socket.request.path:
            error = {"type": "invalid_request_error", "code": "model_not_found", "message": "none"}
            await self.send("error", error=error)
            return
        await self.send("session.created", session=self.session())
        async for text in self.socket:
            event = json.loads(text)
            self.seen.append(event)
            handler = getattr(self, "on_" + event["type"].replace(".", "_"), None)
            if handler:
                await handler(event)

    async def on_session_update(self, event):
        session = event["session"]
        modalities = session.get("output_modalities", session.get("modalities"))
        self.speaks = "audio" in modalities
        assert ("type" in session) != self.server.beta
        await self.send("session.updated", session=session)

    async def on_conversation_item_create(self, event):
        item = event["item"]
        self.said.append((item["role"], "".join(p.get("text", "") for p in item["content"])))
        await self.send("conversation.item.added", item=item)

    async def on_input_audio_buffer_append(self, event):
        self.buffer += base64.b64decode(event["audio"], validate=True)

    async def on_input_audio_buffer_commit(self, event):
        if not self.buffer:
            await self.refuse(event, "input_audio_buffer_commit_empty", "the buffer is empty")
            return
        self.said.append(("user", f"{len(self.buffer)} bytes"))
        self.buffer = b""
        await self.send("input_audio_buffer.committed", item_id="item_1")

    async def on_response_create(self, event):
        if self.task and not self.task.done():
            await self.refuse(event, "conversation_already_has_active_response", "one is active")
            return
        if self.said and self.said[-1][1].endswith("refuse"):
            await self.refuse(event, "invalid_prompt", "I do not like it")
            return
        self.task = asyncio.create_task(self.answer())

    async def on_response_cancel(self, event):
        if not self.task or self.task.done():
            await self.refuse(event, "response_cancel_not_active", "none is active")
            return
        self.task.cancel()

    async def refuse(self, event, code, message):
        error = {"type": "invalid_request_error", "code": code, "message": message,
                 "event_id": event.get("event_id")}
        await self.send("error", error=error)

    # --- an answer ----------------------------------------------------------------------------

    async def answer(self):
        response = {"id": f"resp_{next(self.server.ids)}", "object": "realtime.response",
                    "status": "in_progress", "status_details": None, "output": []}
        question = self.said[-1][1] if self.said else ""
        act = getattr(self, "act_" + question.split()[-1].strip(".") if question else "", None)
        await self.send("response.created", response=response)
        try:
            with contextlib.suppress(websockets.ConnectionClosed):
                await (act or self.act_echo)(response, question)
        except asyncio.CancelledError:
            details = {"type": "cancelled", "reason": "client_cancelled"}
            with contextlib.suppress(websockets.ConnectionClosed):
                await self.done(response, "cancelled", details)

    async def text(self, response, text):
        kind = "response.audio_transcript.delta" if self.speaks else "response.text.delta"
        place = {"item_id": "item_9", "output_index": 0, "content_index": 0}
        await self.send(self.name(kind), response_id=response["id"], delta=text, **place)
        self.spoken = getattr(self, "spoken", "") + text

    async def sound(self, response, bytes_):
        place = {"item_id": "item_9", "output_index": 0, "content_index": 0}
        delta = base64.b64encode(bytes_).decode()
        await self.send(self.name("response.audio.delta"), response_id=response["id"], delta=delta,
                        **place)

    async def done(self, response, status="completed", details=None, output=None):
        self.said.append(("assistant", getattr(self, "spoken", "")))
        self.spoken = ""
        response = {**response, "status": status, "status_details": details, "usage": USAGE,
                    "output": output or []}
        await self.send("rate_limits.updated", rate_limits=[
            {"name": "requests", "limit": 1000, "remaining": 999, "reset_seconds": 60}])
        await self.send("response.done", response=response)

    async def act_echo(self, response, question):
        for piece in ("You said: ", question, ". Grüße 🌊, and that was all of it, I believe."):
            await self.text(response, piece)
            if self.speaks:
                await self.sound(response, b"\x01\x02" * 6000)
        await self.done(response)

    async def act_tool(self, response, question):
        await self.send("response.function_call_arguments.done", response_id=response["id"],
                        item_id="item_9", output_index=0, call_id="call_1", name="look",
                        arguments='{"at":"it"}')
        await self.done(response)

    async def act_once(self, response, question):
        """No deltas: the text comes with the end."""
        part = {"type": "output_text", "text": "all at once"}
        item = {"id": "item_9", "type": "message", "role": "assistant", "content": [part]}
        await self.done(response, output=[item])

    async def act_slowly(self, response, question):
        for number in itertools.count():
            await self.text(response, f"word {number}, and some more of them to fill a line; ")
            if self.speaks:
                await self.sound(response, b"\x03\x04" * 2400)
            await asyncio.sleep(0.005)

    async def act_flood(self, response, question):
        for _ in range(400):
            await self.text(response, "x")
            await self.sound(response, b"\x05\x06" * 12000)
        await self.done(response)

    async def act_wait(self, response, question):
        while not self.server.go.is_set():
            await asyncio.sleep(0.02)
        await self.act_echo(response, question)

    async def act_cut(self, response, question):
        await self.text(response, "as far as ")
        details = {"type": "incomplete", "reason": "max_output_tokens"}
        await self.done(response, "incomplete", details)

    async def act_filter(self, response, question):
        await self.done(response, "incomplete", {"type": "incomplete", "reason": "content_filter"})

    async def act_fail(self, response, question):
        error = {"type": "server_error", "code": "rate_limit_exceeded", "message": "too many"}
        await self.done(response, "failed", {"type": "failed", "error": error})

    async def act_error(self, response, question):
        await self.text(response, "so far ")
        await self.send("error", error={"type": "server_error", "message": "something broke"})

    async def act_die(self, response, question):
        await self.text(response, "the last words of this connection are these; ")
        self.socket.transport.abort()

    async def act_bye(self, response, question):
        await self.text(response, "the last words of this connection are these; ")
        await self.socket.close(1011, "maintenance")

    async def act_frame(self, response, question):
        """A reserved opcode."""
        self.socket.transport.write(b"\x83\x02ab")

    async def act_huge(self, response, question):
        await self.text(response, "y" * (5 << 20))

    async def act_half(self, response, question):
        """A message that never ends, and then the connection does."""
        self.socket.transport.write(b"\x01\x05hello\x00\x7e\x00\x10abc")
        self.socket.transport.close()

    async def act_nonsense(self, response, question):
        await self.socket.send("this is no JSON")

    async def act_binary(self, response, question):
        await self.socket.send(b"\x00\x01")
        await self.act_echo(response, question)
