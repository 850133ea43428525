"""A sample of what ``python -m tests.campaigns closed_forms`` checks: errors in double of every family, and near misses that stay loops."""

import numpy as np
import pytest

import ortscan
from tests.campaigns.closed_forms.checking import check_family, check_near_miss, has_loop
from tests.campaigns.closed_forms.families import FAMILIES, NEAR_MISSES, Sizes, model_of
from tests.campaigns.closed_forms.filters import FILTER_MISSES, FilterSizes, check_filter, check_filter_miss
from tests.campaigns.closed_forms.matrices import DECAYS, MatrixSizes, check_matrix

_DRAW = np.random.default_rng(2)
SAMPLE = [
    (name, Sizes(int(_DRAW.choice([1, 2, 17, 100, 600])), int(_DRAW.choice([1, 3, 16, 70])), str(kind), bool(_DRAW.random() < 0.3)))
    for name, family in FAMILIES.items()
    for kind in _DRAW.choice(family.kinds, min(2, len(family.kinds)), replace=False)
]


@pytest.mark.parametrize(("name", "sizes"), SAMPLE, ids=str)
def test_errors_grow_no_faster_than_the_loops(name: str, sizes: Sizes) -> None:
    assert check_family(name, sizes, 0) == ""


@pytest.mark.parametrize("name", ["sum", "maximum", "logarithm of a sum", "moving average"])
def test_without_a_step_states_are_what_they_were_or_nothing_runs(name: str) -> None:
    assert check_family(name, Sizes(0, 3, "float", free=True), 0) == ""


@pytest.mark.parametrize("name", FAMILIES)
def test_each_family_has_a_form(name: str) -> None:
    family = FAMILIES[name]
    assert not has_loop(
        ortscan.optimize(model_of(family.body, Sizes(1000, 16, family.kinds[0]), family.states, family.opset), verify=False)
    )


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses_stay_loops(name: str) -> None:
    assert check_near_miss(name, Sizes(200, 4, "float"), 0) == ""


@pytest.mark.parametrize("name", DECAYS)
def test_errors_of_matrices_grow_no_faster_than_the_loops(name: str) -> None:
    assert check_matrix(name, MatrixSizes(300, 3, 5, 17, "float", free=name == "a decay by head"), 0, "onnx") == ""


@pytest.mark.parametrize("sizes", [FilterSizes(200, 4), FilterSizes(70, 2, "double", backwards=True)], ids=str)
def test_errors_of_filters_grow_no_faster_than_the_loops(sizes: FilterSizes) -> None:
    assert check_filter(sizes, 0) == ""


@pytest.mark.parametrize("name", FILTER_MISSES)
def test_filters_of_other_gains_stay_loops(name: str) -> None:
    assert check_filter_miss(name, FilterSizes(100, 3), 0) == ""
