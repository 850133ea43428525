"""A copy stands between what is dequantized and a product, where onnxruntime would quantize the weights of its own accord.

    Conv(DequantizeLinear(q, scale, zero), w)    ->    Conv(Concat(DequantizeLinear(q, scale, zero)), w)

onnxruntime makes int8 of constant float weights of a Conv, ConvTranspose or Gemm that follows a DequantizeLinear in its
graph. A rewrite may bring the two together, such as the steps of a loop whose state is quantized; the numbers would change then.
A Concat of one tensor keeps them apart. Never in a model in which onnxruntime quantizes weights as it is: its numbers have that.

Works round ORT-QUANTIZED-WEIGHTS.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.marks import QUANTIZES_WEIGHTS
from rewrites.graph.walk import all_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.tidy.quantized_weights import reads_dequantized

__all__ = ["RULE", "check"]


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Find such products."""
    if QUANTIZES_WEIGHTS.on(model.graph):
        return NOTHING_HERE
    found = [node for node in all_nodes(model.graph) if reads_dequantized(node)]

    def edit() -> list[ir.Node]:
        for node in found:
            b, given = ctx.builder(), node.inputs[0]
            assert given is not None
            copy = b.op("Concat", given, axis=0)
            copy.type, copy.shape = given.type, given.shape
            b.insert_before(node)
            node.replace_input_with(0, copy)
        return []

    what = "keeps products apart from what is dequantized, where onnxruntime would quantize their weights"
    return Patch(what, edit) if found else NOTHING_HERE


RULE = Rule("keep-float-weights", "tidy", "model", check, use="always")
