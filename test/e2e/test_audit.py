"""docs/audit.md: what is in the audit log, that every change of it is found, and how it is read."""
import concurrent.futures
import gzip
import hashlib
import json
import sqlite3
import struct
import subprocess
import threading
import time

import crawbl
import grpc
import harness
import httpx
import nimi_client as nimi
import pytest
from agentruntime.v1 import memory_pb2, memory_pb2_grpc
from nimi.runtime.v1 import audit_pb2
from nimi_client import common

QUICK = pytest.mark.weir(script="test/e2e/scripts/quick.yaml")
MANY = 100_000
PER_BLOCK = 500


def audit(weir, *arguments, status=0):
    """What `weir audit` says."""
    done = subprocess.run(
        [harness.BINARY, "audit", *arguments, "--data", weir.data],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == status, (arguments, done.stdout, done.stderr)
    return done.stdout


def records(weir, *arguments):
    return [json.loads(line) for line in audit(weir, "export", *arguments).splitlines()]


def verdict(weir, *arguments, status=0):
    return json.loads(audit(weir, "verify", "--json", *arguments, status=status))


def eventually(look):
    """Records that are part of no commit come within a fraction of a second."""
    give_up = time.monotonic() + 60
    while not (found := look()):
        assert time.monotonic() < give_up
        time.sleep(0.05)
    return found


# --- what is in it ---------------------------------------------------------------------------


def remember(weir, key, content="c"):
    with weir.channel() as channel:
        stub = memory_pb2_grpc.MemoryStub(channel)
        request = memory_pb2.CreateMemoryRequest(
            workspace_id="ws-1", category="core", key=key, content=content
        )
        stub.CreateMemory(request, metadata=weir.metadata(), timeout=10)


def digest_of(*parts):
    whole = b"".join(struct.pack("<Q", len(p)) + p for p in (part.encode() for part in parts))
    return hashlib.sha256(whole).hexdigest()


@QUICK
def test_turns_calls_memories_refusals_and_the_daemon_itself_are_in_the_log(weir):
    client = nimi.Client(weir)
    assert client.stream("hello").code == grpc.StatusCode.OK
    remember(weir, "tea", "green, please")
    with crawbl.open_stream(weir) as stream:
        assert stream.ask("hello").error is None
    with weir.http() as http:
        for _ in range(40):
            bad = {"authorization": "Bearer not-this-one"}
            assert http.get("/weir/v1/memories", headers=bad).status_code == 403
    weir.stop()
    found = records(weir)
    assert [r["seq"] for r in found] == list(range(1, len(found) + 1))
    by = {}
    for record in found:
        by.setdefault(f"{record['domain']} {record['operation']}", []).append(record)
    for name in ("start", "ready", "stopping", "stopped"):
        assert len(by[f"runtime.lifecycle {name}"]) == 1
    call = by["runtime.ai StreamScenario"][0]
    assert (call["workspace"], call["caller"], call["outcome"]) == (nimi.APP, nimi.APP, "OK")
    assert (call["capability"], call["model"]) == ("TEXT_GENERATE", "m")
    assert (call["input_tokens"], call["output_tokens"]) == (7, 11)
    put = by["runtime.memory put"][0]
    assert (put["workspace"], put["user"], put["contract"]) == ("ws-1", "user-1", "crawbl")
    assert put["digest"] == digest_of("core", "tea", "green, please")
    began, ended = by["runtime.run start"], by["runtime.run done"]
    assert [r["run"] for r in began] == [r["run"] for r in ended]
    owners = [(r["contract"], r["workspace"], r["user"]) for r in ended]
    assert owners == [("nimi", nimi.APP, "anonymous"), ("crawbl", "ws-1", "user-1")]
    refused = by["runtime.auth refused"]
    assert sum(r["count"] for r in refused) == 40 and len(refused) == 1
    assert "green" not in json.dumps(found)  # texts are not in it
    assert verdict(weir)["whole"]


def test_the_route_shows_a_caller_its_own(weir):
    remember(weir, "mine")
    headers = {"authorization": "Bearer " + harness.token("user-1", "ws-1")}
    other = {"authorization": "Bearer " + harness.token("user-2", "ws-2")}
    with weir.http() as http:
        page = http.get("/weir/v1/audit", headers=headers).json()
        assert [r["operation"] for r in page["records"]] == ["put"] and not page["more"]
        assert http.get("/weir/v1/audit", headers=other).json()["records"] == []
        asked = http.get("/weir/v1/audit?workspace=ws-1", headers=other)
        assert asked.status_code == 403
        assert http.get("/weir/v1/audit?before=-1", headers=headers).status_code == 422
        assert http.get("/weir/v1/audit?wrong=1", headers=headers).status_code == 400
        remember(weir, "mine too")
        first = http.get("/weir/v1/audit?limit=1", headers=headers).json()
        rest = http.get(f"/weir/v1/audit?before={first['next']}", headers=headers).json()
        assert [r["seq"] for r in rest["records"]] == [page["records"][0]["seq"]]


# --- it is whole, or it is not --------------------------------------------------------------


def change(weir, sql, *values):
    with sqlite3.connect(weir.data / "weir.db") as db:
        db.execute(sql, values)
    db.close()


@QUICK
def test_verify_finds_what_was_changed_with_a_daemon_and_without(weir):
    for key in ("a", "b", "c"):
        remember(weir, key)
    head = verdict(weir)["head"]
    assert verdict(weir, "--head", head)["whole"]
    weir.stop()
    assert verdict(weir, "--head", head)["whole"]
    first = records(weir, "--domain", "runtime.memory")[1]["seq"]
    change(weir, "UPDATE audit SET bytes = replace(bytes, x'636F7265', x'636F7266')")  # not in it
    assert verdict(weir)["whole"]
    change(weir, "UPDATE audit SET at_ms = at_ms + 1 WHERE first = ?", first)
    found = verdict(weir, status=1)
    assert [f["seq"] for f in found["faults"]] == [first]
    weir.start()  # it serves all the same, and the fault stays
    assert verdict(weir, status=1)["faults"][0]["seq"] == first
    assert "not what was written" in audit(weir, "verify", status=1)
    for wrong in (["verify", "--head", "x"], ["list", "--limit", "0"], ["mend"]):
        audit(weir, *wrong, status=2)


def test_a_store_that_is_not_there_is_said(tmp_path):
    weir = harness.Daemon(tmp_path)
    audit(weir, "list", status=1)


# --- kill -9 ---------------------------------------------------------------------------------


@QUICK
def test_what_was_acknowledged_before_a_kill_is_in_the_log(weir):
    told, stop = [], threading.Event()

    def put(worker):
        with weir.channel() as channel:
            stub = memory_pb2_grpc.MemoryStub(channel)
            for i in range(100_000):
                key = f"k{worker}-{i}"
                request = memory_pb2.CreateMemoryRequest(
                    workspace_id="ws-1", category="core", key=key, content="c"
                )
                try:
                    stub.CreateMemory(request, metadata=weir.metadata(), timeout=10)
                except grpc.RpcError:
                    return
                told.append(digest_of("core", key, "c"))
                if stop.is_set():
                    return

    def turn(worker):
        with httpx.Client(base_url=weir.url, timeout=10) as http:
            for i in range(100_000):
                user = f"u{worker}-{i}"
                body = {"input": "hello", "config": {"configurable": {"user_id": user}}}
                try:
                    if http.post("/invoke", json=body).status_code != 200:
                        return
                except httpx.HTTPError:
                    return
                told.append(user)
                if stop.is_set():
                    return

    for _ in range(3):
        before = len(told)
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            jobs = [pool.submit(put if n % 2 else turn, f"{before}-{n}") for n in range(6)]
            while len(told) < before + 120:
                time.sleep(0.01)
            weir.process.kill()
            for job in jobs:
                job.result(timeout=30)
        weir.kill()
        found = {r.get("digest") for r in records(weir)}
        found |= {r.get("user") for r in records(weir, "--operation", "done")}
        assert not set(told) - found
        assert verdict(weir)["whole"]
        weir.start()


# --- over nimi.runtime.v1 --------------------------------------------------------------------


def export(client, metadata=None, **fields):
    chunks = []
    request = audit_pb2.ExportAuditEventsRequest(**fields)
    call = client.audit.ExportAuditEvents(
        request, metadata=metadata or client.metadata(), timeout=60
    )
    try:
        for chunk in call:
            chunks.append(chunk)
    except grpc.RpcError as error:
        return chunks, nimi.Refused(error)
    return chunks, None


def whole(chunks):
    """The bytes of an export that is whole: numbered from 0, eof once and last."""
    assert [c.sequence for c in chunks] == list(range(len(chunks)))
    assert [c.eof for c in chunks] == [False] * (len(chunks) - 1) + [True]
    assert len({c.export_id for c in chunks}) == 1 and len({c.mime_type for c in chunks}) == 1
    return b"".join(c.chunk for c in chunks)


@QUICK
def test_an_export_is_chunks_from_0_and_eof_last(weir):
    client = nimi.Client(weir)
    chunks, error = export(client)  # nothing yet of this app
    assert error is None and whole(chunks) == b"" and len(chunks) == 1
    assert chunks[0].mime_type == "application/x-ndjson"
    assert whole(export(client, format="json")[0]) == b"[]\n"
    assert client.stream("hello").code == grpc.StatusCode.OK

    def seen():
        lines = [json.loads(line) for line in whole(export(client)[0]).splitlines()]
        return [e for e in lines if e["operation"] == "StreamScenario"]

    event = eventually(seen)[0]
    assert event["app_id"] == nimi.APP and event["reason_code"] == "ACTION_EXECUTED"
    assert event["caller_kind"] == "CALLER_KIND_THIRD_PARTY_APP"
    assert event["payload"]["request_id"] == event["trace_id"]
    assert (event["payload"]["model"], event["payload"]["output_tokens"]) == ("m", 11)
    chunks, _ = export(client, format="json", compress=True)
    assert chunks[0].mime_type == "application/json+gzip"
    assert event in json.loads(gzip.decompress(whole(chunks)))
    assert "ExportAuditEvents" in {e["operation"] for e in json.loads(
        whole(export(client, format="json")[0]))}


@QUICK
def test_an_app_reads_its_own_records(weir):
    client = nimi.Client(weir)
    for metadata, fields, code, reason in [
        (client.metadata(app_id=None), {}, "UNAUTHENTICATED", "PRINCIPAL_UNAUTHORIZED"),
        (None, {"app_id": "another.app"}, "PERMISSION_DENIED", "APP_SCOPE_FORBIDDEN"),
        (None, {"format": "xml"}, "INVALID_ARGUMENT", "PROTOCOL_ENVELOPE_INVALID"),
    ]:
        chunks, error = export(client, metadata, **fields)
        assert not chunks and (error.code.name, error.reason) == (code, reason)
    with pytest.raises(nimi.Refused) as refused:
        asked = audit_pb2.ListAuditEventsRequest(app_id="another.app")
        client.ask(client.audit.ListAuditEvents, asked)
    assert refused.value.reason == "APP_SCOPE_FORBIDDEN"


@QUICK
def test_lists_have_pages_and_filters_and_usage_is_summed(weir):
    client = nimi.Client(weir)
    for _ in range(5):
        assert client.stream("hello").code == grpc.StatusCode.OK
    with pytest.raises(nimi.Refused):
        client.execute("hello", model_id="")

    def listed(size=2, **fields):
        events, token = [], ""
        while True:
            asked = audit_pb2.ListAuditEventsRequest(page_size=size, page_token=token, **fields)
            page = client.ask(client.audit.ListAuditEvents, asked)[0]
            assert len(page.events) <= size
            events += page.events
            token = page.next_page_token
            if not token:
                return events

    eventually(lambda: len(listed(domain="runtime.ai")) == 6)
    events = listed()
    numbers = [int(e.audit_id) for e in events]
    assert numbers == sorted(numbers, reverse=True) and len(set(numbers)) == len(numbers)
    good = listed(reason_code=common.ACTION_EXECUTED, domain="runtime.ai")
    assert [e.operation for e in good] == ["StreamScenario"] * 5
    bad = listed(reason_code=common.AI_MODEL_ID_REQUIRED)
    assert [(e.operation, e.payload["grpc_code"]) for e in bad] == [
        ("ExecuteScenario", "INVALID_ARGUMENT")
    ]
    assert len(listed(caller_kind=common.CALLER_KIND_THIRD_PARTY_APP, size=50)) == 6
    assert not listed(caller_kind=common.CALLER_KIND_DESKTOP_MOD)
    assert not listed(subject_user_id="nobody")
    later = {"from_time": {"seconds": int(time.time()) + 60}}
    assert not listed(**later)
    asked = audit_pb2.ListAuditEventsRequest(page_size=2)
    token = client.ask(client.audit.ListAuditEvents, asked)[0].next_page_token
    with pytest.raises(nimi.Refused) as refused:
        asked = audit_pb2.ListAuditEventsRequest(page_token=token, domain="runtime.ai")
        client.ask(client.audit.ListAuditEvents, asked)
    assert refused.value.reason == "PAGE_TOKEN_INVALID"

    asked = audit_pb2.ListUsageStatsRequest(
        window=audit_pb2.USAGE_WINDOW_DAY, capability="TEXT_GENERATE", model_id="m"
    )
    sums = client.ask(client.audit.ListUsageStats, asked)[0].records
    assert sum(s.success_count for s in sums) == 5 and sum(s.error_count for s in sums) == 0
    assert sum(s.input_tokens for s in sums) == 35 and sum(s.output_tokens for s in sums) == 55
    assert all(s.bucket_start.seconds % 86400 == 0 and s.model_id == "m" for s in sums)


# --- 100,000 records -------------------------------------------------------------------------


def varint(number):
    out = b""
    while number >= 128:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def text(tag, value):
    return bytes([tag]) + varint(len(value)) + value


def record_of(number, at_ms):
    body = varint(at_ms) + text(1, b"runtime.ai") + text(2, b"StreamScenario")
    body += text(3, nimi.APP.encode()) + text(9, b"trace-%d" % number) + b"\x41\x00"
    return varint(len(body)) + body


def fill(weir, count):
    """Append records as docs/internals/store.md says they are: a second writer of the format."""
    db = sqlite3.connect(weir.data / "weir.db")
    last = "SELECT first + count, upto, hash, at_ms FROM audit ORDER BY first DESC LIMIT 1"
    first, upto, previous, at_ms = db.execute(last).fetchone()
    for begin in range(0, count, PER_BLOCK):
        records = b"".join(record_of(begin + i, at_ms) for i in range(PER_BLOCK))
        upto += len(records)
        numbers = struct.pack("<QQQQ", first, PER_BLOCK, at_ms, upto)
        digest = hashlib.sha256(b"weir audit 1\n" + previous + numbers + records).digest()
        db.execute(
            "INSERT INTO audit VALUES(?, ?, ?, ?, ?, ?, ?)",
            (first, PER_BLOCK, at_ms, upto, previous, digest, records),
        )
        first, previous = first + PER_BLOCK, digest
    db.commit()
    db.close()


def resident(weir):
    with open(f"/proc/{weir.pid}/statm") as statm:
        return int(statm.read().split()[1]) * 4096


@pytest.mark.weir(
    script="test/e2e/scripts/quick.yaml", config="limits: {write_stall: 1s, shutdown: 2s}\n"
)
def test_100000_records_leave_in_bounded_memory_while_others_write(weir):
    weir.stop()
    fill(weir, MANY)
    assert verdict(weir)["whole"]
    weir.start()
    client = nimi.Client(weir)
    stop = threading.Event()

    def write():
        while not stop.is_set():
            client.stream("hello")

    writer = threading.Thread(target=write)
    writer.start()
    before = resident(weir)
    chunks, error = export(client)
    grown = resident(weir) - before
    stop.set()
    writer.join()
    assert error is None
    lines = whole(chunks).splitlines()
    traces = [json.loads(line).get("trace_id") for line in lines]
    assert traces[:MANY] == [f"trace-{i}" for i in range(MANY)]
    assert len(traces) < MANY + 1000  # the snapshot, not all that came since
    assert sum(len(c.chunk) for c in chunks) > 10 << 20
    if not crawbl.is_sanitized():
        assert grown < 8 << 20

    # A reader that stops is ended, and takes no memory with it.
    request = audit_pb2.ExportAuditEventsRequest()
    paused = client.audit.ExportAuditEvents(request, metadata=client.metadata(), timeout=60)
    assert not next(paused).eof
    with pytest.raises(grpc.RpcError) as ended:
        time.sleep(2.5)
        for chunk in paused:
            assert not chunk.eof
    assert ended.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED

    # A stop cuts an export that is not read, and nothing is made to look like its end.
    cut = client.audit.ExportAuditEvents(request, metadata=client.metadata(), timeout=60)
    assert not next(cut).eof
    weir.signal(15)
    assert weir.wait() == 0
    with pytest.raises(grpc.RpcError) as ended:
        for chunk in cut:
            assert not chunk.eof
    assert ended.value.code() == grpc.StatusCode.CANCELLED
    assert verdict(weir)["whole"]


# A client that takes little ahead, on a connection of its own.
LITTLE = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 65536),
]


def opened_export(weir):
    """An export that has begun and is not over: (call, the chunks that were read)."""
    client = nimi.Client(weir, options=LITTLE)
    request = audit_pb2.ExportAuditEventsRequest()
    call = client.audit.ExportAuditEvents(request, metadata=client.metadata(), timeout=60)
    first = next(call)
    assert first.sequence == 0 and not first.eof
    return call, [first]


def read_on(call, chunks, every=0):
    """Read to the end, one chunk each `every` seconds; the status it ended with."""
    try:
        for chunk in call:
            chunks.append(chunk)
            time.sleep(every)
    except grpc.RpcError:
        pass
    return call.code()


def is_cut(chunks):
    assert [c.sequence for c in chunks] == list(range(len(chunks)))
    return not any(c.eof for c in chunks)


# What is read has half of it: enough for two at once beside other work.
@pytest.mark.weir(script="test/e2e/scripts/quick.yaml", config="limits: {shutdown: 20s}\n")
def test_a_stop_waits_for_exports_that_are_read_and_for_no_others(weir):
    weir.stop()
    fill(weir, MANY)
    weir.start()
    unread, fast, fast_too, slow = (opened_export(weir) for _ in range(4))
    weir.signal(15)
    readers = [
        threading.Thread(target=read_on, args=(*export, every))
        for export, every in ((fast, 0), (fast_too, 0), (slow, 0.2))
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert weir.wait() == 0

    # What is read goes on to its end, whole. What is read too slowly is cut, and so is what
    # is not read at all.
    for call, chunks in (fast, fast_too):
        assert call.code() == grpc.StatusCode.OK
        assert len(whole(chunks).splitlines()) >= MANY
    for call, chunks in (slow, unread):
        assert read_on(call, chunks) == grpc.StatusCode.CANCELLED
        assert is_cut(chunks)
    # Neither holds the process until its deadline, so that nothing is forced.
    stopped = [line for line in weir.log().splitlines() if "shutdown.completed" in line]
    assert "forced=false" in stopped[-1]


@pytest.mark.weir(script="test/e2e/scripts/quick.yaml")
def test_an_unread_export_alone_does_not_hold_a_stop_until_its_deadline(weir):
    weir.stop()
    fill(weir, MANY)
    weir.start()
    unread, unread_too = opened_export(weir), opened_export(weir)
    weir.signal(15)
    assert weir.wait() == 0
    stopped = [line for line in weir.log().splitlines() if "shutdown.completed" in line]
    assert "forced=false" in stopped[-1]
    for call, chunks in (unread, unread_too):
        assert read_on(call, chunks) == grpc.StatusCode.CANCELLED
        assert is_cut(chunks)
