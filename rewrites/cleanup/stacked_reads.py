"""Who reads one step out of a stack reads the step.

    ys = Reshape(Concat(y0, y1, y2)); last = Gather(ys, -1)                      ->    last = y2
    b = Transpose(ys)   # batch first;  last = Squeeze(Slice(b, -1))             ->    last = y2

A stack that nobody reads otherwise is then never made.
"""

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from rewrites.cleanup.stacking import Steps, stack, steps_of
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import replace_value
from rewrites.graph.values import const_array, rank_of
from rewrites.ops.versions import Dynamic, axes_of, perm_of, slice_range, slice_spec, transpose, unsqueeze

__all__ = ["read_steps"]


def read_steps(nodes: Iterable[ir.Node], ctx: Context) -> None:
    """Let the users of the stacks among the results of ``nodes`` read steps where they want no more."""
    for node in nodes:
        for value in node.outputs:
            steps = steps_of(value)
            if steps is not None:
                for user in dict.fromkeys(user for user, index in value.uses() if index == 0):
                    _read(user, value, steps, None, ctx)


def _read(user: ir.Node, source: ir.Value, steps: Steps, perm: Sequence[int] | None, ctx: Context) -> None:
    """Look at ``user`` of ``source``, which is the stack, transposed by ``perm`` where that is given."""
    axis = steps.axis if perm is None else list(perm).index(steps.axis)
    rank = rank_of(source)
    if user.domain != "" or rank is None or user.graph is None:
        return
    if user.op_type == "Transpose" and perm is None:
        turned, order = user.outputs[0], perm_of(user, rank)
        for reader in dict.fromkeys(reader for reader, index in turned.uses() if index == 0):
            _read(reader, turned, steps, order, ctx)
        return
    wanted = _wanted(user, axis, rank, len(steps.values), ctx)
    if wanted is None:
        return
    places, single = wanted
    build = ctx.builder()
    rows = [_turned(build, steps.values[place], steps.axis, perm) for place in places]
    if single:
        _replace(user, rows[0], build, ctx)
    elif len(rows) == 1:
        readers = [reader for reader, index in user.outputs[0].uses() if index == 0]
        for reader in readers:
            if reader.op_type == "Squeeze" and reader.domain == "" and axes_of(reader, ctx.opset, rank) == (axis,):
                _replace(reader, rows[0], build, ctx)
        if user.outputs[0].uses() or user.outputs[0].is_graph_output():
            _replace(user, unsqueeze(build, rows[0], [axis]), build, ctx)
        else:
            build.discard()
    elif perm is None:
        _replace(user, stack(build, rows, axis, rows[0]), build, ctx)


def _wanted(user: ir.Node, axis: int, rank: int, count: int, ctx: Context) -> tuple[list[int], bool] | None:
    """Return which steps ``user`` takes, and whether it takes one without leaving its axis; None where it takes something else."""
    if user.op_type == "Gather":
        indices = const_array(user.inputs[1])
        if user.attributes.get_int("axis", 0) % rank != axis or indices is None or indices.ndim > 1 or not indices.size:
            return None
        places = indices.reshape(-1).tolist()
        if not all(-count <= place < count for place in places) or len(places) > count:
            return None
        return [place % count for place in places], indices.ndim == 0
    if user.op_type == "Slice":
        spec = slice_spec(user, ctx.opset, rank)
        if isinstance(spec, Dynamic) or spec.axes != (axis,):
            return None
        places = list(slice_range(spec.starts[0], spec.ends[0], spec.steps[0], count))
        return (places, False) if 0 < len(places) < count else None
    return None


def _turned(build: Builder, step: ir.Value, axis: int, perm: Sequence[int] | None) -> ir.Value:
    """Return ``step``, without the stack's ``axis``, in the order that ``perm`` has for the whole stack."""
    if perm is None:
        return step
    return transpose(build, step, [place - (place > axis) for place in perm if place != axis])


def _replace(user: ir.Node, value: ir.Value, build: Builder, ctx: Context) -> None:
    build.insert_before(user)
    if value.shape is None and value.producer() is not None:
        value.shape = user.outputs[0].shape
    replace_value(user.outputs[0], value, ctx.names)
