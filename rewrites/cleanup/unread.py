"""Removes what nobody reads from a graph and the branches in it."""

import onnx_ir as ir

from rewrites.analysis.dependence import unread_nodes
from rewrites.graph.replace import remove_nodes
from rewrites.graph.walk import node_graphs
from rewrites.loops import is_loop

__all__ = ["drop_unread"]


def drop_unread(graph: ir.Graph) -> None:
    """Remove the nodes of ``graph`` and the branches in it that nobody reads."""
    for node in graph:
        if not is_loop(node):
            for branch in node_graphs(node):
                drop_unread(branch)
    remove_nodes(unread_nodes(graph))
