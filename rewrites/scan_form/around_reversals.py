"""Finds reversals of the operands and results of a node.

Transposes and Identities may be between the node and a reversal. Squeezes may be between the node and a reversal of its result.
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.whole_reversals import Reversals
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import dim_of, rank_of
from rewrites.graph.walk import node_graphs
from rewrites.ops.versions import DYNAMIC, axes_of, perm_of, transpose

__all__ = ["ReversalSource", "reversal_source", "reversing_users"]

_ASK_FOR_SHAPES = frozenset({"Shape", "Size"})


@dataclass(frozen=True)
class ReversalSource:
    """The source of a reversed tensor. Transposes may follow the reversal.

    Args:
        source: The tensor before the reversal.
        perms: The attribute ``perm`` of each Transpose after the reversal, from the last Transpose to the first.
        is_only_read_here: True if no other node reads the reversed tensor, directly or transposed.
    """

    source: ir.Value
    perms: tuple[tuple[int, ...], ...]
    is_only_read_here: bool

    def emit(self, build: Builder) -> ir.Value:
        """Emit the Transposes without the reversal, and return their result."""
        if not self.perms:
            return self.source
        axes = tuple(range(len(self.perms[0])))
        for perm in reversed(self.perms):
            axes = tuple(axes[axis] for axis in perm)
        return transpose(build, self.source, axes)


def reversal_source(value: ir.Value, axis: int, reversals: Reversals) -> ReversalSource | None:
    """Return the source of ``value`` if ``value`` is a tensor reversed along ``axis``, else None.

    Transposes and Identities may follow the reversal. If there is a Transpose, also return None if other nodes read the reversed
    tensor, because the Transpose would have to be copied.
    """
    perms, is_only_read_here = list[tuple[int, ...]](), True
    while (node := value.producer()) is not None:
        is_only_read_here = is_only_read_here and len(value.uses()) == 1 and not value.is_graph_output()
        source, rank = node.inputs[0] if node.inputs else None, rank_of(value)
        if node.domain == "" and node.op_type in ("Identity", "Transpose") and source is not None and rank is not None:
            if node.op_type == "Transpose":
                perms.append(perm_of(node, rank))
                axis = perms[-1][axis]
            value = source
            continue
        reversal = reversals.reversal_of(node)
        if reversal is None or reversal.axis != axis or (perms and not is_only_read_here):
            return None
        return ReversalSource(reversal.source, tuple(perms), is_only_read_here)
    return None


def reversing_users(stack: ir.Value, axis: int, reversals: Reversals, ctx: Context) -> list[ir.Node]:
    """Return the users of ``stack`` that reverse it along ``axis``.

    Return an empty list if any other user reads more than the shape of ``stack``.
    """
    users, pending = list[ir.Node](), [(stack, axis)]
    while pending:
        value, position = pending.pop()
        rank = rank_of(value)
        if rank is None:
            return []
        if value.is_graph_output():
            if_result = _result_of_if(value, position, ctx)
            if if_result is None:
                return []
            pending.append((if_result, position))
        for node, index in value.uses():
            if index != 0 or node.domain != "":
                return []
            if node.op_type in ("Identity", "Transpose"):
                pending.append((node.outputs[0], perm_of(node, rank).index(position) if node.op_type == "Transpose" else position))
            elif node.op_type == "Squeeze":
                squeezed_axes = axes_of(node, ctx.opset, rank)
                if squeezed_axes is None or squeezed_axes is DYNAMIC or position in squeezed_axes:
                    return []
                pending.append((node.outputs[0], position - sum(squeezed < position for squeezed in squeezed_axes)))
            elif node.op_type not in _ASK_FOR_SHAPES:
                reversal = reversals.reversal_of(node)
                if reversal is None or reversal.axis != position:
                    return []
                users.append(node)
    return users


def _result_of_if(value: ir.Value, axis: int, ctx: Context) -> ir.Value | None:
    """Return the result of the If whose branch returns ``value``.

    Return None if no branch returns ``value``, or if the other branch may return more than one step along ``axis``.
    """
    graph = value.graph
    if graph is ctx.model.graph or not isinstance(graph, ir.Graph) or list(graph.outputs).count(value) != 1:
        return None
    node = ctx.if_around(graph)
    if node is None:
        return None
    position = list(graph.outputs).index(value)
    other_sizes = [dim_of(branch.outputs[position], axis) for branch in node_graphs(node) if branch is not graph]
    return node.outputs[position] if all(dim in (0, 1) for dim in other_sizes) else None
