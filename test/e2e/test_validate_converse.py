"""`weir validate --profile converse`: our server, a small one over grpcio, and wrong ones."""
import socket
import threading

import harness
import pytest
import wrong_converse
from test_validate import expected, ours, rows_of, run, validate, verdicts

KEY = harness.SIGNING_KEY
KEYED = {"CRAWBL_MCP_SIGNING_KEY": KEY}
MORE = ["--profile", "converse", "--strict", "--error-input", "boom", "--timeout", "30s"]


def test_our_server_keeps_converse_and_memory(tmp_path):
    command = ours(tmp_path)
    http, grpc = command.index("--http") + 1, command.index("--grpc") + 1
    command[http], command[grpc] = "off", "127.0.0.1:{port}"
    inputs = ["--input", "look up", "--error-input", "break down"]
    report, bad = validate("--profile", "converse", "--strict", *inputs, "--", *command)
    assert bad == {}
    assert set(verdicts(report).values()) == {"pass"}


@pytest.mark.weir(script="test/e2e/scripts/validated.yaml")
def test_a_profile_that_is_not_named_is_found_by_probing(weir):
    report, bad = validate("--strict", "--input", "look up", f"grpc://{weir.target}", env=KEYED)
    assert bad == {} and {c["profile"] for c in report["checks"]} == {"converse"}
    report, bad = validate("--strict", weir.url)
    assert {c["profile"] for c in report["checks"]} == {"runtime-v1"}


def examine(fault, *more):
    with wrong_converse.Server(KEY, fault) as server:
        return validate(*MORE, *more, server.url, env=KEYED)


def test_the_small_server_without_a_fault_breaks_nothing():
    report, bad = examine(None)
    assert bad == {} and set(verdicts(report).values()) == {"pass"}


@pytest.mark.parametrize("fault", wrong_converse.FAULTS)
def test_a_server_with_one_fault_fails_exactly_the_check_of_it(fault):
    report, bad = examine(fault, *(["--timeout", "5s"] if fault == "CONV-01" else []))
    check, _, variant = fault.partition(" ")
    assert set(bad) == {check}, bad
    assert bad[check][0] == ("warn" if variant == "negative" else expected(check))


def test_every_check_has_a_wrong_server():
    assert {name.split()[0] for name in wrong_converse.FAULTS} == set(rows_of("converse"))


def test_a_call_of_upstreams_spelling_warns():
    upstream = wrong_converse.failed(lambda r, first: True, lambda e: wrong_converse.failure("Internal", "runner: it broke") if "INTERNAL" in e.done.model else e)
    wrong_converse.FAULTS["spelling"] = upstream
    try:
        report, bad = examine("spelling")
    finally:
        del wrong_converse.FAULTS["spelling"]
    assert set(bad) == {"FAIL-01"} and "INTERNAL" in bad["FAIL-01"][1]


def test_without_a_key_the_checks_of_signatures_are_skipped():
    with wrong_converse.Server(KEY) as server:
        token = harness.token("validate", "validate")
        report, bad = validate(*MORE, "--token", token, server.url)
        assert bad == {}
        found = verdicts(report)
        assert found["TOKN-03"] == found["TOKN-04"] == "skip" and found["TOKN-01"] == "pass"


# --- hostile servers ------------------------------------------------------------------------


class Peer:
    """A listener that answers each connection with `talk(connection)`."""

    def __init__(self, talk):
        self.talk, self.listener = talk, socket.create_server(("127.0.0.1", 0))

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return f"grpc://127.0.0.1:{self.listener.getsockname()[1]}"

    def __exit__(self, *ignored):
        self.listener.close()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.converse, args=(connection,), daemon=True).start()

    def converse(self, connection):
        with connection:
            try:
                self.talk(connection)
                while connection.recv(65536):
                    pass
            except OSError:
                pass


HOSTILE = {
    "silent": lambda c: None,
    "garbage": lambda c: c.sendall(b"\xff" * 4096),
    "HTTP/1.1": lambda c: c.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "closes": lambda c: c.close(),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_peer_gets_its_verdicts_in_time(kind):
    more = ["--timeout", "300ms", "--boot-timeout", "300ms"]
    with Peer(HOSTILE[kind]) as url:
        report, bad = validate("--profile", "converse", *more, url, env=KEYED)
    assert bad["CONV-01"][0] == "fail"
    assert len(report["checks"]) == len(rows_of("converse"))


def test_events_without_end_are_cut():
    endless = wrong_converse.events(lambda all: (wrong_converse.chunk("x" * 60000) for _ in range(10**6)))
    wrong_converse.FAULTS["endless"] = endless
    try:
        report, bad = examine("endless")
    finally:
        del wrong_converse.FAULTS["endless"]
    assert "more than can be kept" in bad["CONV-01"][1]


def test_the_sent_and_seen_of_a_failure_are_shown_without_the_token():
    with wrong_converse.Server(KEY, "CONV-04") as server:
        told = run("--profile", "converse", "--only", "CONV-04", server.url, env=KEYED)
    assert told.returncode == 1
    for part in ("expected call_sequence 0 in turn 1, got 1", "usage manager 'small-1' sequence 1", "end: OK", "fix"):
        assert part in told.stdout
    assert KEY not in told.stdout
