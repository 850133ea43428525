"""Outputs of a graph that are transposed and then quantized for another user.

Works round ORT-QUANTIZED-OUTPUT.
"""

import onnx_ir as ir

from rewrites.graph.marks import QUANTIZES_OUTPUT
from rewrites.graph.values import const_array
from rewrites.graph.walk import all_nodes

__all__ = ["note_quantized_outputs", "transposed_output"]


def note_quantized_outputs(graph: ir.Graph) -> None:
    """Note which nodes quantize outputs as the model was given."""
    for node in all_nodes(graph):
        if transposed_output(node):
            QUANTIZES_OUTPUT.put(node, node.graph)


def transposed_output(node: ir.Node) -> list[ir.Node]:
    """Return the nodes that transpose an output of the graph for a QuantizeLinear, the last first; none of other nodes."""
    if node.op_type != "QuantizeLinear" or node.domain != "":
        return []
    scale = const_array(node.inputs[1])
    found, value, is_output = [], node.inputs[0], False
    while value is not None and (maker := value.producer()) is not None and maker.graph is node.graph:
        if maker.domain != "" or maker.op_type not in ("Transpose", "Identity"):
            break
        found.append(maker)
        value = maker.inputs[0]
        is_output = is_output or (value is not None and value.is_graph_output())
    return found if is_output and scale is not None and scale.size == 1 and any(one.op_type != "Identity" for one in found) else []
