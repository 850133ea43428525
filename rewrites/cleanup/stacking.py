"""Between a stack and the steps it holds.

A stack that was made from steps is marked as such, so that whoever reads a step out of it can read the step itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.marks import STACK_AXIS
from rewrites.graph.values import shape_dims
from rewrites.ops.versions import concat, reshape, split, squeeze, unsqueeze

__all__ = ["Steps", "stack", "steps_of", "unstack"]


@dataclass(frozen=True)
class Steps:
    """The ``values`` that a stack holds along ``axis`` (0 or more)."""

    values: tuple[ir.Value, ...]
    axis: int


def steps_of(value: ir.Value) -> Steps | None:
    """Return the steps that ``value`` was stacked from, or None."""
    node = value.producer()
    axis = None if node is None else STACK_AXIS.of(node)
    if node is None or axis is None:
        return None
    if node.op_type == "Concat":
        makers = [None if one is None else one.producer() for one in node.inputs]
        values = [maker.inputs[0] if maker is not None and maker.op_type == "Unsqueeze" else None for maker in makers]
    else:
        joined = None if node.inputs[0] is None else node.inputs[0].producer()
        values = list(joined.inputs) if joined is not None and joined.op_type == "Concat" else [None]
    found = tuple(one for one in values if one is not None)
    return Steps(found, axis) if len(found) == len(values) else None


def unstack(b: Builder, value: ir.Value, axis: int, count: int) -> list[ir.Value]:
    """Return the ``count`` slices of ``value`` along ``axis``, in order: the steps it was stacked from where those are known.

    Where the sizes allow it, the axis is merged with the one that follows and split, which takes two nodes; else one for each
    step. An axis that may be 0 does not allow it: onnxruntime splits nothing into no parts.
    """
    known = steps_of(value)
    if known is not None and known.axis == axis and len(known.values) == count:
        return list(known.values)
    dims = None if value.shape is None else shape_dims(value.shape)
    if dims is not None and 0 <= axis < len(dims) - 1:
        width = dims[axis + 1]
        target = _plain([*dims[:axis], count * width, *dims[axis + 2 :]]) if isinstance(width, int) and width else None
        if target is not None:
            parts = split(b, reshape(b, value, target), axis, None, count)
            for part in parts:
                part.shape = ir.Shape([*dims[:axis], *dims[axis + 1 :]])
            return list(parts)
    return [squeeze(b, part, [axis]) for part in split(b, value, axis, None, count)]


def stack(b: Builder, steps: Sequence[ir.Value], axis: int, like: ir.Value) -> ir.Value:
    """Join ``steps``, two or more, along a new ``axis``; ``like`` has the shape that all of them have, as far as it is known.

    Joined along the axis that follows and reshaped where the sizes allow it, which takes two nodes; else a node for each step.
    """
    target = _reshaped(like, axis, len(steps))
    if target is not None:
        made = reshape(b, concat(b, steps, axis), target)
        dims = [] if steps[0].shape is None else shape_dims(steps[0].shape)
        if dims:
            made.shape = ir.Shape([*dims[:axis], len(steps), *dims[axis:]])
    else:
        made = concat(b, [unsqueeze(b, step, [axis]) for step in steps], axis)
    if axis >= 0:
        node = made.producer()
        assert node is not None
        STACK_AXIS.put(node, axis)
    return made


def _reshaped(like: ir.Value, axis: int, count: int) -> list[int] | None:
    """Return what to reshape steps that are joined along ``axis`` to, so that they are stacked along it, or None."""
    dims = None if like.shape is None else shape_dims(like.shape)
    if dims is None or not 0 <= axis < len(dims):
        return None
    return _plain([*dims[:axis], count, *dims[axis:]])


def _plain(dims: Sequence[int | str | None]) -> list[int] | None:
    """Return the shape that a Reshape gets for ``dims``, or None where it has no way to say them.

    A size of 0 leaves -1 without a meaning and stands for "as before" itself, so -1 is only used beside sizes that are not 0.
    """
    known = [dim if isinstance(dim, int) else -1 for dim in dims]
    return None if 0 in known or known.count(-1) > 1 else known
