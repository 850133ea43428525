import itertools

import numpy as np
import pytest

from tests.rewrites.batching.harness import F32, F64, I32, I64, Case, case, check, const, given, refusal, same, steps

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
