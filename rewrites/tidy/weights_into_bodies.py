"""Moves a weight into a loop body if only products in this body read the weight.

    w = initializer; h = Scan(h0, x) { g = MatMul(h, w) ... }    ->    h = Scan(h0, x) { w = initializer; g = MatMul(h, w) ... }

When onnxruntime loads a model, it packs such weights for its matrix products, and drops an original when all its users have packed
copies. A body that captures a dropped weight then reads an empty value. Because of this value, onnxruntime plans the memory of the
body again in each step, which costs about 0.1 µs for each node and step, up to a quarter of the time of a small body. A weight that
belongs to the body avoids this cost.

But a body with a memory plan costs about 0.07 µs more per step. This is too much for a body that needs only one buffer, so the
weights of such a body stay outside. A body needs one buffer if it has one value that is not an output, or two values of which the
second can overwrite the first.

The rule moves weights that are in memory, have at most 1 MiB, and are packed by every user. For larger products the gain is
negligible, and a body cannot refer to a weight in a file. These weights stay: inputs and outputs of the graph, weights with users
in several graphs or outside loops, and weights of models of IR version 3 or 4.
"""

from collections.abc import Mapping

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.replace import is_stored_in_main, lower_initializers
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import is_loop
from rewrites.ops.traits import operators
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_MOST_BYTES = 1 << 20
_ELEMENTWISE = operators("elementwise")
_FIRST_IR = 5  # in IR version 3 initializers are inputs; during rewriting such models have version 4

_PACKED: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("", "MatMul"): (1,),
    ("", "Gemm"): (1,),
    ("", "MatMulInteger"): (1,),
    ("", "QLinearMatMul"): (3,),
    ("", "ConvTranspose"): (1,),
    ("", "LSTM"): (1, 2),
    ("", "GRU"): (1, 2),
    ("com.microsoft", "FusedMatMul"): (1,),
    ("com.microsoft", "DynamicQuantizeMatMul"): (1,),
    ("com.microsoft", "MatMulIntegerToFloat"): (1,),
}
"""The operands that onnxruntime packs if they are constant, by operator."""


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch that moves weights into the bodies that read them."""
    if ctx.model.ir_version < _FIRST_IR:
        return NOTHING_HERE
    planned = {graph for node in all_nodes(model.graph) if is_loop(node) for graph in _planned_graphs(node)}
    moves = [
        (weight, reader)
        for weight in model.graph.initializers.values()
        if is_stored_in_main(weight, model.graph) and (reader := _only_packing_graph(weight)) is not None and reader in planned
    ]

    def edit() -> list[ir.Node]:
        lower_initializers(moves, model.graph)
        return []

    return Patch("moved weights into the only body that reads them", edit) if moves else NOTHING_HERE


def _planned_graphs(loop: ir.Node) -> set[ir.Graph]:
    """Return the graphs in ``loop`` that are faster with a memory plan, and the graphs nested in them."""
    planned: set[ir.Graph] = set()
    waiting = [(body, False) for body in node_graphs(loop)]
    while waiting:
        graph, is_inside = waiting.pop()
        is_planned = is_inside or _has_buffers(graph)
        if is_planned:
            planned.add(graph)
        waiting.extend((inner, is_planned) for node in graph for inner in node_graphs(node))
    return planned


def _only_packing_graph(weight: ir.Value) -> ir.Graph | None:
    """Return the only graph that reads ``weight``, if each of its readers packs it.

    Return None for all other weights, and for large weights.
    """
    if weight.const_value is None or weight.const_value.nbytes > _MOST_BYTES:
        return None
    graphs = {use.node.graph if use.idx in _PACKED.get((use.node.domain, use.node.op_type), ()) else None for use in weight.uses()}
    only = graphs.pop() if len(graphs) == 1 else None
    return only if isinstance(only, ir.Graph) else None


def _has_buffers(graph: ir.Graph) -> bool:
    """Return True if onnxruntime needs two or more buffers for values of ``graph`` that are not outputs."""
    inside = {
        value: node
        for node in graph
        for value in node.outputs
        if node.op_type != "Constant" and value.uses() and not value.is_graph_output()
    }
    overwrites = any(node.op_type in _ELEMENTWISE and not inside.keys().isdisjoint(node.inputs) for node in inside.values())
    return len(inside) > (2 if overwrites else 1)


RULE = Rule("weights-into-bodies", "tidy", "model", check)
