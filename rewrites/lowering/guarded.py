"""Whether a graph is a branch that is taken by the size of something already, so that it need not be guarded twice."""

import onnx_ir as ir

from rewrites.context import Context

__all__ = ["is_guarded"]

_DEEPEST = 8


def is_guarded(ctx: Context, graph: ir.Graph | ir.Function | None, x: ir.Value) -> bool:
    """Whether ``graph`` is a branch of an If whose condition is computed from the shape of ``x``."""
    if not isinstance(graph, ir.Graph) or graph is ctx.model.graph:
        return False
    owner = ctx.if_around(graph)
    return owner is not None and _asks(owner.inputs[0], x, 0)


def _asks(value: ir.Value | None, x: ir.Value, depth: int) -> bool:
    node = None if value is None else value.producer()
    if node is None or depth > _DEEPEST:
        return False
    if node.op_type == "Shape":
        return node.inputs[0] is x
    return any(_asks(operand, x, depth + 1) for operand in node.inputs)
