"""Instructions over random dims and layouts: transposed, reversed, repeated, with gaps, dims of 1 and 0."""

import random

import numpy as np
import pytest

from rewrites.native.operations import Op
from rewrites.native.plan import PlanOperand
from tests.support.native_plans import operand, run_native, single
from tests.support.plan_interpreter import run_plan

DIMS = [1, 1, 2, 3, 5, 17, 0]


def laid_out(value: int, dims: list[int], source: random.Random, *, inner: bool, repeats: bool) -> tuple[PlanOperand, int]:
    """Return an operand with a random layout and the number of its elements. ``inner``: True if the last dim stays innermost."""
    order = list(range(3 if inner else 4))
    source.shuffle(order)
    strides, step = [0] * 4, 1
    if inner and not (repeats and source.random() < 0.2):
        strides[3], step = 1, max(dims[3], 1) + source.choice([0, 0, 0, 3])
    for axis in order:
        if repeats and source.random() < 0.2:
            continue
        strides[axis], step = step, step * max(dims[axis], 1) + source.choice([0, 0, 2])
    offset = source.choice([0, 1])
    for axis in order:
        if strides[axis] and source.random() < 0.2:
            offset += strides[axis] * max(dims[axis] - 1, 0)
            strides[axis] = -strides[axis]
    return operand(value, strides, offset), step + 2 + offset


@pytest.mark.parametrize(
    "op", [Op.ADD, Op.MUL_ADD, Op.TANH, Op.COPY, Op.SUM, Op.DOT, Op.SOFTMAX, Op.RMS_NORMALIZATION], ids=lambda op: op.name
)
def test_elements_follow_strides(op: Op) -> None:
    source = random.Random(op)
    sources = {Op.ADD: 2, Op.MUL_ADD: 3, Op.DOT: 2, Op.RMS_NORMALIZATION: 2}.get(op, 1)
    for _ in range(120):
        dims = [source.choice(DIMS) for _ in range(4)]
        if op >= Op.LAYER_NORMALIZATION:
            dims[3] = max(dims[3], 1)  # numpy has no mean of nothing
        reduced = [*dims[:3], 1] if Op.SUM <= op <= Op.DOT else dims
        operands = [laid_out(0, reduced, source, inner=op != Op.COPY, repeats=False)]
        if Op.SUM <= op <= Op.DOT:
            three, two, one, _ = (size.coefficient for size in operands[0][0].strides)
            operands[0] = (operand(0, (three, two, one, 0), operands[0][0].offset.coefficient), operands[0][1])
        operands += [laid_out(1 + k, dims, source, inner=op != Op.COPY, repeats=True) for k in range(sources)]
        plan = single(op, dims, [each for each, _ in operands], [count for _, count in operands], immediates=(0.5, 0.0))
        check(plan, source)


@pytest.mark.parametrize("addend", [False, True])
def test_matrices_follow_strides(addend: bool) -> None:
    source = random.Random(addend)
    for _ in range(300):
        m, n, k = (source.choice([1, 1, 2, 3, 4, 5, 9, 18, 35, 0]) for _ in range(3))
        outer = [source.choice([1, 1, 2, 3]) for _ in range(2)]
        shapes = [(m, n), (m, k), (k, n), *([(m, n)] if addend else [])]
        laid = [
            laid_out(at, [*outer, *shape], source, inner=source.random() < 0.5, repeats=at > 0) for at, shape in enumerate(shapes)
        ]
        plan = single(Op.MATMUL, (*outer, 1, 1), [each for each, _ in laid], [count for _, count in laid], matrix=(m, n, k))
        check(plan, source)


def check(plan, source: random.Random) -> None:
    numbers = np.random.default_rng(source.randrange(1 << 30))
    given = [numbers.standard_normal((2, each.dims[0].coefficient)).astype(np.float32) for each in plan.inputs]
    (got,), (wanted,) = run_native(plan, given), run_plan(plan, given)
    written = ~np.isnan(wanted)
    np.testing.assert_allclose(got[written], wanted[written], rtol=3e-5, atol=3e-5, err_msg=str(plan.instructions[0]))
