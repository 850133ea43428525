"""What makes onnxruntime kill its process instead of raising an error. None of it is ever run here."""

import onnx
import onnx_ir as ir

from ortscan.verification.subgraphs import all_nodes, bodies_of
from rewrites.values import rank_of

__all__ = ["crash_risks", "dies_of_nothing", "rank_conflicts"]

_RECURRENT = ("RNN", "LSTM", "GRU")


def crash_risks(proto: onnx.ModelProto) -> list[str]:
    """Describe nodes that crash onnxruntime when a session is made or run, whatever the input."""
    found = []
    for node, _ in all_nodes(proto):
        if node.op_type == "Loop" and _has_unnamed_output(node):
            found.append(f"Loop '{node.name}' has an output without a name")
        if node.op_type == "LayerNormalization" and node.input and not node.input[-1]:
            found.append(f"LayerNormalization '{node.name}' ends in an empty input name")
    return found


def dies_of_nothing(proto: onnx.ModelProto) -> str | None:
    """Name an operator of the model that crashes or returns uninitialised memory on inputs of size zero, or None."""
    for node, version in all_nodes(proto):
        if node.op_type in _RECURRENT:
            return node.op_type
        if node.op_type == "Scan" and version < 9:
            return "Scan of opset 8"
    return None


def rank_conflicts(model: ir.Model) -> list[str]:
    """Describe Scan bodies declared for other ranks than they get; ``model`` has its shapes inferred."""
    found = []
    version = model.opset_imports.get("", 1)
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        body = node.attributes.get("body")
        if node.op_type != "Scan" or body is None:
            continue
        operands = node.inputs[1:] if version < 9 else node.inputs
        formals = body.as_graph().inputs
        states = len(formals) - int(node.attributes["num_scan_inputs"].as_int())
        for position, (outer, formal) in enumerate(zip(operands, formals, strict=False)):
            lost = (version < 9) + (position >= states)
            ranks = None if outer is None else (rank_of(outer), rank_of(formal))
            if ranks is not None and None not in ranks and ranks[0] != (ranks[1] or 0) + lost:
                found.append(f"Scan '{node.name}' gets rank {ranks[0]} where its body input '{formal.name}' has rank {ranks[1]}")
    return found


def _has_unnamed_output(node: onnx.NodeProto) -> bool:
    return "" in node.output or any(not value.name for body in bodies_of(node) for value in body.output)
