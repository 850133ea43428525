"""Where nodes are, in words: the path of names from the main graph, such as ``main/Scan 'cell'``."""

from collections.abc import Iterator

import onnx_ir as ir

from rewrites.graph.walk import node_graphs
from rewrites.loops.checks import label
from rewrites.loops.view import is_loop

__all__ = ["with_paths"]


def with_paths(graph: ir.Graph, path: str = "main", *, into_loops: bool = True) -> Iterator[tuple[ir.Node, str]]:
    """Yield all nodes of ``graph``, which is at ``path``, and of the graphs nested in it, inner ones first, each with its path.

    ``into_loops``: whether the bodies of loops are looked into.
    """
    for node in graph:
        here = f"{path}/{node.op_type} {label(node)}"
        for inner in node_graphs(node) if into_loops or not is_loop(node) else ():
            yield from with_paths(inner, here, into_loops=into_loops)
        yield node, here
