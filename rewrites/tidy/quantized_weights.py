"""Products whose weights onnxruntime quantizes of its own accord, since what they are multiplied with was dequantized.

Works round ORT-QUANTIZED-WEIGHTS.
"""

import onnx_ir as ir

from rewrites.graph.marks import QUANTIZES_WEIGHTS
from rewrites.graph.values import const_array
from rewrites.graph.walk import all_nodes

__all__ = ["note_quantized_weights", "reads_dequantized"]

_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm"})
_MOVES = frozenset({"Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})


def reads_dequantized(node: ir.Node) -> bool:
    """Whether ``node`` multiplies what a DequantizeLinear of its graph gives, moved about or not, by constant weights."""
    if node.op_type not in _PRODUCTS or node.domain != "" or len(node.inputs) < 2 or const_array(node.inputs[1]) is None:
        return False
    maker = None if node.inputs[0] is None else node.inputs[0].producer()
    while maker is not None and maker.graph is node.graph and maker.domain == "" and maker.op_type in _MOVES:
        maker = None if maker.inputs[0] is None else maker.inputs[0].producer()
    return maker is not None and maker.graph is node.graph and maker.op_type == "DequantizeLinear" and maker.domain == ""


def note_quantized_weights(graph: ir.Graph) -> None:
    """Note on the main graph whether there are such products in the model as it was given."""
    if any(map(reads_dequantized, all_nodes(graph))):
        QUANTIZES_WEIGHTS.put(graph, True)
