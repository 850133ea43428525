"""Random cells become native nodes, and the results of their mutants stay the same."""

import pytest

from tests.rewrites.recurrences.family import check, draw, mutant


@pytest.mark.parametrize("seed", range(80))
def test_a_random_cell_becomes_its_node(seed):
    check(draw(seed))


@pytest.mark.parametrize("seed", range(100, 180))
def test_a_mutant_fuses_only_if_it_is_still_a_cell(seed):
    changed = mutant(draw(seed), seed)
    if changed is not None:
        check(changed)
