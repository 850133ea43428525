"""If a node moves dequantized numbers, moves the quantized numbers instead, because onnxruntime would insert invalid nodes.

    Transpose(DequantizeLinear(q, scale, zero))    ->    DequantizeLinear(Transpose(q), scale, zero)

After a node that only moves dequantized numbers, onnxruntime inserts a QuantizeLinear and a DequantizeLinear. It crashes at load
time if a body or branch reads the moved numbers. From opset 21 on it refuses its own nodes if they are of int8 ("output_dtype INT8
does not match y_zero_point type UINT8"). It always refuses its own nodes of int32, because no QuantizeLinear returns that type. It
inserts nothing if the scale is unknown or has several elements, so this rule ignores these cases.

Works around ORT-DEQUANTIZED-INTO-BODY, ORT-DEQUANTIZED-INT8 and ORT-DEQUANTIZED-INT32.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, take_over
from rewrites.graph.values import const_array, is_read
from rewrites.graph.walk import all_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_MOVES = frozenset({"Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
_SINCE = 21


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Find nodes that move dequantized numbers, and because of which onnxruntime cannot load the model."""
    followed = [node for node in all_nodes(model.graph) if _is_followed(node)]
    if not any(_to_move(node, ctx) for node in followed) and all(is_read(node.outputs[0]) for node in followed):
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        waiting = [node for node in all_nodes(model.graph) if _is_followed(node)]
        while waiting:
            node = waiting.pop()
            waiting += [_exchange(node, move, ctx) for move in _to_move(node, ctx)]
            if not is_read(node.outputs[0]):
                remove_nodes([node])
        return []

    return Patch("moves numbers before it dequantizes them, because onnxruntime cannot load the nodes that it would insert", edit)


def _to_move(node: ir.Node, ctx: Context) -> list[ir.Node]:
    refused = _is_refused(node, ctx.opset)
    moves = [user for user, index in node.outputs[0].uses() if index == 0 and _moves(user, node)]
    return [move for move in moves if refused or _is_captured(move)]


def _is_followed(node: ir.Node) -> bool:
    """Return True if onnxruntime inserts nodes after nodes that move the result of ``node``."""
    if node.op_type != "DequantizeLinear" or node.domain != "":
        return False
    numbers = const_array(node.inputs[1])
    return numbers is not None and numbers.size == 1 and const_array(node.inputs[0]) is None


def _is_refused(node: ir.Node, opset: int) -> bool:
    zero = node.inputs[2] if len(node.inputs) > 2 else None
    return zero is not None and (zero.dtype == ir.DataType.INT32 or (zero.dtype == ir.DataType.INT8 and opset >= _SINCE))


def _is_captured(move: ir.Node) -> bool:
    """Return True if a body or branch reads the result of ``move``, directly or after further moves."""
    waiting = [move]
    while waiting:
        node = waiting.pop()
        users = [user for user, _ in node.outputs[0].uses()]
        if any(user.graph is not move.graph for user in users):
            return True
        waiting.extend(user for user in users if _moves(user, move))
    return False


def _moves(node: ir.Node, source: ir.Node) -> bool:
    return node.op_type in _MOVES and node.domain == "" and node.graph is source.graph


def _exchange(node: ir.Node, move: ir.Node, ctx: Context) -> ir.Node:
    """Replace ``move`` by a move of the quantized numbers and a DequantizeLinear. Return the latter."""
    b, old = ctx.builder(), move.outputs[0]
    numbers = node.inputs[0]
    assert numbers is not None
    (moved,) = b.like(move, [numbers, *move.inputs[1:]])
    moved.type, moved.shape = numbers.type, old.shape
    (result,) = b.like(node, [moved, *node.inputs[1:]])
    result.type, result.shape = old.type, old.shape
    b.insert_before(move)
    take_over(old, result, ctx.names)
    remove_nodes([move])
    dequantizing = result.producer()
    assert dequantizing is not None
    return dequantizing


RULE = Rule("move-before-dequantizing", "tidy", "model", check, use="always")
