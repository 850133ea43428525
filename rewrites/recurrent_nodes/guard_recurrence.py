"""On request, a node that runs is kept from the sizes of 0 on which onnxruntime aborts the process.

    LSTM (x, W, R)    ->    If (x has rows) then LSTM (x, W, R) else an empty sequence and the initial states

Off unless named: the If costs a little in every run, and most models are never given such a batch.

Works round ORT-GRU-NO-STEPS and ORT-RECURRENT-NO-ROWS.
"""

from rewrites.graph.context import Context
from rewrites.ops.rnn.recurrent_node import RecurrentNode
from rewrites.recurrent_nodes.under_if import under_if
from rewrites.rule import NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """See whether onnxruntime would abort where a free size is 0."""
    return under_if(view, ctx)


RULE = Rule("guard-recurrence", "rnn_nodes", "recurrent node", check, use="asked")
