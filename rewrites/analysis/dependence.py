"""Finds dependences in a graph: what nodes read, which values vary, and which results nothing reads.

It also tells which nodes are safe to move, merge or remove.
"""

from collections.abc import Collection, Iterable, Sequence

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.values import const_scalar, static_dims
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import Loop, LoopView, is_loop
from rewrites.loops.view import captured_values
from rewrites.ops.traits import operators

__all__ = [
    "cannot_fail",
    "is_deterministic",
    "must_stay",
    "nodes_computing",
    "not_repeatable",
    "reads",
    "unread_in_loop",
    "unread_nodes",
    "varying_values",
]


_RANDOM = operators("random")

_DROPS = frozenset({"BiasDropout", "BitmaskDropout", "BitmaskBiasDropout", "Sampling"})

_CANNOT_FAIL = operators("total")


def reads(node: ir.Node) -> list[ir.Value]:
    """Return the values that a node depends on: its inputs, and the captures of its nested graphs."""
    values = [value for value in node.inputs if value is not None]
    for graph in node_graphs(node):
        values.extend(captured_values(graph))
    return values


def varying_values(body: ir.Graph, seeds: Iterable[ir.Value]) -> set[ir.Value]:
    """Return ``seeds`` and every value of ``body`` that is computed from a seed.

    ``body`` must be in topological order.
    """
    varying = set(seeds)
    for node in body:
        if any(value in varying for value in reads(node)):
            varying.update(node.outputs)
    return varying


def nodes_computing(
    body: ir.Graph | Sequence[ir.Node], wanted: Iterable[ir.Value], available: Collection[ir.Value] = ()
) -> list[ir.Node]:
    """Return the nodes of ``body`` that must run to compute the values ``wanted``, in body order.

    ``available``: values that are already computed. No node needs to run to compute them.
    """
    needed = {value for value in wanted if value not in available}
    nodes = list[ir.Node]()
    for node in reversed(body):
        if any(value in needed for value in node.outputs):
            nodes.append(node)
            needed.update(value for value in reads(node) if value not in available)
    return nodes[::-1]


def is_deterministic(node: ir.Node) -> bool:
    """Return True if running ``node`` twice on the same inputs returns the same outputs."""
    nested = (inner for graph in node_graphs(node) for inner in all_nodes(graph))
    return all(_deterministic(part) for part in (node, *nested))


def not_repeatable(node: ir.Node) -> NotApplicable | None:
    """Return a reason if ``node`` must run exactly once per step of its loop, else None.

    There are two reasons: the node may return different results each time, or it computes the statistics of a batch.
    """
    if is_deterministic(node):
        return None
    if node.domain == "" and node.op_type == "BatchNormalization":
        return NotApplicable("TRAINING", f"BatchNormalization '{node.name}' computes the statistics of the batch")
    return NotApplicable("RANDOM", f"{node.op_type} '{node.name}' may return other results each time")


def _deterministic(node: ir.Node) -> bool:
    if node.domain == "" and node.op_type in _RANDOM:
        return False
    if node.domain == "" and node.op_type == "Dropout":
        training = node.inputs[2] if len(node.inputs) > 2 else None
        return training is None or const_scalar(training) is False
    if node.domain == "" and node.op_type == "BatchNormalization":
        attribute = node.attributes.get("training_mode")
        return (attribute is None or attribute.as_int() == 0) and len(node.outputs) == 1
    return node.domain in ("", "com.microsoft", "ai.onnx.ml") and node.op_type not in _DROPS


def cannot_fail(node: ir.Node) -> bool:
    """Return True if ``node`` never fails, whatever the elements of its inputs are (it is speculatable)."""
    if node.domain != "":
        return False
    source = node.inputs[0] if node.inputs else None
    if node.op_type == "Cast":  # a string may not be a number
        return source is not None and source.dtype is not None and source.dtype != ir.DataType.STRING
    if node.op_type == "Transpose":
        return source is not None and (source.shape is not None or "perm" not in node.attributes)
    return node.op_type in _CANNOT_FAIL


def unread_in_loop(loop: Loop) -> list[ir.Node]:
    """Return the nodes whose outputs nothing reads in the body of ``loop``, so that they can be removed.

    Nodes in the branches of Ifs in the body are included.
    """
    kept = must_stay(loop)
    return unread_nodes(loop.body, [value for node in kept for value in node.outputs]) if kept else _unread_with_branches(loop.body)


def must_stay(loop: Loop) -> list[ir.Node]:
    """Return the nodes in the body of ``loop`` that must stay even if nothing reads their outputs.

    If the condition of a Loop may be an empty tensor, all nodes that may fail must stay. A node that fails ends the run before
    onnxruntime reads the empty condition. For all other loops, return an empty list. These are Scans, Loops whose condition is
    known to have one element, and Loops that their condition never stops.
    """
    if not isinstance(loop, LoopView) or loop.never_stops_early or static_dims(loop.condition_out) in ((), (1,)):
        return []
    return [node for node in loop.body if not cannot_fail(node)]


def _unread_with_branches(graph: ir.Graph) -> list[ir.Node]:
    dead = unread_nodes(graph)
    gone = set(dead)
    branches = [branch for node in graph if node not in gone and not is_loop(node) for branch in node_graphs(node)]
    return dead + [node for branch in branches for node in _unread_with_branches(branch)]


def unread_nodes(body: ir.Graph, also_needed: Iterable[ir.Value] = ()) -> list[ir.Node]:
    """Return the nodes of ``body`` whose outputs are not needed.

    An output is needed if an output of ``body`` or a value in ``also_needed`` depends on it.
    """
    live: set[ir.Value] = {*body.outputs, *also_needed}
    dead = []
    for node in reversed(list(body)):
        if any(value in live for value in node.outputs):
            live.update(reads(node))
        else:
            dead.append(node)
    return dead
