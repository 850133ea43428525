"""Quantizes a graph output before transposing it, so that onnxruntime does not return wrong numbers.

    y = f(x);  QuantizeLinear(Transpose(y), scale, zero)    ->    y = f(x);  Transpose(QuantizeLinear(y, scale, zero))

onnxruntime itself moves the quantization before the Transpose, but it overlooks that ``y`` is also an output. A rewrite may create
such nodes. For example, it may move a QuantizeLinear out of a loop body. Inside the body, onnxruntime did not move the
quantization, because ``y`` was outside. The rule only applies to nodes that a rewrite moved or wrote. If the original model has
such nodes, they stay, because the results should be those that onnxruntime computes for the original model.

Works around ORT-QUANTIZED-OUTPUT.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.marks import QUANTIZES_OUTPUT
from rewrites.graph.replace import take_over
from rewrites.graph.walk import all_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.tidy.quantization_notes import transposed_output

__all__ = ["RULE", "check"]


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a node quantizes a transposed output, but did not do so in the original model."""
    nodes = [node for node in all_nodes(model.graph) if transposed_output(node) and QUANTIZES_OUTPUT.of(node) is not node.graph]
    return Patch("quantizes outputs before it transposes them", lambda: _swap(nodes, ctx)) if nodes else NOTHING_HERE


def _swap(nodes: list[ir.Node], ctx: Context) -> list[ir.Node]:
    for node in nodes:
        transposes = transposed_output(node)
        if not transposes:
            continue
        b, old = ctx.builder(), node.outputs[0]
        root = transposes[-1].inputs[0]
        (result,) = b.like(node, [root, *node.inputs[1:]])
        result.type, result.shape = old.type, None if root is None else root.shape
        for transpose in reversed(transposes):
            (result,) = b.like(transpose, [result])
            result.type, result.shape = old.type, transpose.outputs[0].shape
        b.insert_before(node)
        take_over(old, result, ctx.names)
    return []


RULE = Rule("quantize-before-transposing", "tidy", "model", check, use="always")
