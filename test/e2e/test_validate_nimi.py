"""`weir validate --profile nimi`: our server, a small one over grpcio, and wrong ones."""
import sys

import conftest
import harness
import pytest
import wrong_nimi
from test_validate import expected, rows_of, run, validate, verdicts
from test_validate_converse import HOSTILE, Peer

MORE = ["--profile", "nimi", "--strict", "--error-input", "boom", "--timeout", "20s"]
ONLY_STARTED = {"STOP-01", "STOP-02"}
SCRIPT = "test/e2e/scripts/validated_nimi.yaml"


@pytest.mark.weir(script=SCRIPT)
def test_our_server_keeps_nimi_and_is_found_by_probing(weir):
    url = f"grpc://127.0.0.1:{weir.ports['nimi_grpc']}"
    report, bad = validate("--strict", "--error-input", "break down", url)
    assert bad == {} and {c["profile"] for c in report["checks"]} == {"nimi"}
    found = verdicts(report)
    assert {check for check in found if found[check] != "pass"} == ONLY_STARTED


def test_our_server_keeps_nimi_when_it_is_told_to_stop(tmp_path):
    (tmp_path / "weir.yaml").write_text(f"script: {harness.ROOT}/{SCRIPT}\n")
    command = [harness.BINARY, "serve", "--http", "off", "--grpc", "off", "--nimi-http", "off"]
    command += ["--nimi-grpc", "127.0.0.1:{port}", "--data", tmp_path / "data", "-c", tmp_path / "weir.yaml"]
    report, bad = validate("--profile", "nimi", "--strict", "--error-input", "break down", "--", *command)
    assert bad == {}
    assert set(verdicts(report).values()) == {"pass"}


# --- a server that is not ours ---------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    with wrong_nimi.Server() as server:
        yield server


def examine(server, fault, *more):
    server.break_rule(fault)
    return validate(*MORE, *more, server.url)


def test_the_small_server_without_a_fault_breaks_nothing(server):
    report, bad = examine(server, None)
    found = verdicts(report)
    assert bad == {} and {check for check in found if found[check] != "pass"} == ONLY_STARTED


@pytest.mark.parametrize("fault", wrong_nimi.FAULTS)
def test_a_server_with_one_fault_fails_exactly_the_check_of_it(server, fault):
    report, bad = examine(server, fault, *(["--timeout", "1s"] if fault == "DONE-06 open" else []))
    check, _, variant = fault.partition(" ")
    assert set(bad) == {check}, bad
    assert bad[check][0] == ("warn" if variant == "reason" and check.startswith("RFSL") else expected(check))


def examine_started(*fault):
    paths = {"PYTHONPATH": f"{conftest.STUBS}:{harness.ROOT}/test/e2e"}
    command = [sys.executable, wrong_nimi.__file__, "{port}", *fault]
    return validate(*MORE, "--only", "ENVL,STOP", "--", *command, env=paths)


def test_the_small_server_is_awaited_and_stops_as_it_should():
    report, bad = examine_started()
    assert bad == {} and set(verdicts(report).values()) == {"pass"}


@pytest.mark.parametrize("fault", wrong_nimi.STOP_FAULTS)
def test_a_server_that_stops_wrongly_fails_exactly_the_check_of_it(fault):
    report, bad = examine_started(fault)
    check = fault.split()[0]
    assert set(bad) == {check}, bad
    assert bad[check][0] == expected(check)


def test_every_check_has_a_wrong_server():
    faults = wrong_nimi.FAULTS | wrong_nimi.STOP_FAULTS
    assert {name.split()[0] for name in faults} == set(rows_of("nimi"))


@pytest.mark.parametrize(
    ("place", "reply", "skipped"),
    [
        ("submit", wrong_nimi.End(wrong_nimi.CODE.UNIMPLEMENTED), "JOBS"),
        ("export", wrong_nimi.End(wrong_nimi.CODE.PERMISSION_DENIED, "no capability"), "EXPT"),
    ],
)
def test_what_a_server_need_not_do_for_us_is_skipped_with_the_reason(server, place, reply, skipped):
    server.break_rule(None)
    server.service.fault = {place: lambda good: [reply] if place == "export" else reply}
    report, bad = validate(*MORE, server.url)
    assert bad == {}
    checks = [c for c in report["checks"] if c["id"].startswith(skipped)]
    assert {c["verdict"] for c in checks} == {"skip"} and all(reply.text in c["why"] for c in checks)


def test_the_model_is_the_one_that_was_named_or_one_that_is_listed(server):
    asked = []
    server.break_rule(None)
    server.service.fault = {"accepts": lambda why: False}
    wrong = server.service.wrong_request
    server.service.wrong_request = lambda head, *more: asked.append(head.model_id) or wrong(head, *more)
    try:
        validate("--profile", "nimi", "--only", "DONE-01", server.url)
        validate("--profile", "nimi", "--only", "DONE-01", "--model", "local/other", server.url)
    finally:
        del server.service.wrong_request
    assert asked == ["local/small", "local/other"]


# --- hostile servers -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_peer_gets_its_verdicts_in_time(kind):
    more = ["--timeout", "300ms", "--boot-timeout", "300ms"]
    with Peer(HOSTILE[kind]) as url:
        report, bad = validate("--profile", "nimi", *more, url)
    assert bad["ENVL-02"][0] == "fail"
    assert len(report["checks"]) == len(rows_of("nimi"))


def test_events_without_end_are_cut(server):
    server.break_rule(None)
    server.service.fault = {"text": lambda all: (wrong_nimi.delta("x" * 60000) for _ in range(10**6))}
    report, bad = validate(*MORE, "--only", "DONE", server.url)
    assert set(bad) == {"DONE-01"} and "more than can be kept" in bad["DONE-01"][1]


def test_the_sent_and_seen_of_a_failure_are_shown_without_the_token(server):
    server.break_rule("DONE-03 gap")
    told = run("--profile", "nimi", "--only", "DONE-03", "--token", "very-secret", server.url)
    assert told.returncode == 1
    for part in ("the number of a frame is missing", "StreamScenario", "frame 2, number 2", "end: OK (completed)", "fix"):
        assert part in told.stdout
    assert "very-secret" not in told.stdout
