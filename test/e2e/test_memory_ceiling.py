"""limits.memory: what turns hold together has a ceiling, and nobody ends the process by asking
for more (checks.md L2, L5). Full sizes: test/proof/memory.py."""
import concurrent.futures
import json
import socket
import time

import crawbl
import grpc
import httpx
import pytest
from agentruntime.v1 import runtime_pb2 as pb
from agentruntime.v1 import runtime_pb2_grpc
from vendor import Vendor

MIB = 1024 * 1024
SCRIPT = "test/e2e/scripts/flood.yaml"
OPEN = {"CRAWBL_MCP_SIGNING_KEY": None}  # no token is needed


def roofed(start_weir, limit="32MiB", **kwargs):
    config = f"limits: {{memory: {limit}}}\n"
    return start_weir(script=SCRIPT, config=config, **{"env": OPEN, **kwargs})


def rss(weir):
    status = open(f"/proc/{weir.pid}/status").read().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) * 1024


def invoke(weir, text, **more):
    with weir.http() as http:
        return http.post("/invoke", json={"input": text, **more})


def healthy(weir):
    with weir.http() as http:
        assert http.get("/health").json()["status"] == "healthy"
    assert invoke(weir, "hi").json()["output"] == "ok"


def test_histories_that_the_store_has_make_room_for_new_ones(start_weir):
    weir = roofed(start_weir)
    text = "x" * MIB
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        told = list(pool.map(lambda n: invoke(weir, text, session_id=f"s{n}"), range(60)))
    assert {answer.status_code for answer in told} <= {200, 503}
    assert sum(answer.status_code == 200 for answer in told) >= 40
    if not crawbl.is_sanitized():
        assert rss(weir) < 80 * MIB  # 60 MiB of histories, and their copies, before
    healthy(weir)


def test_whoever_asks_for_too_much_is_told_when_to_come_back(start_weir):
    weir = roofed(start_weir, limit="8MiB")
    for answer in (invoke(weir, "x" * (2 * MIB)), invoke(weir, "x" * (7 * MIB + 512 * 1024))):
        assert answer.status_code == 503, answer.text[:200]
        assert "limits.memory" in answer.json()["error"]["message"]
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.headers["x-runtime-contract-version"] == "1"
    healthy(weir)


def test_a_chunked_body_is_stopped_as_it_grows(start_weir):
    weir = roofed(start_weir, limit="4MiB")

    def pieces():
        yield b'{"input":"'
        for _ in range(7 * 16):
            yield b"x" * 65536
        yield b'"}'

    with weir.http() as http:
        try:
            answer = http.post(
                "/invoke", content=pieces(), headers={"content-type": "application/json"}
            )
            assert answer.status_code == 503 and "retry-after" in answer.headers
        except httpx.WriteError:
            pass  # it was answered while we still sent
    healthy(weir)


def test_converse_says_resource_exhausted(start_weir):
    weir = roofed(start_weir, limit="8MiB", env={})
    stub = runtime_pb2_grpc.AgentRuntimeStub(weir.channel())

    def ask(text):
        request = pb.ConverseRequest(
            session_id="s", message=text, workspace_id="ws-1", user_id="user-1"
        )
        return list(stub.Converse(iter([request]), metadata=weir.metadata(), timeout=20))

    try:
        last = ask("x" * (2 * MIB))[-1]  # an event of the stream, or its status
        assert "RESOURCE_EXHAUSTED" in last.done.model, last
    except grpc.RpcError as why:
        assert why.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "limits.memory" in why.details()
    assert ask("hi")[-1].WhichOneof("event") == "done"


def test_a_reply_that_finds_no_room_fails_and_the_next_turn_works(start_weir):
    weir = roofed(start_weir, limit="2MiB")
    answer = invoke(weir, "flood")
    assert answer.status_code == 503, answer.text[:300]
    assert answer.json()["error"]["details"]["reason"] == "MEMORY"
    healthy(weir)


def test_a_history_that_made_room_is_read_again(start_weir):
    with Vendor() as vendor:
        weir = start_weir(config=vendor.config() + "limits: {memory: 24MiB}\n", env={**OPEN, "HOUSE_KEY": "k"})
        first = "x" * MIB
        assert invoke(weir, first, session_id="first").status_code == 200
        for number in range(12):
            invoke(weir, "y" * (2 * MIB), session_id=f"s{number}")
        assert invoke(weir, "and?", session_id="first").status_code == 200
        users = [m["content"] for m in vendor.asked[-1]["messages"] if m["role"] == "user"]
        assert [len(text) for text in users] == [MIB, 4] and users[0] == first


@pytest.mark.skipif(crawbl.is_sanitized(), reason="the memory of a sanitizer build says nothing")
def test_readers_that_stop_are_not_paid_with_the_kernel_s_memory(start_weir):
    weir = roofed(start_weir, limit="256MiB")
    body = json.dumps({"input": "flood"})
    head = "POST /stream HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()
    invoke(weir, "flood")  # what the store and the loops need once
    before, peers = rss(weir), []
    for _ in range(120):
        peers.append(socket.create_connection(("127.0.0.1", weir.port("http"))))
        peers[-1].sendall(request)
    for peer in peers:
        assert peer.recv(64).startswith(b"HTTP/1.1 200")
    time.sleep(1)
    assert max(send_queues(weir)) <= 128 * 1024

    def each():  # of it some 130 KiB are what the reply has said so far
        return (rss(weir) - before) / len(peers)

    give_up = time.monotonic() + 15  # until the store has what was said; they are cut after 30
    while each() > 256 * 1024 and time.monotonic() < give_up:
        time.sleep(0.2)
    assert each() < 272 * 1024, each()  # 2.4 MiB and more, before
    healthy(weir)
    for peer in peers:
        peer.close()


def send_queues(weir):
    """Bytes in the kernel's send queue of each connection of the HTTP listener."""
    for line in open("/proc/net/tcp").read().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].split(":")[1], 16) == weir.port("http"):
            yield int(fields[4].split(":")[0], 16)


