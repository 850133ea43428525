"""Finds the nodes that read rows of a tensor whose rows the steps write one by one.

Gather(t, i); ScatterND(t, [[i]], [y])        the initial row
Gather(t, i - 1); ScatterND(t, [[i]], [y])    the row y of the previous step, which a new state carries

Works around ORT-GATHER-STRINGS.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import STEP, AffineExpression, at_least, surely_equal
from rewrites.analysis.induction.emission import emit
from rewrites.analysis.induction.integers import Integers
from rewrites.graph.branches import has_steps
from rewrites.graph.context import Context
from rewrites.graph.dims import without_axis
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import rank_of
from rewrites.loop_form.row_operators import RowWrite
from rewrites.loops import Loop, State
from rewrites.ops.versions import axis_of, gather, unsqueeze

__all__ = ["carry_previous_row", "has_row_before", "reads_initial_value", "reads_previous_row"]


def reads_initial_value(node: ir.Node, write: RowWrite, integers: Integers) -> bool:
    """Return True if ``node`` reads from the state only its shape or the row that the same step writes.

    This row still has its initial value.
    """
    if node.domain == "" and node.op_type in ("Shape", "Size"):
        return True
    index = _index_of_read_row(node, write, integers)
    return index is not None and surely_equal(index, write.index)


def reads_previous_row(node: ir.Node, write: RowWrite, integers: Integers) -> bool:
    """Return True if ``node`` reads from the state only the row that the previous step wrote.

    Return False for strings, because onnxruntime's Gather of the first row would lose some of them.
    """
    if write.node.outputs[0].dtype == ir.DataType.STRING:
        return False
    index = _index_of_read_row(node, write, integers)
    return index is not None and surely_equal(index, write.index - write.index.factor(STEP))


def _index_of_read_row(node: ir.Node, write: RowWrite, integers: Integers) -> AffineExpression | None:
    """Return the index of the row that ``node`` reads; None if it reads anything else."""
    if node.domain != "":
        return None
    if node.op_type == "Slice":
        bounds = integers.bounds(node) or []
        is_row = len(bounds) == 1 and bounds[0].axis == write.axis and surely_equal(bounds[0].end - bounds[0].start, 1)
        return bounds[0].start.reshaped(()) if is_row else None
    if node.op_type != "Gather" or axis_of(node, 0, rank_of(write.node.outputs[0])) != write.axis:
        return None
    return integers.scalar(node.inputs[1])


def has_row_before(
    write: RowWrite, state: State, reads: Sequence[ir.Node], loop: Loop, integers: Integers, steps: AffineExpression
) -> bool:
    """Return True if the tensor is known to have the row that a step before the first one would write.

    A Gather at -1 reads the last row.

    Args:
        write: The write of a row in each step.
        state: The state that is written.
        reads: The nodes that read the row of the previous step.
        loop: The loop.
        integers: The integers in its body.
        steps: Its trip count.
    """
    length, index = integers.size_of(state.initial, write.axis), _index_before(write)
    is_last = index.number == -1 and all(node.op_type == "Gather" for node in reads)
    count = AffineExpression.of(1) if is_last else index + 1
    known_steps = steps if at_least(steps, 1) or has_steps(loop.node.graph) else None
    return length is not None and at_least(count, 1) and at_least(length - count, 0, known_steps)


def _index_before(write: RowWrite) -> AffineExpression:
    """Return the index of the row that a step before the first one would write."""
    return write.index.without(STEP) - write.index.factor(STEP)


def carry_previous_row(
    write: RowWrite, state: State, reads: Sequence[ir.Node], loop: Loop, ctx: Context
) -> tuple[ir.Value, ir.Value] | None:
    """Let ``reads``, which read the row of the previous step, read a new body input instead.

    Return the initial value of this input and the input itself, or None if ``reads`` is empty.
    """
    if not reads:
        return None
    axis, outside = write.axis, ctx.builder()
    initial = gather(outside, state.initial, emit(outside, _index_before(write)), axis)
    outside.insert_before(loop.node)
    shape = without_axis(state.initial.shape, axis)
    row = ir.Value(name=ctx.names.fresh(f"{state.inner.name}_before"), type=state.initial.type, shape=shape)
    for node in reads:
        inside = ctx.builder()
        keeps_axis = rank_of(node.outputs[0]) == rank_of(state.initial)
        value = unsqueeze(inside, row, [axis]) if keeps_axis else row
        inside.insert_before(node)
        replace_value(node.outputs[0], value, ctx.names)
    remove_nodes(reads)
    return initial, row
