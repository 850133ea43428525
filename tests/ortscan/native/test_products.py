"""Products of matrices of every small size, in every layout, with every addend, against numpy."""

import itertools

import numpy as np
import pytest

from rewrites.native.operations import Op
from rewrites.native.plan import (
    ONE,
    Input,
    InputKind,
    Instruction,
    Output,
    Phase,
    Plan,
    PlanOperand,
    PlanPack,
    Size,
    Value,
    ValueKind,
)
from tests.support.native_plans import operand, run_native, single

ADDENDS = {"none": None, "matrix": (1, 1), "row": (0, 1), "column": (1, 0), "number": (0, 0)}


def strides(rows: int, columns: int, transposed: bool) -> tuple[int, int]:
    return (1, rows) if transposed else (columns, 1)


def check(got: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)


def laid_out(x: np.ndarray, transposed: bool) -> np.ndarray:
    return np.ascontiguousarray(np.swapaxes(x, -1, -2) if transposed else x).reshape(x.shape[0], -1)


def addend_of(
    kind: str, random: np.random.Generator, m: int, n: int, transposed: bool
) -> tuple[list[PlanOperand], np.ndarray, list[int]]:
    if ADDENDS[kind] is None:
        return [], np.zeros((2, 1, 1), np.float32), []
    rows, columns = ADDENDS[kind]
    shape = (2, m if rows else 1, n if columns else 1)
    down, across = strides(shape[1], shape[2], transposed)
    return (
        [operand(3, (0, 0, down * rows, across * columns))],
        random.standard_normal(shape).astype(np.float32),
        [shape[1] * shape[2]],
    )


@pytest.mark.parametrize("addend", ADDENDS)
@pytest.mark.parametrize("layout", list(itertools.product((False, True), repeat=3)), ids=str)
def test_matmul(layout: tuple[bool, bool, bool], addend: str) -> None:
    random = np.random.default_rng(1)
    for m, n, k in [
        (1, 1, 1),
        (1, 5, 3),
        (5, 1, 3),
        (3, 1, 70),
        (1, 70, 5),
        (4, 4, 4),
        (2, 87, 1),
        (3, 17, 0),
        (33, 1, 9),
        (7, 21, 18),
        (5, 37, 530),
        (4, 64, 256),
        (6, 33, 515),
    ]:
        a, b = (random.standard_normal((2, *shape)).astype(np.float32) for shape in ((m, k), (k, n)))
        c, values, counts = addend_of(addend, random, m, n, layout[0])
        d_strides, a_strides, b_strides = strides(m, n, layout[0]), strides(m, k, layout[1]), strides(k, n, layout[2])
        operands = [operand(0, (0, 0, *d_strides)), operand(1, (0, 0, *a_strides)), operand(2, (0, 0, *b_strides)), *c]
        plan = single(Op.MATMUL, (1, 1, 1, 1), operands, [m * n, m * k, k * n, *counts], matrix=(m, n, k))
        given = [laid_out(a, layout[1]), laid_out(b, layout[2]), *([laid_out(values, layout[0])] if c else [])]
        (got,) = run_native(plan, given)
        check(got, laid_out(a @ b + values, layout[0]))


def test_matmul_over_outer_dims_with_a_shared_factor() -> None:
    random = np.random.default_rng(2)
    a, b = random.standard_normal((2, 3, 2, 4, 5)).astype(np.float32), random.standard_normal((2, 2, 5, 6)).astype(np.float32)
    operands = [operand(0, (48, 24, 6, 1)), operand(1, (40, 20, 5, 1)), operand(2, (0, 30, 6, 1))]
    plan = single(Op.MATMUL, (3, 2, 1, 1), operands, [144, 120, 60], matrix=(4, 6, 5))
    (got,) = run_native(plan, [a.reshape(2, -1), b.reshape(2, -1)])
    check(got, np.matmul(a, b[:, None]).reshape(2, -1))


def packed(m: int, n: int, k: int, c: list[PlanOperand], counts: list[int], layout: tuple[bool, bool, bool]) -> Plan:
    values = [
        Value(ValueKind.STACKED, 0, Size(m * n)),
        Value(ValueKind.SCANNED, 0, Size(m * k)),
        Value(ValueKind.PACK, 0, Size(k * n)),
    ]
    values += [Value(ValueKind.SCANNED, 1, Size(count)) for count in counts]
    d, a, b = strides(m, n, layout[0]), strides(m, k, layout[1]), strides(k, n, layout[2])
    captured = 1 + len(counts)
    return Plan(
        inputs=(
            *(Input(InputKind.SCANNED, (Size(count),)) for count in (m * k, *counts)),
            Input(InputKind.CAPTURED, (Size(k * n + 2),)),
        ),
        outputs=(Output((Size(m * n),)),),
        states=(),
        values=tuple(values),
        instructions=(
            Instruction(
                Op.GEMM,
                (ONE, ONE, ONE, ONE),
                (operand(0, (0, 0, *d)), operand(1, (0, 0, *a)), PlanOperand(2), *c),
                (Size(m), Size(n), Size(k)),
            ),
        ),
        phases=(Phase(True, 0, 1),),
        packs=(PlanPack(captured, Size(2), Size(k), Size(n), Size(b[0]), Size(b[1])),),
    )


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("addend", ADDENDS)
def test_packed_products(addend: str, constant: bool) -> None:
    random = np.random.default_rng(3)
    for m, n, k in [*itertools.product((1, 2, 3, 8, 11), (1, 15, 16, 17, 31, 33, 64, 70, 130), (7,)), (1, 5, 0), (9, 40, 1)]:
        layout = (bool(m % 3 == 0 and n < 20), bool(k % 2), bool(n % 2))
        a, b = random.standard_normal((2, m, k)).astype(np.float32), random.standard_normal((k, n)).astype(np.float32)
        c, values, counts = addend_of(addend, random, m, n, layout[0])
        weights = np.concatenate([np.full(2, np.nan, np.float32), laid_out(b[None], layout[2])[0]])
        given = [laid_out(a, layout[1]), *([laid_out(values, layout[0])] if c else []), weights]
        plan = packed(m, n, k, c, counts, layout)
        (got,) = run_native(plan, given, constants=[len(given) - 1] if constant else [])
        check(got, laid_out(a @ b + values, layout[0]))
