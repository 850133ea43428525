"""What a node reads, which values of a body change from step to step, and which nodes may be run elsewhere or only once."""

from collections.abc import Collection, Iterable

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.values import const_scalar
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops.view import captured_values
from rewrites.ops.traits import operators

__all__ = ["cannot_fail", "is_deterministic", "nodes_behind", "not_repeatable", "reads", "varying_values"]

_RANDOM = operators("random")

_DROPS = frozenset({"BiasDropout", "BitmaskDropout", "BitmaskBiasDropout", "Sampling"})

_CANNOT_FAIL = operators("total")


def reads(node: ir.Node) -> list[ir.Value]:
    """Return the values a node depends on: its inputs, and what the graphs nested in it capture."""
    found = [value for value in node.inputs if value is not None]
    for graph in node_graphs(node):
        found.extend(captured_values(graph))
    return found


def varying_values(body: ir.Graph, seeds: Iterable[ir.Value]) -> set[ir.Value]:
    """Return ``seeds`` and every value of ``body`` computed from one of them (nodes in topological order)."""
    varying = set(seeds)
    for node in body:
        if any(value in varying for value in reads(node)):
            varying.update(node.outputs)
    return varying


def nodes_behind(body: ir.Graph, wanted: Iterable[ir.Value], given: Collection[ir.Value] = ()) -> list[ir.Node]:
    """Return the nodes of ``body`` that ``wanted`` needs beside the values ``given``, in their order."""
    needed = {value for value in wanted if value not in given}
    nodes = list[ir.Node]()
    for node in reversed(body):
        if any(value in needed for value in node.outputs):
            nodes.append(node)
            needed.update(value for value in reads(node) if value not in given)
    return nodes[::-1]


def is_deterministic(node: ir.Node) -> bool:
    """Whether running ``node`` twice on the same inputs gives the same outputs."""
    nested = (inner for graph in node_graphs(node) for inner in all_nodes(graph))
    return all(_deterministic(one) for one in (node, *nested))


def not_repeatable(node: ir.Node) -> NotApplicable | None:
    """Say why ``node`` may not be run another number of times than its loop has steps; None where it may."""
    if is_deterministic(node):
        return None
    if node.domain == "" and node.op_type == "BatchNormalization":
        return NotApplicable("TRAINING", f"BatchNormalization '{node.name}' takes the statistics of the batch")
    return NotApplicable("RANDOM", f"{node.op_type} '{node.name}' may give something else each time")


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
    """Whether ``node`` gives a result whatever its inputs hold, so that it may run where it would not have run."""
    if node.domain != "":
        return False
    source = node.inputs[0] if node.inputs else None
    if node.op_type == "Cast":  # a string may not be the number it is cast to
        return source is not None and source.dtype is not None and source.dtype != ir.DataType.STRING
    if node.op_type == "Transpose":
        return source is not None and (source.shape is not None or "perm" not in node.attributes)
    return node.op_type in _CANNOT_FAIL
