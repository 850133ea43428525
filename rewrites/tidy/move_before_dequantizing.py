"""Moves a DequantizeLinear behind a Transpose or similar node, so that onnxruntime can load the model.

    Transpose(DequantizeLinear(q, scale, zero))    ->    DequantizeLinear(Transpose(q), scale, zero)

If a node that only moves numbers, such as a Transpose, follows a DequantizeLinear, onnxruntime inserts a QuantizeLinear and a
DequantizeLinear after it. This fails in three cases, to which the rule applies:

* A body or branch reads the moved numbers. onnxruntime crashes at load time.
* The quantized numbers are int8, and the opset is 21 or later. onnxruntime refuses the nodes that it inserted ("output_dtype INT8
  does not match y_zero_point type UINT8").
* The quantized numbers are int32. onnxruntime refuses the nodes that it inserted, because no QuantizeLinear returns int32.

An Expand between the two nodes moves too, because onnxruntime drops an Expand that changes nothing.

If the scale is unknown or has several elements, onnxruntime inserts nothing, so the rule does not apply.

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
_PERHAPS_DROPPED = frozenset({"Expand"})
_SINCE = 21


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if onnxruntime cannot load the model because of nodes that move dequantized numbers."""
    followed = [node for node in all_nodes(model.graph) if _may_trigger_insertion(node)]
    if not any(_moves_to_exchange(node, ctx) for node in followed) and all(is_read(node.outputs[0]) for node in followed):
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        waiting = [node for node in all_nodes(model.graph) if _may_trigger_insertion(node)]
        while waiting:
            node = waiting.pop()
            waiting += [_move_before(node, move, ctx) for move in _moves_to_exchange(node, ctx)]
            if not is_read(node.outputs[0]):
                remove_nodes([node])
        return []

    return Patch("moves numbers before it dequantizes them, because onnxruntime cannot load the nodes that it would insert", edit)


def _moves_to_exchange(node: ir.Node, ctx: Context) -> list[ir.Node]:
    refused = _is_insertion_refused(node, ctx.opset)
    moves = [user for user, index in node.outputs[0].uses() if index == 0 and _is_move_beside(user, node)]
    return [move for move in moves if _may_fail(move, refused=refused)]


def _may_trigger_insertion(node: ir.Node) -> bool:
    """Return True for a DequantizeLinear of variable numbers that has a constant scale of one element.

    If another node moves the result of such a DequantizeLinear, onnxruntime may insert nodes after the other node.
    """
    if node.op_type != "DequantizeLinear" or node.domain != "":
        return False
    numbers = const_array(node.inputs[1])
    return numbers is not None and numbers.size == 1 and const_array(node.inputs[0]) is None


def _is_insertion_refused(node: ir.Node, opset: int) -> bool:
    zero = node.inputs[2] if len(node.inputs) > 2 else None
    return zero is not None and (zero.dtype == ir.DataType.INT32 or (zero.dtype == ir.DataType.INT8 and opset >= _SINCE))


def _may_fail(move: ir.Node, *, refused: bool) -> bool:
    """Return True if onnxruntime may insert nodes after ``move`` or later moves, and then fails.

    It fails if a body or branch reads the moved numbers, or if onnxruntime refuses the inserted nodes (``refused``).
    """
    waiting = [(move, False)]
    while waiting:
        node, moved = waiting.pop()
        moved = moved or node.op_type in _MOVES
        users = [user for user, _ in node.outputs[0].uses()]
        if moved and (refused or any(user.graph is not move.graph for user in users)):
            return True
        waiting.extend((user, moved) for user in users if _is_move_beside(user, move))
    return False


def _is_move_beside(node: ir.Node, source: ir.Node) -> bool:
    return node.op_type in _MOVES | _PERHAPS_DROPPED and node.domain == "" and node.graph is source.graph


def _move_before(node: ir.Node, move: ir.Node, ctx: Context) -> ir.Node:
    """Replace ``move``, a reader of the DequantizeLinear ``node``, by a copy for quantized numbers.

    A new DequantizeLinear follows the copy. Return the new DequantizeLinear.
    """
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
