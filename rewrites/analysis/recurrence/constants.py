"""Constants as arrays, also behind the few operators with which bodies and hoisting rearrange weights."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array
from rewrites.ops.versions import DYNAMIC, axes_of, axis_of, perm_of, slice_range, slice_spec, split_spec

__all__ = ["Constants"]

_LIMIT = 1 << 31
_DEEPEST = 12


class Constants:
    """Reads constants of one opset; what was read once is remembered. ``given``: what some tensors are taken to hold."""

    def __init__(self, opset: int, given: Mapping[ir.Value, np.ndarray] | None = None) -> None:
        self.opset = opset
        self._known: dict[ir.Value, np.ndarray | None] = {**(given or {})}

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
        compute = _OPERATORS.get(node.op_type)
        arrays = [self.of(operand, depth + 1) for operand in node.inputs]
        if compute is None or any(array is None for array, operand in zip(arrays, node.inputs, strict=True) if operand is not None):
            return None
        given = [array for array in arrays if array is not None]
        if len(given) != len(arrays):
            return None
        return compute(self, node, given, value)

    def _squeeze(self, node: ir.Node, x: list[np.ndarray], _: ir.Value) -> np.ndarray | None:
        axes = axes_of(node, self.opset, x[0].ndim)
        return None if axes is DYNAMIC else np.squeeze(x[0], None if axes is None else tuple(axes))

    def _unsqueeze(self, node: ir.Node, x: list[np.ndarray], _: ir.Value) -> np.ndarray | None:
        axes = axes_of(node, self.opset, None)
        if axes is DYNAMIC or axes is None:
            return None
        return np.expand_dims(x[0], tuple(axes))

    def _reshape(self, node: ir.Node, x: list[np.ndarray], _: ir.Value) -> np.ndarray | None:
        if node.attributes.get_int("allowzero", 0):
            return None
        return x[0].reshape([x[0].shape[i] if size == 0 else int(size) for i, size in enumerate(x[1])])

    def _slice(self, node: ir.Node, x: list[np.ndarray], _: ir.Value) -> np.ndarray | None:
        spec = slice_spec(node, self.opset, x[0].ndim)
        if spec is DYNAMIC:
            return None
        result = x[0]
        for start, end, axis, step in zip(spec.starts, spec.ends, spec.axes, spec.steps, strict=True):
            result = np.take(result, np.array(slice_range(start, end, step, result.shape[axis]), np.int64), axis)
        return result

    def _split(self, node: ir.Node, x: list[np.ndarray], value: ir.Value) -> np.ndarray | None:
        spec = split_spec(node, self.opset, x[0].ndim)
        sizes = spec.sizes_of(x[0].shape[spec.axis])
        if sizes is None:
            return None
        place = list(node.outputs).index(value)
        start = sum(sizes[:place])
        return np.take(x[0], range(start, start + sizes[place]), axis=spec.axis)


def _cast(array: np.ndarray, to: ir.DataType) -> np.ndarray | None:
    plain = to.is_floating_point() and to.itemsize >= 2 and to != ir.DataType.BFLOAT16
    return array.astype(to.numpy()) if plain and array.dtype.kind == "f" else None


_Compute = Callable[[Constants, ir.Node, list[np.ndarray], ir.Value], np.ndarray | None]
_OPERATORS: dict[str, _Compute] = {
    "Add": lambda _c, _n, x, _v: x[0] + x[1],
    "Cast": lambda _c, node, x, _v: _cast(x[0], ir.DataType(node.attributes.get_int("to", 0))),
    "Concat": lambda _c, node, x, _v: np.concatenate(x, axis=axis_of(node, 0, x[0].ndim)),
    "Expand": lambda _c, _n, x, _v: x[0] * np.ones([int(size) for size in x[1]], x[0].dtype) if x[0].dtype.kind == "f" else None,
    "Gather": lambda _c, node, x, _v: np.take(x[0], x[1], axis=axis_of(node, 0, x[0].ndim)),
    "Identity": lambda _c, _n, x, _v: x[0],
    "Mul": lambda _c, _n, x, _v: x[0] * x[1],
    "Neg": lambda _c, _n, x, _v: -x[0],
    "Reshape": Constants._reshape,
    "Slice": Constants._slice,
    "Split": Constants._split,
    "Squeeze": Constants._squeeze,
    "Sub": lambda _c, _n, x, _v: x[0] - x[1],
    "Transpose": lambda _c, node, x, _v: np.transpose(x[0], perm_of(node, x[0].ndim)),
    "Unsqueeze": Constants._unsqueeze,
}
