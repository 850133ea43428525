"""Recognises nodes that replace one row of a state.

    ScatterND(t, [[i]], [y])      Transpose(ScatterND(Transpose(t), [[i]], [y]))

The index ``i`` must change by a constant per step. ``row_operators`` lists the operators that replace a row.
"""

from collections.abc import Sequence
from functools import partial

import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import STEP
from rewrites.analysis.induction.integers import Integers
from rewrites.graph.builder import Builder
from rewrites.graph.values import producer_of, rank_of
from rewrites.loop_form.row_operators import RowTensor, RowWrite, match_operator
from rewrites.loops import State
from rewrites.ops.versions import perm_of, transpose

__all__ = ["row_write"]


def row_write(node: ir.Node, state: State, integers: Integers) -> RowWrite | None:
    """Return ``node`` as a RowWrite if it replaces one row of ``state``, else None.

    The index of the row must change by a constant other than 0 per step. The shape of the state must be known.
    """
    write = _transposed(node, state, integers) or match_operator(node, RowTensor(state.inner, state), integers)
    return write if write is not None and write.index.factor(STEP) and write.index.exact_to is None else None


def _transposed(node: ir.Node, state: State, integers: Integers) -> RowWrite | None:
    """Return ``node`` as a RowWrite if it undoes a Transpose of ``state`` after a row was written."""
    inner = producer_of(node.inputs[0]) if node.op_type == "Transpose" and node.domain == "" else None
    if inner is None or len(inner.outputs) != 1 or len(inner.outputs[0].uses()) != 1 or inner.outputs[0].is_graph_output():
        return None
    for moved in [user for user, _ in state.inner.uses() if user.op_type == "Transpose" and user.domain == ""]:
        rank = rank_of(state.inner) or 0
        perm = perm_of(moved, rank)
        write = match_operator(inner, RowTensor(moved.outputs[0], state, perm), integers)
        if write is None or [perm[axis] for axis in perm_of(node, rank)] != list(range(rank)):
            continue
        if all(user in (inner, *write.helper_nodes) for user, _ in moved.outputs[0].uses()):
            emit_row = partial(_emit_transposed_row, write=write, perm=perm)
            return RowWrite(node, perm[write.axis], write.index, emit_row, (moved, inner, *write.helper_nodes))
    return None


def _emit_transposed_row(b: Builder, write: RowWrite, perm: Sequence[int]) -> ir.Value:
    """Emit the row of ``write`` with the axes in the order that they had before a Transpose by ``perm``."""
    axes = [axis for axis in perm if axis != perm[write.axis]]
    return transpose(b, write.emit_row(b), [axes.index(axis) for axis in sorted(axes)])
