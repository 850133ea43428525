"""Which values of outer scopes a body reads."""

import onnx_ir as ir

from rewrites.graph.walk import all_nodes, inner_graphs

__all__ = ["captured_values", "graphs_within"]


def graphs_within(graph: ir.Graph) -> list[ir.Graph]:
    """Return ``graph`` and all graphs nested in its nodes."""
    return [graph, *inner_graphs(graph)]


def captured_values(graph: ir.Graph) -> list[ir.Value]:
    """Return the values that ``graph`` or a graph nested in it reads from outside, each once, in order of first use."""
    inside = set(map(id, graphs_within(graph)))
    found: dict[ir.Value, None] = {}
    for node in all_nodes(graph):
        for value in node.inputs:
            if value is not None and id(value.graph) not in inside:
                found.setdefault(value)
    return list(found)
