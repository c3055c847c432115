#!/usr/bin/env python3
"""mixed: minutes of everything at once, and what is left of it afterwards (checks.md L5).

    test/proof/mixed.py [SECONDS]        600 without a number

Beside a healthy client of each wire, for so long:

    bad requests      lines, heads, bodies and frames that are none, over HTTP/1, HTTP/2, gRPC
    resets            turns whose caller resets the connection in their middle
    half-open         connections that say half a head and then nothing
    stopped readers   turns with replies of 2 MiB whose reader stops after the first bytes
    large turns       turns whose user says 1 MiB, each in a session of its own

No healthy call may fail. A minute after the end the process holds at most 10 MiB more than it
held before, and as many descriptors.
"""
import collections
import contextlib
import json
import random
import socket
import struct
import sys
import tempfile
import threading
import time

import clients  # first: it finds the others
import attack
import crawbl
import grpc
import harness
import httpx
from agentruntime.v1 import runtime_pb2 as pb
from agentruntime.v1 import runtime_pb2_grpc

MIB = 1024 * 1024
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with RST


class Field:
    """One daemon, and what is done to it."""

    def __init__(self, weir):
        self.weir = weir
        self.over = threading.Event()
        self.counts = collections.Counter()
        self.failures = []

    def dial(self, listener="http"):
        return socket.create_connection(("127.0.0.1", self.weir.port(listener)), timeout=10)

    def ask(self, text, path="/stream"):
        body = json.dumps({"input": text})
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        peer = self.dial()
        peer.sendall(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
        return peer

    # --- the attacks, one round each --------------------------------------------------

    def bad_request(self, rng):
        kinds = [
            b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
            b"POST /invoke HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\n\r\n{{{{{",
            b"POST /invoke HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            b"GET " + b"/x" * 9000 + b" HTTP/1.1\r\n\r\n",
            attack.START + attack.frame(rng.randrange(12), rng.randrange(256), rng.randrange(9), rng.randbytes(9)),
            rng.randbytes(rng.randrange(1, 400)),
        ]
        with self.dial(rng.choice(["http", "grpc"])) as peer:
            peer.sendall(rng.choice(kinds))
            peer.settimeout(0.2)
            with contextlib.suppress(OSError):
                peer.recv(4096)

    def reset(self, rng):
        peer = self.ask("slow")
        peer.settimeout(5)
        if rng.random() < 0.7:
            peer.recv(64)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        peer.close()

    def half_open(self, rng):
        peers = [self.dial(rng.choice(["http", "grpc"])) for _ in range(20)]
        for peer in peers:
            peer.sendall(b"POST /invoke HTTP/1.1\r\nhost: 127.0"[: rng.randrange(1, 30)])
        self.over.wait(rng.uniform(1, 3))
        for peer in peers:
            peer.close()

    def stopped_reader(self, rng):
        peers = [self.ask("flood") for _ in range(5)]
        for peer in peers:
            peer.recv(64)
        self.over.wait(rng.uniform(1, 5))
        for peer in peers:
            peer.close()

    def large_turn(self, rng):
        with self.weir.http() as http:
            answer = http.post("/invoke", json={"input": "x" * MIB, "session_id": str(rng.random())})
            assert answer.status_code in (200, 503), answer.text[:200]

    # --- whoever must not notice ------------------------------------------------------

    def healthy_http(self, _):
        with self.weir.http() as http:
            assert http.get("/health").status_code == 200
            assert http.post("/invoke", json={"input": "hi"}).json()["output"] == "ok"
        self.over.wait(0.05)

    def healthy_grpc(self, _):
        request = pb.ConverseRequest(session_id="h", message="hi", workspace_id="ws-1", user_id="user-1")
        events = list(self.stub.Converse(iter([request]), metadata=self.weir.metadata(), timeout=30))
        assert events[-1].WhichOneof("event") == "done"
        self.over.wait(0.05)

    # --- all of it --------------------------------------------------------------------

    def go_on(self, work, seed):
        rng, healthy = random.Random(seed), work.__name__.startswith("healthy")
        while not self.over.is_set():
            try:
                work(rng)
                self.counts[work.__name__] += 1
            except (OSError, AssertionError, httpx.HTTPError, grpc.RpcError, ValueError) as why:
                if healthy or isinstance(why, AssertionError):
                    self.failures.append(f"{work.__name__}: {why!r}"[:300])

    def run(self, seconds):
        self.stub = runtime_pb2_grpc.AgentRuntimeStub(self.weir.channel())
        works = [self.bad_request, self.bad_request, self.reset, self.half_open]
        works += [self.stopped_reader, self.large_turn, self.healthy_http, self.healthy_grpc]
        threads = [threading.Thread(target=self.go_on, args=pair) for pair in zip(works, range(99))]
        for thread in threads:
            thread.start()
        self.over.wait(seconds)
        self.over.set()
        for thread in threads:
            thread.join()


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600
    with tempfile.TemporaryDirectory() as folder:
        script = "test/e2e/scripts/flood.yaml"
        weir = harness.Daemon(folder, script, "limits: {memory: 256MiB}\n").start()
        field = Field(weir)
        field.stub = runtime_pb2_grpc.AgentRuntimeStub(weir.channel())
        for _ in range(50):
            field.healthy_http(None), field.healthy_grpc(None)
        time.sleep(5)
        idle, files = attack.resident_bytes(weir.pid), attack.descriptors(weir.pid)
        field.over.clear()
        field.run(seconds)
        peak = attack.resident_bytes(weir.pid)
        time.sleep(60)
        left, left_files = attack.resident_bytes(weir.pid), attack.descriptors(weir.pid)
        weir.stop()
    counts = ", ".join(f"{name} {count}" for name, count in sorted(field.counts.items()))
    print(f"mixed: {seconds:.0f} s: {counts}; {len(field.failures)} healthy calls failed")
    print(f"mixed: idle {idle / MIB:.1f} MiB, at the end {peak / MIB:.1f}, a minute later {left / MIB:.1f}; "
          f"descriptors {files} and {left_files}")  # fmt: skip
    for failure in field.failures[:5]:
        print("  " + failure)
    grew = not crawbl.is_sanitized() and left > idle + 10 * MIB
    sys.exit(1 if field.failures or grew or left_files > files + 4 else 0)


if __name__ == "__main__":
    main()
