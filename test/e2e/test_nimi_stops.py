"""The daemon stops while streams of every mode are open (checks.md C10, K3).

test/proof/nimi_stops.py does it with 250 of each, many times."""
from nimi_streams import MODES, Machine


def test_stopping_cancels_streams_of_every_mode_and_forges_nothing(start_weir):
    for each in (8, 1):
        with Machine(start_weir, each) as machine:
            machine.open_all()
            assert len(machine.calls) == each * len(MODES)
            machine.stop()
