"""MatMul and Gemm by constant matrices: affine maps of affine maps, or of products that become sources of their own.

A product tells how many features its operand has, since it fails for any other number: a size that has but a name is known so,
unless rows are counted by that name too, as some exporters have it that call all free sizes alike.
"""

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import dim_of, shape_dims
from rewrites.loops import ScanView
from rewrites.recurrences.cells.features import Features
from rewrites.recurrences.cells.operators.sides import same_lead
from rewrites.recurrences.cells.polynomial import Polynomial
from rewrites.recurrences.cells.reading import Meaning, Reading

__all__ = ["PRODUCTS", "apply_matrix"]


def _matmul(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    left, right = (reading.meaning(value) for value in node.inputs)
    if left is None and isinstance(right, np.ndarray) and right.ndim > 1:
        _learn_width(reading, node.inputs[0], right.shape[-2])
    if isinstance(left, Features) and isinstance(right, np.ndarray):
        return apply_matrix(reading, left, right)
    if isinstance(left, np.ndarray) and isinstance(right, Features) and left.ndim == 2 and right.lead == 0:
        return apply_matrix(reading, right, left.T)
    return None


def apply_matrix(reading: Reading, x: Features, matrix: np.ndarray, bias: np.ndarray | None = None) -> Sequence[Meaning] | None:
    """Return ``x @ matrix``, or None where ``matrix`` is no matrix for the features of ``x``."""
    if matrix.dtype.kind != "f" or len(x.shape) != 1 or matrix.ndim < 2 or any(size != 1 for size in matrix.shape[:-2]):
        return None
    if matrix.shape[-2] != x.width or matrix.ndim - 1 > max(x.lead, 1) + 1 or (matrix.ndim > 2 and matrix.ndim - 2 > x.lead - 1):
        return None
    affine = reading.as_source(x).times(matrix.reshape(matrix.shape[-2:]).astype(np.float64))
    polynomial = Polynomial(affine)
    if bias is not None:
        polynomial = polynomial.plus(Polynomial.constant(bias))
    return [Features(x.dims, (affine.width,), (polynomial,))]


def _gemm(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    x, matrix = reading.features(node.inputs[0]), reading.meaning(node.inputs[1])
    if x is None and isinstance(matrix, np.ndarray) and matrix.ndim == 2 and not node.attributes.get_int("transA", 0):
        _learn_width(reading, node.inputs[0], matrix.shape[1 if node.attributes.get_int("transB", 0) else 0])
    if x is None or not isinstance(matrix, np.ndarray) or node.attributes.get_int("transA", 0) != 0 or x.lead != 1:
        return None
    matrix = matrix.T if node.attributes.get_int("transB", 0) else matrix
    matrix = matrix * node.attributes.get_float("alpha", 1.0)
    added, beta = node.inputs[2] if len(node.inputs) > 2 else None, node.attributes.get_float("beta", 1.0)
    if added is None or beta == 0:
        return apply_matrix(reading, x, matrix)
    result = apply_matrix(reading, x, matrix)
    extra = reading.meaning(added)
    if result is None or not isinstance(result[0], Features):
        return None
    if isinstance(extra, np.ndarray):
        if extra.ndim > 1 and extra.shape[0] != 1:
            return None
        numbers = np.broadcast_to(extra.reshape(-1).astype(np.float64) * beta, (result[0].width,))
        return [result[0].mapped(lambda run: run.plus(Polynomial.constant(numbers)))]
    if isinstance(extra, Features) and extra.shape == result[0].shape and extra.lead <= 1 and same_lead(extra, result[0]):
        scaled = extra.mapped(lambda run: run.scaled(beta))
        return [result[0].combined(scaled, Polynomial.plus)]
    return None


def _learn_width(reading: Reading, x: ir.Value | None, width: int) -> None:
    dim = None if x is None else dim_of(x, -1)
    if isinstance(dim, str) and dim not in _row_names(reading.loop):
        reading.learn_same(dim, width)


def _row_names(loop: ScanView) -> set[int | str | None]:
    shapes = [value.shape for value in (*(state.initial for state in loop.states), *(scan.outer for scan in loop.scan_inputs))]
    return {dim for shape in shapes if shape is not None for dim in shape_dims(shape)[:-1]}


PRODUCTS: dict[str, Callable[[Reading, ir.Node], Sequence[Meaning] | None]] = {"Gemm": _gemm, "MatMul": _matmul}
