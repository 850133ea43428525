"""Computes a node on bfloat16 in float32, between casts.

    LSTM (x, W, R) of bfloat16    ->    Cast(LSTM (Cast(x), Cast(W), Cast(R)))

onnxruntime does not run such a node. It runs float16 nodes in float32, with the same casts. The numbers inside the node stay
float32, so each result is rounded only once.

Works around ORT-RECURRENT-BFLOAT16.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.ops.rnn.recurrent_node import RecurrentNode
from rewrites.recurrent_nodes.expand import in_float32
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the node computes in bfloat16."""
    if view.dtype != ir.DataType.BFLOAT16:
        return NOTHING_HERE
    return Patch("computes in float32, since onnxruntime has no kernel for bfloat16", lambda: [in_float32(view, ctx)])


RULE = Rule("bfloat16-recurrence", "rnn_nodes", "recurrent node", check)
