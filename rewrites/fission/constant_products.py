"""A MatMul or Gemm by a constant matrix, by its parts, whichever side the matrix is on."""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array, is_constant, rank_of, static_dims

__all__ = ["ConstantProduct", "constant_product"]

_MATRIX = 2


@dataclass(frozen=True)
class ConstantProduct:
    """``scale`` times the product of ``given`` and ``matrix``, and ``scale_added`` times ``added``, which may be None.

    ``on_left``: the matrix is the left operand. ``flipped``: the matrix is transposed first. ``given_flipped``: the other is.
    ``summed`` and ``wide``: how many numbers each of the result is a sum of, and how many such sums share a row (or column).
    """

    node: ir.Node
    given: ir.Value
    matrix: ir.Value
    on_left: bool
    summed: int
    wide: int
    flipped: bool = False
    given_flipped: bool = False
    scale: float = 1.0
    added: ir.Value | None = None
    scale_added: float = 1.0

    @property
    def result(self) -> ir.Value:
        """What the node gives."""
        return self.node.outputs[0]

    def weights(self, limit: int) -> np.ndarray | None:
        """Return the matrix as [summed, wide], in double where it is of floats, times ``scale``; None beyond ``limit`` bytes."""
        array = const_array(self.matrix, limit=limit)
        if array is None:
            return None
        array = array.T if self.flipped != self.on_left else array
        return array.astype(np.float64) * self.scale if array.dtype.kind == "f" else array


def constant_product(node: ir.Node | None) -> ConstantProduct | None:
    """Return the parts of a product of something and a constant matrix, or None."""
    if node is None or node.domain != "" or node.op_type not in ("MatMul", "Gemm"):
        return None
    left, right = node.inputs[:2]
    if left is None or right is None or rank_of(node.outputs[0]) is None:
        return None
    if _is_matrix(right) and not is_constant(left):
        return _by_right(node, left, right)
    if _is_matrix(left) and not is_constant(right) and node.op_type == "MatMul" and (rank_of(right) or 0) >= _MATRIX:
        wide, summed = static_dims(left) or (0, 0)
        return ConstantProduct(node, right, left, True, summed, wide)
    return None


def _by_right(node: ir.Node, given: ir.Value, matrix: ir.Value) -> ConstantProduct:
    summed, wide = static_dims(matrix) or (0, 0)
    if node.op_type == "MatMul":
        return ConstantProduct(node, given, matrix, False, summed, wide)
    number = node.attributes
    flipped, scale_added = bool(number.get_int("transB", 0)), number.get_float("beta", 1.0)
    added = node.inputs[2] if len(node.inputs) > 2 and scale_added != 0.0 else None
    return ConstantProduct(
        node,
        given,
        matrix,
        False,
        wide if flipped else summed,
        summed if flipped else wide,
        flipped,
        bool(number.get_int("transA", 0)),
        number.get_float("alpha", 1.0),
        added,
        scale_added,
    )


def _is_matrix(value: ir.Value) -> bool:
    dims = static_dims(value)
    return is_constant(value) and dims is not None and len(dims) == _MATRIX and 0 not in dims
