"""Nodes of a body whose results nobody reads."""

from collections.abc import Iterable

import onnx_ir as ir

from rewrites.analysis.dependence import cannot_fail, reads
from rewrites.graph.values import static_dims
from rewrites.graph.walk import node_graphs
from rewrites.loops import Loop, LoopView, is_loop

__all__ = ["kept_anyway", "unread_in_loop", "unread_nodes"]


def unread_in_loop(loop: Loop) -> list[ir.Node]:
    """Return the nodes of the loop's body, branches included, that contribute to no output and that nothing else needs."""
    kept = kept_anyway(loop)
    return unread_nodes(loop.body, [value for node in kept for value in node.outputs]) if kept else _unread_with_branches(loop.body)


def kept_anyway(loop: Loop) -> list[ir.Node]:
    """Return the nodes of the body that stay, read or not: those that may fail, where the condition may not be one element."""
    if not isinstance(loop, LoopView) or loop.never_stops_early or static_dims(loop.condition_out) in ((), (1,)):
        return []
    return [node for node in loop.body if not cannot_fail(node)]


def _unread_with_branches(graph: ir.Graph) -> list[ir.Node]:
    dead = unread_nodes(graph)
    gone = set(dead)
    branches = [branch for node in graph if node not in gone and not is_loop(node) for branch in node_graphs(node)]
    return dead + [node for branch in branches for node in _unread_with_branches(branch)]


def unread_nodes(body: ir.Graph, also: Iterable[ir.Value] = ()) -> list[ir.Node]:
    """Return the nodes of ``body`` that contribute neither to its outputs nor to the values ``also``."""
    live: set[ir.Value] = {*body.outputs, *also}
    dead = []
    for node in reversed(list(body)):
        if any(value in live for value in node.outputs):
            live.update(reads(node))
        else:
            dead.append(node)
    return dead
