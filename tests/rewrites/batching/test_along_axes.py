"""Operators along some axes: one position up, with the steps in front."""

import itertools

import numpy as np
import pytest

from tests.rewrites.batching.harness import F16, F32, F64, I32, I64, Case, case, check, const, given, refusal, same, steps


@pytest.mark.parametrize("opset", [9, 11, 12, 13, 18])
def test_softmax_in_both_its_meanings(opset: int) -> None:
    axes = [("", 2), *((f"<axis={axis}>", rank) for rank in (1, 2, 3) for axis in range(-rank if opset >= 11 else 0, rank))]
    shapes = {1: (3,), 2: (2, 3), 3: (2, 4, 3)}
    check(
        [
            case(f"y = {op} {axis} (x)", x=steps(F32, *shapes[rank]))
            for op in ("Softmax", "LogSoftmax", "Hardmax")
            for axis, rank in axes
        ],
        opset,
    )
    check([case(f"y = {op} (x)", x=steps(F64, 2, 3)) for op in ("Softmax", "LogSoftmax")], opset)


def test_softmax_needs_no_rank_and_takes_half_floats() -> None:
    check([case("y = Softmax (x)", x=steps(F32, 2, 3), unknown_rank=True), case("y = Softmax (x)", x=steps(F16, 2, 3))])


@pytest.mark.parametrize("opset", [8, 11, 12, 13])
def test_arg_max_and_arg_min(opset: int) -> None:
    ties = given(np.tile([[1, 1, 0], [1, 0, 0]], (3, 1, 1)), F32, batched=True)
    cases = [
        case(f"y = {op} <axis={axis}, keepdims={keep}> (x)", x=steps(F32, 2, 3))
        for op, axis, keep in itertools.product(("ArgMax", "ArgMin"), (0, 1, *((-1,) if opset >= 11 else ())), (0, 1))
    ]
    cases.append(case("y = ArgMax (x)", x=steps(F32, 3)))
    if opset >= 12:
        cases.append(case("y = ArgMax <axis=1, select_last_index=1> (x)", x=ties))
    check([*cases, case("y = ArgMax <axis=1> (x)", x=ties)], opset)


def test_top_k_in_all_spellings() -> None:
    check([case("y, i = TopK <k=2> (x)", x=steps(F32, 4)), case("y, i = TopK <axis=0, k=1> (x)", x=steps(F32, 2, 3))], opset=9)
    check([case("y, i = TopK <axis=0> (x, k)", x=steps(F32, 4, 2), k=const([2]))], opset=10)
    check(
        [
            case("y, i = TopK <axis=0, largest=0> (x, k)", x=steps(F32, 4, 2), k=const([2])),
            case("y, i = TopK (x, k)", x=steps(F32, 4), k=given([3], I64)),
            case("y, i = TopK (x, k)", x=steps(I64, 2, 9), k=given([3], I64)),
        ]
    )
    assert refusal(case("y, i = TopK (x, k)", x=steps(F32, 4), k=steps(I64, 1))) == "BATCHED-STRUCTURE"


def _cumulative(axis: int, shape: tuple[int, ...], dtype: str = F32, **flags: int) -> Case:
    attributes = ", ".join(f"{name}={value}" for name, value in flags.items())
    return case(f"y = CumSum <{attributes}> (x, a)" if flags else "y = CumSum (x, a)", x=steps(dtype, *shape), a=const(axis))


@pytest.mark.parametrize("opset", [11, 14])
def test_cumulative_sums(opset: int) -> None:
    flags = [{}, {"reverse": 1}, {"exclusive": 1}, {"exclusive": 1, "reverse": 1}]
    check([_cumulative(axis, (2, 3), **flag) for axis in (0, 1, -1, -2) for flag in flags], opset)
    check([_cumulative(0, (3,), I64), case("y = CumSum (x, a)", x=steps(I32, 3), a=const([0], I32))], opset)


def test_cumulative_products() -> None:
    check([case("y = CumProd (x, a)", x=steps(F32, 2, 3), a=const(1))], opset=26)


def test_a_cumulative_axis_may_be_computed_but_not_differ_between_steps() -> None:
    cases = [case("y = CumSum (x, a)", x=steps(F32, 2, 3), a=given(axis, I64)) for axis in (0, 1, -1, -2)]
    check([*cases, case("y = CumSum (x, a)", x=steps(F32, 3), a=given([0], I32))])
    check([case("y = CumSum (x, a)", x=steps(F32, 2, 3), a=given(-1, I64), unknown_rank=True)], empty=False)
    assert refusal(case("y = CumSum (x, a)", x=steps(F32, 3), a=steps(I64))) == "BATCHED-STRUCTURE"


def test_lp_normalization() -> None:
    check([case(f"y = LpNormalization <axis={axis}, p={p}> (x)", x=steps(F32, 2, 3)) for axis in (0, 1, -1) for p in (1, 2)])


@pytest.mark.parametrize("opset", [8, 11, 13, 18])
def test_split_in_all_spellings(opset: int) -> None:
    axes = (0, -1) if opset >= 11 else (0,)
    if opset < 13:
        cases = [case(f"p, q = Split <axis={axis}, split=[1, 3]> (x)", x=steps(F32, 4, 4)) for axis in axes]
    else:
        cases = [case(f"p, q = Split <axis={axis}> (x, s)", x=steps(F32, 4, 4), s=const([1, 3])) for axis in axes]
        cases.append(case("p, q = Split (x, s)", x=steps(F32, 4), s=given([2, 2], I64)))
        assert refusal(case("p, q = Split (x, s)", x=steps(F32, 4), s=steps(I64, 2)), opset) == "BATCHED-STRUCTURE"
    count = "<num_outputs=2>" if opset >= 18 else ""
    check([*cases, case(f"p, q = Split {count} (x)", x=steps(F32, 4, 3))], opset)


@pytest.mark.parametrize("opset", [8, 21])
def test_transpose_keeps_the_steps_in_front(opset: int) -> None:
    orders = list(itertools.permutations(range(3)))
    cases = [case(f"y = Transpose <perm={list(order)}> (x)", x=steps(F32, 2, 4, 3)) for order in orders]
    check([*cases, case("y = Transpose (x)", x=steps(I64, 2, 3, 4)), case("y = Transpose (x)", x=steps(F32))], opset)
    assert refusal(case("y = Transpose (x)", x=steps(F32, 2, 3), unknown_rank=True), opset) == "RANK-UNKNOWN"


OPERATORS = [
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"),
    "ReduceSumSquare",
]
AXES = [
    ((2, 3), [0]),
    ((2, 3), [-1]),
    ((2, 3), [0, 1]),
    ((2, 3), None),
    ((4, 2, 3), [1, -3]),
    ((3,), [0]),
    ((), None),
    ((2, 1, 3), [1]),
]


def _reduce(operator: str, shape: tuple[int, ...], axes: list[int] | None, opset: int, keep: int, dtype: str = F32) -> Case:
    as_input = opset >= (13 if operator == "ReduceSum" else 18)
    if axes is None or as_input:
        given = {} if axes is None else {"a": const(axes)}
        return case(f"y = {operator} <keepdims={keep}> (x{', a' * bool(given)})", x=steps(dtype, *shape), **given)
    return case(f"y = {operator} <axes={axes}, keepdims={keep}> (x)", x=steps(dtype, *shape))


@pytest.mark.parametrize("opset", [8, 11, 13, 18])
def test_reductions_over_any_axes(opset: int) -> None:
    usable = [(shape, axes) for shape, axes in AXES if opset >= 11 or axes is None or min(axes) >= 0]
    check([_reduce(op, shape, axes, opset, keep) for op in OPERATORS for shape, axes in usable for keep in (0, 1)], opset)


@pytest.mark.parametrize("dtype", [F64, I32, I64])
def test_reductions_of_other_types(dtype: str) -> None:
    check([_reduce(op, shape, axes, 18, 0, dtype) for op in ("ReduceSum", "ReduceMax", "ReduceProd") for shape, axes in AXES])


def test_no_axes_may_mean_none_or_all() -> None:
    cases = [
        case(f"y = {op} <noop_with_empty_axes={noop}> (x{axes})", x=steps(F32, *shape), **({"a": const([])} if axes else {}))
        for op, noop, axes, shape in itertools.product(("ReduceSum", "ReduceMax", "ReduceL2"), (0, 1), ("", ", a"), ((2, 3), ()))
    ]
    check(cases)


def test_axes_from_the_end_need_no_rank() -> None:
    last = case("y = ReduceSum <keepdims=0> (x, a)", x=steps(F32, 2, 3), a=const([-1]), unknown_rank=True)
    check([last, case("y = ReduceSum (x, a)", x=steps(F32, 2, 3), a=const([1]), unknown_rank=True)], empty=False)
    assert refusal(case("y = ReduceSum (x)", x=steps(F32, 2, 3), unknown_rank=True)) == "RANK-UNKNOWN"


@pytest.mark.parametrize("noop", [0, 1])
def test_axes_may_be_computed(noop: int) -> None:
    check(
        [
            case(f"y = {op} <keepdims={keep}, noop_with_empty_axes={noop}> (x, a)", x=steps(F32, 2, 4, 3), a=given(axes, I64))
            for op in ("ReduceSum", "ReduceMax", "ReduceL2")
            for keep in (0, 1)
            for axes in ([], [0], [-1], [1, -3], [0, 1, 2])
        ]
    )


def test_how_many_axes_are_reduced_must_be_known_and_the_same_in_every_step() -> None:
    unknown = same(I64, 1, dims=["N"])
    assert refusal(case("y = ReduceSum (x, a)", x=steps(F32, 2, 3), a=unknown)) == "DYNAMIC-STRUCTURE"
    assert refusal(case("y = ReduceSum (x, a)", x=same(F32, 2, 3), a=steps(I64, 1))) == "BATCHED-STRUCTURE"


def test_empty_axes_are_reduced() -> None:
    check([_reduce(op, (2, 0), [1], 18, 0) for op in ("ReduceSum", "ReduceProd")])


@pytest.mark.parametrize("opset", [8, 13, 18, 27, 28])
@pytest.mark.parametrize("keep", [0, 1])
def test_sums_of_powers_are_as_they_were_where_the_first_number_is_infinite(opset: int, keep: int) -> None:
    rows = [
        [-np.inf, -1e4, -1e4],
        [-np.inf] * 3,
        [np.inf, 1, 2],
        [1, -np.inf, np.inf],
        [np.nan, 1, 2],
        [1e4, 9, -np.inf],
        [1, 2, 3],
    ]
    nodes = f"y = ReduceLogSumExp <keepdims = {keep}> (x)"
    check([case(nodes, x=given(rows[i : i + 3], dtype, batched=True)) for i in (0, 2, 4) for dtype in (F32, F64)], opset)
