"""Whether nodes stand in topological order."""

import onnx_ir as ir

from rewrites.graph.walk import node_graphs

__all__ = ["has_order"]


def has_order(graph: ir.Graph | ir.Function) -> bool:
    """Whether every node comes after those it reads, and those that graphs nested in it read."""
    return _has_order(graph, set())


def _has_order(graph: ir.Graph | ir.Function, seen: set[ir.Node]) -> bool:
    for node in graph:
        for value in node.inputs:
            if value is not None and (by := value.producer()) is not None and by not in seen:
                return False
        if node.attributes.data and not all(_has_order(inner, seen) for inner in node_graphs(node)):
            return False
        seen.add(node)
    return True
