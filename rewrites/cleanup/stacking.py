"""Joins steps to a stack, splits a stack into steps, and lets nodes read a step directly.

If a node only selects a step from a stack, the step replaces its result:

    ys = Reshape(Concat(y0, y1, y2)); last = Gather(ys, -1)                      ->    last = y2
    b = Transpose(ys)   # batch first;  last = Squeeze(Slice(b, -1))             ->    last = y2

The function ``stack`` puts a mark (``STACK_AXIS``, the axis of the steps) on each node that computes a stack. The function
``steps_of`` recognises a stack by this mark. If no node reads a stack any more, a later cleanup removes it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.marks import STACK_AXIS
from rewrites.graph.replace import replace_value
from rewrites.graph.values import const_array, is_read, rank_of, shape_dims
from rewrites.ops.versions import (
    Dynamic,
    axes_of,
    concat,
    perm_of,
    reshape,
    slice_range,
    slice_spec,
    split,
    squeeze,
    transpose,
    unsqueeze,
)

__all__ = ["StackedSteps", "read_steps_directly", "stack", "steps_of", "unstack"]


@dataclass(frozen=True)
class StackedSteps:
    """The steps of a stack: their ``values`` in order, and the ``axis`` along which the stack has them."""

    values: tuple[ir.Value, ...]
    axis: int


def stack(b: Builder, steps: Sequence[ir.Value], axis: int, like: ir.Value) -> ir.Value:
    """Join ``steps`` along a new ``axis``, and return the stack.

    If enough sizes are known, this takes two nodes: a Concat along the axis of the steps that has the number ``axis``, and a
    Reshape. Otherwise, or for a single step, each step is unsqueezed first. ``like``: a value with the shape of each step.
    """
    shape = _stack_shape(like, axis, len(steps)) if len(steps) > 1 else None
    if shape is not None:
        joined = reshape(b, concat(b, steps, axis), shape)
        dims = [] if steps[0].shape is None else shape_dims(steps[0].shape)
        if dims:
            joined.shape = ir.Shape([*dims[:axis], len(steps), *dims[axis:]])
    else:
        joined = concat(b, [unsqueeze(b, step, [axis]) for step in steps], axis)
    if axis >= 0:
        node = joined.producer()
        assert node is not None
        STACK_AXIS.put(node, axis)
    return joined


def _stack_shape(like: ir.Value, axis: int, count: int) -> list[int] | None:
    """Return the shape operand of the Reshape that turns joined steps into a stack; None if impossible.

    ``like``: a value with the shape of each step. ``count``: the number of steps.
    """
    dims = None if like.shape is None else shape_dims(like.shape)
    if dims is None or not 0 <= axis < len(dims):
        return None
    return _reshape_target([*dims[:axis], count, *dims[axis:]])


def _reshape_target(dims: Sequence[int | str | None]) -> list[int] | None:
    """Return the shape operand of a Reshape to ``dims``, with -1 for an unknown size.

    Return None if several sizes are unknown, or if a size is 0, because a Reshape reads 0 as "unchanged".
    """
    known = [dim if isinstance(dim, int) else -1 for dim in dims]
    return None if 0 in known or known.count(-1) > 1 else known


def unstack(b: Builder, value: ir.Value, axis: int, count: int) -> list[ir.Value]:
    """Return the ``count`` slices of ``value`` along ``axis``, in order and without this axis.

    If ``value`` is a known stack along ``axis``, return the steps from which it was joined. Otherwise, emit nodes. If enough sizes
    are known, two nodes are enough: a Reshape merges ``axis`` with the next axis, and a Split cuts the merged axis. The next axis
    must not have size 0, because onnxruntime cannot split an axis of size 0.
    """
    known = steps_of(value)
    if known is not None and known.axis == axis and len(known.values) == count:
        return list(known.values)
    dims = None if value.shape is None else shape_dims(value.shape)
    if dims is not None and 0 <= axis < len(dims) - 1:
        width = dims[axis + 1]
        target = _reshape_target([*dims[:axis], count * width, *dims[axis + 2 :]]) if isinstance(width, int) and width else None
        if target is not None:
            parts = split(b, reshape(b, value, target), axis, None, count)
            for part in parts:
                part.shape = ir.Shape([*dims[:axis], *dims[axis + 1 :]])
            return list(parts)
    return [squeeze(b, part, [axis]) for part in split(b, value, axis, None, count)]


def steps_of(value: ir.Value) -> StackedSteps | None:
    """Return the steps from which the function ``stack`` joined ``value``, or None."""
    node = value.producer()
    axis = None if node is None else STACK_AXIS.of(node)
    if node is None or axis is None:
        return None
    values: list[ir.Value | None]
    if node.op_type == "Unsqueeze":
        values = [node.inputs[0]]
    elif node.op_type == "Concat":
        producers = [None if operand is None else operand.producer() for operand in node.inputs]
        values = [node.inputs[0] if node is not None and node.op_type == "Unsqueeze" else None for node in producers]
    else:
        join = None if node.inputs[0] is None else node.inputs[0].producer()
        values = [*join.inputs] if join is not None and join.op_type == "Concat" else [None]
    steps = tuple(value for value in values if value is not None)
    return StackedSteps(steps, axis) if len(steps) == len(values) else None


def read_steps_directly(nodes: Iterable[ir.Node], ctx: Context) -> None:
    """Replace Gathers and Slices of the stacks that ``nodes`` compute by the steps that they select."""
    for node in nodes:
        for value in node.outputs:
            steps = steps_of(value)
            if steps is not None:
                for user in dict.fromkeys(user for user, index in value.uses() if index == 0):
                    _replace_reads(user, value, steps, None, ctx)


def _replace_reads(user: ir.Node, source: ir.Value, steps: StackedSteps, perm: Sequence[int] | None, ctx: Context) -> None:
    """If ``user`` only selects steps of ``source``, replace its result by these steps.

    Args:
        user: A reader of ``source``.
        source: The stack, or the stack transposed by ``perm``.
        steps: The steps of the stack.
        perm: The permutation; None if ``source`` is the stack itself.
        ctx: The context of the model.
    """
    axis = steps.axis if perm is None else list(perm).index(steps.axis)
    rank = rank_of(source)
    if user.domain != "" or rank is None or user.graph is None:
        return
    if user.op_type == "Transpose" and perm is None:
        transposed, order = user.outputs[0], perm_of(user, rank)
        for reader in dict.fromkeys(reader for reader, index in transposed.uses() if index == 0):
            _replace_reads(reader, transposed, steps, order, ctx)
        return
    selected = _selected_steps(user, axis, rank, len(steps.values), ctx)
    if selected is None:
        return
    positions, removes_axis = selected
    build = ctx.builder()
    selected_steps = [_transpose_step(build, steps.values[position], steps.axis, perm) for position in positions]
    if removes_axis:
        _replace_result(user, selected_steps[0], build, ctx)
    elif len(selected_steps) == 1:
        readers = [reader for reader, index in user.outputs[0].uses() if index == 0]
        for reader in readers:
            if reader.op_type == "Squeeze" and reader.domain == "" and axes_of(reader, ctx.opset, rank) == (axis,):
                _replace_result(reader, selected_steps[0], build, ctx)
        if is_read(user.outputs[0]):
            _replace_result(user, unsqueeze(build, selected_steps[0], [axis]), build, ctx)
        else:
            build.discard()
    elif perm is None:
        _replace_result(user, stack(build, selected_steps, axis, selected_steps[0]), build, ctx)


def _selected_steps(user: ir.Node, axis: int, rank: int, count: int, ctx: Context) -> tuple[list[int], bool] | None:
    """Return the positions of the steps that ``user`` selects, and True if it removes the steps axis.

    A Gather with a scalar index removes the steps axis. Return None if ``user`` does not select steps at constant positions.
    """
    if user.op_type == "Gather":
        indices = const_array(user.inputs[1])
        if user.attributes.get_int("axis", 0) % rank != axis or indices is None or indices.ndim > 1 or not indices.size:
            return None
        positions = indices.reshape(-1).tolist()
        if not all(-count <= position < count for position in positions) or len(positions) > count:
            return None
        return [position % count for position in positions], indices.ndim == 0
    if user.op_type == "Slice":
        spec = slice_spec(user, ctx.opset, rank)
        if isinstance(spec, Dynamic) or spec.axes != (axis,):
            return None
        positions = list(slice_range(spec.starts[0], spec.ends[0], spec.steps[0], count))
        return (positions, False) if 0 < len(positions) < count else None
    return None


def _transpose_step(build: Builder, step: ir.Value, axis: int, perm: Sequence[int] | None) -> ir.Value:
    """Transpose ``step`` so that it equals a step of the stack transposed by ``perm``.

    ``axis``: the axis of the steps in the stack before the transposition. ``step`` does not have this axis.
    """
    if perm is None:
        return step
    return transpose(build, step, [position - (position > axis) for position in perm if position != axis])


def _replace_result(user: ir.Node, value: ir.Value, build: Builder, ctx: Context) -> None:
    """Insert the nodes of ``build`` before ``user``, and replace its result by ``value``."""
    build.insert_before(user)
    if value.shape is None and value.producer() is not None:
        value.shape = user.outputs[0].shape
    replace_value(user.outputs[0], value, ctx.names)
