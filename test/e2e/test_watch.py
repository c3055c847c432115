"""weir watch, and with it libweir-client: every kind of stream, honest servers and lying ones."""
import concurrent.futures
import json
import os
import signal
import subprocess
import time

import grpc
import harness
import liar
import nimi_client as nimi
import pytest
import test_nimi_workflows as workflows
import test_runs as runs
from agentruntime.v1 import runtime_pb2 as runtime
from google.protobuf import json_format
from nimi.runtime.v1 import ai_pb2 as ai
from nimi.runtime.v1 import ai_pb2_grpc, audit_pb2, workflow_pb2
from test_tls import root, secure  # noqa: F401  fixtures

PATIENCE = 90
MIB = 1024 * 1024

CODES = ["completed", "failed", "work_cancelled", "refused", "unknown", "truncated", "preempted"]
CODES += ["slow_consumer", "timed_out", "broken", "incomplete", "disconnected", "cancelled"]
SCENARIO = {
    "head": {"appId": nimi.APP, "modelId": "local/m", "routePolicy": "ROUTE_POLICY_LOCAL"},
    "scenarioType": "SCENARIO_TYPE_TEXT_GENERATE",
    "executionMode": "EXECUTION_MODE_STREAM",
    "spec": {"textGenerate": {"input": [{"role": "user", "content": "hello"}]}},
}


class Watched:
    """What `weir watch` printed: its frames, its outcome and its exit status."""

    def __init__(self, process, out, err):
        lines = err.decode().splitlines()
        self.status, self.err = process.returncode, err.decode()
        self.frames = [json.loads(line) for line in out.decode().splitlines()]
        assert lines, (self.status, out)
        self.outcome = json.loads(lines[-1])
        self.name = self.outcome["outcome"]
        self.faults = self.outcome["faults"]
        expected = CODES.index(self.name)
        assert self.status == (expected + 10 if expected else 0), self.err
        assert self.outcome["frames"] == len(self.frames), self.err


def start(method, request=None, *flags, port=None, app=nimi.APP, **options):
    command = [str(harness.BINARY), "watch", method]
    command += [json.dumps(request)] if request is not None else []
    command += ["--json", "--app-id", app, *flags]
    command += ["--address", f"127.0.0.1:{port}"] if port else []
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=harness.clean_environment(options.get("env", {})),
    )


def finish(process):
    out, err = process.communicate(timeout=PATIENCE)
    return Watched(process, out, err)


def watch(*args, **options):
    return finish(start(*args, **options))


# --- a server that lies -------------------------------------------------------------------------


def scenario(number, **payload):
    types = {"started": 1, "delta": 2, "completed": 6, "failed": 7}
    kind = next(iter(payload))
    event = ai.StreamScenarioEvent(event_type=types[kind], sequence=number, **payload)
    return liar.message(event.SerializeToString())


def text(number):
    return scenario(number, delta=ai.ScenarioStreamDelta(text=ai.TextStreamDelta(text="hi")))


STARTED = scenario(1, started=ai.ScenarioStreamStarted(model_resolved="m"))
COMPLETED = scenario(3, completed=ai.ScenarioStreamCompleted(finish_reason=1))
FAILED = scenario(3, failed=ai.ScenarioStreamFailed(reason_code=394, action_hint="later"))
SPOKEN = (liar.head(), STARTED, text(2))


def job(number, status, kind=3):
    event = ai.ScenarioJobEvent(
        event_type=kind, sequence=number, job=ai.ScenarioJob(job_id="j", status=status)
    )
    return liar.message(event.SerializeToString())


def workflow(number, kind):
    event = workflow_pb2.WorkflowEvent(event_type=kind, sequence=number, task_id="t")
    return liar.message(event.SerializeToString())


def chunk(number, eof=False):
    event = audit_pb2.AuditExportChunk(export_id="e", sequence=number, chunk=b"{}\n", eof=eof)
    return liar.message(event.SerializeToString())


def health(number):
    event = audit_pb2.RuntimeHealthEvent(sequence=number, status=3, reason="ready")
    return liar.message(event.SerializeToString())


def turn(model):
    event = runtime.ConverseEvent(done=runtime.DoneEvent(model=model))
    return liar.message(event.SerializeToString())


def part(piece, count):
    """The first bytes of a message, and never the rest."""
    return lambda stream: (
        lambda framed: liar.frame(liar.DATA, 0, stream, framed[9 : 9 + count])
    )(piece(stream))


H = liar.head()
OK = liar.trailers(0)
A, B, W = "StreamScenario", "SubscribeScenarioJobEvents", "SubscribeWorkflowEvents"
C, D = "ExportAuditEvents", "SubscribeRuntimeHealthEvents"
ROWS = {
    # name: method, pieces, outcome, frames, faults, repeat
    "A completed": (A, (*SPOKEN, COMPLETED, OK), "completed", 3, [], "no"),
    "A failed": (A, (*SPOKEN, FAILED, OK), "failed", 3, [], "unknown"),
    "A terminal, then error": (
        A, (*SPOKEN, COMPLETED, liar.trailers(14)), "completed", 3, ["error_after_end"], "no"),
    "A terminal, then reset": (
        A, (*SPOKEN, COMPLETED, liar.reset(8)), "completed", 3, ["error_after_end"], "no"),
    "A frames after the terminal": (
        A, (*SPOKEN, COMPLETED, text(4), FAILED, OK), "completed", 3, ["after_end"], "no"),
    "A silence after the terminal": (
        A, (*SPOKEN, COMPLETED), "completed", 3, ["not_closed"], "no"),
    "A OK without terminal": (A, (*SPOKEN, OK), "truncated", 2, ["no_end"], "unknown"),
    "A OK alone": (A, (H, OK), "truncated", 0, ["no_end"], "unknown"),
    "A error after frames": (A, (*SPOKEN, liar.trailers(13)), "broken", 2, [], "unknown"),
    "A reset after frames": (A, (*SPOKEN, liar.reset(2)), "broken", 2, [], "unknown"),
    "A reset inside a frame": (
        A, (*SPOKEN, part(text(3), 7), liar.reset(2)), "broken", 2, [], "unknown"),
    "A OK inside a frame": (A, (*SPOKEN, part(text(3), 7), OK), "broken", 2, [], "unknown"),
    "A missing trailers": (A, (*SPOKEN, liar.no_trailers()), "broken", 2, [], "unknown"),
    "A hang-up": (A, (*SPOKEN, liar.hang_up()), "broken", 2, [], "unknown"),
    "A goaway, then hang-up": (
        A, (*SPOKEN, liar.goaway(1), liar.hang_up()), "broken", 2, [], "unknown"),
    "A goaway, then the rest": (
        A, (*SPOKEN, liar.goaway(1), COMPLETED, OK), "completed", 3, [], "no"),
    "A goaway before the call": (A, (liar.goaway(0), liar.hang_up()), "broken", 0, [], "yes"),
    "A refused stream": (A, (liar.reset(7),), "broken", 0, [], "yes"),
    "A cancelled by the server": (
        A, (*SPOKEN, liar.trailers(1, "runtime stopping")), "preempted", 2, [], "unknown"),
    "A too slow": (A, (*SPOKEN, liar.trailers(8)), "slow_consumer", 2, [], "unknown"),
    "A too late": (A, (*SPOKEN, liar.trailers(4)), "timed_out", 2, [], "unknown"),
    "A a reason": (A, (H, liar.trailers(9, "AI_MODEL_NOT_READY")), "refused", 0, [], "no"),
    "A no reason": (A, (H, liar.trailers(13, "oops")), "unknown", 0, [], "unknown"),
    "A a gap": (A, (H, STARTED, text(3), OK), "truncated", 2, ["gap", "no_end"], "unknown"),
    "A no message": (
        A, (*SPOKEN, liar.message(b"\xff\xff"), COMPLETED, OK), "completed", 4, ["malformed"], "no"),
    "A too long a message": (
        A, (*SPOKEN, liar.message(b"x", 1 << 30)), "broken", 2, [], "unknown"),
    "B ended": (B, (H, job(1, 3), job(2, 4, 4), OK), "completed", 2, [], "no"),
    "B failed": (B, (H, job(1, 3), job(2, 5, 5), OK), "failed", 2, [], "no"),
    "B cancelled": (B, (H, job(1, 3), job(2, 6, 6), OK), "work_cancelled", 2, [], "no"),
    "B snapshot alone": (B, (H, job(1, 4, 3), OK), "completed", 1, ["disagrees"], "no"),
    "B unknown type": (B, (H, job(1, 3, 99), job(2, 4, 4), OK), "completed", 2, [], "no"),
    "B drops": (B, (H, job(1, 3), job(9, 4, 4), OK), "completed", 2, [], "no"),
    "B without terminal": (B, (H, job(1, 3), OK), "truncated", 1, ["no_end"], "yes"),
    "B preempted": (B, (H, job(1, 3), liar.trailers(1)), "preempted", 1, [], "yes"),
    "B too slow": (B, (H, job(1, 3), liar.trailers(8)), "slow_consumer", 1, [], "yes"),
    "B terminal, then too slow": (
        B, (H, job(1, 4, 4), liar.trailers(8)), "completed", 1, ["error_after_end"], "no"),
    "B broken": (B, (H, job(1, 3), liar.reset(2)), "broken", 1, [], "yes"),
    "B unknown job": (B, (H, liar.trailers(5, "AI_MEDIA_JOB_NOT_FOUND")), "refused", 0, [], "no"),
    "W ended": (W, (H, workflow(1, 1), workflow(2, 6), OK), "completed", 2, [], "no"),
    "W not by a node's end": (W, (H, workflow(1, 11), OK), "truncated", 1, ["no_end"], "yes"),
    "C whole": (C, (H, chunk(0), chunk(1, True), OK), "completed", 2, [], "no"),
    "C whole, not closed": (C, (H, chunk(0, True)), "completed", 1, ["not_closed"], "no"),
    "C after eof": (C, (H, chunk(0, True), chunk(1), OK), "completed", 1, ["after_end"], "no"),
    "C a gap": (C, (H, chunk(0), chunk(2, True), OK), "incomplete", 2, ["gap"], "yes"),
    "C without eof": (C, (H, chunk(0), OK), "incomplete", 1, ["no_end"], "yes"),
    "C broken": (C, (H, chunk(0), liar.trailers(14)), "incomplete", 1, [], "yes"),
    "C refused": (C, (H, liar.trailers(16)), "refused", 0, [], "no"),
    "D disconnected": (D, (H, health(1), liar.trailers(1)), "disconnected", 1, [], "yes"),
    "D closed with OK": (
        D, (H, health(1), OK), "disconnected", 1, ["ok_on_subscription"], "yes"),
    "D too slow": (D, (H, health(1), health(5), liar.trailers(8)), "slow_consumer", 2, [], "yes"),
    "D broken": (D, (H, health(1), liar.trailers(14)), "broken", 1, [], "yes"),
    "D reset": (D, (H, health(1), liar.reset(8)), "broken", 1, [], "yes"),
    "D refused": (D, (H, liar.trailers(12)), "refused", 0, [], "no"),
    "Converse done": ("Converse", (H, turn("m"), OK), "completed", 1, [], "no"),
    "Converse failed": (
        "Converse", (H, turn("ERROR: NOT_FOUND: no agent"), OK), "failed", 1, [], "unknown"),
    "Converse refused": ("Converse", (H, liar.trailers(16)), "refused", 0, [], "no"),
}


def check(name, bytewise):
    method, pieces, outcome, frames, faults, repeat = ROWS[name]
    with liar.Liar(*pieces, bytewise=bytewise) as server:
        seen = watch(method, port=server.port)
    assert seen.name == outcome, (name, seen.err)
    assert len(seen.frames) == frames and seen.faults == faults, (name, seen.err)
    assert seen.outcome["repeat"] == repeat, (name, seen.err)
    return seen


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
def test_each_end_of_a_stream_has_its_outcome(bytewise):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        seen = dict(zip(ROWS, pool.map(lambda name: check(name, bytewise), ROWS)))
    assert seen["A failed"].outcome["reason_code"] == 394
    assert seen["A failed"].outcome["reason"] == "AI_PROVIDER_TIMEOUT"
    assert seen["A failed"].outcome["message"] == "later"
    assert seen["A a reason"].outcome["reason"] == "AI_MODEL_NOT_READY"
    assert seen["A cancelled by the server"].outcome["wait"] == "ready"
    assert seen["A cancelled by the server"].outcome["message"] == "runtime stopping"
    assert seen["B too slow"].outcome["snapshot"].endswith("/GetScenarioJob")
    assert seen["B drops"].outcome["missing"] == 7
    assert seen["D disconnected"].outcome["event"] == "runtime.disconnected"
    assert seen["D too slow"].outcome["missing"] == 3
    assert seen["Converse failed"].outcome["reason"] == "NOT_FOUND"


def test_silence_is_ended_by_a_deadline_and_the_server_hears_of_it():
    with liar.Liar(*SPOKEN) as server:
        seen = watch(A, None, "--deadline-ms", "300", port=server.port)
        assert server.resets.acquire(timeout=PATIENCE)
    assert seen.name == "timed_out" and len(seen.frames) == 2


def test_a_cancelled_call_is_reset():
    with liar.Liar(*SPOKEN) as server:
        seen = watch(A, None, "--cancel-after", "2", port=server.port)
        assert server.resets.acquire(timeout=PATIENCE)
    assert seen.name == "cancelled" and len(seen.frames) == 2 and seen.outcome["repeat"] == "unknown"
    assert seen.outcome["status"] == "CANCELLED"


def test_an_interrupt_cancels_and_the_outcome_is_printed():
    with liar.Liar(*SPOKEN) as server:
        process = start(A, port=server.port)
        lines = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert Watched(process, b"".join(lines) + out, err).name == "cancelled"


# --- a reader that is slow ------------------------------------------------------------------------


class Torrent(ai_pb2_grpc.RuntimeAiServiceServicer):
    """100 MiB of text, as fast as it is taken."""

    def __init__(self):
        self.said = 0

    def StreamScenario(self, request, context):
        piece = ai.ScenarioStreamDelta(text=ai.TextStreamDelta(text="x" * MIB))
        for number in range(1, 101):
            self.said = number
            yield ai.StreamScenarioEvent(event_type=2, sequence=number, delta=piece)
        done = ai.ScenarioStreamCompleted(finish_reason=1)
        yield ai.StreamScenarioEvent(event_type=6, sequence=101, completed=done)


def resident_peak(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


def until_still(count):
    """Wait until a count has not moved for a while."""
    last, same = count(), 0
    while same < 40:
        time.sleep(0.01)
        same = same + 1 if count() == last else 0
        last = count()
    return last


def test_a_slow_reader_of_100_mib_holds_the_server_back_in_bounded_memory():
    torrent = Torrent()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
    ai_pb2_grpc.add_RuntimeAiServiceServicer_to_server(torrent, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    process = start(A, port=port)
    try:
        first = process.stdout.readline()
        assert until_still(lambda: torrent.said) < 30  # of 100; nobody reads
        rest = 0
        for line in process.stdout:
            rest += 1
            if rest == 98:  # it has one more to write
                peak = resident_peak(process.pid)
        err = process.stderr.read()
        assert process.wait(PATIENCE) == 0, err
    finally:
        process.kill()
        server.stop(None)
    assert len(first) > MIB and rest == 100 and torrent.said == 100
    if harness.BINARY.parent == harness.BUILD:  # a sanitizer keeps what was freed
        assert peak < 64 * MIB, peak


# --- JSON, as Google's own library has it ----------------------------------------------------------


def rich_job():
    """A message with every kind of field that these contracts have."""
    event = ai.ScenarioJobEvent(event_type=4, sequence=2**63 + 5, trace_id="T\u00fc\n\"")
    event.timestamp.FromJsonString("2026-03-01T12:00:00.250Z")
    job = event.job
    job.job_id, job.status, job.retry_count, job.scenario_type = "j", 4, -1, 77
    job.head.app_id, job.head.route_policy, job.head.timeout_ms = nimi.APP, 2, 5
    job.created_at.seconds = 1
    job.usage.input_tokens, job.usage.output_tokens = -1, 2**53 + 1
    job.artifacts.add(artifact_id="a", bytes=bytes(range(256)), size_bytes=256)
    job.artifacts.add().metadata.update({"a": [1, None, {"b": True}], "c": 0.1, "d": "e"})
    job.reason_metadata.update({"nested": {"deep": [[]]}, "n": 1e300})
    job.ignored_extensions.add(namespace="n", reason="r")
    return event


def test_frames_are_the_json_of_google():
    event = rich_job()
    pieces = (H, liar.message(event.SerializeToString()), OK)
    with liar.Liar(*pieces) as server:
        seen = watch(B, port=server.port)
    assert seen.frames == [json_format.MessageToDict(event)]


def test_a_request_is_read_as_google_reads_it():
    asked = {
        "head": {"app_id": nimi.APP, "routePolicy": "ROUTE_POLICY_CLOUD", "timeoutMs": "7"},
        "scenarioType": 1,
        "spec": {
            "textGenerate": {
                "input": [
                    {"role": "user", "content": "\u00e4", "parts": [{"type": 1, "text": "t"}]},
                    {"role": "tool", "parts": [{"imageUrl": {"url": "u"}}]},
                ],
                "temperature": 0.7,
                "maxTokens": 1e2,
                "tools": [{"name": "n", "inputSchema": {"type": "object", "x": [1, None]}}],
                "reasoning": None,
            }
        },
        "extensions": [{"namespace": "n", "payload": {"k": {"v": 0.5}}}],
    }
    with liar.Liar(*SPOKEN, COMPLETED, OK) as server:
        assert watch(A, asked, port=server.port).name == "completed"
        (heard,) = server.heard.values()
    expected = json_format.ParseDict(asked, ai.StreamScenarioRequest())
    assert ai.StreamScenarioRequest.FromString(heard[5:]) == expected


# --- the real daemon ------------------------------------------------------------------------------


def nimi_port(weir):
    return int(str(weir.ports["nimi_grpc"]).rsplit(":", 1)[-1])


def test_mode_a_is_read_to_its_completed_event(weir):
    seen = watch(A, SCENARIO, port=nimi_port(weir))
    assert seen.name == "completed" and seen.faults == []
    assert seen.frames[0]["eventType"] == "STREAM_EVENT_STARTED"
    assert seen.frames[-1]["frame"]["done"] is True
    said = "".join(f.get("delta", {}).get("text", {}).get("text", "") for f in seen.frames)
    assert said and said == "".join(f.get("frame", {}).get("textDelta", "") for f in seen.frames)


def test_a_refusal_carries_its_reason_from_the_details(weir):
    wrong = {**SCENARIO, "head": {**SCENARIO["head"], "modelId": ""}}
    seen = watch(A, wrong, port=nimi_port(weir))
    assert seen.name == "refused" and seen.outcome["reason"] == "AI_MODEL_ID_REQUIRED"
    assert seen.outcome["repeat"] == "no" and seen.frames == []


def test_mode_b_is_read_to_its_terminal_event(weir):
    client = workflows.Workflows(weir)
    task = client.submit([workflows.node("one", "template", template="x")])
    seen = watch(W, {"taskId": task}, port=nimi_port(weir))
    assert seen.name == "completed" and seen.faults == [] and seen.outcome["missing"] == 0
    assert seen.frames[0]["eventType"] == "WORKFLOW_EVENT_STARTED"
    assert seen.frames[-1]["eventType"] == "WORKFLOW_EVENT_COMPLETED"
    task = client.submit([workflows.node("one", "noop")])  # no input leads to it
    seen = watch(W, {"taskId": task}, port=nimi_port(weir))
    assert seen.name == "failed" and seen.outcome["repeat"] == "no"
    assert seen.outcome["reason_code"] == 206 and seen.outcome["reason"] == "AI_INPUT_INVALID"
    seen = watch(W, {"taskId": "none"}, port=nimi_port(weir))
    assert seen.name == "refused" and seen.outcome["reason"] == "WF_TASK_NOT_FOUND"


def test_mode_c_is_read_to_eof(weir):
    seen = watch(C, {"appId": nimi.APP}, port=nimi_port(weir))
    assert seen.name == "completed" and seen.faults == []
    assert seen.frames[-1]["eof"] is True


def test_mode_d_is_disconnected_when_the_daemon_stops(weir):
    process = start(D, port=nimi_port(weir))
    first = process.stdout.readline()
    weir.stop()
    out, err = process.communicate(timeout=PATIENCE)
    seen = Watched(process, first + out, err)
    assert seen.name == "disconnected" and seen.faults == []
    assert seen.outcome["event"] == "runtime.disconnected" and seen.outcome["wait"] == "ready"
    assert seen.frames[-1]["status"] == "RUNTIME_HEALTH_STATUS_STOPPING"


def test_the_health_of_grpc_is_a_subscription_too(weir):
    process = start("/grpc.health.v1.Health/Watch", {}, port=weir.port("grpc"))
    first = process.stdout.readline()
    weir.stop()
    out, err = process.communicate(timeout=PATIENCE)
    seen = Watched(process, first + out, err)
    assert seen.frames[0] == {"status": "SERVING"} and seen.name == "disconnected"


def test_turns_of_converse_are_read_to_their_done_events(weir):
    asked = [
        {"sessionId": "s", "message": f"turn {i}", "workspaceId": "ws-1", "userId": "user-1"}
        for i in range(3)
    ]
    seen = watch("Converse", asked, "--token", harness.token(), port=weir.port("grpc"))
    assert seen.name == "completed" and seen.faults == []
    assert sum("done" in f for f in seen.frames) == 3 and "done" in seen.frames[-1]
    seen = watch("Converse", asked, port=weir.port("grpc"))
    assert seen.name == "refused" and seen.outcome["status"] == "UNAUTHENTICATED"


def test_stream_and_the_events_of_a_run_are_read_to_their_ends(weir):
    http = weir.port("http")
    seen = watch("/stream", {"input": "hello"}, port=http)
    assert seen.name == "completed" and seen.faults == []
    assert seen.frames[-1] == {"event": "message", "data": "[DONE]"}
    assert len(list(runs.converse(weir, "watched"))) > 1
    with runs.client(weir) as api:
        run = runs.run_of(api, "watched")["id"]
    mine = ("--token", harness.token())
    seen = watch(f"runs/{run}/events", None, *mine, port=http)
    assert seen.name == "completed" and seen.faults == [] and seen.outcome["missing"] == 0
    assert seen.frames[0]["event"] == "started" and seen.frames[-1]["event"] == "done"
    seen = watch("runs/999999/events", None, *mine, port=http)
    assert seen.name == "refused" and seen.outcome["status"] == "NOT_FOUND"
    seen = watch(f"runs/{run}/events", port=http)
    assert seen.name == "refused" and seen.outcome["status"] == "UNAUTHENTICATED"


@pytest.mark.weir(env={"AGENT_AUTH_TOKEN": "secret"})
def test_a_token_is_sent_and_a_missing_one_is_a_refusal(weir):
    seen = watch("/stream", {"input": "hello"}, port=weir.port("http"))
    assert seen.name == "refused" and seen.outcome["reason"] == "UNAUTHORIZED"
    seen = watch("/stream", {"input": "hello"}, "--token", "secret", port=weir.port("http"))
    assert seen.name == "completed"
    assert "secret" not in seen.err


def test_streams_are_read_over_tls_from_a_server_that_is_trusted(secure, root):
    weir = secure()
    over_tls = f"https://127.0.0.1:{nimi_port(weir)}"
    seen = watch(A, SCENARIO, "--tls-trust", str(root.pem), "--address", over_tls)
    assert seen.name == "completed"
    seen = watch(A, SCENARIO, "--address", over_tls)
    assert seen.name == "broken" and seen.outcome["repeat"] == "yes" and seen.frames == []
    over_tls = f"https://127.0.0.1:{weir.port('http')}"
    asked = {"input": "hello"}
    seen = watch("/stream", asked, "--tls-trust", str(root.pem), "--address", over_tls)
    assert seen.name == "completed"


def test_without_an_address_the_daemon_of_the_settings_is_asked(weir):
    seen = watch(A, SCENARIO, "--nimi-grpc", f"127.0.0.1:{nimi_port(weir)}")
    assert seen.name == "completed"


# --- the command line -----------------------------------------------------------------------------


def complaint(*args):
    command = [str(harness.BINARY), "watch", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE,
                          env=harness.clean_environment({}))
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_what_is_wrong_is_said_before_anything_is_sent():
    here = ("--address", "127.0.0.1:1")
    assert complaint()[0] == 2
    assert complaint("a", "b", "c")[0] == 2
    status, said = complaint(A, "{", *here)
    assert status == 1 and "the request: JSON 1:2" in said
    status, said = complaint(A, '{"hed": {}}', *here)
    assert status == 1 and "did you mean 'head'?" in said
    status, said = complaint("StreamScenari", "{}", *here)
    assert status == 1 and "unknown stream" in said
    status, said = complaint("/x.Y/Z", *here)
    assert status == 1 and "only mode D" in said
    assert complaint(A, "{}", *here, "--cancel-after", "0")[0] == 2
    assert complaint(A, "{}", *here, "--header", "x")[0] == 2
    status, said = complaint(A, "{}", "--nimi-grpc", "127.0.0.1:0")
    assert status == 1 and "chose its port itself (listen.nimi_grpc says 0)" in said


def test_a_server_that_is_not_there_is_told_in_words_for_people():
    with liar.Liar() as server:
        port = server.port
    status, said = complaint(D, "--address", f"127.0.0.1:{port}")
    assert status == 19 and said.startswith("broken: ")
    assert "safe to repeat: yes, after a back-off" in said


def test_faults_are_warnings_for_people():
    with liar.Liar(*SPOKEN, COMPLETED, text(4), OK) as server:
        done = subprocess.run(
            [str(harness.BINARY), "watch", A, "--address", f"127.0.0.1:{server.port}"],
            capture_output=True, text=True, timeout=PATIENCE, env=os.environ)
    assert done.returncode == 0
    assert "weir: warning: frames came after the completing one; they were dropped" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("completed: ")


def test_bytes_of_an_unknown_message_are_shown_as_base64():
    with liar.Liar(H, liar.message(b"\x00\xff"), liar.trailers(1)) as server:
        seen = watch("/other.Service/Watch", None, "--mode-d", port=server.port)
    assert seen.frames == [{"base64": "AP8="}] and seen.name == "disconnected"
