"""Finds reversals of the operands and results of a node.

Transposes, Identities, Squeezes and Unsqueezes may be between the node and a reversal.
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.whole_reversals import Reversals
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import dim_of, rank_of
from rewrites.graph.walk import node_graphs
from rewrites.ops.versions import Dynamic, axes_of, perm_of

__all__ = ["ReversalSource", "reversal_source", "reversing_users"]

_ASK_FOR_SHAPES = frozenset({"Shape", "Size"})


@dataclass(frozen=True)
class ReversalSource:
    """The source of a reversed tensor. Transposes, Squeezes and Unsqueezes may follow the reversal.

    Args:
        source: The tensor before the reversal.
        moves: The nodes after the reversal, from the last to the first.
        is_only_read_here: True if no other node reads the reversed tensor, directly or through the nodes ``moves``.
    """

    source: ir.Value
    moves: tuple[ir.Node, ...]
    is_only_read_here: bool

    def emit(self, build: Builder) -> ir.Value:
        """Emit the nodes ``moves`` without the reversal, and return their result."""
        value = self.source
        for node in reversed(self.moves):
            (value,) = build.like(node, [value, *node.inputs[1:]])
        return value


def reversal_source(value: ir.Value, axis: int, reversals: Reversals) -> ReversalSource | None:
    """Return the source of ``value`` if ``value`` is a tensor reversed along ``axis``, else None.

    Transposes, Identities, Squeezes and Unsqueezes may follow the reversal. If one of them other than an Identity does, also return
    None if other nodes read the reversed tensor, because that node would have to be copied.
    """
    moves, is_only_read_here = list[ir.Node](), True
    while (node := value.producer()) is not None:
        is_only_read_here = is_only_read_here and len(value.uses()) == 1 and not value.is_graph_output()
        source, origins = node.inputs[0] if node.inputs else None, _origins(node, reversals.opset)
        if source is not None and origins is not None:
            origin = origins[axis]
            if origin is None:
                return None
            moves += [node] if node.op_type != "Identity" else []
            value, axis = source, origin
            continue
        reversal = reversals.reversal_of(node)
        if reversal is None or reversal.axis != axis or (moves and not is_only_read_here):
            return None
        return ReversalSource(reversal.source, tuple(moves), is_only_read_here)
    return None


def _origins(node: ir.Node, opset: int) -> list[int | None] | None:
    """Return, for each axis of the result of ``node``, the axis of its operand; None for a new axis.

    Return None if ``node`` does more than move axes, or if ranks or axes are unknown.
    """
    source = node.inputs[0] if node.inputs and node.domain == "" else None
    rank, result_rank = None if source is None else rank_of(source), rank_of(node.outputs[0])
    if rank is None or result_rank is None or node.op_type not in ("Identity", "Transpose", "Squeeze", "Unsqueeze"):
        return None
    if node.op_type in ("Identity", "Transpose"):
        return [*(perm_of(node, rank) if node.op_type == "Transpose" else range(rank))]
    axes = axes_of(node, opset, rank)
    if axes is None or isinstance(axes, Dynamic):
        return None
    if node.op_type == "Squeeze":
        return [axis for axis in range(rank) if axis not in axes]
    kept = iter(range(rank))
    return [None if axis in axes else next(kept) for axis in range(result_rank)]


def reversing_users(stack: ir.Value, axis: int, reversals: Reversals, ctx: Context) -> list[ir.Node]:
    """Return the users of ``stack`` that reverse it along ``axis``.

    Return an empty list if any other user reads more than the shape of ``stack``.
    """
    users, pending = list[ir.Node](), [(stack, axis)]
    while pending:
        value, position = pending.pop()
        if value.is_graph_output():
            if_result = _result_of_if(value, position, ctx)
            if if_result is None:
                return []
            pending.append((if_result, position))
        for node, index in value.uses():
            if index != 0 or node.domain != "":
                return []
            origins = _origins(node, ctx.opset)
            if origins is not None:
                if position not in origins:
                    return []
                pending.append((node.outputs[0], origins.index(position)))
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
