"""nimi_streams: every streaming method of nimi.runtime.v1, held open, and then the daemon stops.

    with Machine(start_weir, each=250) as machine:
        machine.open_all()
        took = machine.stop()       # every stream CANCELLED in plain words, nothing forged, exit 0

A new streaming method is one more row of MODES: its name, how to open it, whether an event comes
before anything happens, and which event would be an end.
"""
import itertools
import os
import resource
import socket
import threading
import time

import grpc
import nimi_client as nimi
from accounts import Holder
from grpc_health.v1 import health_pb2, health_pb2_grpc
from nimi.runtime.v1 import account_pb2, app_pb2, app_pb2_grpc, audit_pb2, auth_pb2, auth_pb2_grpc
from nimi.runtime.v1 import realtime_pb2 as rt
from nimi.runtime.v1 import realtime_pb2_grpc, workflow_pb2_grpc
from nimi.runtime.v1 import workflow_pb2 as wf
from nimi_client import common, pb
from subscriptions import STOPPED

PATIENCE = 3600  # a busy machine opens and reads thousands of streams slowly
LASTS_MS = 300000  # the longest that a call of a model may last
RECORDS = 2000  # in the audit log: much more than a reader that waits takes ahead
# A connection of its own, whose client takes little ahead.
OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 65536),
]
WORKFLOW_ENDS = (wf.WORKFLOW_EVENT_COMPLETED, wf.WORKFLOW_EVENT_FAILED, wf.WORKFLOW_EVENT_CANCELED)


class Mute:
    """A provider that takes every request and never answers."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.peers = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                self.peers.append(self.listener.accept()[0])
            except OSError:
                return

    def close(self):
        self.listener.close()
        for peer in self.peers:
            peer.close()

    @property
    def config(self):
        return (
            "nimi: {slots: 0, slots_per_app: 0, allow_loopback_provider_endpoint: true,"
            " probe_interval: 0s}\n"
            # On a busy machine the first streams wait long for the last to be opened.
            "limits: {connections: 2000, write_stall: 1h}\n"
            "providers:\n  - {name: mute, kind: openai, key_env: MUTE_KEY,"
            f" base_url: 'http://127.0.0.1:{self.listener.getsockname()[1]}/v1'}}\n"
            "connectors:\n  - {id: mute, provider: mute}\n"
            "  - {id: here, provider: scripted, local: true, models: [m]}\n"
        )


# --- how each is opened -------------------------------------------------------------------------


def open_text(machine, client):
    return client.open(nimi.request("for ever", timeout_ms=LASTS_MS), timeout=PATIENCE)


def open_speech(machine, client):
    spec = pb.SpeechSynthesizeScenarioSpec(text="Good morning.")
    head = nimi.head(
        connector_id="mute",
        model_id="tts-1",
        route_policy=common.ROUTE_POLICY_CLOUD,
        subject_user_id="anna",
        timeout_ms=LASTS_MS,
    )
    asked = pb.StreamScenarioRequest(
        head=head,
        scenario_type=pb.SCENARIO_TYPE_SPEECH_SYNTHESIZE,
        spec=pb.ScenarioSpec(speech_synthesize=spec),
    )
    return client.open(asked, timeout=PATIENCE)


def open_job(machine, client):
    return client.ai.SubscribeScenarioJobEvents(
        pb.SubscribeScenarioJobEventsRequest(job_id=machine.job),
        metadata=client.metadata(),
        timeout=PATIENCE,
    )


def open_workflow(machine, client):
    stub = workflow_pb2_grpc.RuntimeWorkflowServiceStub(client.channel)
    request = wf.SubscribeWorkflowEventsRequest(task_id=machine.workflow)
    return stub.SubscribeWorkflowEvents(request, metadata=client.metadata(), timeout=PATIENCE)


def open_export(machine, client):
    return client.audit.ExportAuditEvents(
        audit_pb2.ExportAuditEventsRequest(), metadata=client.metadata(), timeout=PATIENCE
    )


def open_runtime_health(machine, client):
    request = audit_pb2.SubscribeRuntimeHealthEventsRequest()
    return client.audit.SubscribeRuntimeHealthEvents(
        request, metadata=client.metadata(), timeout=PATIENCE
    )


def open_provider_health(machine, client):
    request = audit_pb2.SubscribeAIProviderHealthEventsRequest()
    return client.audit.SubscribeAIProviderHealthEvents(
        request, metadata=client.metadata(), timeout=PATIENCE
    )


def open_messages(machine, client):
    return app_pb2_grpc.RuntimeAppServiceStub(client.channel).SubscribeAppMessages(
        app_pb2.SubscribeAppMessagesRequest(app_id=nimi.APP),
        metadata=client.metadata(),
        timeout=PATIENCE,
    )


def open_account(machine, client):
    holder = Holder(client, nimi.APP)
    request = account_pb2.SubscribeAccountSessionEventsRequest(caller=holder.caller)
    return holder.stub.SubscribeAccountSessionEvents(
        request, metadata=holder.metadata, timeout=PATIENCE
    )


def open_watch(machine, client):
    stub = health_pb2_grpc.HealthStub(client.channel)
    return stub.Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE)


def open_realtime(machine, client):
    """A session of its own; an app has at most 16. Every tenth talks for ever to a reader that takes
    nothing."""
    number = next(machine.numbers)
    app = f"app.{number // 16}"
    metadata = client.metadata(app_id=app)
    stub = realtime_pb2_grpc.RuntimeAiRealtimeServiceStub(client.channel)
    opening = rt.OpenRealtimeSessionRequest(head=nimi.head(app_id=app))
    session = client.ask(stub.OpenRealtimeSession, opening, metadata)[0].session_id
    call = stub.ReadRealtimeEvents(
        rt.ReadRealtimeEventsRequest(session_id=session), metadata=metadata, timeout=PATIENCE
    )
    if number % 10 == 0:
        message = pb.ChatMessage(role="user", content="for ever")
        items = [rt.RealtimeInputItem(message=message)]
        request = rt.AppendRealtimeInputRequest(session_id=session, items=items)
        client.ask(stub.AppendRealtimeInput, request, metadata)
    return call


def ends_realtime(event):
    return event.HasField("completed") or event.HasField("failed")


def never(event):
    return False


def ends_scenario(event):
    return event.frame.done or event.HasField("completed") or event.HasField("failed")


MODES = [
    # name                how               an event first   what would be an end
    ("B jobs",            open_job,             True,  lambda e: e.event_type >= pb.SCENARIO_JOB_EVENT_COMPLETED),
    ("B workflows",       open_workflow,        True,  lambda e: e.event_type in WORKFLOW_ENDS),
    ("C export",          open_export,          True,  lambda e: e.eof),
    ("D runtime health",  open_runtime_health,  True,  never),
    ("D provider health", open_provider_health, False, never),
    ("D app messages",    open_messages,        False, never),
    ("D account",         open_account,         True,  never),
    ("D grpc.health.v1",  open_watch,           True,  never),
    ("D realtime",        open_realtime,        True,  ends_realtime),
    # Last: one talks, the other hears no word of its provider, which ends it after a minute.
    ("A text",            open_text,            True,  ends_scenario),
    ("A speech",          open_speech,          True,  ends_scenario),
]


# --- one daemon ---------------------------------------------------------------------------------


class Machine:
    def __init__(self, start_weir, each):
        self.each, self.mute, self.calls = each, Mute(), []
        self.numbers = itertools.count()
        self.weir = start_weir(
            script="test/e2e/scripts/slow.yaml",
            config=self.mute.config,
            env={"MUTE_KEY": "k"},
        )
        client = nimi.Client(self.weir)
        self._fill_log(client)
        self.job = self._submit_job(client)
        self.workflow = self._submit_workflow(client)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.mute.close()

    @staticmethod
    def _fill_log(client):
        """Enough records that no export is over before the stop."""
        stub = auth_pb2_grpc.RuntimeAuthServiceStub(client.channel)
        request = auth_pb2.RegisterAppRequest(app_id=nimi.APP, app_instance_id="one")
        for _ in range(RECORDS // 100):
            asked = [
                stub.RegisterApp.future(request, metadata=client.metadata(), timeout=PATIENCE)
                for _ in range(100)
            ]
            assert all(call.result().accepted for call in asked)
        # The log is written behind the calls.
        export = audit_pb2.ExportAuditEventsRequest()
        lines, give_up = 0, time.monotonic() + PATIENCE
        while lines < RECORDS:
            assert time.monotonic() < give_up, f"the log has {lines} records"
            chunks = client.audit.ExportAuditEvents(export, metadata=client.metadata())
            lines = b"".join(chunk.chunk for chunk in chunks).count(b"\n")

    @staticmethod
    def _submit_job(client):
        submitted = pb.SubmitScenarioJobRequest(
            head=nimi.head(timeout_ms=LASTS_MS),
            scenario_type=pb.SCENARIO_TYPE_TEXT_GENERATE,
            execution_mode=pb.EXECUTION_MODE_ASYNC_JOB,
            spec=nimi.text_spec("for ever"),
        )
        return client.ask(client.ai.SubmitScenarioJob, submitted)[0].job.job_id

    @staticmethod
    def _submit_workflow(client):
        ask = wf.WorkflowNode(
            node_id="ask",
            node_type=wf.WORKFLOW_NODE_AI_GENERATE,
            ai_generate_config=wf.AiGenerateNodeConfig(model_id="local/m", prompt="for ever"),
        )
        submitted = wf.SubmitWorkflowRequest(
            app_id=nimi.APP,
            definition=wf.WorkflowDefinition(workflow_type="test", nodes=[ask]),
            timeout_ms=LASTS_MS,
        )
        stub = workflow_pb2_grpc.RuntimeWorkflowServiceStub(client.channel)
        return client.ask(stub.SubmitWorkflow, submitted)[0].task_id

    def open_all(self):
        """Each mode on connections of its own; every stream is established. Nobody reads further
        until the stop, and a connection may have a mebibyte in its buffers for all its streams."""
        for name, how, first, ends in MODES:
            at_once = 1 if how is open_export else 25
            for number in range(self.each):
                if number % at_once == 0:
                    client = nimi.Client(self.weir, options=OPTIONS)
                self.calls.append((name, how(self, client), first, ends))
        for name, call, first, ends in self.calls:
            try:
                assert not first or not ends(next(call)), name
            except grpc.RpcError as error:
                raise AssertionError(f"{name} was not established: {error.details()}") from None
            call.initial_metadata()

    def stop(self):
        """SIGTERM: seconds until the last subscription had ended as its client sees it, and until
        the process was gone. No stream can have ended later than that. Exports are read after the
        subscriptions: some of them still in time to read all. `over` becomes the number of streams
        of each mode that had come to their own end before, and `cpu_s` what the stop cost the
        daemon: the rest of the seconds is this client's, and what the machine did meanwhile."""
        exits = []
        cpu_s, before = cpu_seconds(self.weir.pid), children_cpu_seconds()
        self.over = dict.fromkeys((name for name, *_ in MODES), 0)
        process, began, signalled = self.weir.process, time.monotonic(), time.time()
        waits = threading.Thread(target=lambda: exits.append((process.wait(), time.monotonic())))
        self.weir.signal(15)
        waits.start()
        for name, call, _, ends in sorted(self.calls, key=lambda call: "DCAB".index(call[0][0])):
            self.over[name] += not check_cancelled(name, call, ends, began, signalled)
            if name.startswith("D"):
                subscriptions = time.monotonic() - began
        waits.join()
        assert self.weir.wait() == 0
        self.cpu_s = children_cpu_seconds() - before - cpu_s
        return subscriptions, exits[0][1] - began


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_cpu_seconds():
    """Of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class TooSlow(Exception):
    """This client's own limit ended a call; it says nothing of the daemon."""


def was_over(event, signalled):
    """Whether this end was made before the signal: both times are of this machine's clock."""
    return event.timestamp.seconds + event.timestamp.nanos / 1e9 < signalled


def check_cancelled(name, call, ends, began, signalled):
    """CANCELLED and no end; an export may also have come to its real end (K-STREAM-010). False: the
    stream was over before the signal, with its real end."""
    events = []
    try:
        for event in call:
            events.append(event)
    except grpc.RpcError:
        pass
    said = (name, call.code(), call.details(), f"{time.monotonic() - began:.1f} s after SIGTERM")
    if call.code() == grpc.StatusCode.DEADLINE_EXCEEDED:  # of `timeout`: no mode ends so
        raise TooSlow(f"{said}: this client waited no longer")
    if name == "C export" and call.code() == grpc.StatusCode.OK:
        assert [event.eof for event in events] == [False] * (len(events) - 1) + [True]
        sequences = [event.sequence for event in events]
        assert sequences == list(range(sequences[0], sequences[0] + len(events)))
        lines = b"".join(event.chunk for event in events).count(b"\n")
        assert lines + 32768 // 200 > RECORDS, lines  # all but those of the first chunk
        return True
    if any(ends(event) for event in events):
        assert ends(events[-1]) and was_over(events[-1], signalled), f"{said}: an end was invented"
        assert call.code() == grpc.StatusCode.OK, said
        return False
    assert call.code() == grpc.StatusCode.CANCELLED, said
    # Trailers would stand behind what an export's reader has not read, so its stream is reset.
    if name == "C export":
        return True
    wanted = "the server is stopping" if name == "D grpc.health.v1" else STOPPED
    assert call.details() == wanted, said
    return True
