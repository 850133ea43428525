"""Protects an Einsum from empty operands, because onnxruntime crashes on some of them.

    Einsum <tbi,tci->tbc> (x, y)    ->    If (x and y have elements) then Einsum (x, y) else zeros of the same shape

The rule only runs if the user asks for it by the name `guard-recurrence`. This name also selects the rules that guard recurrent
nodes. Conditions: The Einsum has at least two operands, and one of them may be empty. Its equation has no ellipsis. The element
type and the ranks are known.

Works around ORT-EINSUM-OF-NOTHING.
"""

from collections import Counter

import numpy as np
import onnx_ir as ir

from rewrites.graph.branches import write_if
from rewrites.graph.context import Context
from rewrites.graph.values import rank_of, static_dims
from rewrites.ops.rnn.recurrent_node import replace_by_nodes
from rewrites.ops.versions import concat, reduce, shape_of, squeeze
from rewrites.recurrent_nodes.expand import zeros_of
from rewrites.recurrent_nodes.guarded import is_guarded
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(node: ir.Node, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if an operand of the Einsum may be empty."""
    operands = [value for value in node.inputs if value is not None]
    terms, result = _letters(node)
    free = [value for value in operands if (dims := static_dims(value)) is None or 0 in dims]
    kind = operands[0].dtype
    if not free or kind is None or "." in result or [len(term) for term in terms] != [rank_of(value) for value in operands]:
        return NOTHING_HERE
    if all(is_guarded(ctx, node.graph, value, range(rank_of(value) or 0)) for value in free):
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        b = ctx.builder()
        sizes = concat(b, [b.op("Shape", value) for value in free], 0)
        condition = squeeze(b, b.op("Less", b.const([0]), reduce(b, "ReduceMin", sizes, [0], keepdims=True)), [0])
        some, none = b.another(), b.another()
        (full,) = some.like(node, node.inputs)
        homes = {letter: (value, axis) for term, value in zip(terms, operands, strict=True) for axis, letter in enumerate(term)}
        dims = [shape_of(none, *homes[letter]) for letter in result]
        shape = concat(none, dims, 0) if dims else none.const(np.zeros(0, np.int64))
        results = write_if(b, condition, (some, [full]), (none, [zeros_of(none, shape, kind)]), node.outputs[0].name)
        replace_by_nodes(ctx, b, node, list(results))
        return []

    return Patch("put it under an If that skips it for empty operands", edit)


def _letters(node: ir.Node) -> tuple[list[str], str]:
    left, arrow, right = node.attributes.get_string("equation", "").replace(" ", "").partition("->")
    counts = Counter(left.replace(",", ""))
    return left.split(","), right if arrow else "".join(sorted(letter for letter, count in counts.items() if count == 1))


RULE = Rule("guard-recurrence", "repair", "guarded node", check, use="asked")
