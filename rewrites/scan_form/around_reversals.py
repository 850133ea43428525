"""What stands before the reversal of a tensor, and who reverses one: Transposes, and Squeezes after it, may stand between."""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.whole_reversals import Reversals
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import dim_of, rank_of
from rewrites.graph.walk import node_graphs
from rewrites.ops.versions import DYNAMIC, axes_of, perm_of, transpose

__all__ = ["Unturned", "turning_readers", "unturned"]

_ASK_FOR_SHAPES = frozenset({"Shape", "Size"})


@dataclass(frozen=True)
class Unturned:
    """``source`` as it is before it is reversed; the last Transpose after that is the first of ``perms``.

    ``removes``: whether nobody else reads the reversal.
    """

    source: ir.Value
    perms: tuple[tuple[int, ...], ...]
    removes: bool

    def write(self, build: Builder) -> ir.Value:
        """Return the tensor without its reversal."""
        if not self.perms:
            return self.source
        axes = tuple(range(len(self.perms[0])))
        for perm in reversed(self.perms):
            axes = tuple(axes[axis] for axis in perm)
        return transpose(build, self.source, axes)


def unturned(value: ir.Value, axis: int, reversals: Reversals) -> Unturned | None:
    """Return what ``value`` is the reversal of along ``axis``; None where it is none, or a Transpose would be needed twice."""
    perms, alone = list[tuple[int, ...]](), True
    while (node := value.producer()) is not None:
        alone = alone and len(value.uses()) == 1 and not value.is_graph_output()
        source, rank = node.inputs[0] if node.inputs else None, rank_of(value)
        if node.domain == "" and node.op_type in ("Identity", "Transpose") and source is not None and rank is not None:
            if node.op_type == "Transpose":
                perms.append(perm_of(node, rank))
                axis = perms[-1][axis]
            value = source
            continue
        found = reversals.read(node)
        if found is None or found.axis != axis or (perms and not alone):
            return None
        return Unturned(found.source, tuple(perms), alone)
    return None


def turning_readers(stack: ir.Value, axis: int, reversals: Reversals, ctx: Context) -> list[ir.Node]:
    """Return the reversals of ``stack`` along ``axis``, where all that is made of it is those and questions for its shape."""
    found, waiting = list[ir.Node](), [(stack, axis)]
    while waiting:
        value, place = waiting.pop()
        rank = rank_of(value)
        if rank is None:
            return []
        if value.is_graph_output():
            outside = _given_by_if(value, place, ctx)
            if outside is None:
                return []
            waiting.append((outside, place))
        for node, index in value.uses():
            if index != 0 or node.domain != "":
                return []
            if node.op_type in ("Identity", "Transpose"):
                waiting.append((node.outputs[0], perm_of(node, rank).index(place) if node.op_type == "Transpose" else place))
            elif node.op_type == "Squeeze":
                gone = axes_of(node, ctx.opset, rank)
                if gone is None or gone is DYNAMIC or place in gone:
                    return []
                waiting.append((node.outputs[0], place - sum(each < place for each in gone)))
            elif node.op_type not in _ASK_FOR_SHAPES:
                reversal = reversals.read(node)
                if reversal is None or reversal.axis != place:
                    return []
                found.append(node)
    return found


def _given_by_if(value: ir.Value, axis: int, ctx: Context) -> ir.Value | None:
    """Return the result of the If that a branch gives as ``value``, where the other branch's is the same reversed."""
    graph = value.graph
    if graph is ctx.model.graph or not isinstance(graph, ir.Graph) or list(graph.outputs).count(value) != 1:
        return None
    node = ctx.if_around(graph)
    if node is None:
        return None
    place = list(graph.outputs).index(value)
    dims = [dim_of(branch.outputs[place], axis) for branch in node_graphs(node) if branch is not graph]
    return node.outputs[place] if all(dim in (0, 1) for dim in dims) else None
