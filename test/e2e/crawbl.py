"""crawbl: an orchestrator's side of Converse, as the tests play it.

    with crawbl.open_stream(weir) as stream:
        turn = stream.ask("hello", session_id="s-1")
        assert turn.text == "manager heard: hello"

A stream authenticates as USER of WORKSPACE and names both in its first request, as the contract
asks. A Turn is what came for one request, up to its DoneEvent.
"""
import itertools
import queue
import threading

import grpc
import harness
from agentruntime.v1 import runtime_pb2 as pb
from agentruntime.v1 import runtime_pb2_grpc

USER, WORKSPACE = "user-1", "ws-1"
PATIENCE = 90  # seconds until a test gives up; nothing should ever come near it
METHOD = "/crawbl.agentruntime.v1.AgentRuntime/Converse"

_sessions = itertools.count(1)


def new_session():
    return f"session-{next(_sessions)}"


def first(message="hello", session_id=None, **fields):
    """A request as it may stand first on a stream."""
    whole = {"workspace_id": WORKSPACE, "user_id": USER, **fields}
    return pb.ConverseRequest(message=message, session_id=session_id or new_session(), **whole)


class Turn:
    """The events of one request, in order."""

    def __init__(self, events):
        self.events = list(events)

    @property
    def kinds(self):
        return [event.WhichOneof("event") for event in self.events]

    def of(self, kind):
        return [getattr(e, kind) for e in self.events if e.WhichOneof("event") == kind]

    @property
    def text(self):
        return "".join(chunk.text for chunk in self.of("chunk"))

    @property
    def done(self):
        assert self.kinds.count("done") == 1 and self.kinds[-1] == "done", self.kinds
        return self.events[-1].done

    @property
    def error(self):
        """What comes after `ERROR: ` in a failed turn's model; None when it went well."""
        head, _, rest = self.done.model.partition(": ")
        if head != "ERROR":
            assert not self.done.model.startswith("ERROR:"), self.done.model
            return None
        assert not self.done.turns, "a failed turn has no turns"
        return rest

    @property
    def code(self):
        return self.error and self.error.partition(":")[0]


class Stream:
    """One open Converse call."""

    def __init__(self, channel, metadata, **options):
        self._requests = queue.SimpleQueue()
        self._fresh = True
        self._session = new_session()
        self.call = runtime_pb2_grpc.AgentRuntimeStub(channel).Converse(
            iter(self._requests.get, None), metadata=metadata, **{"timeout": PATIENCE, **options}
        )

    def send(self, message="", **fields):
        """Send one request, of one and the same session unless it is named; the first one
        also says who asks."""
        make = first if self._fresh else pb.ConverseRequest
        self._fresh = False
        self._requests.put(make(message=message, **{"session_id": self._session, **fields}))

    def send_raw(self, request):
        self._fresh = False
        self._requests.put(request)

    def half_close(self):
        self._requests.put(None)

    def next(self):
        return next(self.call)

    def turn(self):
        """Read up to the next DoneEvent."""
        events = []
        for event in self.call:
            events.append(event)
            if event.WhichOneof("event") == "done":
                break
        return Turn(events)

    def ask(self, message="", **fields):
        self.send(message, **fields)
        return self.turn()

    def status(self):
        """How the call ended, once nothing more comes; what comes until then is dropped."""
        try:
            for _ in self.call:
                pass
        except grpc.RpcError:
            pass
        return self.call.code()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.half_close()
        self.call.cancel()


def open_stream(weir, channel=None, metadata=None, **options):
    """Open Converse on a channel of its own connection, unless one is given."""
    if metadata is None:
        metadata = weir.metadata(USER, WORKSPACE)
    if channel is None:
        channel = weir.channel(**{"grpc.use_local_subchannel_pool": 1})
    return Stream(channel, metadata, **options)


def one_turn(weir, message, **fields):
    """One turn on a stream of its own."""
    with open_stream(weir) as stream:
        return stream.ask(message, **fields)


def one_turn_of(weir, message, session_id):
    """one_turn() without names, for threads."""
    return one_turn(weir, message, session_id=session_id)


def in_background(work, *args):
    """Run work(*args) on a thread: returns a function that waits and gives its result."""
    result = []

    def run():
        try:
            result.append((work(*args), None))
        except BaseException as failure:  # noqa: BLE001 - handed to whoever asks
            result.append((None, failure))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def get():
        thread.join(PATIENCE)
        assert result, "it did not come back"
        value, failure = result[0]
        if failure:
            raise failure
        return value

    return get


def frame(message):
    """A gRPC frame around an encoded message."""
    return b"\0" + len(message).to_bytes(4, "big") + message


def frames(body):
    """The frames of a response body, each with its prefix."""
    found = []
    while body:
        size = 5 + int.from_bytes(body[1:5], "big")
        assert len(body) >= size, "the last frame is cut"
        found.append(body[:size])
        body = body[size:]
    return found


def is_sanitized():
    """Whether the daemon is a sanitizer build, whose memory says nothing."""
    binary = harness.BINARY.read_bytes()
    return b"__asan_init" in binary or b"__tsan_init" in binary
