"""Inserts a copy between dequantized numbers and a product whose weights onnxruntime would quantize.

    Conv(DequantizeLinear(q, scale, zero), w)    ->    Conv(Concat(DequantizeLinear(q, scale, zero)), w)

If a Conv, ConvTranspose or Gemm follows a DequantizeLinear in the same graph, onnxruntime turns its constant float weights into
int8. A rewrite may place such nodes next to each other, for example by unrolling a loop with a quantized state. The results would
then change. The copy, a Concat of one tensor, prevents this. If onnxruntime quantizes weights in the original model, the rule does
not apply, because the results should be those of the original model.

Works around ORT-QUANTIZED-WEIGHTS.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.marks import QUANTIZES_WEIGHTS
from rewrites.graph.walk import all_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.tidy.quantization_notes import reads_dequantized

__all__ = ["RULE", "check"]


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if onnxruntime would quantize the weights of a product."""
    if QUANTIZES_WEIGHTS.on(model.graph):
        return NOTHING_HERE
    products = [node for node in all_nodes(model.graph) if reads_dequantized(node)]

    def edit() -> list[ir.Node]:
        for node in products:
            b, dequantized = ctx.builder(), node.inputs[0]
            assert dequantized is not None
            copy = b.op("Concat", dequantized, axis=0)
            copy.type, copy.shape = dequantized.type, dequantized.shape
            b.insert_before(node)
            node.replace_input_with(0, copy)
        return []

    what = "separates products from dequantized numbers if onnxruntime would quantize their weights"
    return Patch(what, edit) if products else NOTHING_HERE


RULE = Rule("keep-float-weights", "tidy", "model", check, use="always")
