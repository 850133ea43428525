"""Cells drawn at random become native nodes, and their mutants give what they gave."""

import pytest

from tests.rewrites.recurrences.family import check, draw, mutant


@pytest.mark.parametrize("seed", range(80))
def test_a_cell_drawn_at_random_becomes_its_node(seed):
    check(draw(seed))


@pytest.mark.parametrize("seed", range(100, 180))
def test_a_mutant_fuses_only_where_it_is_a_cell_too(seed):
    changed = mutant(draw(seed), seed)
    if changed is not None:
        check(changed)
