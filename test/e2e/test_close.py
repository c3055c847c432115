"""How streams end when the daemon stops."""
import signal
import socket
import time

import crawbl
import grpc
import harness
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from test_lifecycle import wait_until_loading

pytestmark = pytest.mark.weir(script="test/e2e/scripts/contract.yaml")

IMPATIENT = pytest.mark.weir(config="limits:\n  shutdown: 500ms\n")
# Seconds. Turns may take ten when it stops (limits.shutdown), so less is enough to see that nothing
# waited for that; a busy machine needs a part of it, and a sanitizer build looks for leaks as well.
SLACK = 10 if crawbl.is_sanitized() else 4


def sigterm(weir):
    weir.signal(signal.SIGTERM)
    return time.monotonic()


def open_sse(weir, message, session="s"):
    """Start /stream by hand and return the socket behind the first event."""
    body = f'{{"input":"{message}","session_id":"{session}"}}'
    peer = socket.create_connection(("127.0.0.1", weir.port("http")), 30)
    peer.sendall(
        b"POST /stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        + f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    received = b""
    while b"begin" not in received:
        received += peer.recv(65536)
    return peer, received


def read_all(peer, received=b""):
    with peer:
        while part := peer.recv(65536):
            received += part
    return received


def test_an_idle_daemon_is_gone_within_a_second_of_sigterm(weir):
    """D1"""
    started = sigterm(weir)
    assert weir.wait() == 0
    assert time.monotonic() - started < 1 * SLACK


def test_an_idle_daemon_with_an_open_channel_is_gone_within_a_second_of_sigterm(weir):
    """D1: a channel without a call"""
    grpc.channel_ready_future(weir.channel()).result(10)
    started = sigterm(weir)
    assert weir.wait() == 0
    assert time.monotonic() - started < 1 * SLACK


def test_an_idle_stream_ends_unavailable_at_once(weir):
    """K18: so that clients redial"""
    with crawbl.open_stream(weir) as fresh, crawbl.open_stream(weir) as used:
        assert used.ask("hello").error is None
        fresh_ended = crawbl.in_background(fresh.status)
        started = sigterm(weir)
        assert used.status() == grpc.StatusCode.UNAVAILABLE
        assert time.monotonic() - started < 0.5 * SLACK
        # A call of which nothing was ever sent may not have reached the daemon at all.
        assert fresh_ended() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        assert weir.wait() == 0
        assert time.monotonic() - started < 1 * SLACK


def test_a_turn_in_flight_ends_well_and_then_the_daemon_leaves(weir):
    """K18"""
    with crawbl.open_stream(weir) as stream:
        stream.send("short while")
        assert stream.next().chunk.text == "begin"
        started = sigterm(weir)
        turn = stream.turn()
        assert turn.error is None and turn.done.turns[0].text == "beginend"
        assert stream.status() == grpc.StatusCode.UNAVAILABLE
        assert weir.wait() == 0
        assert time.monotonic() - started < 1.5 * SLACK


def test_a_turn_in_flight_with_a_tool_ends_well(weir):
    """K18"""
    with crawbl.open_stream(weir) as stream:
        stream.send("slow tool")
        while stream.next().WhichOneof("event") != "tool_call":
            pass
        sigterm(weir)
        assert stream.turn().text == "manager waited."
        assert weir.wait() == 0


def test_a_half_closed_stream_ends_ok_though_the_daemon_stops(weir):
    """K18: its last turn was the last thing it wanted"""
    with crawbl.open_stream(weir) as stream:
        stream.send("short while")
        stream.half_close()
        assert stream.next().chunk.text == "begin"
        sigterm(weir)
        assert stream.turn().error is None
        assert stream.status() == grpc.StatusCode.OK
        assert weir.wait() == 0


def test_a_stream_that_half_closes_while_the_daemon_stops_ends_ok(weir):
    """K18"""
    with crawbl.open_stream(weir) as stream:
        stream.send("short while")
        assert stream.next().chunk.text == "begin"
        sigterm(weir)
        stream.half_close()
        assert stream.turn().error is None
        assert stream.status() == grpc.StatusCode.OK
        assert weir.wait() == 0


def test_requests_that_wait_behind_the_last_turn_get_no_forged_end(weir):
    """K18, K3"""
    with crawbl.open_stream(weir) as stream:
        stream.send("short while", session_id="s")
        stream.send("long while", session_id="s")
        assert stream.next().chunk.text == "begin"
        started = sigterm(weir)
        assert stream.turn().error is None
        assert stream.status() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        assert weir.wait() == 0
        assert time.monotonic() - started < 2 * SLACK


@IMPATIENT
@pytest.mark.parametrize("message", ["long while", "fail stall", "endless tool"])
def test_a_turn_longer_than_the_deadline_ends_cancelled_without_a_done(weir, message):
    """K18, K3, C10"""
    with crawbl.open_stream(weir) as stream:
        stream.send(message, session_id="s")
        stream.next()
        started = sigterm(weir)
        seen = []
        with pytest.raises(grpc.RpcError) as failure:
            seen.extend(iter(stream.next, None))
        assert failure.value.code() == grpc.StatusCode.CANCELLED
        assert not any(event.HasField("done") for event in seen), "a forged end"
        assert weir.wait() == 0
        assert 0.15 < time.monotonic() - started < 1.5 * SLACK


@IMPATIENT
def test_an_event_stream_longer_than_the_deadline_ends_with_error_and_done(weir):
    """K18, S1"""
    peer, received = open_sse(weir, "long while")
    started = sigterm(weir)
    received = read_all(peer, received)
    assert weir.wait() == 0
    assert time.monotonic() - started < 1.5 * SLACK
    frames = received.replace(b"\r\n", b"")
    assert frames.count(b"event: error\ndata: ") == 1 and b"event: result" not in frames
    assert frames.count(b"data: [DONE]\n\n") == 1
    assert frames.index(b"event: error") < frames.index(b"data: [DONE]")
    assert received.endswith(b"0\r\n\r\n"), "the chunked body was cut"


def test_an_event_stream_in_flight_ends_well(weir):
    """K18, S1"""
    peer, received = open_sse(weir, "short while")
    sigterm(weir)
    received = read_all(peer, received)
    assert weir.wait() == 0
    assert b'data: {"delta":"end"}' in received and b"event: result" in received
    assert received.count(b"data: [DONE]\n\n") == 1 and received.endswith(b"0\r\n\r\n")


def test_while_it_stops_no_new_turn_begins(weir):
    """D1; test_lifecycle.py has what is still answered"""
    with crawbl.open_stream(weir) as busy:
        channel = weir.channel()
        with crawbl.open_stream(weir, channel) as known:
            assert known.ask("hello").error is None
        busy.send("endless tool")
        while busy.next().WhichOneof("event") != "tool_call":
            pass
        sigterm(weir)
        wait_until_loading(weir.ports)
        with crawbl.open_stream(weir, channel) as late:
            late.send("hello")
            assert late.status() == grpc.StatusCode.UNAVAILABLE
        with weir.http() as other:
            assert other.post("/invoke", json={"input": "hello"}).status_code == 503
        busy.call.cancel()
        assert weir.wait() == 0


def test_a_watcher_of_health_hears_not_serving_and_then_cancelled(weir):
    """G17, C10"""
    stub = health_pb2_grpc.HealthStub(weir.channel())
    watch = stub.Watch(health_pb2.HealthCheckRequest(), timeout=30)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    started = sigterm(weir)
    assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
    with pytest.raises(grpc.RpcError) as failure:
        next(watch)
    assert failure.value.code() == grpc.StatusCode.CANCELLED
    assert weir.wait() == 0
    assert time.monotonic() - started < 1 * SLACK


@pytest.mark.weir(env=harness.NO_JOINS)
@pytest.mark.parametrize("message", ["long while", "endless tool"])
def test_a_second_signal_forces_the_exit(weir, message):
    """D3"""
    with crawbl.open_stream(weir) as stream:
        stream.send(message)
        stream.next()
        started = sigterm(weir)
        time.sleep(0.2)
        weir.signal(signal.SIGTERM)
        weir.wait()
        assert time.monotonic() - started < 1 * SLACK


@pytest.mark.weir(env=harness.NO_JOINS)
def test_a_forced_exit_leaves_a_store_that_starts_again(weir):
    """D3, R-1"""
    with crawbl.open_stream(weir) as stream:
        assert stream.ask("hello", session_id="s").error is None
        stream.send("long while", session_id="s")
        stream.next()
        sigterm(weir)
        time.sleep(0.2)
        weir.signal(signal.SIGTERM)
        weir.wait()
    weir.start()
    assert crawbl.one_turn(weir, "hello", session_id="s").error is None


@IMPATIENT
def test_a_turn_that_the_deadline_cut_leaves_its_session_usable_after_a_start(weir):
    """K18, K26"""
    with crawbl.open_stream(weir) as stream:
        stream.send("long while", session_id="s")
        stream.next()
        weir.restart()
    assert crawbl.one_turn(weir, "hello", session_id="s").error is None


@IMPATIENT
def test_100_streams_of_all_kinds_end_in_time(weir):
    """D1, C10"""
    channel = weir.channel()
    idle = [crawbl.open_stream(weir, channel) for _ in range(30)]
    busy = [crawbl.open_stream(weir, channel) for _ in range(30)]
    for stream in idle:
        assert stream.ask("hello").error is None
    for stream in busy:
        stream.send("long while")
        stream.next()
    peers = [open_sse(weir, "long while", f"sse-{n}") for n in range(20)]
    started = sigterm(weir)
    assert {stream.status() for stream in idle} == {grpc.StatusCode.UNAVAILABLE}
    assert {stream.status() for stream in busy} == {grpc.StatusCode.CANCELLED}
    for peer, received in peers:
        assert read_all(peer, received).count(b"data: [DONE]\n\n") == 1
    assert weir.wait() == 0
    assert time.monotonic() - started < 2 * SLACK


def test_sigpipe_and_sighup_do_not_end_it(weir):
    """D3"""
    for number in (signal.SIGPIPE, signal.SIGHUP):
        weir.signal(number)
        time.sleep(0.05)
        assert crawbl.one_turn(weir, "hello").error is None


@pytest.mark.parametrize("kind", ["silent", "kept alive"])
def test_an_idle_daemon_with_a_connection_of_this_kind_is_gone_within_a_second(weir, kind):
    """D1"""
    silent = socket.create_connection(("127.0.0.1", weir.port("http")), 10)
    with weir.http() as http, silent:
        if kind == "kept alive":
            silent.close()
            assert http.get("/health").status_code == 200
        started = sigterm(weir)
        assert weir.wait() == 0
        assert time.monotonic() - started < 1 * SLACK
