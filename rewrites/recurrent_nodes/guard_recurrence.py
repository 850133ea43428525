"""Protects a node, on request, from sizes of 0 on which onnxruntime aborts the process.

    LSTM (x, W, R)    ->    If (x has rows) then LSTM (x, W, R) else an empty sequence and the initial states

The rule only runs if the user asks for it by name, because most models never get an empty batch, and the If costs a little time in
every run.

Works around ORT-GRU-NO-STEPS and ORT-RECURRENT-NO-ROWS.
"""

from rewrites.graph.context import Context
from rewrites.ops.rnn.recurrent_node import RecurrentNode
from rewrites.recurrent_nodes.guarded import guard_with_if
from rewrites.rule import NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the inputs may have a size of 0 on which onnxruntime aborts."""
    return guard_with_if(view, ctx)


RULE = Rule("guard-recurrence", "rnn_nodes", "recurrent node", check, use="asked")
