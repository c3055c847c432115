"""A few of the kills of test/proof/kills.py: at random moments, under fifty clients."""
import pathlib
import sys

import crawbl

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "proof"))
import kills  # noqa: E402

KILLS = 8


def test_kills_at_random_moments_under_fifty_clients_lose_no_turn(tmp_path):
    """R-1, R-6"""
    proof = kills.Proof(tmp_path, seed=None)
    try:
        for _ in range(KILLS):
            proof.round()
        print(proof.finish(ready_s=20 if crawbl.is_sanitized() else 2))
    finally:
        proof.weir.kill()
