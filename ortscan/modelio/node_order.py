"""The order of nodes. ORT takes main graphs in any order, and some converters append nodes at the end; everything else needs
topological order (a clone of an unsorted body would silently read the original's values).
"""

from collections.abc import Sequence

import onnx_ir as ir

__all__ = ["is_sorted", "sort_nodes"]


def is_sorted(model: ir.Model) -> bool:
    """Whether every node comes after those it reads, and those that graphs nested in it read."""
    return all(_has_order(top, set()) for top in (model.graph, *(function.graph for function in model.functions.values())))


def sort_nodes(model: ir.Model) -> None:
    """Sort in place, leaving sorted models as they are; raises ValueError where nodes form a cycle."""
    if is_sorted(model):
        return
    model.graph.sort()
    for function in model.functions.values():
        function.sort()


def _has_order(graph: ir.Graph, seen: set[ir.Node]) -> bool:
    for node in graph:
        if any(value is not None and (by := value.producer()) is not None and by not in seen for value in node.inputs):
            return False
        for attribute in node.attributes.values():
            if attribute.is_ref():
                continue
            nested: Sequence[ir.Graph] = ()
            if attribute.type == ir.AttributeType.GRAPH:
                nested = [attribute.as_graph()]
            elif attribute.type == ir.AttributeType.GRAPHS:
                nested = attribute.as_graphs()
            if not all(_has_order(inner, seen) for inner in nested):
                return False
        seen.add(node)
    return True
