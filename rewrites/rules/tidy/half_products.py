"""A product of halves that reads a Transpose gets operands of equal rank, since onnxruntime may not survive others.

    MatMul(Transpose <perm = [1, 0, 2]> (x), w)    ->    MatMul(Transpose <perm = [1, 0, 2]> (x), Unsqueeze(w))

onnxruntime has no such product for the CPU: it casts the operands itself, and swaps Cast and Transpose as ``early_casts`` tells.
Where a rank is not known, or an operand is a vector, the casts are written here and go before the Transpose.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.replace import take_over
from rewrites.graph.values import rank_of
from rewrites.graph.walk import all_nodes
from rewrites.ops.versions import unsqueeze
from rewrites.rules.tidy.early_casts import moves_axes

__all__ = ["level_half_products"]

_MATRIX = 2


def level_half_products(ctx: Context) -> None:
    """Do so all over the model."""
    for node in list(all_nodes(ctx.model.graph)):
        if node.op_type != "MatMul" or node.domain != "" or not any(map(_is_half, (*node.inputs, *node.outputs))):
            continue
        left, right = node.inputs
        if left is None or right is None or not (moves_axes(left, node.graph) or moves_axes(right, node.graph)):
            continue
        ranks = [rank_of(left), rank_of(right)]
        if ranks[0] is None or ranks[1] is None or min(ranks[0], ranks[1]) < _MATRIX:
            _write_casts(node, left, right, ctx)
        elif ranks[0] != ranks[1]:
            place = 0 if ranks[0] < ranks[1] else 1
            b = ctx.builder()
            node.replace_input_with(place, unsqueeze(b, (left, right)[place], range(abs(ranks[0] - ranks[1]))))
            b.insert_before(node)


def _is_half(value: ir.Value | None) -> bool:
    return value is not None and value.dtype == ir.DataType.FLOAT16


def _write_casts(node: ir.Node, left: ir.Value, right: ir.Value, ctx: Context) -> None:
    b = ctx.builder()
    wide = [b.op("Cast", value, to=ir.DataType.FLOAT.value) for value in (left, right)]
    result = b.op("Cast", b.op("MatMul", *wide), to=ir.DataType.FLOAT16.value)
    name, node.name = node.name, ctx.names.fresh(node.name or "node_MatMul")
    b.nodes[2].name = name
    b.insert_before(node)
    take_over(node.outputs[0], result, ctx.names)
    node.resize_inputs(0)
    assert node.graph is not None
    node.graph.remove(node)
