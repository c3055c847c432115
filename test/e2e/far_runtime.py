"""far_runtime: AgentRuntimes elsewhere, for tests of agents of kind converse.

    with far_runtime.Runtime() as runtime:      # grpcio, well behaved as far as gRPC goes
        agent at runtime.address; runtime.asked holds each request with its stream
    with far_runtime.Rogue() as rogue:          # frames by hand, for what grpcio never does

The first word of a message names what the runtime does.
"""
import collections
import concurrent.futures
import contextlib
import itertools
import json
import socket
import threading
import time

import grpc
import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings
from agentruntime.v1 import runtime_pb2 as pb
from agentruntime.v1 import runtime_pb2_grpc
from ports import free_port

PATIENCE = 20

Asked = collections.namedtuple("Asked", "request stream peer token metadata")


def wait_for(port):
    """Until somebody listens there."""
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.02)
    raise AssertionError(f"nobody listens on {port}")


def chunk(text, agent="manager"):
    return pb.ConverseEvent(chunk=pb.ChunkEvent(agent_id=agent, text=text))


def done(model="far-model", *turns):
    turns = [pb.Turn(agent_id="manager", text=text) for text in turns]
    return pb.ConverseEvent(done=pb.DoneEvent(model=model, turns=turns))


def call(tool, call_id, agent="manager", **args):
    event = pb.ToolCallEvent(agent_id=agent, tool=tool, args_json=json.dumps(args), call_id=call_id)
    return pb.ConverseEvent(tool_call=event)


def result(call_id, value, error=""):
    event = pb.ToolResultEvent(
        call_id=call_id, result_json=json.dumps(value), error=bool(error), error_message=error
    )
    return pb.ConverseEvent(tool_result=event)


def usage(prompt, completion, sequence=0):
    event = pb.UsageEvent(
        agent_id="manager", model="far-model", prompt_tokens=prompt, completion_tokens=completion,
        total_tokens=prompt + completion, cached_tokens=prompt // 2, call_sequence=sequence,
    )
    return pb.ConverseEvent(usage=event)


class Runtime(runtime_pb2_grpc.AgentRuntimeServicer):
    """One gRPC server; stop() and start() keep its port."""

    def __init__(self, start=True, cert=None, key=None):
        self._tls = cert and grpc.ssl_server_credentials([(key.read_bytes(), cert.read_bytes())])
        self.asked = []
        self.cancelled = threading.Event()
        self.dropped = threading.Event()  # the call of a turn that spoke after its end is over
        self.silent = set()  # turns that say no more and whose call is open
        self.together = threading.Barrier(100)
        self.thoughts = 0  # that ponder() has begun to say
        self.tool = None  # tool(request, name, arguments): a call of an orchestrator's tool
        self._streams = itertools.count(1)
        self._server = None
        self.port = free_port()
        if start:
            self.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        pool = concurrent.futures.ThreadPoolExecutor(512)  # a kept stream holds its thread
        self._server = grpc.server(pool, options=[("grpc.so_reuseport", 0)])
        runtime_pb2_grpc.add_AgentRuntimeServicer_to_server(self, self._server)
        if self._tls:
            assert self._server.add_secure_port(self.address, self._tls) == self.port
        else:
            assert self._server.add_insecure_port(self.address) == self.port
        self._server.start()

    def stop(self):
        if self._server:
            self._server.stop(0).wait(PATIENCE)
        self._server = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # --- turns ------------------------------------------------------------------------

    def Converse(self, requests, context):  # noqa: N802 - the contract's name
        stream = next(self._streams)
        metadata = dict(context.invocation_metadata())
        token = metadata.get("authorization")
        context.requests = requests
        for request in requests:
            self.asked.append(Asked(request, stream, context.peer(), token, metadata))
            way, _, rest = request.message.partition(" ")
            yield from getattr(self, way)(request, rest, context)
            if way == "nodone":
                return

    def hello(self, request, rest, context):
        yield chunk("heard: ")
        yield chunk(request.message)
        yield usage(7, 5)
        yield done("far-model", "heard: " + request.message)

    def think(self, request, rest, context):
        yield pb.ConverseEvent(thinking=pb.ThinkingEvent(agent_id="manager", text="hm"))
        yield chunk("thought")
        yield done("far-model", "thought")

    def tools(self, request, rest, context):
        yield chunk("looking. ")
        yield usage(10, 1)
        yield call("web_fetch", "c-1", url="http://a")
        yield call("shell", "c-2", command="rm")
        yield result("c-2", {"error": "not allowed"}, "not allowed")
        yield result("c-1", {"body": "found"})
        yield chunk("found it")
        yield usage(20, 2, 1)
        yield done("far-model", "looking. found it")

    def delegate(self, request, rest, context):
        yield chunk("let me ask wally.")
        yield call("transfer_to_agent", "c-1", agent_name="wally")
        yield result("c-1", {})
        yield chunk("wally here", "wally")
        yield done("far-model", "let me ask wally.", "wally here")

    def turns(self, request, rest, context):
        yield done("far-model", "said at once", "and twice")

    def error(self, request, rest, context):
        yield chunk("so far. ")
        yield usage(4, 2)
        yield done(rest)

    def refuse(self, request, rest, context):
        context.abort(getattr(grpc.StatusCode, rest), f"{rest.lower()}: no")
        yield

    def midway(self, request, rest, context):
        yield chunk("half a ")
        yield usage(4, 2)
        context.abort(grpc.StatusCode.UNAVAILABLE, "going down")

    def nodone(self, request, rest, context):
        yield chunk("half a ")

    def slowly(self, request, rest, context):
        yield chunk("slow")
        time.sleep(1)
        yield chunk("ly")
        yield done("far-model", "slowly")

    def silence(self, request, rest, context):
        gone = threading.Event()
        self.silent.add(gone)

        def leave():
            self.silent.discard(gone)
            self.cancelled.set()
            gone.set()

        # Before the chunk: if the call ends while grpcio sends it, this is never resumed.
        if not context.add_callback(leave):
            leave()
        yield chunk("...")
        gone.wait(PATIENCE)

    def two(self, request, rest, context):
        context.add_callback(self.dropped.set)
        yield chunk("once")
        yield done("far-model", "once")
        yield done("far-model", "twice")

    def late(self, request, rest, context):
        context.add_callback(self.dropped.set)
        yield chunk("once")
        yield done("far-model", "once")
        following = next(context.requests, None)
        yield done("far-model", "twice")
        if following:
            yield from self.hello(following, "", context)

    def shape(self, request, rest, context):
        yield chunk("no JSON")
        yield done("far-model", "no JSON")

    def That(self, request, rest, context):  # noqa: N802 - weir asks for a better answer
        yield chunk('{"city": "Kyoto"}')
        yield done("far-model", '{"city": "Kyoto"}')

    def nul(self, request, rest, context):
        yield chunk("a\0b\\u0000")
        yield call("web_fetch", "c-\0", url="http://\0")
        yield pb.ConverseEvent(usage=pb.UsageEvent(agent_id="\0", model="m\0", prompt_tokens=1))
        yield done()

    def longname(self, request, rest, context):
        event = usage(3, 1)
        event.usage.model = "é" * 600000
        yield event
        yield done()

    def pieces(self, request, rest, context):
        count, size = map(int, rest.split())
        for _ in range(count):
            yield chunk("x" * size)
        yield done()

    def ponder(self, request, rest, context):
        """so many thoughts of a mebibyte"""
        for self.thoughts in range(int(rest)):
            yield pb.ConverseEvent(thinking=pb.ThinkingEvent(agent_id="manager", text="x" * (1 << 20)))
        yield chunk("thought")
        yield done()

    def calls(self, request, rest, context):
        for sequence in range(int(rest)):
            yield chunk("word ")
            yield usage(1, 1, sequence)
        yield done()

    def control(self, request, rest, context):
        """so many pieces that are six times as long in JSON"""
        yield usage(100000, 5)
        for _ in range(int(rest)):
            yield chunk("\1" * (1 << 19))
        yield done()

    def huge(self, request, rest, context):
        yield chunk("x" * (5 << 20))
        yield done()

    def long(self, request, rest, context):
        for at in range(int(rest)):
            yield chunk(f"{at:>400} ")
        yield done()

    def later(self, request, rest, context):
        yield pb.ConverseEvent()  # of a later version
        yield chunk("known")
        yield done()

    def asks(self, request, rest, context):
        """asks eve something: another agent, over the orchestrator's tool"""
        slug, _, text = rest.partition(" ")
        agent = request.agent_id or "manager"
        yield usage(7, 5)
        yield call("send_message_to_agent", "c-1", agent, agent_slug=slug, message=text)
        value = self.tool(request, "send_message_to_agent", {"agent_slug": slug, "message": text})
        yield result("c-1", value, value.get("error", ""))
        yield chunk(json.dumps(value), agent)
        yield done("far-model", json.dumps(value))

    def mute(self, request, rest, context):
        """the same without a word about it"""
        slug, _, text = rest.partition(" ")
        value = self.tool(request, "send_message_to_agent", {"agent_slug": slug, "message": text})
        yield chunk(json.dumps(value), request.agent_id or "manager")
        yield done("far-model", json.dumps(value))

    def The(self, request, rest, context):  # noqa: N802 - "The conversation so far: ..."
        message = request.message.rpartition(":\n")[2]
        way, _, rest = message.partition(" ")
        for event in getattr(self, way)(request, rest, context):
            kind = getattr(event, event.WhichOneof("event"))
            if hasattr(kind, "agent_id"):
                kind.agent_id = request.agent_id or "manager"
            yield event

    def meet(self, request, rest, context):
        self.together.wait(PATIENCE)
        yield from self.hello(request, rest, context)


# --- by hand ---------------------------------------------------------------------------------


def framed(event, flag=0):
    body = event.SerializeToString()
    return bytes([flag]) + len(body).to_bytes(4, "big") + body


HEAD = [(":status", "200"), ("content-type", "application/grpc")]
OK = [("grpc-status", "0")]


class Rogue:
    """Serves connections one thread each; `asked` counts requests by their message."""

    def __init__(self):
        self.asked = collections.Counter()
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        config = h2.config.H2Configuration(client_side=False)
        connection = h2.connection.H2Connection(config)
        connection.initiate_connection()
        peer.sendall(connection.data_to_send())
        bodies = collections.defaultdict(bytes)
        with contextlib.suppress(OSError), peer:
            while data := peer.recv(65536):
                for event in connection.receive_data(data):
                    if isinstance(event, h2.events.DataReceived):
                        bodies[event.stream_id] += event.data
                        self._act(connection, event.stream_id, bodies, peer)
                peer.sendall(connection.data_to_send())

    def _act(self, connection, stream, bodies, peer):
        body = bodies[stream]
        if len(body) < 5 or len(body) < 5 + int.from_bytes(body[1:5], "big"):
            return
        message = pb.ConverseRequest.FromString(body[5:]).message
        bodies[stream] = b""
        self.asked[message] += 1
        getattr(self, message.partition(" ")[0])(connection, stream, peer, message)

    def hello(self, connection, stream, peer, message):
        connection.send_headers(stream, HEAD)
        connection.send_data(stream, framed(chunk("heard: " + message)) + framed(done()))
        connection.send_headers(stream, OK, end_stream=True)

    def reset(self, connection, stream, peer, message):
        connection.send_headers(stream, HEAD)
        connection.send_data(stream, framed(chunk("half")) + framed(chunk("the other half"))[:9])
        connection.reset_stream(stream, h2.errors.ErrorCodes.INTERNAL_ERROR)

    def refused(self, connection, stream, peer, message):
        if self.asked[message] > 1:
            self.hello(connection, stream, peer, message)
        else:
            connection.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)

    def goaway(self, connection, stream, peer, message):
        if self.asked[message] > 1:
            self.hello(connection, stream, peer, message)
        else:
            connection.close_connection(last_stream_id=0)

    def midgoaway(self, connection, stream, peer, message):
        connection.send_headers(stream, HEAD)
        connection.send_data(stream, framed(chunk("half")))
        connection.close_connection(last_stream_id=stream)
        peer.sendall(connection.data_to_send())
        peer.shutdown(socket.SHUT_RDWR)

    def http(self, connection, stream, peer, message):
        connection.send_headers(stream, [(":status", message.split()[1]), ("content-type", "text/html")])
        connection.send_data(stream, b"<html>", end_stream=True)

    def nonsense(self, connection, stream, peer, message):
        connection.send_headers(stream, HEAD)
        connection.send_data(stream, b"\0\0\0\0\2\xff\xff")

    def gzip(self, connection, stream, peer, message):
        connection.send_headers(stream, HEAD + [("grpc-encoding", "gzip")])
        connection.send_data(stream, framed(chunk("x"), flag=1))

    def cut(self, connection, stream, peer, message):
        connection.send_headers(stream, HEAD)
        connection.send_data(stream, framed(chunk("whole")) + b"\0\0\0\0\x09half")
        connection.send_headers(stream, OK, end_stream=True)

    def hangup(self, connection, stream, peer, message):
        peer.shutdown(socket.SHUT_RDWR)
