"""Keeps a node from sequences without steps or rows, on which onnxruntime aborts the process or gives what the text does not.

    GRU (x, W, R)    ->    If (x has steps and rows) then GRU (x, W, R) else an empty sequence and the initial states

onnxruntime aborts where a GRU or LSTM has no row, or a GRU without lengths no step; an LSTM without lengths and steps returns
uninitialised memory as its cell. Of nodes it would not have run otherwise an RNN keeps its initial state too, where onnxruntime
gives zeros, and so does every GRU and LSTM that is put under an If; but what is ``UNSHIELDED`` is kept from those sizes alone on
which onnxruntime aborts, and has its numbers everywhere else. Where sizes are known nothing is needed.

Works round ORT-RNN-NO-STEPS, ORT-GRU-NO-STEPS, ORT-LSTM-NO-STEPS and ORT-RECURRENT-NO-ROWS.
"""

from rewrites.graph.context import Context
from rewrites.graph.marks import WAS_REFUSED
from rewrites.ops.rnn.recurrent_node import RecurrentNode
from rewrites.recurrent_nodes.under_if import under_if
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """See whether the node has become one that onnxruntime runs on a CPU, except for sizes of 0."""
    return under_if(view, ctx) if WAS_REFUSED.on(view.node) else NOTHING_HERE


RULE = Rule("empty-recurrence", "rnn_nodes", "recurrent node", check)
