"""Read constants as arrays, including constants that a few operators rearrange or combine."""

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array
from rewrites.ops.element_moves import movement

__all__ = ["NUMPY", "ConstantReader"]

NUMPY: Mapping[str, np.ufunc] = {
    "Abs": np.abs,
    "Add": np.add,
    "And": np.logical_and,
    "Div": np.true_divide,
    "Exp": np.exp,
    "IsNaN": np.isnan,
    "Log": np.log,
    "Max": np.maximum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Or": np.logical_or,
    "Sub": np.subtract,
}
"""The numpy function of each elementwise operator on numbers or flags."""

_LIMIT = 1 << 31
_DEEPEST = 12
_EXACT = frozenset({"Add", "Mul", "Neg", "Sub"})


class ConstantReader:
    """Reads constants of a model as arrays, and caches them.

    ``known``: tensors whose contents are assumed, with these contents.
    """

    def __init__(self, opset: int, known: Mapping[ir.Value, np.ndarray] | None = None) -> None:
        self.opset = opset
        self._known: dict[ir.Value, np.ndarray | None] = {**(known or {})}

    def of(self, value: ir.Value | None, depth: int = 0) -> np.ndarray | None:
        """Return the array of ``value`` if it is constant, else None."""
        if value is None or depth > _DEEPEST:
            return None
        if value not in self._known:
            self._known[value] = const_array(value, limit=_LIMIT)
            node = value.producer()
            if self._known[value] is None and node is not None and node.domain == "":
                self._known[value] = self._computed(node, value, depth)
        return self._known[value]

    def _computed(self, node: ir.Node, value: ir.Value, depth: int) -> np.ndarray | None:
        arrays = [self.of(operand, depth + 1) for operand in node.inputs]
        known = [array for array in arrays if array is not None]
        if len(known) < sum(operand is not None for operand in node.inputs) or not known:
            return None
        if node.op_type in _EXACT:
            with np.errstate(all="ignore"):
                return np.asarray(NUMPY[node.op_type](*known))
        if node.op_type == "Cast":
            return _cast(node, known[0])
        moved = movement(node, self.opset, known[0].shape, lambda index: arrays[index] if index < len(arrays) else None)
        moved_arrays = None if moved is None else moved.apply(known if node.op_type == "Concat" else known[:1])
        return None if moved_arrays is None else moved_arrays[list(node.outputs).index(value)]


def _cast(node: ir.Node, array: np.ndarray) -> np.ndarray | None:
    to = ir.DataType(node.attributes.get_int("to", 0))
    plain = to.is_floating_point() and to.itemsize >= 2 and to != ir.DataType.BFLOAT16
    return array.astype(to.numpy()) if plain and array.dtype.kind == "f" else None
