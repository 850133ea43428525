"""Protects a DynamicQuantizeLSTM from empty batches, on which onnxruntime crashes.

    DynamicQuantizeLSTM (x, W, R)    ->    If (x has rows) then DynamicQuantizeLSTM (x, W, R) else empty sequences and states

The rule only runs if the user asks for it by the name `guard-recurrence`. This name also selects the rules that guard recurrent
nodes. Conditions: The number of rows may be 0, and the node has a ``hidden_size``.

Works around ORT-QUANTIZED-LSTM-NO-ROWS.
"""

import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.branches import write_if
from rewrites.graph.context import Context
from rewrites.graph.values import dim_of
from rewrites.ops.rnn.recurrent_node import replace_by_nodes
from rewrites.ops.versions import concat, shape_of, squeeze
from rewrites.recurrent_nodes.expand import zeros_of
from rewrites.recurrent_nodes.guarded import is_guarded
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_ROWS = 1


def check(node: ir.Node, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a batch may be empty."""
    x, hidden = node.inputs[0], node.attributes.get_int("hidden_size", None)
    rows = None if x is None else dim_of(x, _ROWS)
    if x is None or not hidden or ctx.opset < since.INTEGER_LESS or (isinstance(rows, int) and rows > 0):
        return NOTHING_HERE
    if is_guarded(ctx, node.graph, x, [_ROWS]):
        return NOTHING_HERE
    directions = 2 if node.attributes.get_string("direction", "forward") == "bidirectional" else 1

    def edit() -> list[ir.Node]:
        b = ctx.builder()
        condition = squeeze(b, b.op("Less", b.const([0]), shape_of(b, x, _ROWS)), [0])
        some, none = b.another(), b.another()
        results = list(some.like(node, node.inputs))
        state = concat(none, [none.const([directions]), shape_of(none, x, _ROWS), none.const([hidden])], 0)
        sequence = concat(none, [shape_of(none, x, 0), state], 0)
        nothing = [zeros_of(none, state if position else sequence, ir.DataType.FLOAT) for position in range(len(results))]
        chosen = write_if(b, condition, (some, results), (none, nothing), node.outputs[0].name)
        replace_by_nodes(ctx, b, node, [value if old.name else None for old, value in zip(node.outputs, chosen, strict=True)])
        return []

    return Patch("put it under an If that skips it for empty batches", edit)


RULE = Rule("guard-recurrence", "repair", "guarded node", check, use="asked")
