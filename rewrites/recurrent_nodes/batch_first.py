"""Runs a node whose batch axis comes first (``layout`` 1) on transposed tensors.

    LSTM <layout = 1> (x [B, T, I], ...)    ->    Transpose(LSTM (Transpose(x) [T, B, I], ...))

onnxruntime does not run nodes with ``layout`` 1. In such nodes, initial and final states are [B, directions, H], and the sequence
of results is [B, T, directions, H].

Works around ORT-RECURRENT-LAYOUT.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.ops.rnn.recurrent_node import RecurrentNode, replace_by_copy
from rewrites.ops.versions import transpose
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


_TRANSPOSED = (0, 5, 6)


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if ``layout`` is 1."""
    if "layout" not in view.node.attributes or not view.batch_first:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        b = ctx.builder()
        inputs = [
            transpose(b, value, [1, 0, 2]) if value is not None and i in _TRANSPOSED else value
            for i, value in enumerate(view.node.inputs)
        ]

        def with_batch_first(i: int, value: ir.Value) -> ir.Value:
            return transpose(b, value, [1, 0, 2] if i else [2, 0, 1, 3])

        return [replace_by_copy(ctx, b, view.node, inputs, with_batch_first, layout=None)]

    return Patch("transposes the batch axis from axis 0 to axis 1, outside the node", edit)


RULE = Rule("batch-first", "rnn_nodes", "recurrent node", check)
