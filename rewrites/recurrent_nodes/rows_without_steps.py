"""Lets a row without steps end in its initial state, as the operator's equations say.

    Y, Y_h = LSTM (x, W, R, , lengths, h0)    ->    Y_h' = Where (lengths == 0, h0, Y_h)

onnxruntime returns zeros for such a row. The rule applies to nodes that onnxruntime can run only because of a rewrite. All other
nodes keep the results that onnxruntime computes.

Works around ORT-RECURRENT-EMPTY-ROW.
"""

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.context import Context
from rewrites.graph.marks import ROWS_WITHOUT_STEPS, WAS_REFUSED
from rewrites.graph.values import const_array
from rewrites.ops.rnn.recurrent_node import RecurrentNode, replace_by_copy
from rewrites.ops.versions import unsqueeze, where
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the node has initial states and a row may have no steps."""
    lengths = view.input("sequence_lens")
    if not WAS_REFUSED.on(view.node) or ROWS_WITHOUT_STEPS.on(view.node) or lengths is None or view.batch_first:
        return NOTHING_HERE
    known = const_array(lengths)
    finals = zip(view.states, view.node.outputs[1:], strict=False)
    pairs = [(first, last) for first, last in finals if first is not None and last.name]
    if not pairs or (known is not None and (known > 0).all()):
        return NOTHING_HERE
    if ctx.opset < since.WHERE:
        return NotApplicable("RNN-OPSET", f"rows of length 0 need a Where of opset {since.WHERE}, the model has {ctx.opset}")

    def edit() -> list[ir.Node]:
        b = ctx.builder()
        none = unsqueeze(b, b.op("Equal", lengths, b.const(np.array(0, np.int32))), [0, 2])

        def kept(i: int, value: ir.Value) -> ir.Value:
            first = view.states[i - 1] if i else None
            return value if first is None else where(b, none, first, value)

        node = replace_by_copy(ctx, b, view.node, view.node.inputs, kept)
        ROWS_WITHOUT_STEPS.put(node, True)
        return [node]

    return Patch("let rows of length 0 end in their initial state; onnxruntime would return zeros", edit)


RULE = Rule("rows-without-steps", "rnn_nodes", "recurrent node", check)
