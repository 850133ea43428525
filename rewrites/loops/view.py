"""Finds the loops of a graph, and has functions for loops of both kinds, Scan and Loop.

Works around ORT-SCAN-MOVED-AXES.
"""

from collections.abc import Iterable, Iterator

import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.context import Context
from rewrites.graph.values import static_dims
from rewrites.graph.walk import all_nodes, inner_graphs, node_graphs
from rewrites.loops.loop_view import LoopView
from rewrites.loops.parts import label
from rewrites.loops.scan_view import ScanView

__all__ = ["Loop", "captured_values", "fewest_states", "is_loop", "loops_in", "may_crash_onnxruntime", "nodes_with_paths", "view"]


Loop = ScanView | LoopView


def view(node: ir.Node, opset: int) -> Loop:
    """Return the view of a Scan or Loop. Raise MalformedLoop if ``node`` is invalid."""
    return ScanView.of(node, opset) if node.op_type == "Scan" else LoopView.of(node, opset)


def is_loop(node: ir.Node) -> bool:
    """Return True if ``node`` is a Scan or Loop of the standard operator set."""
    return node.op_type in ("Scan", "Loop") and node.domain == ""


def loops_in(nodes: Iterable[ir.Node]) -> list[ir.Node]:
    """Return all loops among ``nodes`` and in graphs nested in them, inner loops first."""
    loops: list[ir.Node] = []
    for node in nodes:
        for inner in node_graphs(node):
            loops.extend(loops_in(inner))
        if is_loop(node):
            loops.append(node)
    return loops


def nodes_with_paths(graph: ir.Graph, path: str = "main", *, into_loops: bool = True) -> Iterator[tuple[ir.Node, str]]:
    """Yield the nodes of ``graph`` and its nested graphs, each with its path: ``main/If 'a'/Loop 'b'``.

    ``path``: the path of ``graph``. ``into_loops``: if False, skip the bodies of loops.
    """
    for node in graph:
        here = f"{path}/{node.op_type} {label(node)}"
        for inner in node_graphs(node) if into_loops or not is_loop(node) else ():
            yield from nodes_with_paths(inner, here, into_loops=into_loops)
        yield node, here


def captured_values(graph: ir.Graph) -> list[ir.Value]:
    """Return the outer values that ``graph`` and its nested graphs read, once each, in order of first use."""
    inside = set(map(id, [graph, *inner_graphs(graph)]))
    captured: dict[ir.Value, None] = {}
    for node in all_nodes(graph):
        for value in node.inputs:
            if value is not None and id(value.graph) not in inside:
                captured.setdefault(value)
    return list(captured)


def fewest_states(loop: Loop, ctx: Context) -> int:
    """Return the smallest number of states that the operator of ``loop`` accepts."""
    return int(isinstance(loop, LoopView) and ctx.opset < since.STATELESS_LOOPS)


def may_crash_onnxruntime(loop: Loop) -> bool:
    """Return True if ``loop`` may crash onnxruntime.

    This may happen if a Scan scans along an axis other than 0 and the scanned tensor is empty.
    """
    if isinstance(loop, LoopView) or loop.batched:
        return False
    moved = [scan.outer for scan in loop.scan_inputs if scan.axis != 0]
    moved += [output.inner for output in loop.scan_outputs if output.axis != 0]
    sizes = [static_dims(value) for value in moved]
    return bool(moved) and not (isinstance(loop.steps, int) and loop.steps and all(dims and 0 not in dims for dims in sizes))
