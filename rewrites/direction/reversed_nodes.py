"""Runs a recurrent node in the other direction instead of between two reversals.

    Reverse(GRU(Reverse(xs)))    ->    GRU <direction = "reverse"> (xs)

Conditions: the node has one direction and no sequence lengths. Its input sequence is a reversal of all steps, and only reversals of
all steps read its output sequence. Nodes that only move, remove or add other axes may be between the node and a reversal. On a CPU,
a reverse LSTM or GRU with 16 rows or more takes up to 7 percent longer than a forward node with the two reversals. With one row, it
takes the same time. A reverse RNN is always faster.
"""

import onnx_ir as ir

from rewrites.analysis.whole_reversals import Reversals
from rewrites.direction.pairs import may_be_reversed
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import dim_of, is_read
from rewrites.ops.rnn.recurrent_node import RecurrentNode
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scan_form.around_reversals import reversal_source, reversing_users

__all__ = ["RULE", "check"]


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the node reads a reversed sequence, and each reader reverses its output."""
    if view.directions != 1 or view.batch_first or view.input("sequence_lens") is not None or not may_be_reversed(view.node):
        return NOTHING_HERE
    reversals = Reversals(ctx.opset, ctx.model.graph)
    before = reversal_source(view.x, 0, reversals)
    if before is None:
        return NOTHING_HERE
    steps = view.node.outputs[0]
    after = reversing_users(steps, 0, reversals, ctx) if is_read(steps) else []
    if is_read(steps) and not after:
        return NOTHING_HERE
    rows = dim_of(view.x, 1)
    known = rows if isinstance(rows, int) else ctx.options.sizes.get(rows or "")
    if ctx.options.bidirectional == "narrow" and view.kind != "RNN" and known != 1:
        said = "an unknown number of rows" if known is None else f"{known} rows"
        return NotApplicable("COST-DIRECTION", f"{view.label} would run backwards more slowly than between reversals, for {said}")

    def edit() -> list[ir.Node]:
        b = ctx.builder()
        x = before.emit(b)
        b.insert_before(view.node)
        view.node.replace_input_with(0, x)
        view.node.attributes["direction"] = ir.AttrString("direction", "forward" if view.reverse[0] else "reverse")
        for node in after:
            source = node.inputs[0]
            assert source is not None
            replace_value(node.outputs[0], source, ctx.names)
            remove_nodes([node])
        return [view.node]

    way = "forwards" if view.reverse[0] else "backwards"
    return Patch(f"let it run {way} instead of on reversed steps", edit)


RULE = Rule("reversed-nodes", "direction", "recurrent node", check, formerly="turned-nodes")
