"""Laws of dimensions and shapes, and that what is said of names holds whatever numbers they stand for."""

import itertools
from collections.abc import Iterator

import onnx_ir as ir

from rewrites.graph.dims import (
    FREE,
    VARIES,
    differ,
    equal,
    forgotten,
    is_made_up,
    is_one_size,
    is_unknown,
    is_vague,
    meet,
    refined,
    same,
    varies,
    with_axes,
    with_size,
    without_axis,
    without_names,
)
from rewrites.graph.values import shape_dims

NAMES = ["N", "M", None, f"{VARIES}1", f"{FREE}2", "unk__0"]
DIMS = [ir.Shape([dim])[0] for dim in [0, 1, 3, *NAMES]]
SIZES = [0, 1, 2, "N", "M", None, f"{VARIES}1"]
SHAPES = [None, *(ir.Shape(dims) for rank in range(3) for dims in itertools.product(SIZES, repeat=rank))]
FEW = [None, *(ir.Shape(dims) for rank in range(3) for dims in itertools.product([1, 2, "N", None], repeat=rank))]
FREE_SIZES = (0, 1, 2, 4)
RANKS = (0, 1, 2)


def values_of(shape: ir.Shape | None) -> Iterator[tuple[tuple[int, int], tuple[int, ...]]]:
    """What a value of `shape` may have, with what N and M stand for then; what is not known and what varies may be anything."""
    for names in itertools.product((1, 2, 4), repeat=2):
        known = dict(zip(("N", "M"), names, strict=True))
        ranks = RANKS if shape is None else [len(shape)]
        for rank in ranks:
            dims: list[int | str | None] = [None] * rank if shape is None else shape_dims(shape)
            for sizes in itertools.product(
                *([dim] if isinstance(dim, int) else [known[dim]] if dim in known else FREE_SIZES for dim in dims)
            ):
                yield names, tuple(sizes)


POSSIBLE = {str(shape): frozenset(values_of(shape)) for shape in SHAPES}


def possible(shape: ir.Shape | None) -> frozenset[tuple[tuple[int, int], tuple[int, ...]]]:
    return POSSIBLE[str(shape)]


def test_equality_of_dimensions_is_symmetric_transitive_and_reflexive_for_what_is_known() -> None:
    for one, other, third in itertools.product(DIMS, repeat=3):
        assert (
            equal(one, other) == equal(other, one) == (one == other and not (isinstance(one, ir.SymbolicDim) and one.value is None))
        )
        assert not (equal(one, other) and equal(other, third)) or equal(one, third)
    assert [equal(dim, dim) for dim in DIMS] == [isinstance(dim, int) or dim.value is not None for dim in DIMS]


def test_shapes_that_differ_are_different_whatever_the_names_stand_for() -> None:
    for one, other in itertools.product(SHAPES, repeat=2):
        assert differ(one, other) == differ(other, one)
        assert not differ(one, one)
        assert not (differ(one, other) and possible(one) & possible(other))


def test_shapes_that_are_the_same_are_so_whatever_the_names_stand_for_and_never_differ() -> None:
    for one, other in itertools.product(SHAPES, repeat=2):
        assert same(one, other) == same(other, one)
        if same(one, other):
            assert not differ(one, other)
            assert one == other
    for shape in SHAPES:
        assert same(shape, shape) == (shape is not None and not is_vague(shape))


def test_what_shapes_have_in_common_holds_for_each_of_them() -> None:
    for one, other in itertools.product(SHAPES, repeat=2):
        common = meet([one, other])
        assert common == meet([other, one])
        assert possible(common) >= possible(one) | possible(other)
        if one is not None and other is not None and len(one) == len(other):
            for left, right, dim in zip(shape_dims(one), shape_dims(other), shape_dims(common or one), strict=True):
                assert dim == (left if left == right else None)
        else:
            assert common is None
    for shape in SHAPES:
        assert meet([shape]) == meet([shape, shape]) == shape


def test_what_is_common_may_be_found_in_any_grouping() -> None:
    for one, other, third in itertools.product(FEW, repeat=3):
        assert meet([meet([one, other]), third]) == meet([one, meet([other, third])]) == meet([one, other, third])
    assert meet([]) is None


def test_who_asks_says_what_is_known_of_a_size_that_is_not_the_same_in_all() -> None:
    asked = list[list[int | str | None]]()

    def told(dims: object) -> str:
        asked.append(shape_dims(ir.Shape(dims)))  # type: ignore[arg-type]
        return "K"

    assert meet([ir.Shape([1, "N", None]), ir.Shape([2, "N", None])], told) == ir.Shape(["K", "N", "K"])
    assert asked == [[1, 2], [None, None]]


def test_refining_takes_nothing_away_and_twice_is_once() -> None:
    for found, declared in itertools.product(SHAPES, repeat=2):
        result = refined(found, declared)
        assert refined(result, declared) == result == refined(found, result)
        assert refined(found, found) is found
        if found is None:
            assert result is declared
        elif declared is not None and len(found) == len(declared):
            for mine, theirs, both in zip(shape_dims(found), shape_dims(declared), shape_dims(result or found), strict=True):
                assert both == (theirs if mine is None else mine)
        else:
            assert result is found


def test_what_has_both_shapes_has_the_refined_one() -> None:
    for one, other in itertools.product(SHAPES, repeat=2):
        if one is None or other is None or len(one) == len(other):
            assert possible(refined(one, other)) >= possible(one) & possible(other)


def test_refining_by_more_can_be_done_in_any_grouping() -> None:
    for one, other, third in itertools.product([shape for shape in SHAPES if shape is None or len(shape) == 1], repeat=3):
        assert refined(refined(one, other), third) == refined(one, refined(other, third)) == refined(one, other, third)
    assert refined() is None


def test_numbers_go_before_names_where_names_are_left_out_first() -> None:
    first, second = ir.Shape(["N", 2, None, "K"]), ir.Shape([1, 3, "M", None])
    assert shape_dims(refined(without_names(first), second, first) or first) == [1, 2, "M", "K"]


def test_of_a_shape_only_what_stays_true_is_said_elsewhere() -> None:
    for shape in SHAPES[1:]:
        assert shape is not None
        numbers = without_names(shape)
        assert numbers is not None
        assert shape_dims(numbers) == [dim if isinstance(dim, int) else None for dim in shape_dims(shape)]
        assert possible(numbers) >= possible(shape)
        assert forgotten(shape, lambda _: False) is shape
        assert forgotten(shape, lambda _: True) == ir.Shape([None] * len(shape))
    assert without_names(None) is None


def test_an_axis_that_is_put_in_can_be_taken_out_again() -> None:
    for shape in SHAPES[1:]:
        for axis in range(len(shape or ()) + 1):
            wider = with_axes(shape, axis, 7)
            assert wider is not None
            assert wider[axis] == 7
            assert without_axis(wider, axis) == shape
            assert with_size(wider, axis, 9) == with_axes(shape, axis, 9)
            assert with_size(shape, len(shape or ()), 9) == shape
    assert with_size(None, 0, 1) is None
    assert with_axes(ir.Shape([1, 2]), 1, "T", None) == ir.Shape([1, "T", None, 2])
    assert with_axes(None, 0, 1) is None
    assert without_axis(None, 0) is None


def test_names_say_what_they_are() -> None:
    of = dict(zip([0, 1, 3, *NAMES], DIMS, strict=True))
    assert [name for name, dim in of.items() if varies(dim)] == [f"{VARIES}1"]
    assert [name for name, dim in of.items() if is_unknown(dim)] == [None, "unk__0"]
    assert [name for name, dim in of.items() if is_one_size(dim)] == [0, 1, 3, "N", "M", f"{FREE}2"]
    assert [name for name in NAMES if name is not None and is_made_up(name)] == [f"{VARIES}1", f"{FREE}2", "unk__0"]
