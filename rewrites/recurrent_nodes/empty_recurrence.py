"""Protects a recurrent node from sequences without steps and from empty batches.

    GRU (x, W, R)    ->    If (x has steps and rows) then GRU (x, W, R) else an empty sequence and the initial states

onnxruntime does not handle these inputs correctly. It aborts if the batch of a GRU or LSTM has no rows, or if a GRU without
``sequence_lens`` has no steps. An LSTM without ``sequence_lens`` and without steps returns uninitialised memory as its cell state.
An RNN without steps returns zeros, although its definition says that it returns the initial state.

The rule applies to a node if two conditions hold. First, onnxruntime could not run the original node, and runs this node only
because an earlier rule or a migration changed it. Second, the number of steps or rows may be 0. A node with the mark ``UNSHIELDED``
had no protection in the original model. The rule protects such a node only from sizes on which onnxruntime aborts.

Works around ORT-RNN-NO-STEPS, ORT-GRU-NO-STEPS, ORT-LSTM-NO-STEPS and ORT-RECURRENT-NO-ROWS.
"""

from rewrites.graph.context import Context
from rewrites.graph.marks import WAS_REFUSED
from rewrites.ops.rnn.recurrent_node import RecurrentNode
from rewrites.recurrent_nodes.guarded import guard_with_if
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if there may be no steps or rows, and onnxruntime could not run the original node."""
    return guard_with_if(view, ctx) if WAS_REFUSED.on(view.node) else NOTHING_HERE


RULE = Rule("empty-recurrence", "rnn_nodes", "recurrent node", check)
