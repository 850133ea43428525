"""Inserts a Where that copies the strings that a Loop stacks, so that no other value loses them.

    y = Identity (x)   # strings, stacked    ->    y = Where (true, x, x)

After each step, onnxruntime moves the strings of a result into the stack, instead of copying them. If the result is an Identity of
another value, the other value then holds empty strings. If other nodes read the result, they also read empty strings. The rule
applies even if the original model already has this problem, because a rewrite may change which value loses its strings. Before
opset 9 the Loop stays, because there is no Where.

Works around ORT-LOOP-STACKED-STRINGS.
"""

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.context import Context
from rewrites.loops import LoopView, loops_in, view
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if another value would lose its strings when onnxruntime stacks a result of a Loop."""
    outputs = _endangered_outputs(model.graph, ctx.opset) if ctx.opset >= since.WHERE else []

    def edit() -> list[ir.Node]:
        for body, position in outputs:
            b, value = ctx.builder(), body.outputs[position]
            copy = b.op("Where", b.const(np.array(True), np.bool_), value, value)
            copy.type, copy.shape = value.type, value.shape
            b.append_to(body)
            body.outputs[position] = copy
        return []

    what = "copies strings that a Loop stacks, because onnxruntime would take them from another value"
    return Patch(what, edit) if outputs else NOTHING_HERE


def _endangered_outputs(graph: ir.Graph, opset: int) -> list[tuple[ir.Graph, int]]:
    """Return (body, output index) for each stacked output that may share strings with another value."""
    outputs = []
    for node in loops_in(graph):
        if node.op_type != "Loop" or not any(value.dtype == ir.DataType.STRING for value in node.outputs):
            continue
        loop = view(node, opset)
        assert isinstance(loop, LoopView)
        for position, value in enumerate(loop.body.outputs):
            if position > len(loop.states) and value.dtype == ir.DataType.STRING and _may_share_strings(value, loop.body):
                outputs.append((loop.body, position))
    return outputs


def _may_share_strings(value: ir.Value, body: ir.Graph) -> bool:
    producer = value.producer()
    if producer is None or producer.graph is not body or producer.op_type == "Identity":
        return True
    copied = any(user.op_type == "Identity" for user, _ in value.uses())
    return copied or sum(value is output for output in body.outputs) > 1


RULE = Rule("copy-stacked-strings", "tidy", "model", check, use="always")
