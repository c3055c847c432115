"""What idle sessions remember leaves memory soon after a burst, and their next turns see all of it."""
import concurrent.futures
import time

import crawbl
import pytest
from noting_model import ENV, noting_model, said

MIB = 1024 * 1024
TEXT = "x" * (100 * 1024)
SESSIONS = 60


def rss(weir):
    status = open(f"/proc/{weir.pid}/status").read().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) * 1024


def burst(weir, text):
    """A turn of each session, 20 at once."""
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        turns = list(pool.map(lambda n: crawbl.one_turn_of(weir, f"{text} {n}", f"s{n}"), range(SESSIONS)))
    assert [turn.text for turn in turns] == [f"re: {text} {n}" for n in range(SESSIONS)]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_histories_of_a_burst_leave_memory_and_their_next_turns_see_them(start_weir, workers):
    with noting_model() as model:
        weir = start_weir(script=None, config=model.config(), env=ENV, args=["--threads", str(workers)])
        burst(weir, "first")
        before = rss(weir)
        burst(weir, TEXT)  # 12 MiB of histories
        end = time.monotonic() + 20  # by their age they would go after 30 s
        while not crawbl.is_sanitized() and rss(weir) > before + 4 * MIB:
            assert time.monotonic() < end, (before, rss(weir))
            time.sleep(0.1)
        if crawbl.is_sanitized():
            time.sleep(6)
        model.shown.clear()
        burst(weir, "last")
        shown = sorted(model.shown, key=lambda messages: int(messages[-1][1].split()[1]))
        assert shown == [said(f"first {n}", f"{TEXT} {n}") + [("user", f"last {n}")] for n in range(SESSIONS)]
