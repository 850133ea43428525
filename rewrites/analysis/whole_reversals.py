"""Recognises nodes that reverse a tensor along one axis, and copies the tensor's sizes to the results.

    Slice(x, -1, -2**63, [axis], -1)    Gather(x, T - 1 - Range(0, T, 1))    ReverseSequence(x, T for every row)

T is the size of the reversed axis. It may be a number, or the model may compute it from a Shape.

Works around ORT-GATHER-STRINGS.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import INTEGERS, AffineExpression, Dim, Symbol, surely_equal
from rewrites.analysis.induction.integers import Integers
from rewrites.analysis.induction.progressions import INDEX, Progressions
from rewrites.analysis.value_numbering import through_transposes
from rewrites.graph.dims import forgotten, is_unknown, refined
from rewrites.graph.values import producer_of, rank_of
from rewrites.graph.walk import all_nodes
from rewrites.ops.traits import operators
from rewrites.ops.versions import axis_of, perm_of

__all__ = ["Reversal", "Reversals", "keep_sizes_of_reversals"]


_FAR = 2**31 - 1


@dataclass(frozen=True)
class Reversal:
    """The value ``source``, reversed along ``axis`` (0 or more)."""

    source: ir.Value
    axis: int


class Reversals:
    """Recognises nodes that reverse a tensor along one axis. ``main`` is the main graph of the model.

    In a loop body, a reversal is recognised only if its bounds are constant or come from outside the body.
    """

    def __init__(self, opset: int, main: ir.Graph) -> None:
        self.opset, self._main = opset, main

    def reversal_of(self, node: ir.Node | None) -> Reversal | None:
        """Return the reversal that ``node`` computes, or None if it computes no reversal."""
        reader = _READERS.get(node.op_type) if node is not None and node.domain == "" else None
        source = node.inputs[0] if node is not None and reader is not None and node.inputs else None
        if node is None or reader is None or source is None or source.shape is None:
            return None
        integers = Integers(self.opset, None if node.graph is self._main else node.graph)
        axis = reader(_SizeReader(integers, source, len(source.shape)), node)
        return None if axis is None else Reversal(source, axis)


class _SizeReader:
    """Compares integers in a model with the sizes of the tensor ``source``."""

    def __init__(self, integers: Integers, source: ir.Value, rank: int) -> None:
        self.integers, self.source, self.rank = integers, source, rank

    def is_size(self, expression: AffineExpression | None, axis: int, minus: int = 0) -> bool:
        """Return True if ``expression`` is known to be the size of ``axis`` of the source, less ``minus``."""
        size = self._size(self.source, axis)
        if expression is None or size is None or expression.const.size != 1:
            return False
        return surely_equal(self._with_source_sizes(expression.reshaped(())), size - minus)

    def _size(self, value: ir.Value, axis: int) -> AffineExpression | None:
        source, axes = through_transposes(value)
        return self.integers.size_of(source, axis if axes is None else axes[axis])

    def _with_source_sizes(self, expression: AffineExpression) -> AffineExpression:
        """Return ``expression`` with each size of a transposed tensor replaced by a size of its source.

        The source is the tensor before the Transposes.
        """
        sizes: Mapping[Symbol, AffineExpression | None] = {
            symbol: self._size(symbol.value, symbol.axis) for symbol in expression.terms if isinstance(symbol, Dim)
        }
        return expression.substituted({symbol: size for symbol, size in sizes.items() if size is not None})

    def uniform_value(self, value: ir.Value | None) -> AffineExpression | None:
        """Return the expression of the number that all elements of ``value`` have.

        Return None if the number is unknown or the elements differ.
        """
        expression = self.integers.of(value)
        if expression is not None and expression.const.size:
            return expression.uniform
        node = producer_of(value)
        if value is None or node is None or node.graph is self.integers.body:
            return None
        if node.op_type in operators("copies") or (node.op_type == "Cast" and value.dtype in INTEGERS):
            return self.uniform_value(node.inputs[0])
        filled = node.attributes.get_tensor("value") if node.op_type == "ConstantOfShape" else None
        return AffineExpression.of(filled.numpy()).uniform if filled is not None and filled.numpy().dtype.kind == "i" else None


def _slice(reader: _SizeReader, node: ir.Node) -> int | None:
    if len(node.inputs) < 5:
        return None
    starts, ends, steps = (reader.integers.operand(node, index) for index in (1, 2, 4))
    axes = AffineExpression.of(0) if node.inputs[3] is None and reader.rank == 1 else reader.integers.operand(node, 3)
    if starts is None or ends is None or steps is None or axes is None:
        return None
    end, axis = ends.number, axes.number
    if starts.const.size != 1 or steps.number != -1 or end is None or axis is None:
        return None
    axis %= reader.rank
    dim = reader.integers.size_of(reader.source, axis)
    size = None if dim is None else dim.number
    whole = end <= -_FAR if size is None else end < -size
    start = starts.number
    from_last = start is not None and (start == -1 or start >= (_FAR if size is None else size - 1))
    return axis if whole and (from_last or reader.is_size(starts, axis, minus=1)) else None


def _gather(reader: _SizeReader, node: ir.Node) -> int | None:
    axis, indices = axis_of(node, 0, reader.rank), node.inputs[1]
    if indices is None or rank_of(indices) != 1:
        return None
    if reader.source.dtype == ir.DataType.STRING and axis != reader.rank - 1:  # onnxruntime copies only one string of each row
        return None
    expression, dim = reader.integers.of(indices), reader.integers.size_of(reader.source, axis)
    numbers, size = None if expression is None else expression.numbers, None if dim is None else dim.number
    if numbers is not None:
        if size is None or not size or len(numbers) != size or ((numbers < -size) | (numbers >= size)).any():
            return None
        return axis if np.array_equal(numbers % size, np.arange(size)[::-1]) else None
    row = Progressions(reader.integers).of(indices)
    if row is None or row.element.factor(INDEX) != -1 or not reader.is_size(row.element.without(INDEX), axis, minus=1):
        return None
    return axis if reader.is_size(row.length, axis) else None


def _reverse_sequence(reader: _SizeReader, node: ir.Node) -> int | None:
    axis = node.attributes.get_int("time_axis", 0) % reader.rank
    return axis if reader.is_size(reader.uniform_value(node.inputs[1]), axis) else None


_READERS = {"Gather": _gather, "ReverseSequence": _reverse_sequence, "Slice": _slice}


def keep_sizes_of_reversals(graph: ir.Graph, opset: int) -> None:
    """Copy known sizes from the inputs of reversals and Transposes to their results.

    ``graph``: the main graph. Nodes in its bodies are included.
    """
    reversals = Reversals(opset, graph)
    for node in all_nodes(graph):
        if len(node.outputs) != 1 or node.domain != "" or node.op_type not in ("Gather", "Slice", "Transpose"):
            continue
        result, source = node.outputs[0], node.inputs[0]
        if result.shape is None or source is None or source.shape is None or not any(map(is_unknown, result.shape.dims)):
            continue
        dims = list(source.shape.dims)
        if len(dims) != len(result.shape) or all(map(is_unknown, dims)):
            continue
        if node.op_type == "Transpose":
            dims = [dims[axis] for axis in perm_of(node, len(dims))]
        elif reversals.reversal_of(node) is None:
            continue
        result.shape = refined(forgotten(result.shape, is_unknown), ir.Shape(dims))
