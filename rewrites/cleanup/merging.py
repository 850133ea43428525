"""Nodes that do what an earlier one does, and merging them."""

from collections.abc import Hashable, Iterable

import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic
from rewrites.analysis.value_numbering import attribute_key
from rewrites.graph.names import Names
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.walk import node_graphs

__all__ = ["equal_nodes", "merge_equal"]


def merge_equal(twins: Iterable[tuple[ir.Node, ir.Node]], names: Names) -> None:
    """Let what reads the first of each pair, as ``equal_nodes`` gives them, read the second, and remove the first."""
    doomed = []
    for node, earlier in twins:
        for value, same in zip(node.outputs, earlier.outputs, strict=True):
            replace_value(value, same, names)
        doomed.append(node)
    remove_nodes(doomed)


def equal_nodes(nodes: Iterable[ir.Node]) -> list[tuple[ir.Node, ir.Node]]:
    """Return the nodes that repeat an earlier one of ``nodes`` (all of one graph, in order), each with that one."""
    first: dict[Hashable, ir.Node] = {}
    same: dict[ir.Value, ir.Value] = {}
    twins = []
    for node in nodes:
        if node_graphs(node) or not is_deterministic(node):
            continue
        inputs = tuple(None if value is None else id(same.get(value, value)) for value in node.inputs)
        attributes = frozenset((name, attribute_key(attribute)) for name, attribute in node.attributes.items())
        asked = tuple(bool(value.name) for value in node.outputs)
        earlier = first.setdefault((node.domain, node.op_type, node.overload, asked, inputs, attributes), node)
        if earlier is not node and not any(value.is_graph_output() for value in node.outputs):
            twins.append((node, earlier))
            same.update(zip(node.outputs, earlier.outputs, strict=True))
    return twins
