"""Outputs of bodies and branches that onnxruntime refuses for how they are written, though what they mean is plain.

body (s, x) => (n, d)    with d from outside    ->    body (s, x) => (n, Identity(d))
l = Scan body (s, x) => (n, y)                  ->    l, nobody_reads = Scan body (s, x) => (n, y)

Works round ORT-SCAN-UNNAMED-RESULT and ORT-OUTER-VALUE-RETURNED.
"""

from collections.abc import Iterator, Mapping

import onnx_ir as ir

from ortscan.modelio.slots import graphs_in
from rewrites.graph.names import Names
from rewrites.graph.walk import node_graphs

__all__ = ["tie_outputs"]


def tie_outputs(model: ir.Model) -> list[str]:
    """Write such outputs as onnxruntime wants them, and say of each what was done. Names nothing defines stay undefined."""
    said = []
    names: Names | None = None
    tops = (model.graph, *(function.graph for function in model.functions.values()))
    loose = any(_is_loose(value) for graph in graphs_in(model) for value in graph.outputs)
    for graph, around in [found for top in tops if loose for found in _nested(top, {})]:
        for place, value in enumerate(graph.outputs):
            outer = around.get(value.name or "")
            if outer is not None and _is_loose(value):
                names = names or Names(model)
                copy = ir.Value(name=names.fresh(f"{value.name}_out"), type=value.type, shape=value.shape)
                graph.append(ir.Node("", "Identity", [outer], outputs=[copy], name=names.fresh(f"{value.name}/Identity")))
                graph.outputs[place] = copy
                said.append(f"gave the output '{value.name}' of '{graph.name}', a value of the graph around it, an Identity")
    for node in [node for graph in graphs_in(model) for node in graph if node.op_type == "Scan" and node.domain == ""]:
        missing = [output for body in node_graphs(node) for output in body.outputs][len(node.outputs) :]
        if missing and node.outputs:
            names = names or Names(model)
            count = len(node.outputs)
            node.resize_outputs(count + len(missing))
            for value, inner in zip(node.outputs[count:], missing, strict=True):
                value.name, value.type = names.fresh(f"{inner.name}_unread"), inner.type
            said.append(f"gave the Scan producing '{node.outputs[0].name}' the outputs of its body that nobody reads")
    return said


def _is_loose(value: ir.Value) -> bool:
    return value.producer() is None and not value.is_graph_input() and not value.is_initializer()


def _nested(graph: ir.Graph, around: Mapping[str, ir.Value]) -> Iterator[tuple[ir.Graph, Mapping[str, ir.Value]]]:
    """Yield the graphs inside ``graph``, each with the values of the graphs around it by name."""
    own = [*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs)]
    seen = {**around, **{value.name: value for value in own if value.name}}
    for node in graph:
        for inner in node_graphs(node):
            yield inner, seen
            yield from _nested(inner, seen)
