"""The table of operators' traits names operators that there are, and says of each nothing twice."""

import onnx
import pytest

from rewrites.ops.traits import TRAITS, operators

NAMES = {schema.name for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == ""}


def test_every_row_is_an_operator_of_onnx() -> None:
    assert sorted(TRAITS.keys() - NAMES) == []
    assert list(TRAITS) == sorted(TRAITS)


@pytest.mark.parametrize("trait", sorted(set().union(*TRAITS.values())))
def test_a_trait_is_one_of_some_operators_but_not_of_all(trait: str) -> None:
    assert 0 < len(operators(trait)) < len(TRAITS)


def test_what_is_total_never_takes_sizes_from_numbers() -> None:
    assert operators("total") <= operators("calculates")
    assert not operators("calculates") & (operators("shaped") | operators("indexed") | operators("random"))


def test_a_trait_that_no_operator_has_is_a_mistake() -> None:
    with pytest.raises(AssertionError):
        operators("commutative")
