"""A node on bfloat16 computes in float32, between casts.

    LSTM (x, W, R) of bfloat16    ->    Cast(LSTM (Cast(x), Cast(W), Cast(R)))

It is what onnxruntime does by itself for float16. Each result is rounded once.
"""

import onnx_ir as ir

from rewrites.context import Context
from rewrites.lowering.native import write_again
from rewrites.lowering.recurrent_node import RecurrentNode
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch

__all__ = ["NAME", "check"]

NAME = "bfloat16-recurrence"


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """See whether the node is of bfloat16."""
    if view.dtype != ir.DataType.BFLOAT16:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        b = ctx.builder()

        def narrow(_: int, value: ir.Value) -> ir.Value:
            return b.op("Cast", value, to=int(ir.DataType.BFLOAT16))

        lengths = view.input("sequence_lens")
        wide = [
            value if value is None or value is lengths else b.op("Cast", value, to=int(ir.DataType.FLOAT))
            for value in view.node.inputs
        ]
        return [write_again(ctx, b, view.node, wide, narrow)]

    return Patch("computes in float32, since onnxruntime has no kernel for bfloat16", edit)
