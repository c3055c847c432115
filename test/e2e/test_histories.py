"""A few seconds of test/proof/histories.py: what the model is shown while everything happens."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "proof"))

import histories  # noqa: E402


def test_a_model_is_shown_its_own_session_and_nothing_else():  # M1, M3, R-1
    assert histories.main(seconds=6, seed=3) == 0
