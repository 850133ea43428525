"""Lets a product with a reciprocal read a value directly instead of a copy of it.

    v = Identity (x)  d = Div (1, a)  y = Mul (d, v)    ->    y = Mul (d, x)

onnxruntime fuses the Div and the Mul to ``Div (v, a)``, and drops the copy in the same pass. It then reports "Node input 'v' is not
a graph input". A copy is an Identity, a Cast to the same type, or a Dropout that is not in training mode.

Works around ORT-RECIPROCAL-OF-COPY.
"""

from collections.abc import Iterator

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.values import const_scalar, producer_of
from rewrites.graph.walk import all_nodes
from rewrites.ops.versions import dropout_is_identity
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


def check(model: ir.Model, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a Mul multiplies a reciprocal by a copy."""
    reads = list(_reads_of_copies(model, ctx))

    def edit() -> list[ir.Node]:
        for node, index, source in reads:
            node.replace_input_with(index, source)
        return []

    return Patch("reads values instead of copies that onnxruntime forgets", edit) if reads else NOTHING_HERE


def _reads_of_copies(model: ir.Model, ctx: Context) -> Iterator[tuple[ir.Node, int, ir.Value]]:
    """Yield each Mul of a reciprocal and a copy, the position of the copy, and the copied value."""
    graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for graph in graphs:
        for node in all_nodes(graph):
            if node.op_type != "Mul" or node.domain != "":
                continue
            for index, other in enumerate(reversed(node.inputs)):
                source = _copied_value(node.inputs[index], ctx.opset) if _is_reciprocal(other) else None
                if source is not None:
                    yield node, index, source


def _is_reciprocal(value: ir.Value | None) -> bool:
    division = producer_of(value, "Div")
    return division is not None and const_scalar(division.inputs[0]) == 1


def _copied_value(value: ir.Value | None, opset: int) -> ir.Value | None:
    """Return the value that ``value`` copies, by one or more nodes; None if ``value`` is no copy."""
    source = None
    while value is not None and (node := producer_of(value, "Identity", "Cast", "Dropout")) is not None and node.inputs:
        value = node.inputs[0]
        if value is None or (node.op_type == "Cast" and node.outputs[0].dtype != value.dtype):
            break
        if node.op_type == "Dropout" and not dropout_is_identity(node, opset):
            break
        source = value
    return source


RULE = Rule("products-of-copies", "tidy", "model", check, use="always")
