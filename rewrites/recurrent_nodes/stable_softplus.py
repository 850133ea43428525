"""A rewritten node with Softplus becomes a Scan of its equations, because Softplus overflows in onnxruntime's recurrent nodes.

    RNN <activations = ["Softplus"], layout = 1> (x, W, R)    ->    Scan (h0, x @ W') between transposes

onnxruntime's recurrent kernels compute log(1 + exp(x)), which is infinite from about 88 on. Float16 is computed in float32, as in
these kernels. The rule applies only to nodes that onnxruntime could not run before they were rewritten; others keep their numbers.

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
    """Return a patch if a node with Softplus is one that onnxruntime could not run before it was rewritten."""
    used = any(function.name == "Softplus" for functions in view.functions for function in functions)
    if not WAS_REFUSED.on(view.node) or not used or view.batch_first:
        return NOTHING_HERE
    if view.dtype == ir.DataType.FLOAT16:
        return Patch("computes in float32, as onnxruntime's kernels do", lambda: [in_float32(view, ctx)])
    return as_scans(view, ctx)


RULE = Rule("stable-softplus", "rnn_nodes", "recurrent node", check)
