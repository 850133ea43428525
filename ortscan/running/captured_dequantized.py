"""Finds what was dequantized and moved, and is read by a graph within: onnxruntime ends the process while it loads such a model.

Works round ORT-DEQUANTIZED-CAPTURED.
"""

import onnx

from ortscan.base.proto_graphs import all_graphs, bodies_of
from ortscan.running.graph_index import names_read

__all__ = ["captured_dequantized"]

_MOVING = frozenset(["Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice", "MaxPool"])
_PERHAPS_DROPPED = frozenset(["Identity", "Expand", "Cast", "Dropout"])


def captured_dequantized(proto: onnx.ModelProto) -> list[str]:
    """Describe each node that moves what a node before it has dequantized, for a graph that captures it."""
    found = []
    for graph in (*all_graphs(proto), *proto.functions):
        if not any(node.op_type == "DequantizeLinear" for node in graph.node):
            continue
        constants = {tensor.name for tensor in getattr(graph, "initializer", ())}
        dequantized: set[str] = set()
        moved: dict[str, str] = {}
        for node in graph.node:
            first = next(iter(node.input), "")
            if node.op_type == "Constant":
                constants.update(node.output)
            elif node.op_type == "DequantizeLinear" and first not in constants:
                dequantized.update(node.output[:1])
            elif node.op_type in _MOVING | _PERHAPS_DROPPED and first in dequantized:
                dequantized.update(node.output[:1])
                if node.op_type in _MOVING or first in moved:
                    moved.update(dict.fromkeys(node.output[:1], node.op_type))
        bodies = [body for node in graph.node for body in bodies_of(node)] if moved else []
        captured = {name for body in bodies for node in body.node for name in names_read(node)}
        found += [f"{op} '{name}' moves what was dequantized for a graph within" for name, op in moved.items() if name in captured]
    return found
