"""Iterates over all nodes and graphs of a model, several times faster than the iterators of onnx_ir.

This module also checks whether the nodes are in topological order.
"""

from collections.abc import Iterator

import onnx_ir as ir

__all__ = ["all_nodes", "has_order", "inner_graphs", "inner_values", "node_graphs"]


_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def all_nodes(graph: ir.Graph | ir.Function) -> Iterator[ir.Node]:
    """Yield all nodes of ``graph`` and its nested graphs. A node comes before the nodes nested in it."""
    for node in graph:
        yield node
        if node.attributes.data:
            for inner in node_graphs(node):
                yield from all_nodes(inner)


def inner_graphs(graph: ir.Graph | ir.Function) -> list[ir.Graph]:
    """Return all graphs nested in ``graph``, each once. A graph comes before the graphs nested in it."""
    graphs: dict[ir.Graph, None] = {}
    for node in graph:
        if node.attributes.data:
            for inner in node_graphs(node):
                graphs.update(dict.fromkeys([inner, *inner_graphs(inner)]))
    return list(graphs)


def inner_values(graph: ir.Graph | ir.Function) -> list[ir.Value]:
    """Return the node results in ``graph`` and its nested graphs, and the inputs of the nested graphs."""
    values = [value for inner in inner_graphs(graph) for value in inner.inputs]
    return values + [value for node in all_nodes(graph) for value in node.outputs]


def node_graphs(node: ir.Node) -> list[ir.Graph]:
    """Return the graphs that are attributes of ``node``."""
    graphs: list[ir.Graph] = []
    for attribute in node.attributes.data.values():
        if attribute.type not in _GRAPHS or attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            graphs.append(attribute.as_graph())
        else:
            graphs.extend(attribute.as_graphs())
    return graphs


def has_order(graph: ir.Graph | ir.Function) -> bool:
    """Return True if the nodes are in topological order.

    A node must come after all nodes whose results are read by the node or by a graph nested in it.
    """
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
