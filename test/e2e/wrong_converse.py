"""A small Converse and Memory server over grpcio that can break one rule at a time.

Without a fault it keeps every rule that `weir validate --profile converse` checks. A fault is a
row of FAULTS, named for the check that must find it. It is a function of what the good server is
about to send: the events of one turn, the state of the stream, or the caller.
"""
import base64
import concurrent.futures
import hashlib
import hmac
import threading
import time

import grpc
from agentruntime.v1 import memory_pb2, memory_pb2_grpc, runtime_pb2, runtime_pb2_grpc

Event = runtime_pb2.ConverseEvent
MODEL = "small-1"


def chunk(text, agent="manager"):
    return Event(chunk=runtime_pb2.ChunkEvent(agent_id=agent, text=text))


def call(call_id, args="{}"):
    return Event(tool_call=runtime_pb2.ToolCallEvent(agent_id="manager", tool="look", args_json=args, call_id=call_id))


def result(call_id, value="{}"):
    return Event(tool_result=runtime_pb2.ToolResultEvent(call_id=call_id, result_json=value))


def usage(sequence, model=MODEL):
    return Event(usage=runtime_pb2.UsageEvent(agent_id="manager", model=model, call_sequence=sequence))


def done(text="", model=MODEL, agent="manager"):
    turns = [runtime_pb2.Turn(agent_id=agent, text=text)] if text else []
    return Event(done=runtime_pb2.DoneEvent(model=model, turns=turns))


def failure(code, text):
    return done(model=f"ERROR: {code}: {text}")


class Fault:
    """One rule broken. Each method may be replaced; the good ones change nothing."""

    def events(self, events, request, first):
        """The events of a good turn."""
        return events

    def failed(self, event, request, first):
        """The DoneEvent of a failed turn; None ends the stream instead."""
        return event

    def refuse(self, reason):
        """Whether a call is refused for this reason."""
        return True

    def serves(self, turn):
        """Whether this turn of a stream is served."""
        return True

    def requests(self, requests):
        return requests


def with_(**methods):
    return type("Broken", (Fault,), {name: staticmethod(f) for name, f in methods.items()})()


def events(change):
    return with_(events=lambda all, request, first: change(all))


def failed(when, change):
    return with_(failed=lambda event, request, first: change(event) if when(request, first) else event)


def accepts(reason):
    return with_(refuse=lambda why: why != reason)


def replace(events, kind, change):
    return [change(e) if e.WhichOneof("event") == kind else e for e in events]


def answered(event):
    return done("in")


FAULTS = {
    "CONV-01": events(lambda all: all[:-1]),
    "CONV-02": with_(events=lambda all, request, first: all + [all[-1]] if request.session_id and first.alone else all),
    "CONV-02 more": with_(events=lambda all, request, first: all + [chunk("x")] if first.alone else all),
    "CONV-03": events(lambda all: [Event()] + all),
    "CONV-04": events(lambda all: replace(all, "usage", lambda e: usage(e.usage.call_sequence + 1))),
    "CONV-04 none": events(lambda all: [e for e in all if e.WhichOneof("event") != "usage"]),
    "CONV-05": events(lambda all: [e for e in all if e.WhichOneof("event") != "tool_result"]),
    "CONV-05 other": events(lambda all: replace(all, "tool_result", lambda e: result("other"))),
    "CONV-05 twice": events(lambda all: [x for e in all for x in ([e, e] if e.WhichOneof("event") == "tool_result" else [e])]),
    "CONV-05 before": events(lambda all: [all[1], all[0]] + all[2:]),
    "CONV-06": events(lambda all: replace(all, "tool_call", lambda e: call("c-1", "[]"))),
    "CONV-06 result": events(lambda all: replace(all, "tool_result", lambda e: result("c-1", "done"))),
    "CONV-07": events(lambda all: all[:-1] + [done()]),
    "CONV-07 chunks": events(lambda all: [e for e in all if e.WhichOneof("event") != "chunk"]),
    "CONV-08": events(lambda all: replace(all, "chunk", lambda e: chunk(e.chunk.text, ""))),
    "CONV-08 turn": events(lambda all: replace(all, "done", lambda e: done(e.done.turns[0].text, agent=""))),
    "CONV-09": events(lambda all: replace(all, "usage", lambda e: usage(e.usage.call_sequence, ""))),
    "CONV-10": with_(serves=lambda turn: not turn.index or turn.failed or turn.together),
    "CONV-11": with_(end=lambda turn: turn.index == 1),
    "CONV-12": with_(serves=lambda turn: not turn.alone),
    "CONV-13": with_(serves=lambda turn: not turn.together or turn.index == 0),
    "CONV-14": with_(left=lambda: True),
    "FAIL-01": failed(lambda r, first: r.message == "boom", lambda e: done(model=e.done.model.replace(": ", " ", 1).replace("ERROR ", "ERROR: X"))),
    "FAIL-01 turns": failed(lambda r, first: r.message == "boom", lambda e: done("it", e.done.model)),
    "FAIL-02": failed(lambda r, first: r.message == "boom", lambda e: None),
    "FAIL-03": failed(lambda r, first: not r.message, lambda e: failure("INTERNAL", "no")),
    "FAIL-03 answered": failed(lambda r, first: not r.message, answered),
    "FAIL-04": failed(lambda r, first: not r.session_id, answered),
    "FAIL-05": failed(lambda r, first: bool(r.agent_id), answered),
    "FAIL-06": failed(lambda r, first: not r.user_id, answered),
    "FAIL-07": failed(lambda r, first: r.workspace_id == "weir-validate-other", answered),
    "TOKN-01": accepts("missing"),
    "TOKN-02": accepts("garbage"),
    "TOKN-03": accepts("forged"),
    "TOKN-04": accepts("expired"),
    "TOKN-05": accepts("future"),
    "TOKN-06": accepts("scheme"),
    "TOKN-07": with_(case=lambda: True),
    "TOKN-08": accepts("twice"),
    "TOKN-09": with_(health=lambda: True),
    "TOKN-10": with_(unknown=lambda: True),
    "TOKN-11": accepts("memory"),
}
# The Memory service: what each method replies, or the code that it ends with.
NOT = grpc.StatusCode


def memory(**methods):
    return with_(**methods)


def strip_times(entry):
    entry.ClearField("updated_at")
    return entry


FAULTS |= {
    "MEMO-01": memory(created=strip_times),
    "MEMO-01 none": memory(created=lambda entry: NOT.UNIMPLEMENTED),
    "MEMO-02": memory(upsert=lambda: "keep"),
    "MEMO-02 created_at": memory(upsert=lambda: "anew"),
    "MEMO-03": memory(listed=lambda request, all: all[::-1] if not request.limit else all),
    "MEMO-04": memory(page=lambda request: (0, 100)),
    "MEMO-04 negative": memory(negative=lambda: True),
    "MEMO-05": memory(same=lambda a, b: a.lower() == b.lower()),
    "MEMO-06": memory(key=lambda: True),
    "MEMO-07": memory(deletes=lambda: False),
    "MEMO-08": memory(missing=lambda: True),
    "MEMO-09": memory(foreign=lambda: True),
    "MEMO-10": memory(nobody=lambda: True),
}


def breaks(fault, name, *args):
    """What the fault says under this name; None: it says nothing."""
    method = getattr(fault, name, None)
    return method(*args) if method else None


# --- tokens -----------------------------------------------------------------------------------


class Caller:
    """Who calls, or why they are refused."""

    def __init__(self, key, metadata, fault):
        values = [value for name, value in metadata if name == "authorization"]
        self.why = self.read(key, values, fault)

    def read(self, key, values, fault):
        if not values:
            return "missing"
        scheme, _, token = values[0].partition(" ")
        if scheme.lower() != "bearer":
            return "scheme"
        if scheme == "bearer" and breaks(fault, "case"):
            return "case"
        payload, _, mac = token.partition(".")
        try:
            user, workspace, at = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)).decode().split(":")
        except ValueError:
            return "garbage"
        self.user, self.workspace = user, workspace
        if hmac.new(key.encode(), payload.encode(), hashlib.sha256).hexdigest() != mac:
            return "forged"
        if abs(time.time() - int(at)) > 300:
            return "expired" if int(at) < time.time() else "future"
        return "twice" if len(values) > 1 else None


# --- the services --------------------------------------------------------------------------------


class Turn:
    """Where a turn stands in its stream."""

    def __init__(self, index, alone, together, failed):
        self.index, self.alone, self.together, self.failed = index, alone, together, failed


class Service(runtime_pb2_grpc.AgentRuntimeServicer, memory_pb2_grpc.MemoryServicer):
    def __init__(self, key, fault):
        self.key, self.fault = key, fault or Fault()
        self.memories, self.lock, self.clock = {}, threading.Lock(), 0
        self.locked = False

    def admit(self, context, unary=False):
        caller = Caller(self.key, context.invocation_metadata(), self.fault)
        refused = caller.why and self.fault.refuse(caller.why)
        if caller.why == "missing" and unary:
            refused = self.fault.refuse("memory")
        if refused:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "invalid bearer token")
        return caller

    def wrong(self, request, first, caller):
        """The failure of a request that is not right, or None."""
        if first and not (request.workspace_id and request.user_id):
            return failure("INVALID_ARGUMENT", "workspace_id and user_id are required")
        if not request.message:
            return failure("INVALID_ARGUMENT", "converse: message is required")
        if not request.session_id:
            return failure("INVALID_ARGUMENT", "session_id is required")
        if request.agent_id not in ("", "manager"):
            return failure("NOT_FOUND", "no such agent")
        if request.workspace_id and request.workspace_id != getattr(caller, "workspace", request.workspace_id):
            return failure("PERMISSION_DENIED", "another workspace")
        if request.message == "boom":
            return failure("INTERNAL", "runner: it broke")
        return None

    def Converse(self, requests, context):
        caller = self.admit(context)
        queue, failed, together = Queue(requests), False, False
        for index in range(1000):
            request = queue.next()
            if request is None:
                break
            alone = index == 0 and queue.ended_soon()
            together = together or queue.has_more()
            turn = Turn(index, alone, together, failed)
            if not self.fault.serves(turn):
                context.abort(grpc.StatusCode.INTERNAL, "not served")
            bad = self.wrong(request, index == 0, caller)
            if bad:
                failed = True
                bad = self.fault.failed(bad, request, index == 0)
                if bad is None:
                    context.abort(grpc.StatusCode.INTERNAL, "it broke")
                yield bad
                continue
            if self.locked:
                self.locked = False
                context.abort(grpc.StatusCode.INTERNAL, "the session is locked")
            yield from self.turn(request, turn, context)
            if breaks(self.fault, "end", turn):
                context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    def turn(self, request, turn, context):
        text = "heard: " + request.message
        all = [call("c-1"), result("c-1"), usage(0), chunk(text[:4]), chunk(text[4:]), usage(1), done(text)]
        if not breaks(self.fault, "left"):
            yield from self.fault.events(all, request, turn)
            return
        # The session is locked until the turn is over, and stays so when its client hangs up.
        over = threading.Event()
        self.locked = context.add_callback(over.set)
        yield all.pop(0)
        if over.wait(0.2):
            return
        yield from all
        self.locked = False

    # --- Memory ---

    def check(self, request, context, caller):
        if not request.workspace_id and not breaks(self.fault, "nobody"):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "memory: workspace_id is required")
        foreign = request.workspace_id and request.workspace_id != caller.workspace
        if foreign and not breaks(self.fault, "foreign"):
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "another workspace")

    def now(self):
        self.clock += 1
        stamp = memory_pb2.MemoryEntry().created_at
        stamp.seconds = 1700000000 + self.clock
        return stamp

    def CreateMemory(self, request, context):
        caller = self.admit(context, unary=True)
        self.check(request, context, caller)
        if not request.key and not breaks(self.fault, "key"):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "memory: key is required")
        with self.lock:
            place = (request.category, request.key)
            now, old = self.now(), self.memories.get(place)
            how = breaks(self.fault, "upsert")
            entry = memory_pb2.MemoryEntry(key=request.key, content=request.content, category=request.category)
            entry.created_at.CopyFrom(old.created_at if old and how != "anew" else now)
            entry.updated_at.CopyFrom(now)
            if old and how == "keep":
                entry = old
            self.memories[place] = entry
            reply = memory_pb2.MemoryEntry()
            reply.CopyFrom(entry)
        if hasattr(self.fault, "created"):
            reply = self.fault.created(reply)
        if isinstance(reply, grpc.StatusCode):
            context.abort(reply, "no")
        return memory_pb2.CreateMemoryResponse(entry=reply)

    def ListMemories(self, request, context):
        caller = self.admit(context, unary=True)
        if not hasattr(caller, "workspace"):
            return memory_pb2.ListMemoriesResponse()
        self.check(request, context, caller)
        if request.limit < 0 and not breaks(self.fault, "negative"):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "memory: limit")
        same = getattr(self.fault, "same", None) or (lambda a, b: a == b)
        all = [e for e in self.memories.values() if not request.category or same(e.category, request.category)]
        all.sort(key=lambda e: (-e.updated_at.seconds, e.key))
        if hasattr(self.fault, "listed"):
            all = self.fault.listed(request, all)
        offset, limit = breaks(self.fault, "page", request) or (request.offset, request.limit if request.limit > 0 else 100)
        return memory_pb2.ListMemoriesResponse(entries=all[offset : offset + limit])

    def DeleteMemory(self, request, context):
        caller = self.admit(context, unary=True)
        self.check(request, context, caller)
        places = [place for place in self.memories if place[1] == request.key]
        if not places and not breaks(self.fault, "missing"):
            context.abort(grpc.StatusCode.NOT_FOUND, "memory: entry not found")
        for place in places:
            if breaks(self.fault, "deletes") is None:
                del self.memories[place]
        return memory_pb2.DeleteMemoryResponse()


class Queue:
    """The requests of a stream, read ahead by a thread of their own."""

    def __init__(self, requests):
        self.ready, self.items, self.ended = threading.Condition(), [], False
        threading.Thread(target=self.read, args=(requests,), daemon=True).start()

    def read(self, requests):
        try:
            for request in requests:
                with self.ready:
                    self.items.append(request)
                    self.ready.notify_all()
        except Exception:  # the stream was reset
            pass
        with self.ready:
            self.ended = True
            self.ready.notify_all()

    def next(self):
        with self.ready:
            self.ready.wait_for(lambda: self.items or self.ended)
            return self.items.pop(0) if self.items else None

    def ended_soon(self):
        """No other request comes: the client has said so together with the first."""
        with self.ready:
            return self.ready.wait_for(lambda: self.items or self.ended, 0.05) and self.ended and not self.items

    def has_more(self):
        with self.ready:
            return bool(self.items)


def health(service):
    """grpc.health.v1.Health/Check, which needs no token."""

    def check(request, context):
        if breaks(service.fault, "health"):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "a token is needed")
        return b"\x08\x01"

    handler = grpc.unary_unary_rpc_method_handler(check)
    return grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": handler})


def unknown(service):
    """A server that looks at tokens before it looks for the method."""

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            if not breaks(service.fault, "unknown"):
                return None
            return grpc.unary_unary_rpc_method_handler(
                lambda request, context: context.abort(grpc.StatusCode.UNAUTHENTICATED, "a token is needed")
            )

    return Handler()


class Server:
    def __init__(self, key, fault=None):
        self.service = Service(key, FAULTS[fault] if fault else None)
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        runtime_pb2_grpc.add_AgentRuntimeServicer_to_server(self.service, self.server)
        memory_pb2_grpc.add_MemoryServicer_to_server(self.service, self.server)
        self.server.add_generic_rpc_handlers((health(self.service), unknown(self.service)))
        self.port = self.server.add_insecure_port("127.0.0.1:0")

    @property
    def url(self):
        return f"grpc://127.0.0.1:{self.port}"

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *ignored):
        self.server.stop(0).wait()
