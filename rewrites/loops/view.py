"""From a node to its view."""

from collections.abc import Iterable

import onnx_ir as ir

from rewrites.graph.walk import node_graphs
from rewrites.loops.loop_view import LoopView
from rewrites.loops.scan_view import ScanView

__all__ = ["Loop", "is_loop", "loops_in", "loops_inside_out", "view"]

Loop = ScanView | LoopView


def is_loop(node: ir.Node) -> bool:
    """Whether ``node`` is a Scan or Loop of the standard operator set."""
    return node.op_type in ("Scan", "Loop") and node.domain == ""


def loops_inside_out(graph: ir.Graph) -> list[ir.Node]:
    """Return all loops of ``graph`` and the graphs nested in it, inner ones before those around them."""
    return loops_in(graph)


def loops_in(nodes: Iterable[ir.Node]) -> list[ir.Node]:
    """Return all loops among ``nodes`` and in the graphs nested in them, inner ones before those around them."""
    found: list[ir.Node] = []
    for node in nodes:
        for inner in node_graphs(node):
            found.extend(loops_in(inner))
        if is_loop(node):
            found.append(node)
    return found


def view(node: ir.Node, opset: int) -> Loop:
    """Read a Scan or Loop; raises MalformedLoop where the operator's own definition is violated."""
    return ScanView.of(node, opset) if node.op_type == "Scan" else LoopView.of(node, opset)
