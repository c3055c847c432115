#!/usr/bin/env python3
"""leaving: how soon the model's connection is closed after its caller has left (goal 13a).

    test/proof/leaving.py [COUNT [AT_ONCE]]        1,000 and 20 without numbers

A model of our own (OpenAI's wire, in a process of its own) stands behind the daemon: it waits
50 ms, then says a word every 10 ms, for ever. Callers over HTTP/1.1, HTTP/2 and Converse leave
at a random point, some of them before the first word. For each the time from the moment it
leaves to the moment the model sees its connection closed is taken, by one clock. Each must be
closed, and at the end none may be left; the times are printed, none is judged. A fourth kind of
caller, "direct", talks to the model without the daemon: so much of each time is the measurement's.
"""
import asyncio
import json
import multiprocessing
import random
import signal
import sys
import tempfile
import time

import clients  # first: it finds the others
import conftest
import harness

FIRST_WORD_S, WORD_S = 0.05, 0.01
LEAVE_WITHIN_S = 0.15
CLOSED_WITHIN_S = 5
CHUNK = 'data: {"choices":[{"index":0,"delta":{"content":"on "}}]}\n\n'

# --- the model ------------------------------------------------------------------------------


def model_process(told, ready):
    """Tells ("open", tag) and ("closed", tag, when) of each call."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def speak(writer):
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        await asyncio.sleep(FIRST_WORD_S)
        writer.write(head.encode())
        while True:
            writer.write(CHUNK.encode())
            await asyncio.sleep(WORD_S)

    async def serve(reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = [line for line in head.lower().split(b"\r\n") if b"content-length" in line]
            body = await reader.readexactly(int(length[0].split(b":")[1]))
        except asyncio.IncompleteReadError:
            return
        tag = json.loads(body)["messages"][-1]["content"]
        told.put(("open", tag, time.monotonic_ns()))
        speaking = asyncio.create_task(speak(writer))
        try:
            await reader.read()
        except ConnectionError:
            pass
        told.put(("closed", tag, time.monotonic_ns()))
        speaking.cancel()
        writer.close()

    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


# --- the callers: each answers when it left -------------------------------------------------


def body_of(tag):
    return json.dumps({"input": tag, "session_id": tag}).encode()


async def leave_http1(daemon, tag, after):
    reader, writer = await asyncio.open_connection("127.0.0.1", daemon.port("http"))
    body = body_of(tag)
    path = random.choice(["/invoke", "/stream"])
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
    writer.write(head.encode() + b"content-type: application/json\r\n\r\n" + body)
    await asyncio.sleep(after)
    left = time.monotonic_ns()
    writer.transport.abort()
    return left


async def leave_http2(daemon, tag, after):
    import h2.connection

    reader, writer = await asyncio.open_connection("127.0.0.1", daemon.port("http"))
    wire = h2.connection.H2Connection()
    wire.initiate_connection()
    path = random.choice(["/invoke", "/stream"])
    fields = [(":method", "POST"), (":path", path), (":scheme", "http"), (":authority", "x")]
    wire.send_headers(1, fields + [("content-type", "application/json")])
    wire.send_data(1, body_of(tag), end_stream=True)
    writer.write(wire.data_to_send())
    await asyncio.sleep(after)
    wire.reset_stream(1, 8)
    left = time.monotonic_ns()
    writer.write(wire.data_to_send())
    await asyncio.sleep(0.05)
    writer.close()
    return left


def leave_model(port):
    """Straight to the model: what the measurement itself takes."""

    async def leave(daemon, tag, after):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = json.dumps({"messages": [{"content": tag}]}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}"
        writer.write(head.encode() + b"\r\n\r\n" + body)
        await asyncio.sleep(after)
        left = time.monotonic_ns()
        writer.transport.abort()
        return left

    return leave


class Converse:
    def __init__(self, daemon):
        import grpc

        from agentruntime.v1 import runtime_pb2, runtime_pb2_grpc

        self.request = runtime_pb2.ConverseRequest
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{daemon.port('grpc')}")
        self.stub = runtime_pb2_grpc.AgentRuntimeStub(channel)

    async def leave(self, daemon, tag, after):
        metadata = [("authorization", "Bearer " + harness.token())]
        call = self.stub.Converse(metadata=metadata)
        ids = {"workspace_id": "ws-1", "user_id": "user-1"}
        await call.write(self.request(session_id=tag, message=tag, **ids))
        await asyncio.sleep(after)
        left = time.monotonic_ns()
        call.cancel()
        return left


# --- the measurement ------------------------------------------------------------------------


async def leave_all(daemon, count, at_once, model_port):
    callers = {
        "http/1.1": leave_http1,
        "http/2": leave_http2,
        "converse": Converse(daemon).leave,
        "direct": leave_model(model_port),
    }
    room = asyncio.Semaphore(at_once)
    left = {}

    async def one(index, kind):
        async with room:
            tag = f"{kind} {index}"
            left[tag] = await callers[kind](daemon, tag, random.uniform(0, LEAVE_WITHIN_S))

    kinds = list(callers)
    await asyncio.gather(*(one(i, kinds[i % len(kinds)]) for i in range(count)))
    return left


def collect(told, until_s):
    """What the model saw, until every call it heard of is closed."""
    opened, closed = {}, {}
    give_up = time.monotonic() + until_s
    while time.monotonic() < give_up:
        while not told.empty():
            what, tag, when = told.get()
            (opened if what == "open" else closed)[tag] = when
        if len(opened) == len(closed):
            time.sleep(0.3)
            if told.empty():
                break
        time.sleep(0.05)
    return opened, closed


def report(left, opened, closed):
    print(f"{'':10} {'callers':>8} {'asked':>6} {'closed':>7} {'p50 us':>8} {'p99 us':>8} {'max us':>8}")
    for kind in ("http/1.1", "http/2", "converse", "direct"):
        tags = [tag for tag in left if tag.startswith(kind)]
        asked = [tag for tag in tags if tag in opened]
        done = [tag for tag in asked if tag in closed]
        # Who left before the model was even asked has waited for nothing until then.
        times = sorted((closed[t] - max(left[t], opened[t])) / 1000 for t in done) or [0]
        p50, p99 = times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)]
        row = f"{len(tags):8} {len(asked):6} {len(done):7} {p50:8.0f} {p99:8.0f} {times[-1]:8.0f}"
        print(f"{kind:10} {row}")
    return [tag for tag in opened if tag not in closed]


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    at_once = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    conftest.generate_stubs()
    told = multiprocessing.Queue()
    ours, theirs = multiprocessing.Pipe()
    model = multiprocessing.Process(target=model_process, args=(told, theirs), daemon=True)
    model.start()
    port = ours.recv()
    config = (
        "model: house/m\n"
        f"providers: [{{name: house, kind: openai, base_url: 'http://127.0.0.1:{port}/v1'}}]\n"
        "agents: [{slug: manager}]\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        daemon = harness.Daemon(folder, config=config, env={"WEIR_LOG_LEVEL": "warning"}).start()
        left = asyncio.run(leave_all(daemon, count, at_once, port))
        opened, closed = collect(told, CLOSED_WITHIN_S)
        still = report(left, opened, closed)
        daemon.stop()
    model.terminate()
    print(f"{len(still)} left open" + (f": {still[:5]}" if still else ""))
    sys.exit(1 if still or not opened else 0)


if __name__ == "__main__":
    main()
