"""Whether a graph is a branch that is taken by the size of something already, so that it need not be guarded twice."""

from collections.abc import Iterable, Iterator

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.dims import equal, is_one_size

__all__ = ["is_guarded"]

_DEEPEST = 8
_ALL_AXES = 1 << 31


def is_guarded(ctx: Context, graph: ir.Graph | ir.Function | None, x: ir.Value, axes: Iterable[int]) -> bool:
    """Whether ``graph`` is a branch of an If whose condition is computed from the sizes that ``x`` has along ``axes``.

    What ``x`` is made of may be asked instead, where its sizes are known to be the same.
    """
    if not isinstance(graph, ir.Graph) or graph is ctx.model.graph:
        return False
    owner = ctx.if_around(graph)
    if owner is None:
        return False
    asked = list(_asked(owner.inputs[0], 0))
    return all(any(axis in range(*part) and _is_same_size(value, x, axis) for value, part in asked) for axis in axes)


def _asked(value: ir.Value | None, depth: int) -> Iterator[tuple[ir.Value, tuple[int, int]]]:
    """Yield the values whose sizes ``value`` is computed from, with the first of the axes asked and the one after the last."""
    node = None if value is None else value.producer()
    if node is None or depth > _DEEPEST:
        return
    if node.op_type in ("Shape", "Size") and node.domain == "":
        source = node.inputs[0]
        if source is not None and source.shape is None:
            yield source, (0, _ALL_AXES)
        elif source is not None and source.shape is not None:
            rank = len(source.shape)
            start, end = (node.attributes.get_int(name, default) for name, default in (("start", 0), ("end", rank)))
            yield source, (start + rank if start < 0 else start, end + rank if end < 0 else end)
        return
    for operand in node.inputs:
        yield from _asked(operand, depth + 1)


def _is_same_size(one: ir.Value, other: ir.Value, axis: int) -> bool:
    if one is other:
        return True
    if one.shape is None or other.shape is None or axis >= min(len(one.shape), len(other.shape)):
        return False
    left, right = one.shape.dims[axis], other.shape.dims[axis]
    return is_one_size(left) and equal(left, right)
