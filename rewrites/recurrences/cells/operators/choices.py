"""Conditions that are assumed to be true or false: what is computed from them, and the choices they make.

An assumed condition is an array of one element, with the rank of the value it stands for.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import rank_of
from rewrites.ops.traits import operators
from rewrites.recurrences.cells.features import Features
from rewrites.recurrences.cells.reading import Meaning, Reading

__all__ = ["read_choice"]

_SPREADING = operators("copies")


def read_choice(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    """Read a node that an assumed condition decides; None where there is none."""
    if not any(value in reading.decided for value in node.inputs):
        return None
    operands = [reading.meaning(value) for value in node.inputs]
    if node.op_type == "Where" and node.inputs[0] in reading.decided and isinstance(operands[0], np.ndarray):
        return _chosen(reading, node, operands[1 if operands[0].item() else 2])
    first, output = operands[0], node.outputs[0]
    number: np.ndarray | None = None
    if node.op_type in _COMPUTED:
        arrays = [each.reshape(()) for each in operands if isinstance(each, np.ndarray) and each.size == 1]
        number = _COMPUTED[node.op_type](*arrays) if len(arrays) == 2 == len(operands) else None
    elif isinstance(first, np.ndarray) and node.op_type in _SPREADING:
        number = first
    elif isinstance(first, np.ndarray) and node.op_type == "Not":
        number = ~first
    elif isinstance(first, np.ndarray) and node.op_type == "Cast":
        to = ir.DataType(node.attributes.get_int("to", 0))
        number = first.astype(to.numpy()) if to == ir.DataType.BOOL or to.is_floating_point() or to.is_integer() else None
    if number is None:
        return None
    reading.decided.add(output)
    return [np.asarray(number).reshape((1,) * (rank_of(output) or 0))]


def _chosen(reading: Reading, node: ir.Node, meaning: Meaning) -> Sequence[Meaning] | None:
    """Return the branch taken, where it has the result's shape already."""
    branch = next((value for value in node.inputs[1:] if value is not None and reading.meaning(value) is meaning), None)
    if branch is None or meaning is None or rank_of(branch) != rank_of(node.outputs[0]):
        return [meaning] if isinstance(meaning, np.ndarray) and meaning.size == 1 else None
    return None if isinstance(meaning, Features) and _spreads(meaning, node.outputs[0]) else [meaning]


def _spreads(branch: Features, result: ir.Value) -> bool:
    """Whether ``branch`` is broadcast to the shape of ``result``, or may be: only an axis of size 1 is."""
    sizes = (*branch.dims, *branch.shape)
    dims = [None] * len(sizes) if result.shape is None else result.shape.dims
    return any(size == 1 != dim for size, dim in zip(sizes, dims, strict=True))


_COMPUTED = {
    "Add": np.add,
    "And": np.logical_and,
    "Mul": np.multiply,
    "Or": np.logical_or,
    "Sub": np.subtract,
}
