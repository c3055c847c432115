"""What is answered while the daemon starts and while it stops: listeners are up throughout."""
import contextlib
import socket
import sqlite3
import time

import crawbl
import grpc
import harness
import httpx
import pytest
from agentruntime.v1 import memory_pb2, memory_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from ports import free_port

SCRIPT = "test/e2e/scripts/contract.yaml"
pytestmark = pytest.mark.weir(script=SCRIPT, config="limits: {shutdown: 60s, header: 60s}\n")

PATIENCE = 90
LISTENERS = ("http", "grpc", "nimi_grpc", "nimi_http")
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVING = health_pb2.HealthCheckResponse.SERVING


@contextlib.contextmanager
def new_channel(port):
    """One that dials by itself: others may know the address already."""
    options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        yield channel


def get(ports, path, listener="http", method="GET", **options):
    """Over a connection of its own."""
    url = f"http://127.0.0.1:{ports[listener]}{path}"
    return httpx.request(method, url, timeout=PATIENCE, trust_env=False, verify=harness.NO_TLS, **options)


def health_of(ports, listener="grpc"):
    with new_channel(ports[listener]) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        return stub.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE).status


def refused_turn(ports):
    """How a new turn of Converse is refused."""
    with new_channel(ports["grpc"]) as channel:
        with crawbl.Stream(channel, harness.Daemon.metadata()) as stream:
            stream.send("hello")
            assert stream.status() == grpc.StatusCode.UNAVAILABLE
            return stream.call.details()


def assert_no_turns(ports):
    health = get(ports, "/health")
    assert (health.status_code, health.json()["status"]) == (200, "loading")
    for path in ("/invoke", "/stream", "/resume"):
        refused = get(ports, path, method="POST", json={"input": "hello"})
        assert refused.status_code == 503 and int(refused.headers["retry-after"]) >= 1
    assert get(ports, "/openapi.json").status_code == 200
    for path, status in (("/readyz", 503), ("/healthz", 503), ("/livez", 200)):
        assert get(ports, path, "nimi_http").status_code == status
    assert health_of(ports) == health_of(ports, "nimi_grpc") == NOT_SERVING


# --- the start ------------------------------------------------------------------------


class AtPorts(harness.Daemon):
    """A daemon whose ports are known before it is ready."""

    def command(self):
        self.ports = {name: free_port() for name in LISTENERS}
        ports = iter(self.ports.values())
        words = super().command()
        return [f"127.0.0.1:{next(ports)}" if word == "127.0.0.1:0" else word for word in words]


def wait_for_health(ports):
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        with contextlib.suppress(httpx.TransportError):
            return get(ports, "/health").json()["status"]
    raise AssertionError("nobody listens")


def test_a_daemon_that_opens_its_store_says_so_and_takes_no_turns(tmp_path):
    """Somebody's shell holds the database for a moment, so the store is not open yet."""
    weir = AtPorts(tmp_path, script=SCRIPT)
    weir.start().stop()
    with contextlib.closing(sqlite3.connect(weir.data / "weir.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        weir.process = weir.spawn()
        assert wait_for_health(weir.ports) == "loading"
        assert_no_turns(weir.ports)
        assert "starting" in refused_turn(weir.ports)
        assert get(weir.ports, "/weir/v1/sessions").status_code == 503
        db.execute("ROLLBACK")
    while wait_for_health(weir.ports) == "loading":
        time.sleep(0.005)
    assert health_of(weir.ports) == SERVING
    assert crawbl.one_turn(weir, "hello").error is None
    weir.stop()


def test_a_start_that_fails_says_nothing_of_turns(tmp_path, weir):
    other = harness.Daemon(tmp_path / "other")
    other.folder.mkdir()
    other.data = weir.data
    assert other.spawn().wait(PATIENCE) == 1
    log = other.log()
    assert "is using it" in log and "deadline" not in log and "turns" not in log, log


def test_a_daemon_that_cannot_listen_opens_no_store(tmp_path, weir):
    """The store begins after the listeners; what was asked of it meanwhile is not warned of."""
    (tmp_path / "other").mkdir()
    other = harness.Daemon(tmp_path / "other", args=("--http", f"127.0.0.1:{weir.ports['http']}"))
    assert other.spawn().wait(PATIENCE) == 1
    assert not (other.data / "weir.db").exists()
    log = other.log()
    assert "cannot listen" in log and "store" not in log, log


# --- the stop -------------------------------------------------------------------------


def wait_until_loading(ports):
    """A connection without a request yet is closed when the stop begins: asked again, it tells."""
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        with contextlib.suppress(httpx.TransportError):
            if get(ports, "/health").json()["status"] == "loading":
                return
    raise AssertionError("it never said that it is loading")


@contextlib.contextmanager
def stopping(weir):
    """SIGTERM while a turn runs; it is cancelled in the end, and then the daemon leaves."""
    with crawbl.open_stream(weir) as stream:
        stream.send("long while")
        assert stream.next().chunk.text == "begin"
        weir.signal(15)
        wait_until_loading(weir.ports)
        yield
    assert weir.wait() == 0


def test_while_turns_end_others_are_told_and_may_look(weir):
    """K18: the turn that runs keeps the listeners open"""
    with weir.http() as http:
        http.post("/invoke", json={"input": "hello", "session_id": "looked-at"})
    with stopping(weir):
        assert_no_turns(weir.ports)
        assert "stopping" in refused_turn(weir.ports)

        signed = {"authorization": "Bearer " + harness.token("anonymous", "default")}
        sessions = get(weir.ports, "/weir/v1/sessions", headers=signed)
        assert sessions.status_code == 200 and "looked-at" in sessions.text
        path = "/weir/v1/sessions/looked-at"
        acts = get(weir.ports, path, method="DELETE", headers=signed)
        assert acts.status_code == 503 and acts.json()["error"]["code"] == "STOPPING"
        assert int(acts.headers["retry-after"]) >= 1

        with new_channel(weir.port("grpc")) as channel:
            memory = memory_pb2_grpc.MemoryStub(channel)
            who = {"metadata": weir.metadata(), "timeout": PATIENCE}
            asked = memory_pb2.ListMemoriesRequest(workspace_id="ws-1")
            assert memory.ListMemories(asked, **who).ListFields() == []
            with pytest.raises(grpc.RpcError) as refused:
                memory.CreateMemory(memory_pb2.CreateMemoryRequest(), **who)
            assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
            watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            assert next(watch).status == NOT_SERVING
            with pytest.raises(grpc.RpcError) as ended:
                next(watch)
            assert ended.value.code() == grpc.StatusCode.CANCELLED


def test_who_only_looks_does_not_keep_it(weir):
    """Connections that came while it stopped, one of them with half a request."""
    with contextlib.ExitStack() as peers, stopping(weir):
        for said in (b"", b"GET /health HTTP/1.1\r\nHost: w\r\n\r\n", b"GET /heal"):
            peer = socket.create_connection(("127.0.0.1", weir.port("http")), PATIENCE)
            peers.enter_context(peer).sendall(said)
