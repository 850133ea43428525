"""Protects a node from sequences without steps or rows, which onnxruntime does not handle correctly.

    GRU (x, W, R)    ->    If (x has steps and rows) then GRU (x, W, R) else an empty sequence and the initial states

onnxruntime aborts if a GRU or LSTM has no rows, or if a GRU without lengths has no steps. An LSTM without lengths and without steps
returns uninitialised memory as its cell state. An RNN without steps returns zeros, but its definition says that the initial state
stays. The rule applies if onnxruntime could not run the node before a rewrite, and a size may be 0. An ``UNSHIELDED``
node is only protected from sizes on which onnxruntime aborts.

Works around ORT-RNN-NO-STEPS, ORT-GRU-NO-STEPS, ORT-LSTM-NO-STEPS and ORT-RECURRENT-NO-ROWS.
"""

from rewrites.graph.context import Context
from rewrites.graph.marks import WAS_REFUSED
from rewrites.ops.rnn.recurrent_node import RecurrentNode
from rewrites.recurrent_nodes.guarded import under_if
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if onnxruntime can run the node only since a rewrite, and a size of the inputs may be 0."""
    return under_if(view, ctx) if WAS_REFUSED.on(view.node) else NOTHING_HERE


RULE = Rule("empty-recurrence", "rnn_nodes", "recurrent node", check)
