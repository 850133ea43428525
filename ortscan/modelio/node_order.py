"""The order of nodes. ORT takes main graphs in any order, and some converters append nodes at the end; everything else needs
topological order (a clone of an unsorted body would silently read the original's values).
"""

import onnx_ir as ir

from rewrites.graph.node_order import has_order

__all__ = ["is_sorted", "sort_nodes"]


def is_sorted(model: ir.Model) -> bool:
    """Whether every node comes after those it reads, and those that graphs nested in it read."""
    return all(map(has_order, (model.graph, *(function.graph for function in model.functions.values()))))


def sort_nodes(model: ir.Model) -> None:
    """Sort in place, leaving sorted models as they are; raises ValueError where nodes form a cycle."""
    if is_sorted(model):
        return
    model.graph.sort()
    for function in model.functions.values():
        function.sort()
