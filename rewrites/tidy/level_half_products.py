"""Gives the operands of a float16 product of a Transpose equal ranks, to avoid a crash of onnxruntime.

    MatMul(Transpose <perm = [1, 0, 2]> (x), w)    ->    MatMul(Transpose <perm = [1, 0, 2]> (x), Unsqueeze(w))

onnxruntime has no float16 product for the CPU. It inserts Casts to float32 before the operands, and then swaps Cast and Transpose.
If the ranks of the operands differ, it may crash (see ``early_casts``). If a rank is unknown or an operand is a vector, this rule
cannot make the ranks equal. In this case, the rule itself inserts the Casts, and ``early_casts`` moves them before the Transpose.

Works around ORT-HALVES-AFTER-TRANSPOSE.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.replace import take_over
from rewrites.graph.values import rank_of
from rewrites.graph.walk import all_nodes
from rewrites.ops.versions import unsqueeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.tidy.moved_operands import is_product, moves_axes

__all__ = ["RULE", "check"]

_MATRIX = 2


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a float16 product reads a Transpose and the ranks of its operands may differ."""
    if not any(_operands_to_level(node) for node in all_nodes(model.graph)):
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        for node in list(all_nodes(model.graph)):
            operands = _operands_to_level(node)
            if operands is not None:
                _level(node, *operands, ctx)
        return []

    return Patch("gave float16 products operands of equal rank, or own casts, because onnxruntime may crash otherwise", edit)


def _operands_to_level(node: ir.Node) -> tuple[ir.Value, ir.Value] | None:
    """Return both operands of ``node`` if the rule applies to it, else None.

    The rule applies if ``node`` is a float16 product that reads a Transpose, and if the ranks of the operands differ, are unknown
    or are below 2.
    """
    if not is_product(node) or not any(map(_is_half, (*node.inputs, *node.outputs))):
        return None
    left, right = node.inputs
    if left is None or right is None or not (moves_axes(left, node.graph) or moves_axes(right, node.graph)):
        return None
    ranks = {rank_of(left), rank_of(right)}
    return (left, right) if len(ranks) > 1 or None in ranks or min(rank_of(left) or 0, rank_of(right) or 0) < _MATRIX else None


def _level(node: ir.Node, left: ir.Value, right: ir.Value, ctx: Context) -> None:
    ranks = [rank_of(left), rank_of(right)]
    transposes_batches = any(node.attributes.get_int(name, 0) for name in ("transBatchA", "transBatchB"))
    if ranks[0] is None or ranks[1] is None or min(ranks[0], ranks[1]) < _MATRIX or transposes_batches:
        _write_casts(node, left, right, ctx)
    else:
        index = 0 if ranks[0] < ranks[1] else 1
        b = ctx.builder()
        node.replace_input_with(index, unsqueeze(b, (left, right)[index], range(abs(ranks[0] - ranks[1]))))
        b.insert_before(node)


def _is_half(value: ir.Value | None) -> bool:
    return value is not None and value.dtype == ir.DataType.FLOAT16


def _write_casts(node: ir.Node, left: ir.Value, right: ir.Value, ctx: Context) -> None:
    b = ctx.builder()
    wide = [b.op("Cast", value, to=ir.DataType.FLOAT.value) for value in (left, right)]
    result = b.op("Cast", *b.like(node, wide), to=ir.DataType.FLOAT16.value)
    name, node.name = node.name, ctx.names.fresh(node.name or "node_MatMul")
    b.nodes[2].name = name
    b.insert_before(node)
    take_over(node.outputs[0], result, ctx.names)
    node.resize_inputs(0)
    assert node.graph is not None
    node.graph.remove(node)


RULE = Rule("level-half-products", "tidy", "model", check, use="always")
