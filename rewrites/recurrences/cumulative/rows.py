"""What each step does to a state that accumulates, for all steps, and pieces of stacks in either order.

A Where here chooses on the sides on which the loop does: works round ORT-WHERE-MINUS-ZERO.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.batching.alignment import repeated
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.dims import same, without_axis
from rewrites.graph.values import const_array, static_dims
from rewrites.ops.versions import concat, slice_axis, squeeze, unsqueeze
from rewrites.recurrences.cumulative.accumulation import Accumulation, Latch

__all__ = ["Ends", "aligned", "expanded", "is_filled", "neutral", "rows_of", "shaped"]

_END = 2**63 - 1


def rows_of(stacks: Stacks, found: Accumulation) -> ir.Value:
    """Return what comes to the state in all steps, with the axes of the state behind the steps; of a difference the opposite."""
    b, initial = stacks.build, found.state.initial
    rows = aligned(stacks, found.operand, found.rank)
    if found.op_type == "Sub":
        rows = b.op("Neg", rows)
    if found.mask is not None and not isinstance(found, Latch):
        condition, when = found.mask
        sides = [rows, b.const(neutral(found))]
        rows = b.op("Where", aligned(stacks, condition, found.rank), *(sides if when else reversed(sides)))
    return expanded(stacks, rows, initial)


def expanded(stacks: Stacks, rows: ir.Value, initial: ir.Value) -> ir.Value:
    """Return ``rows``, which broadcast to the axes of ``initial`` behind the steps, with those axes."""
    b = stacks.build
    if same(without_axis(rows.shape, 0), initial.shape):
        return rows
    dims = static_dims(initial)
    shape = b.const([1, *dims]) if dims is not None else b.op("Concat", b.const([1]), b.op("Shape", initial), axis=0)
    return b.op("Expand", rows, shape)


def neutral(found: Accumulation) -> np.ndarray:
    """Return what changes no state where it comes to it: of -0 a 0 that is added makes 0, a -0 does not."""
    assert found.state.initial.dtype is not None
    kind = np.dtype(found.state.initial.dtype.numpy())
    if found.op_type in ("Max", "Min"):
        is_max = found.op_type == "Max"
        if kind.kind == "f":
            return np.array(-np.inf if is_max else np.inf, kind)
        return np.array(np.iinfo(kind).min if is_max else np.iinfo(kind).max, kind)
    return np.array({"And": True, "Mul": 1, "Or": False}.get(found.op_type, -0.0 if kind.kind == "f" else 0), kind)


def aligned(stacks: Stacks, value: ir.Value, rank: int) -> ir.Value:
    """Return ``value`` of all steps, with ``rank`` axes behind the steps, which broadcast to those of a state of that rank.

    The body tells the rank of ``value`` in one step. A tensor that is scanned may have no rank of its own.
    """
    operand = stacks.get(value)
    assert operand.rank is not None
    rows = repeated(stacks.build, operand, stacks.steps)
    return unsqueeze(stacks.build, rows, range(1, 1 + rank - operand.rank))


def shaped(stack: ir.Value, rows: ir.Value, initial: ir.Value) -> ir.Value:
    """Return ``stack``, which has as many steps as ``rows`` and the axes of the state."""
    if rows.shape is not None and initial.shape is not None:
        stack.shape = ir.Shape([rows.shape[0], *initial.shape.dims])
    return stack


@dataclass(frozen=True)
class Ends:
    """Pieces of stacks, whose first step is the last row where they are ``backwards``."""

    b: Builder
    backwards: bool

    def led(self, first: ir.Value, rows: ir.Value) -> ir.Value:
        """Return ``rows`` with ``first``, one row or more, before the first step."""
        return concat(self.b, [rows, first] if self.backwards else [first, rows], 0)

    def but_last(self, rows: ir.Value) -> ir.Value:
        """Return all steps but the last."""
        return slice_axis(self.b, rows, 0, 1, _END) if self.backwards else slice_axis(self.b, rows, 0, 0, -1)

    def but_first(self, rows: ir.Value) -> ir.Value:
        """Return all steps but the first."""
        return slice_axis(self.b, rows, 0, 0, -1) if self.backwards else slice_axis(self.b, rows, 0, 1, _END)

    def last(self, rows: ir.Value) -> ir.Value:
        """Return the last step."""
        start, end = (0, 1) if self.backwards else (-1, _END)
        return squeeze(self.b, slice_axis(self.b, rows, 0, start, end), [0])


def is_filled(value: ir.Value, number: float) -> bool:
    """Whether all elements of ``value`` are ``number``, and 0 is not -0."""
    node = value.producer()
    if node is not None and node.domain == "":
        if node.op_type == "Expand" and node.inputs[0] is not None:
            return is_filled(node.inputs[0], number)
        if node.op_type == "ConstantOfShape":
            filled = node.attributes.get_tensor("value")
            return number == 0 if filled is None else _all_are(filled.numpy(), number)
    array = const_array(value)
    return array is not None and _all_are(array, number)


def _all_are(array: np.ndarray, number: float) -> bool:
    return bool((array == number).all()) and (array.dtype.kind != "f" or not np.signbit(array).any())
