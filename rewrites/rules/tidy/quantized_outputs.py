"""An output is quantized before it is transposed for another reader, where onnxruntime would give the quantized numbers out.

    y = f(x);  QuantizeLinear(Transpose(y), scale, zero)    ->    y = f(x);  Transpose(QuantizeLinear(y, scale, zero))

onnxruntime (1.32) moves the quantization before the Transpose itself, and does not see that ``y`` is read by whoever runs the
graph too. In a body it does not look at values of the graphs around; so it is only wrong of nodes that a rewrite took out of one,
or made. What the model itself has stays: its numbers are onnxruntime's.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.marks import QUANTIZES_OUTPUT
from rewrites.graph.replace import take_over
from rewrites.graph.values import const_array
from rewrites.graph.walk import all_nodes

__all__ = ["note_quantized_outputs", "quantize_before_transposing"]


def note_quantized_outputs(graph: ir.Graph) -> None:
    """Note which nodes quantize outputs as the model was given."""
    for node in all_nodes(graph):
        if _transposes(node):
            QUANTIZES_OUTPUT.put(node, node.graph)


def quantize_before_transposing(ctx: Context) -> None:
    """Do so all over the model."""
    for node in list(all_nodes(ctx.model.graph)):
        transposes = _transposes(node)
        if not transposes or QUANTIZES_OUTPUT.of(node) is node.graph:
            continue
        b, old = ctx.builder(), node.outputs[0]
        root = transposes[-1].inputs[0]
        (made,) = b.like(node, [root, *node.inputs[1:]])
        made.type, made.shape = old.type, None if root is None else root.shape
        for transpose in reversed(transposes):
            (made,) = b.like(transpose, [made])
            made.type, made.shape = old.type, transpose.outputs[0].shape
        b.insert_before(node)
        take_over(old, made, ctx.names)


def _transposes(node: ir.Node) -> list[ir.Node]:
    """Give the nodes that transpose an output of the graph for a QuantizeLinear, the last first; none of other nodes."""
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
