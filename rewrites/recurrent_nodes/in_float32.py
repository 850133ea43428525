"""Puts a recurrent node on float32, between casts."""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.ops.rnn.recurrent_node import RecurrentNode, write_again

__all__ = ["in_float32"]


def in_float32(view: RecurrentNode, ctx: Context) -> ir.Node:
    """Put a node on float32, between casts, in the place of the node, and return it."""
    assert view.dtype is not None
    b, kind = ctx.builder(), int(view.dtype)

    def narrow(_: int, value: ir.Value) -> ir.Value:
        return b.op("Cast", value, to=kind)

    lengths = view.input("sequence_lens")
    wide = [
        value if value is None or value is lengths else b.op("Cast", value, to=int(ir.DataType.FLOAT)) for value in view.node.inputs
    ]
    return write_again(ctx, b, view.node, wide, narrow)
