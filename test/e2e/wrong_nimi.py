"""A small server of nimi.runtime.v1 over grpcio that can break one rule at a time.

Without a fault it keeps every rule that `weir validate --profile nimi` checks. A fault is a row of
FAULTS, named for the check that must find it. It is a function of what the good server is about to
send, by the name of the place where it is asked.

    with Server() as server:
        server.break_rule("DONE-03 gap")

As a program it serves at one port until SIGTERM: wrong_nimi.py PORT [FAULT]. It says STARTING a few
times first.
"""
import concurrent.futures
import json
import signal
import sys
import threading

import grpc
from nimi.runtime.v1 import ai_pb2 as pb
from nimi.runtime.v1 import ai_pb2_grpc, audit_pb2, audit_pb2_grpc
from nimi.runtime.v1 import common_pb2 as common
from nimi.runtime.v1 import model_pb2, model_pb2_grpc

ANSWER = [
    "The first piece is long enough to be sent, ",
    "so is the second of them, by some few bytes, ",
    "and this is the rest",
]
VERSION = ("x-nimi-runtime-version", "0.3.1")
ENVELOPE = ("protocol-version", "participant-protocol-version", "participant-id", "domain")
CODE = grpc.StatusCode
DELTA, COMPLETED, FAILED = pb.STREAM_EVENT_DELTA, pb.STREAM_EVENT_COMPLETED, pb.STREAM_EVENT_FAILED
RUNNING, JOB_COMPLETED = pb.SCENARIO_JOB_STATUS_RUNNING, pb.SCENARIO_JOB_STATUS_COMPLETED


class End(Exception):
    """The status that a stream ends with, instead of OK."""

    def __init__(self, code, text="it broke"):
        self.code, self.text = code, text


# --- what the good server sends ------------------------------------------------------------------


def usage(*numbers):
    names = ("input_tokens", "output_tokens", "compute_ms")
    return common.UsageStats(**dict(zip(names, numbers or (7, -1, -1))))


def started():
    return pb.StreamScenarioEvent(
        event_type=pb.STREAM_EVENT_STARTED,
        started=pb.ScenarioStreamStarted(model_resolved="small", route_decision=1),
    )


def delta(text):
    return pb.StreamScenarioEvent(
        event_type=DELTA,
        delta=pb.ScenarioStreamDelta(text=pb.TextStreamDelta(text=text)),
        frame=pb.StreamFrame(text_delta=text),
    )


def completed():
    return pb.StreamScenarioEvent(
        event_type=COMPLETED,
        completed=pb.ScenarioStreamCompleted(finish_reason=1, usage=usage()),
        frame=pb.StreamFrame(done=True, usage=usage()),
    )


def failed(reason=common.AI_PROVIDER_UNAVAILABLE):
    return pb.StreamScenarioEvent(
        event_type=FAILED,
        failed=pb.ScenarioStreamFailed(reason_code=reason, action_hint="try again"),
        frame=pb.StreamFrame(done=True, usage=usage(-1, -1, -1), reason_code=reason),
    )


def answer():
    return [started(), *map(delta, ANSWER), completed()]


def job_of(job_id, status):
    return pb.ScenarioJob(job_id=job_id, status=status, scenario_type=1, execution_mode=3)


def job_events(job_id):
    """The types of events and the states of jobs have the same numbers."""
    return [
        pb.ScenarioJobEvent(event_type=status, sequence=number, job=job_of(job_id, status))
        for number, status in enumerate((1, 2, RUNNING, JOB_COMPLETED), 1)
    ]


def export():
    chunks = [audit_pb2.AuditExportChunk(export_id="e", sequence=i, chunk=b"{}\n") for i in range(3)]
    chunks[-1].eof = True
    return chunks


# --- faults --------------------------------------------------------------------------------------


def changed(message, **fields):
    for name, value in fields.items():
        if value is None:
            message.ClearField(name)
        elif hasattr(value, "CopyFrom"):
            getattr(message, name).CopyFrom(value)
        else:
            setattr(message, name, value)
    return message


def at(index, change):
    """Change one of a list."""

    def apply(all, *ignored):
        all[index] = change(all[index])
        return all

    return apply


def text(change):
    """Of the events of a good stream. They are numbered before this."""
    return {"text": change}


def renumber(step):
    return lambda all, *ignored: [changed(e, sequence=step(e.sequence)) for e in all]


def without_usage(event):
    return changed(event, completed=pb.ScenarioStreamCompleted(finish_reason=1))


def negative(event):
    event.completed.usage.output_tokens = event.frame.usage.output_tokens = -2
    return event


def late(change):
    return {"job": lambda all, is_late: change(all) if is_late else all}


def accepts(reason):
    return {"accepts": lambda why: why == reason}


def cut(text):
    return [text[i : i + 16] for i in range(0, len(text), 16)]


def numbered(events):
    return [changed(e, sequence=i) for i, e in enumerate(events, 1)]


FAULTS = {
    "ENVL-01": {"probe": lambda: End(CODE.INVALID_ARGUMENT)},
    "ENVL-01 not": {"probe": lambda: b"\x08\x02"},
    "ENVL-02": {"health": lambda reply: changed(reply, status=2)},
    "ENVL-02 refused": {"health": lambda reply: End(CODE.UNAVAILABLE)},
    "ENVL-03": {"version": lambda: []},
    "ENVL-03 major": {"version": lambda: [(VERSION[0], "1.2.0")]},
    "ENVL-03 no": {"version": lambda: [(VERSION[0], "0.3")]},
    "ENVL-03 late": {"version": lambda: [], "trailers": lambda: [VERSION]},
    "ENVL-04": accepts("missing"),
    "ENVL-05": accepts("major"),
    "ENVL-06": accepts("long"),
    "ENVL-06 code": {"code": lambda why, code: CODE.INTERNAL if why == "long" else code},
    "RFSL-01": {"details": lambda details: None},
    "RFSL-01 other": {"details": lambda details: details.replace(b"google.rpc.ErrorInfo", b"google.rpc.ErrorHelp")},
    "RFSL-02": {"message": lambda said: said["reasonCode"]},
    "RFSL-02 text": {"message": lambda said: "it was wrong"},
    "RFSL-03": {"message": lambda said: json.dumps({**said, "reasonCode": "SESSION_EXPIRED"})},
    "RFSL-03 code": {"details": lambda details: b"\x08\x0d" + details[2:]},
    "RFSL-04": accepts("model"),
    "RFSL-04 reason": {"reason": lambda why, name: "AI_INPUT_INVALID" if why == "model" else name},
    "RFSL-05": accepts("input"),
    "RFSL-05 started": {"early": lambda why: [started()] if why == "input" else []},
    "RFSL-06": accepts("app"),
    "RFSL-07": accepts("other app"),
    "RFSL-08": accepts("connector"),
    "RFSL-08 code": {"code": lambda why, code: CODE.INVALID_ARGUMENT if why == "connector" else code},
    "DONE-01": text(lambda all: all[:-1]),
    "DONE-01 none": text(lambda all: []),
    "DONE-01 status": text(lambda all: all[:-1] + [End(CODE.CANCELLED)]),
    "DONE-01 failed": text(lambda all: all[:-1] + numbered([failed()])),
    "DONE-02": text(lambda all: numbered(all[1:])),
    "DONE-02 twice": text(lambda all: numbered([started()] + all)),
    "DONE-02 late": text(lambda all: numbered([all[1], all[0], *all[2:]])),
    "DONE-02 model": text(at(0, lambda e: changed(e, started=pb.ScenarioStreamStarted(route_decision=1)))),
    "DONE-03": text(renumber(lambda n: n - 1)),
    "DONE-03 gap": text(renumber(lambda n: n + (n > 2))),
    "DONE-03 same": text(renumber(lambda n: n - (n > 2))),
    "DONE-04": text(lambda all: numbered([all[0], *map(delta, cut("".join(ANSWER))), all[-1]])),
    "DONE-05": text(lambda all: numbered([all[0], delta(""), *all[1:]])),
    "DONE-05 none": text(lambda all: numbered([all[0], pb.StreamScenarioEvent(event_type=DELTA, delta=pb.ScenarioStreamDelta()), *all[1:]])),
    "DONE-06": text(lambda all: all + [delta("and more")]),
    "DONE-06 twice": text(lambda all: all + [completed()]),
    "DONE-06 status": text(lambda all: all + [End(CODE.INTERNAL)]),
    "DONE-06 open": text(lambda all: all + ["stay"]),
    "DONE-07": text(at(-1, without_usage)),
    "DONE-07 negative": text(at(-1, negative)),
    "DONE-08": text(at(-1, lambda e: changed(e, event_type=DELTA))),
    "DONE-09": text(lambda all: [changed(e, frame=None) for e in all]),
    "DONE-09 text": text(at(1, lambda e: changed(e, frame=pb.StreamFrame(text_delta="other")))),
    "DONE-09 usage": text(at(-1, lambda e: changed(e, frame=pb.StreamFrame(done=True)))),
    "DONE-10": {"failure": lambda all: all[:-1] + [End(CODE.UNAVAILABLE)]},
    "DONE-10 reason": {"failure": lambda all: all[:-1] + numbered([failed(0)])},
    "DONE-10 ok": {"failure": lambda all: all[:-1]},
    "DONE-10 answer": {"failure": lambda all: answer()},
    "DONE-11": {"failure": at(-1, lambda e: changed(e, frame=pb.StreamFrame(done=True, reason_code=e.frame.reason_code)))},
    "DONE-12": {"execute": lambda reply: changed(reply, output=None)},
    "DONE-12 reason": {"execute": lambda reply: changed(reply, finish_reason=0)},
    "DONE-12 usage": {"execute": lambda reply: changed(reply, usage=None)},
    "JOBS-01": {"submit": lambda reply: changed(reply, job=None)},
    "JOBS-01 id": {"submit": lambda reply: changed(reply, job=job_of("", 1))},
    "JOBS-01 refused": {"submit": lambda reply: End(CODE.INTERNAL)},
    "JOBS-02": {"job": lambda all, is_late: all[:-1]},
    "JOBS-02 after": {"job": lambda all, is_late: all + [all[2]]},
    "JOBS-02 status": {"job": lambda all, is_late: all + [End(CODE.INTERNAL)]},
    "JOBS-03": {"job": renumber(lambda n: n - 1)},
    "JOBS-03 same": {"job": renumber(lambda n: n - (n == 3))},
    "JOBS-04": {"job": at(-1, lambda e: changed(e, event_type=RUNNING))},
    "JOBS-04 none": {"job": at(1, lambda e: changed(e, job=None))},
    "JOBS-04 other": {"job": at(1, lambda e: changed(e, job=job_of("other", 2)))},
    "JOBS-05": late(lambda all: all[-1:]),
    "JOBS-05 end": late(lambda all: all[:-1]),
    "JOBS-05 other": late(lambda all: all[:-1] + [changed(all[-1], event_type=5, job=job_of(all[-1].job.job_id, 5))]),
    "JOBS-05 gone": late(lambda all: [End(CODE.NOT_FOUND)]),
    "JOBS-06": {"get": lambda reply: changed(reply, job=job_of(reply.job.job_id, RUNNING))},
    "JOBS-06 none": {"get": lambda reply: End(CODE.NOT_FOUND)},
    "JOBS-07": accepts("foreign"),
    "JOBS-08": accepts("unknown job"),
    "JOBS-08 code": {"code": lambda why, code: CODE.INVALID_ARGUMENT if why == "unknown job" else code},
    "EXPT-01": {"export": at(-1, lambda c: changed(c, eof=False))},
    "EXPT-01 none": {"export": lambda all: []},
    "EXPT-01 status": {"export": lambda all: all + [End(CODE.INTERNAL)]},
    "EXPT-02": {"export": lambda all: all + [changed(audit_pb2.AuditExportChunk(), sequence=3)]},
    "EXPT-02 twice": {"export": lambda all: all + [changed(audit_pb2.AuditExportChunk(), sequence=3, eof=True)]},
    "EXPT-03": {"export": renumber(lambda n: n + 1)},
    "EXPT-03 gap": {"export": renumber(lambda n: n + (n > 1))},
    "SUBS-01": {"watch": lambda all: [End(CODE.CANCELLED)]},
    "SUBS-01 number": {"watch": at(0, lambda e: changed(e, sequence=0))},
    "SUBS-01 status": {"watch": at(0, lambda e: changed(e, status=0))},
    "SUBS-02": {"watch": lambda all: all[:1], "wait": lambda: True},
    "SUBS-02 status": {"watch": lambda all: all[:1] + [End(CODE.CANCELLED)], "wait": lambda: True},
    "SUBS-03": {"room": lambda: 16},
}
# Of a server that is told to stop: the last things that it sends.
STOP_FAULTS = {
    "STOP-01": {"stop watch": lambda: [End(CODE.CANCELLED, json.dumps({"reasonCode": "AI_PROVIDER_UNAVAILABLE"}))]},
    "STOP-01 ok": {"stop watch": lambda: []},
    "STOP-01 status": {"stop watch": lambda: [End(CODE.UNAVAILABLE)]},
    "STOP-01 event": {"stop watch": lambda: [health_event(4), End(CODE.CANCELLED, "runtime stopping")]},
    "STOP-02": {"stop text": lambda: [failed()]},
    "STOP-02 ok": {"stop text": lambda: []},
    "STOP-02 both": {"stop text": lambda: [completed(), End(CODE.CANCELLED, "runtime stopping")]},
}


# --- the three carriers of an error --------------------------------------------------------------


def field(number, value):
    """One field of protobuf: bytes or text, shorter than 128 * 128."""
    value = value.encode() if isinstance(value, str) else value
    size = bytes([len(value)]) if len(value) < 128 else bytes([len(value) & 127 | 128, len(value) >> 7])
    return bytes([number << 3 | 2]) + size + value


def details_of(code, reason):
    info = field(1, reason) + field(2, "nimi.runtime.v1") + field(3, field(1, "retryable") + field(2, "false"))
    any = field(1, "type.googleapis.com/google.rpc.ErrorInfo") + field(2, info)
    return bytes([1 << 3, code.value[0]]) + field(2, reason) + field(3, any)


# Why a call is refused: the status and the reason.
REFUSALS = {
    "missing": (CODE.INVALID_ARGUMENT, "PROTOCOL_ENVELOPE_INVALID"),
    "major": (CODE.INVALID_ARGUMENT, "PROTOCOL_ENVELOPE_INVALID"),
    "long": (CODE.INVALID_ARGUMENT, "PROTOCOL_ENVELOPE_INVALID"),
    "input": (CODE.INVALID_ARGUMENT, "AI_INPUT_INVALID"),
    "app": (CODE.INVALID_ARGUMENT, "AI_APP_ID_REQUIRED"),
    "other app": (CODE.INVALID_ARGUMENT, "AI_APP_ID_CONFLICT"),
    "connector": (CODE.NOT_FOUND, "AI_CONNECTOR_NOT_FOUND"),
    "model": (CODE.INVALID_ARGUMENT, "AI_MODEL_ID_REQUIRED"),
    "unknown job": (CODE.NOT_FOUND, "AI_MEDIA_JOB_NOT_FOUND"),
    "foreign": (CODE.PERMISSION_DENIED, "APP_SCOPE_FORBIDDEN"),
}


# --- the services --------------------------------------------------------------------------------


class Run:
    """What is known of one validation. A handler of the one before it may still be ending."""

    def __init__(self):
        self.jobs, self.watchers, self.left = {}, 0, threading.Event()


class Service(
    ai_pb2_grpc.RuntimeAiServiceServicer,
    audit_pb2_grpc.RuntimeAuditServiceServicer,
    model_pb2_grpc.RuntimeModelServiceServicer,
):
    def __init__(self):
        self.fault, self.run, self.starting = {}, Run(), 0
        self.lock, self.stopping = threading.Lock(), threading.Event()

    def ask(self, place, good, *args):
        """What the fault makes of it, else what is good."""
        return self.fault[place](good, *args) if place in self.fault else good

    def say(self, place, good):
        """What the fault says instead."""
        return self.fault[place]() if place in self.fault else good

    # --- admission ---

    def refuse(self, context, why):
        code, reason = REFUSALS[why]
        if "code" in self.fault:
            code = self.fault["code"](why, code)
        if "reason" in self.fault:
            reason = self.fault["reason"](why, reason)
        said = {"reasonCode": reason, "actionHint": "check the request", "traceId": "t", "retryable": False, "message": why}
        said = self.fault["message"](said) if "message" in self.fault else json.dumps(said)
        details = self.ask("details", details_of(code, reason))
        trailers = [("grpc-status-details-bin", details)] if details else []
        context.set_trailing_metadata(trailers)
        context.abort(code, said)

    def wrong_envelope(self, headers):
        if any(not headers.get("x-nimi-" + name) for name in ENVELOPE):
            return "missing"
        ours, theirs = headers["x-nimi-protocol-version"], headers["x-nimi-participant-protocol-version"]
        if ours.split(".")[:2] != theirs.split(".")[:2]:
            return "major"
        return "long" if any(len(v) > 4096 for k, v in headers.items() if k.startswith("x-nimi-")) else None

    def wrong_request(self, head, spec, headers):
        if not spec.text_generate.input:
            return "input"
        if not head.app_id:
            return "app"
        if head.app_id != headers.get("x-nimi-app-id", head.app_id):
            return "other app"
        if head.connector_id:
            return "connector"
        return None if head.model_id else "model"

    def wrong_job(self, job_id, headers):
        if job_id not in self.run.jobs:
            return "unknown job"
        return None if self.run.jobs[job_id]["app"] == headers.get("x-nimi-app-id") else "foreign"

    def why(self, context, request):
        headers = dict(context.invocation_metadata())
        found = self.wrong_envelope(headers)
        if not found and hasattr(request, "head"):
            found = self.wrong_request(request.head, request.spec, headers)
        if not found and hasattr(request, "job_id"):
            found = self.wrong_job(request.job_id, headers)
        accepted = "accepts" in self.fault and self.fault["accepts"](found)
        return None if accepted else found

    def open(self, context):
        context.send_initial_metadata(self.say("version", [VERSION]))

    def admit(self, context, request):
        why = self.why(context, request)
        if why and "early" in self.fault:
            self.open(context)
            yield from self.fault["early"](why)
        if why:
            self.refuse(context, why)
        self.open(context)

    def unary(self, place, context, request, reply):
        """The reply of a unary call: as it is, or as the fault has it."""
        for _ in self.admit(context, request):
            pass
        context.set_trailing_metadata(self.say("trailers", []))
        reply = self.ask(place, reply() if callable(reply) else reply)
        if isinstance(reply, End):
            context.abort(reply.code, reply.text)
        return reply

    @staticmethod
    def send(context, all):
        for each in all:
            if each == "stay":
                gone = threading.Event()
                if context.add_callback(gone.set):
                    gone.wait()
            elif isinstance(each, End):
                context.abort(each.code, each.text)
            else:
                yield each

    # --- RuntimeAiService ---

    def StreamScenario(self, request, context):
        yield from self.admit(context, request)
        if request.spec.text_generate.input and request.spec.text_generate.input[0].content == "boom":
            all = self.ask("failure", numbered([started(), delta("It will"), failed()]))
        elif self.run.watchers:  # it is slow while somebody watches
            yield numbered(answer())[0]
            self.stopping.wait()
            all = self.say("stop text", [End(CODE.CANCELLED, "runtime stopping")])
            all = [changed(e, sequence=2) if hasattr(e, "sequence") else e for e in all]
        else:
            all = self.ask("text", numbered(answer()))
        yield from self.send(context, numbered(all) if all == answer() else all)

    def ExecuteScenario(self, request, context):
        output = pb.ScenarioOutput(text_generate=pb.TextGenerateOutput(text="".join(ANSWER)))
        reply = pb.ExecuteScenarioResponse(output=output, finish_reason=1, usage=usage(), model_resolved="small")
        return self.unary("execute", context, request, reply)

    def submit(self, app):
        with self.lock:
            job_id = f"job-{len(self.run.jobs)}"
            self.run.jobs[job_id] = {"app": app, "seen": 0}
        return pb.SubmitScenarioJobResponse(job=job_of(job_id, 1))

    def SubmitScenarioJob(self, request, context):
        return self.unary("submit", context, request, lambda: self.submit(request.head.app_id))

    def GetScenarioJob(self, request, context):
        reply = pb.GetScenarioJobResponse(job=job_of(request.job_id, JOB_COMPLETED))
        return self.unary("get", context, request, reply)

    def SubscribeScenarioJobEvents(self, request, context):
        yield from self.admit(context, request)
        seen = self.run.jobs.get(request.job_id, {"seen": 0})
        seen["seen"] += 1
        yield from self.send(context, self.ask("job", job_events(request.job_id), seen["seen"] > 1))

    # --- RuntimeModelService ---

    def ListModels(self, request, context):
        models = [model_pb2.ModelDescriptor(model_id="local/small")]
        return self.unary("models", context, request, model_pb2.ListModelsResponse(models=models))

    # --- RuntimeAuditService ---

    def GetRuntimeHealth(self, request, context):
        run = self.run
        if "wait" in self.fault and run.watchers:
            run.left.wait()
        return self.unary("health", context, request, self.runtime_health)

    def runtime_health(self):
        self.starting = max(self.starting - 1, 0)
        return audit_pb2.GetRuntimeHealthResponse(status=2 if self.starting else 3)

    def ExportAuditEvents(self, request, context):
        yield from self.admit(context, request)
        yield from self.send(context, self.ask("export", export()))

    def SubscribeRuntimeHealthEvents(self, request, context):
        yield from self.admit(context, request)
        run = self.run
        with self.lock:
            full = run.watchers >= self.say("room", 1000)
            run.watchers += 1
        if full:
            context.abort(CODE.RESOURCE_EXHAUSTED, "too many")
        try:
            yield from self.watch(context)
        finally:
            with self.lock:
                run.watchers -= "room" not in self.fault
            run.left.set()

    def watch(self, context):
        gone = threading.Event()
        if not context.add_callback(gone.set):
            return
        if "watch" in self.fault:
            yield from self.send(context, self.fault["watch"]([health_event(3), "stay"]))
            return
        yield health_event(3)
        while not gone.wait(0.01) and not self.stopping.is_set():
            pass
        if not gone.is_set():
            yield from self.send(context, self.say("stop watch", [health_event(5), End(CODE.CANCELLED, "runtime stopping")]))


def health_event(status):
    return audit_pb2.RuntimeHealthEvent(sequence=1 if status == 3 else 2, status=status)


def health(service):
    """grpc.health.v1.Health/Check, which needs no envelope."""

    def check(request, context):
        reply = service.say("probe", b"\x08\x02" if service.starting else b"\x08\x01")
        if isinstance(reply, End):
            context.abort(reply.code, reply.text)
        return reply

    handler = grpc.unary_unary_rpc_method_handler(check)
    return grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": handler})


class Server:
    def __init__(self, port=0):
        self.service = Service()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(64))
        ai_pb2_grpc.add_RuntimeAiServiceServicer_to_server(self.service, self.server)
        audit_pb2_grpc.add_RuntimeAuditServiceServicer_to_server(self.service, self.server)
        model_pb2_grpc.add_RuntimeModelServiceServicer_to_server(self.service, self.server)
        self.server.add_generic_rpc_handlers((health(self.service),))
        self.port = self.server.add_insecure_port(f"127.0.0.1:{port}")

    @property
    def url(self):
        return f"grpc://127.0.0.1:{self.port}"

    def break_rule(self, fault):
        """From now on, for who connects next; None: keep them all."""
        service = self.service
        service.fault = (FAULTS | STOP_FAULTS)[fault] if fault else {}
        service.run = Run()

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *ignored):
        self.server.stop(0).wait()


def main():
    with Server(sys.argv[1]) as server:
        server.break_rule(sys.argv[2] if len(sys.argv) > 2 else None)
        server.service.starting = 4
        over = threading.Event()
        signal.signal(signal.SIGTERM, lambda *ignored: over.set())
        over.wait()
        server.service.stopping.set()
        server.server.stop(0.3).wait()


if __name__ == "__main__":
    main()
