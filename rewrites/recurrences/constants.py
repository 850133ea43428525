"""Constants as arrays, also behind the few operators with which bodies and hoisting rearrange weights."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array
from rewrites.ops.element_moves import movement

__all__ = ["ConstantReader"]

_LIMIT = 1 << 31
_DEEPEST = 12


class ConstantReader:
    """Reads constants of one opset; what was read once is remembered. ``given``: what some tensors are taken to hold."""

    def __init__(self, opset: int, known: Mapping[ir.Value, np.ndarray] | None = None) -> None:
        self.opset = opset
        self._known: dict[ir.Value, np.ndarray | None] = {**(known or {})}

    def of(self, value: ir.Value | None, depth: int = 0) -> np.ndarray | None:
        """Return the array that ``value`` always is, or None."""
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
        compute = _ARITHMETIC.get(node.op_type)
        if compute is not None:
            with np.errstate(all="ignore"):
                return compute(node, known)
        moved = movement(node, self.opset, known[0].shape, lambda index: arrays[index] if index < len(arrays) else None)
        moved_arrays = None if moved is None else moved.make(known if node.op_type == "Concat" else known[:1])
        return None if moved_arrays is None else moved_arrays[list(node.outputs).index(value)]


def _cast(node: ir.Node, x: list[np.ndarray]) -> np.ndarray | None:
    to = ir.DataType(node.attributes.get_int("to", 0))
    plain = to.is_floating_point() and to.itemsize >= 2 and to != ir.DataType.BFLOAT16
    return x[0].astype(to.numpy()) if plain and x[0].dtype.kind == "f" else None


_ARITHMETIC: dict[str, Callable[[ir.Node, list[np.ndarray]], np.ndarray | None]] = {
    "Add": lambda _, x: x[0] + x[1],
    "Cast": _cast,
    "Mul": lambda _, x: x[0] * x[1],
    "Neg": lambda _, x: -x[0],
    "Sub": lambda _, x: x[0] - x[1],
}
