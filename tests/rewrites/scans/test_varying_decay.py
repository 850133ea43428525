"""The blocks of blocks that states with another decay in each step are computed in."""

from rewrites.scans.varying_decay import choose_radices


def test_radices_take_few_operators() -> None:
    for steps in (1, 2, 17, 1025, 16001, 100_003):
        assert choose_radices(steps).operators < 260
