"""How a daemon begins, ends and begins again."""
import signal

import pytest


def test_a_daemon_that_is_ready_answers_health(weir):
    with weir.http() as http:
        answer = http.get("/health")
    assert answer.status_code == 200
    assert answer.json()["status"] == "healthy"


def test_a_daemon_leaves_with_status_0_on_sigterm_and_on_sigint(start_weir):
    for number in (signal.SIGTERM, signal.SIGINT):
        daemon = start_weir()
        daemon.signal(number)
        assert daemon.wait() == 0


def test_a_daemon_starts_again_on_the_data_of_one_that_was_killed(weir):
    weir.kill()
    weir.restart()
    with weir.http() as http:
        assert http.get("/health").status_code == 200


def test_a_second_daemon_is_refused_the_address_of_the_first(weir, start_weir):
    with pytest.raises(AssertionError, match="before it was ready"):
        start_weir(args=["--http", f"127.0.0.1:{weir.port('http')}"])
