"""Finds nodes whose quantization onnxruntime changes on its own, and marks them in the original model.

There are two kinds:

* Products of dequantized numbers and constant float weights. onnxruntime quantizes the weights.
* QuantizeLinears of a transposed graph output. onnxruntime moves the quantization before the Transpose.

Works around ORT-QUANTIZED-WEIGHTS and ORT-QUANTIZED-OUTPUT.
"""

import onnx_ir as ir

from rewrites.graph.marks import QUANTIZES_OUTPUT, QUANTIZES_WEIGHTS
from rewrites.graph.values import const_array, producer_of
from rewrites.graph.walk import all_nodes

__all__ = ["note_quantized_outputs", "note_quantized_weights", "reads_dequantized", "transposed_output"]

_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm"})
_MOVES = frozenset({"Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})


def reads_dequantized(node: ir.Node) -> bool:
    """Return True if ``node`` is a product of dequantized numbers and constant weights.

    The DequantizeLinear must be in the same graph as ``node``. Nodes that only move numbers may be between the two.
    """
    if node.op_type not in _PRODUCTS or node.domain != "" or len(node.inputs) < 2 or const_array(node.inputs[1]) is None:
        return False
    producer = producer_of(node.inputs[0])
    while producer is not None and producer.graph is node.graph and producer.op_type in _MOVES:
        producer = producer_of(producer.inputs[0])
    return producer is not None and producer.graph is node.graph and producer.op_type == "DequantizeLinear"


def note_quantized_weights(graph: ir.Graph) -> None:
    """Mark ``graph``, the main graph of the original model, if onnxruntime quantizes weights in it."""
    if any(map(reads_dequantized, all_nodes(graph))):
        QUANTIZES_WEIGHTS.put(graph, True)


def note_quantized_outputs(graph: ir.Graph) -> None:
    """Mark the nodes of the original model that quantize a transposed graph output.

    ``graph``: the main graph.
    """
    for node in all_nodes(graph):
        if transposed_output(node):
            QUANTIZES_OUTPUT.put(node, node.graph)


def transposed_output(node: ir.Node) -> list[ir.Node]:
    """Return the Transposes and Identities between a graph output and the QuantizeLinear ``node``.

    The list starts with the node that ``node`` reads. It is empty if ``node`` does not quantize a transposed graph output.
    """
    if node.op_type != "QuantizeLinear" or node.domain != "":
        return []
    scale = const_array(node.inputs[1])
    moves, value, is_output = [], node.inputs[0], False
    while (producer := producer_of(value, "Transpose", "Identity")) is not None and producer.graph is node.graph:
        moves.append(producer)
        value = producer.inputs[0]
        is_output = is_output or (value is not None and value.is_graph_output())
    transposes = any(move.op_type == "Transpose" for move in moves)
    return moves if is_output and transposes and scale is not None and scale.size == 1 else []
