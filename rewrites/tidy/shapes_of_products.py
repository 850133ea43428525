"""Computes the shape of a product from its operands if only the shape of the product is read.

    s = Shape (MatMul (x, W))  n = Gather (s, 0)    W [3, 4]    ->    s = Shape (x)  n = Gather (s, 0)
    s = Shape (MatMul (x, W))                       W [3, 4]    ->    s = Concat (Shape (x) without the last size, [4])

Exporters write such nodes to create initial states of zeros. Only the shape of this product is needed, because the recurrence
computes the product again. Elementwise nodes may be between the product and the Shape.

Conditions:

* The right operand of the product has a known shape of rank 2.
* Only the shapes of the product and of the results of the elementwise nodes are read. None of these values is an output.
* The other operands of the elementwise nodes are not larger than the product.
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.cleanup.folding import positions_read
from rewrites.graph.context import Context
from rewrites.graph.replace import replace_value
from rewrites.graph.values import dim_of, rank_of, static_dims
from rewrites.graph.walk import all_nodes
from rewrites.ops.traits import operators
from rewrites.ops.versions import concat, slice_axis
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_TO_THE_END = (1 << 63) - 1


@dataclass(frozen=True)
class _Source:
    """A tensor ``value`` that has the same sizes as a product, except for the last size.

    ``last``: the last size of the product.
    """

    value: ir.Value
    last: int


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if only the shape of a product is read."""
    shapes = [
        (node, source)
        for node in all_nodes(model.graph)
        if node.op_type == "Shape" and node.domain == "" and not node.outputs[0].is_graph_output()
        if (source := _source(node)) is not None
    ]

    def edit() -> list[ir.Node]:
        for node, source in shapes:
            if _reads_no_last_size(node, source, ctx):
                node.replace_input_with(0, source.value)
                continue
            b = ctx.builder()
            sizes = slice_axis(b, b.op("Shape", source.value), 0, 0, -1)
            whole = concat(b, [sizes, b.const([source.last])], 0)
            start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", _TO_THE_END)
            if (start, end) != (0, _TO_THE_END):
                whole = slice_axis(b, whole, 0, int(start or 0), int(end or 0))
            b.insert_before(node)
            replace_value(node.outputs[0], whole, ctx.names)
        return []

    return Patch("reads the shapes of products from their operands", edit) if shapes else NOTHING_HERE


def _source(shape: ir.Node) -> _Source | None:
    """Return a tensor from whose shape the result of the Shape node ``shape`` can be computed, or None.

    Between this tensor and the Shape are one or more products, and perhaps elementwise nodes.
    """
    value, last, passed = shape.inputs[0], None, False
    while value is not None and not value.is_graph_output() and all(_is_left_out(user, passed) for user, _ in value.uses()):
        node = value.producer()
        if node is None or node.graph is not shape.graph:
            break
        size = _last_size(node)
        operand = node.inputs[0] if size is not None else _of_the_same_shape(node)
        if operand is None:
            break
        last = size if last is None else last
        value, passed = operand, True
    if value is None or last is None or rank_of(value) is None:
        return None
    return _Source(value, last)


def _is_left_out(user: ir.Node, passed: bool) -> bool:
    """Return True if ``user`` does not need the numbers that it reads, because it is a Shape.

    If ``passed``, also return True for other nodes of which only the shape of the result is read.
    """
    return user.op_type == "Shape" or (passed and len(user.outputs) == 1 and _only_shaped(user.outputs[0]))


def _only_shaped(value: ir.Value) -> bool:
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        if current.is_graph_output():
            return False
        for user, _ in current.uses():
            if user.op_type == "Shape" and user.domain == "":
                continue
            if len(user.outputs) != 1 or (_last_size(user) is None and _of_the_same_shape(user) is None):
                return False
            if user.outputs[0] not in seen:
                seen.add(user.outputs[0])
                pending.append(user.outputs[0])
    return True


def _last_size(node: ir.Node) -> int | None:
    """Return the last size of the result of ``node``, a product, or None for other nodes.

    Also return None if the other sizes of the result may not be those of the left operand.
    """
    if node.domain != "" or node.op_type not in ("MatMul", "Gemm") or node.inputs[0] is None or node.inputs[1] is None:
        return None
    sizes = static_dims(node.inputs[1])
    if sizes is None or len(sizes) != 2 or (rank_of(node.inputs[0]) or 0) < 2 or node.attributes.get_int("transA", 0) != 0:
        return None
    return sizes[0] if node.attributes.get_int("transB", 0) else sizes[1]


def _of_the_same_shape(node: ir.Node) -> ir.Value | None:
    """Return an operand of ``node`` that is known to have the shape of its result, or None.

    Return None if ``node`` is not elementwise.
    """
    if node.domain != "" or node.op_type not in operators("elementwise") or len(node.outputs) != 1:
        return None
    operands = [value for value in node.inputs if value is not None]
    largest = (value for value in operands if all(other is value or _is_no_larger(other, value) for other in operands))
    return next(largest, None)


def _is_no_larger(other: ir.Value, value: ir.Value) -> bool:
    sizes, rank = static_dims(other), rank_of(value)
    if sizes is None or rank is None or len(sizes) > rank:
        return False
    return all(size == 1 or size == dim_of(value, axis - len(sizes)) for axis, size in enumerate(sizes))


def _reads_no_last_size(shape: ir.Node, source: _Source, ctx: Context) -> bool:
    rank = rank_of(source.value) or 0
    if dim_of(source.value, -1) == source.last:
        return True
    whole = not {"start", "end"} & shape.attributes.keys()
    return whole and all(index == 0 and _spares_the_last(user, rank, ctx) for user, index in shape.outputs[0].uses())


def _spares_the_last(user: ir.Node, rank: int, ctx: Context) -> bool:
    read = positions_read(user, rank, ctx.opset)
    return read is not None and all(-rank <= axis < rank and axis % rank != rank - 1 for axis in read.reshape(-1).tolist())


RULE = Rule("shapes-of-products", "tidy", "model", check)
