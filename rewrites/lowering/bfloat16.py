"""A node on bfloat16 computes in float32, between casts.

    LSTM (x, W, R) of bfloat16    ->    Cast(LSTM (Cast(x), Cast(W), Cast(R)))

It is what onnxruntime does by itself for float16. Each result is rounded once.
"""

import onnx_ir as ir

from rewrites.context import Context
from rewrites.lowering.native import write_again
from rewrites.lowering.recurrent_node import RecurrentNode
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch

__all__ = ["NAME", "check", "in_float32"]

NAME = "bfloat16-recurrence"


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """See whether the node is of bfloat16."""
    if view.dtype != ir.DataType.BFLOAT16:
        return NOTHING_HERE

    return Patch("computes in float32, since onnxruntime has no kernel for bfloat16", lambda: [in_float32(view, ctx)])


def in_float32(view: RecurrentNode, ctx: Context) -> ir.Node:
    """Put a node on float32, between casts, in the place of the node, and give it."""
    assert view.dtype is not None
    b, kind = ctx.builder(), int(view.dtype)

    def narrow(_: int, value: ir.Value) -> ir.Value:
        return b.op("Cast", value, to=kind)

    lengths = view.input("sequence_lens")
    wide = [
        value if value is None or value is lengths else b.op("Cast", value, to=int(ir.DataType.FLOAT)) for value in view.node.inputs
    ]
    return write_again(ctx, b, view.node, wide, narrow)
