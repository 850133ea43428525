"""Replaces a node with Softplus by a Scan, because onnxruntime's recurrent Softplus overflows.

    RNN <activations = ["Softplus"], layout = 1> (x, W, R)    ->    Scan (h0, x @ W') between transposes

onnxruntime's recurrent kernels compute log(1 + exp(x)), which is infinite for x above 88. A float16 node is computed in float32,
as in these kernels. The rule applies to nodes that onnxruntime can run only because of a rewrite. All other nodes keep the results
that onnxruntime computes.

Works around ORT-RECURRENT-SOFTPLUS.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.marks import WAS_REFUSED
from rewrites.ops.rnn.recurrent_node import RecurrentNode
from rewrites.recurrent_nodes.expand import as_scans, in_float32
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """Return a patch for a node with Softplus that onnxruntime can run only because of a rewrite."""
    used = any(function.name == "Softplus" for functions in view.functions for function in functions)
    if not WAS_REFUSED.on(view.node) or not used or view.batch_first:
        return NOTHING_HERE
    if view.dtype == ir.DataType.FLOAT16:
        return Patch("computes in float32, as onnxruntime's kernels do", lambda: [in_float32(view, ctx)])
    return as_scans(view, ctx)


RULE = Rule("stable-softplus", "rnn_nodes", "recurrent node", check)
