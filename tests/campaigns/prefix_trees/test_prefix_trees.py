import pytest

from tests.campaigns.prefix_trees.random_trees import fault_of


@pytest.mark.parametrize("seed", range(6))
def test_a_random_tree_keeps_its_results(seed: int) -> None:
    assert fault_of(seed)[0] == ""
