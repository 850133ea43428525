"""Replaces a node on float64 by a Scan of its equations, because onnxruntime fails to run such nodes.

    LSTM (x, W, R) of double    ->    Scan (h0, c0, x @ W')

If ``x`` may have no steps, the result is an If: with steps it runs the Scan, without steps it returns the initial states and an
empty sequence.

Works around ORT-RECURRENT-DOUBLE.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.ops.rnn.recurrent_node import RecurrentNode
from rewrites.recurrent_nodes.expand import as_scans
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the node computes in float64."""
    if view.dtype != ir.DataType.DOUBLE or view.batch_first:
        return NOTHING_HERE
    return as_scans(view, ctx)


RULE = Rule("double-recurrence", "rnn_nodes", "recurrent node", check)
