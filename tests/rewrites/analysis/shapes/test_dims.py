"""Laws of dimensions, and that what is said of names holds whatever numbers they stand for."""

import itertools

import onnx_ir as ir

from rewrites.analysis.shapes.dims import (
    FREE,
    VARIES,
    differ,
    dims_of,
    equal,
    is_made_up,
    is_unknown,
    refined,
    same,
    stacked,
    varies,
    without_names,
)

NAMES = ["N", "M", None, f"{VARIES}1", f"{FREE}2", "unk__0"]
DIMS = [ir.Shape([dim])[0] for dim in [0, 1, 3, *NAMES]]
SHAPES = [None, *(ir.Shape(dims) for rank in range(3) for dims in itertools.product([1, 3, "N", "M", None], repeat=rank))]
NUMBERS = [dict(zip(("N", "M"), numbers, strict=True)) for numbers in itertools.product([1, 3, 4], repeat=2)]


def numbers_of(shape: ir.Shape, names: dict[str, int], free: int) -> list[int]:
    """The sizes where names stand for numbers, and what is not known is `free`."""
    return [dim if isinstance(dim, int) else free if dim is None else names[dim] for dim in dims_of(shape) or []]


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
        if one is not None and other is not None:
            meet = any(
                numbers_of(one, names, free) == numbers_of(other, names, again)
                for names in NUMBERS
                for free in (1, 3, 5)
                for again in (1, 3, 5)
            )
            assert not (differ(one, other) and meet)


def test_shapes_that_are_the_same_are_whatever_the_names_stand_for_and_never_differ() -> None:
    for one, other in itertools.product(SHAPES, repeat=2):
        left, right = ir.Value(name="a", shape=one), ir.Value(name="b", shape=other)
        assert same(left, right) == same(right, left)
        if same(left, right):
            assert one is not None
            assert other is not None
            assert not differ(one, other)
            assert all(numbers_of(one, names, 1) == numbers_of(other, names, 3) for names in NUMBERS)
    assert all(
        same(ir.Value(name="a", shape=one), ir.Value(name="b", shape=one))
        for one in SHAPES
        if one is not None and None not in dims_of(one)
    )


def test_refining_takes_nothing_away_and_twice_is_once() -> None:
    for found, declared in itertools.product(SHAPES, repeat=2):
        result = refined(found, declared)
        assert refined(result, declared) == result == refined(found, result)
        assert refined(found, found) == found
        if found is None:
            assert result == declared
        elif declared is not None and len(found) == len(declared):
            for mine, theirs, both in zip(dims_of(found) or [], dims_of(declared) or [], dims_of(result) or [], strict=True):
                assert both == (theirs if mine is None else mine)
        else:
            assert result == found


def test_refining_by_more_can_be_done_in_any_grouping() -> None:
    ranked = [shape for shape in SHAPES if shape is None or len(shape) == 1]
    for one, other, third in itertools.product(ranked, repeat=3):
        assert refined(refined(one, other), third) == refined(one, refined(other, third))


def test_of_a_shape_only_what_stays_true_is_said_elsewhere() -> None:
    for shape in SHAPES[1:]:
        assert dims_of(without_names(shape)) == [dim if isinstance(dim, int) else None for dim in dims_of(shape)]
        assert dims_of(stacked(shape)) == [None, *dims_of(shape)]
    assert stacked(None) is None
    assert dims_of(stacked(ir.Shape([f"{VARIES}1", "N"]))) == [None, None, "N"]


def test_names_say_what_they_are() -> None:
    of = dict(zip([0, 1, 3, *NAMES], DIMS, strict=True))
    assert [name for name, dim in of.items() if varies(dim)] == [f"{VARIES}1"]
    assert [name for name, dim in of.items() if is_unknown(dim)] == [None, "unk__0"]
    assert [name for name in NAMES if name is not None and is_made_up(name)] == [f"{VARIES}1", f"{FREE}2", "unk__0"]
