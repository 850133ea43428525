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
class _ShapeSource:
    """A tensor ``value`` from whose shape the shape of a product can be computed.

    Only the last size may differ. ``last_size``: the last size of the product.
    """

    value: ir.Value
    last_size: int


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if only the shape of a product is read."""
    shapes = [
        (node, source)
        for node in all_nodes(model.graph)
        if node.op_type == "Shape" and node.domain == "" and not node.outputs[0].is_graph_output()
        if (source := _find_shape_source(node)) is not None
    ]

    def edit() -> list[ir.Node]:
        for node, source in shapes:
            if _can_read_source_directly(node, source, ctx):
                node.replace_input_with(0, source.value)
                continue
            b = ctx.builder()
            sizes = slice_axis(b, b.op("Shape", source.value), 0, 0, -1)
            result = concat(b, [sizes, b.const([source.last_size])], 0)
            start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", _TO_THE_END)
            if (start, end) != (0, _TO_THE_END):
                result = slice_axis(b, result, 0, int(start or 0), int(end or 0))
            b.insert_before(node)
            replace_value(node.outputs[0], result, ctx.names)
        return []

    return Patch("reads the shapes of products from their operands", edit) if shapes else NOTHING_HERE


def _find_shape_source(shape: ir.Node) -> _ShapeSource | None:
    """Return a tensor from whose shape the result of the Shape node ``shape`` can be computed, or None.

    One or more products, and possibly elementwise nodes, lead from this tensor to the Shape node.
    """
    value, last, is_intermediate = shape.inputs[0], None, False
    while (
        value is not None
        and not value.is_graph_output()
        and all(_needs_only_shape(user, is_intermediate) for user, _ in value.uses())
    ):
        node = value.producer()
        if node is None or node.graph is not shape.graph:
            break
        size = _last_size(node)
        operand = node.inputs[0] if size is not None else _operand_of_result_shape(node)
        if operand is None:
            break
        last = size if last is None else last
        value, is_intermediate = operand, True
    if value is None or last is None or rank_of(value) is None:
        return None
    return _ShapeSource(value, last)


def _needs_only_shape(user: ir.Node, is_intermediate: bool) -> bool:
    """Return True if ``user`` needs only the shape of its operand.

    A Shape node does. If ``is_intermediate``, so does a node whose only output is read only for its shape.
    """
    return user.op_type == "Shape" or (is_intermediate and len(user.outputs) == 1 and _only_shape_is_read(user.outputs[0]))


def _only_shape_is_read(value: ir.Value) -> bool:
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        if current.is_graph_output():
            return False
        for user, _ in current.uses():
            if user.op_type == "Shape" and user.domain == "":
                continue
            if len(user.outputs) != 1 or (_last_size(user) is None and _operand_of_result_shape(user) is None):
                return False
            if user.outputs[0] not in seen:
                seen.add(user.outputs[0])
                pending.append(user.outputs[0])
    return True


def _last_size(node: ir.Node) -> int | None:
    """Return the last size of the result of ``node`` if ``node`` is a product, else None.

    Also return None if the result and the left operand may differ in other sizes than the last.
    """
    if node.domain != "" or node.op_type not in ("MatMul", "Gemm") or node.inputs[0] is None or node.inputs[1] is None:
        return None
    sizes = static_dims(node.inputs[1])
    if sizes is None or len(sizes) != 2 or (rank_of(node.inputs[0]) or 0) < 2 or node.attributes.get_int("transA", 0) != 0:
        return None
    return sizes[0] if node.attributes.get_int("transB", 0) else sizes[1]


def _operand_of_result_shape(node: ir.Node) -> ir.Value | None:
    """Return an operand of the elementwise ``node`` that is known to have the shape of the result.

    Return None if there is no such operand, or if ``node`` is not elementwise.
    """
    if node.domain != "" or node.op_type not in operators("elementwise") or len(node.outputs) != 1:
        return None
    operands = [value for value in node.inputs if value is not None]
    largest = (value for value in operands if all(other is value or _is_no_larger(other, value) for other in operands))
    return next(largest, None)


def _is_no_larger(smaller: ir.Value, larger: ir.Value) -> bool:
    sizes, rank = static_dims(smaller), rank_of(larger)
    if sizes is None or rank is None or len(sizes) > rank:
        return False
    return all(size == 1 or size == dim_of(larger, axis - len(sizes)) for axis, size in enumerate(sizes))


def _can_read_source_directly(shape: ir.Node, source: _ShapeSource, ctx: Context) -> bool:
    rank = rank_of(source.value) or 0
    if dim_of(source.value, -1) == source.last_size:
        return True
    whole = not {"start", "end"} & shape.attributes.keys()
    return whole and all(index == 0 and _skips_last_size(user, rank, ctx) for user, index in shape.outputs[0].uses())


def _skips_last_size(user: ir.Node, rank: int, ctx: Context) -> bool:
    read = positions_read(user, rank, ctx.opset)
    return read is not None and all(-rank <= axis < rank and axis % rank != rank - 1 for axis in read.reshape(-1).tolist())


RULE = Rule("shapes-of-products", "tidy", "model", check)
