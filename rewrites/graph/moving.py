"""Moves nodes, and the initializers of bodies, from one graph into another; names stay unique in the target's scope.

Works round ORT-BODY-WEIGHTS-BY-NAME.
"""

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from rewrites.graph.names import Names
from rewrites.graph.replace import replace_output
from rewrites.graph.walk import all_nodes, inner_graphs, node_graphs

__all__ = ["lift_initializers", "move_before", "remove_nodes"]


def move_before(anchor: ir.Node, nodes: Sequence[ir.Node], names: Names) -> None:
    """Take ``nodes`` (in order, all of one graph) out of their graph and put them before ``anchor``."""
    if not nodes:
        return
    source, target = nodes[0].graph, anchor.graph
    assert source is not None
    assert target is not None
    source.remove(nodes)
    for node in nodes:
        node.name = names.unshared(node.name) if node.name else names.fresh(f"node_{node.op_type}")
        for value in node.outputs:
            if value.name:
                value.name = names.unshared(value.name)
    target.insert_before(anchor, nodes)


def lift_initializers(body: ir.Graph, main: ir.Graph, names: Names, least: int = 0) -> None:
    """Make the initializers (of ``least`` bytes or more) of ``body`` and the graphs nested in it initializers of the main graph.

    ORT's ways to give weights by name do not reach into bodies, and what leaves a body must find its weights outside. A graph that
    returns an initializer returns a copy of it then.
    """
    for graph in [body, *inner_graphs(body)]:
        for value in list(graph.initializers.values()):
            if value.is_graph_input() or (least and value.const_value is not None and value.const_value.nbytes < least):
                continue
            if value.is_graph_output():
                replace_output(value, value, names)
            del graph.initializers[value.name or ""]
            value.name = names.unshared(value.name)
            if value.const_value is not None:
                value.const_value.name = value.name
            main.register_initializer(value)


def remove_nodes(nodes: Iterable[ir.Node]) -> None:
    """Remove nodes nobody reads any more with all that is nested in them, and forget what they read."""
    doomed = list(nodes)
    by_graph: dict[ir.Graph | ir.Function, list[ir.Node]] = {}
    nested = [inner for node in doomed for graph in node_graphs(node) for inner in all_nodes(graph)]
    for node in (*doomed, *nested):
        node.resize_inputs(0)
        if node.graph is not None:
            by_graph.setdefault(node.graph, []).append(node)
    for graph, gone in by_graph.items():  # each call looks at all outputs of the graph
        graph.remove(gone)
