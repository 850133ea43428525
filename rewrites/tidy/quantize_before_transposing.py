"""An output is quantized before it is transposed for another user, where onnxruntime would give the quantized numbers out.

    y = f(x);  QuantizeLinear(Transpose(y), scale, zero)    ->    y = f(x);  Transpose(QuantizeLinear(y, scale, zero))

onnxruntime moves the quantization before the Transpose itself, and does not see that ``y`` is read by whoever runs the
graph too. In a body it does not look at values of the graphs around; so it is only wrong of nodes that a rewrite took out of one,
or made. What the model itself has stays: its numbers are onnxruntime's.

Works round ORT-QUANTIZED-OUTPUT.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.marks import QUANTIZES_OUTPUT
from rewrites.graph.replace import take_over
from rewrites.graph.walk import all_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.tidy.transposed_outputs import transposed_output

__all__ = ["RULE", "check"]


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Find outputs that are transposed and then quantized, by nodes that did not do so where they came from."""
    found = [node for node in all_nodes(model.graph) if transposed_output(node) and QUANTIZES_OUTPUT.of(node) is not node.graph]
    return Patch("quantizes outputs before it transposes them", lambda: _swap(found, ctx)) if found else NOTHING_HERE


def _swap(nodes: list[ir.Node], ctx: Context) -> list[ir.Node]:
    for node in nodes:
        transposes = transposed_output(node)
        if not transposes:
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
    return []


RULE = Rule("quantize-before-transposing", "tidy", "model", check, use="always")
