"""Reductions of rows at every length against numpy in double precision, with empty rows, infinities and NaN."""

import numpy as np
import pytest

from rewrites.native.operations import Op
from tests.support.native_plans import operand, row, run_native, single

LENGTHS = [*range(1, 131), 1000]


def plan_of(op: Op, length: int, repeated: bool, rows: int = 3):
    inner = 0 if repeated else 1
    width = 1 if repeated else length
    source = operand(1, (0, 0, width, inner))
    if op < Op.LAYER_NORMALIZATION:
        others = [operand(2, (0, 0, length, 1))] if op == Op.DOT else []
        return single(
            op,
            (1, 1, rows, length),
            [operand(0, (0, 0, 1, 0)), source, *others],
            [rows, rows * width, rows * length][: 2 + len(others)],
        )
    others = {Op.LAYER_NORMALIZATION: [row(2), row(3)], Op.RMS_NORMALIZATION: [row(2)]}.get(op, [])
    counts = [rows * length, rows * width, *[length] * len(others)]
    return single(op, (1, 1, rows, length), [operand(0, (0, 0, length, 1)), source, *others], counts, immediates=(1e-3, 0.0))


def by_numpy(op: Op, x: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    x, others = x.astype(np.float64), [each.astype(np.float64) for each in others]
    match op:
        case Op.SUM:
            return x.sum(-1)
        case Op.MEAN:
            return x.mean(-1)
        case Op.REDUCE_MAX:
            return x.max(-1)
        case Op.REDUCE_MIN:
            return x.min(-1)
        case Op.SUM_OF_SQUARES:
            return (x * x).sum(-1)
        case Op.DOT:
            return (x * others[0].reshape(x.shape)).sum(-1)
        case Op.LAYER_NORMALIZATION:
            scale, bias = (each[:, None] for each in others)
            return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3) * scale + bias
        case Op.RMS_NORMALIZATION:
            return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * others[0][:, None]
        case Op.SOFTMAX:
            powers = np.exp(x - x.max(-1, keepdims=True))
            return powers / powers.sum(-1, keepdims=True)
        case Op.LOG_SOFTMAX:
            below = x - x.max(-1, keepdims=True)
            return below - np.log(np.exp(below).sum(-1, keepdims=True))
    raise AssertionError(op)


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("op", [op for op in Op if Op.SUM <= op < Op.GEMM], ids=lambda op: op.name)
def test_every_length(op: Op, repeated: bool) -> None:
    random = np.random.default_rng(op)
    for length in LENGTHS:
        plan = plan_of(op, length, repeated)
        inputs = [random.standard_normal((2, each.dims[0].coefficient)).astype(np.float32) for each in plan.inputs]
        (got,) = run_native(plan, inputs)
        x = inputs[0].reshape(2, 3, -1)
        x = np.repeat(x, length, -1) if repeated else x
        wanted = by_numpy(op, x, inputs[1:]).reshape(2, -1)
        # a row of equal numbers: what their mean is rounded by counts 1 / sqrt(epsilon) times
        off = 1e-3 if repeated and op == Op.LAYER_NORMALIZATION else 2e-5
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=off, err_msg=f"length {length}")


@pytest.mark.parametrize(
    ("op", "wanted"), [(Op.SUM, 0.0), (Op.MEAN, 0.0), (Op.REDUCE_MAX, -np.inf), (Op.REDUCE_MIN, np.inf), (Op.SUM_OF_SQUARES, 0.0)]
)
@pytest.mark.parametrize("inner", [0, 1])
def test_empty_reduction_equals_onnxruntime(op: Op, wanted: float, inner: int) -> None:
    plan = single(op, (1, 1, 3, 0), [operand(0, (0, 0, 1, 0)), operand(1, (0, 0, 0, inner))], [3, 0])
    (got,) = run_native(plan, [np.zeros((2, 0), np.float32)])
    np.testing.assert_array_equal(got, np.full((2, 3), wanted, np.float32))


@pytest.mark.parametrize("length", [1, 3, 15, 16, 17, 40])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("op", [Op.SUM, Op.REDUCE_MAX, Op.REDUCE_MIN, Op.SOFTMAX], ids=lambda op: op.name)
def test_special_numbers_at_any_index_equal_numpy(op: Op, special: float, length: int) -> None:
    x = np.tile(np.linspace(-1, 1, length, dtype=np.float32), (length, 1))
    x[np.arange(length), np.arange(length)] = special
    (got,) = run_native(plan_of(op, length, False, rows=1), [x])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(got, by_numpy(op, x, []).reshape(length, -1), rtol=1e-5, atol=1e-6)
