"""The first hundred of the kills of test/proof/effects.py, while tools are out."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "proof"))
import effects  # noqa: E402
import pytest  # noqa: E402

KILLS = 100


@pytest.mark.timeout(600)
def test_no_effect_is_repeated_silently_however_the_daemon_is_killed(tmp_path):
    proof = effects.Proof(tmp_path, seed=None)
    try:
        for _ in range(KILLS):
            proof.round()
        print(proof.finish())
    finally:
        proof.stop()
