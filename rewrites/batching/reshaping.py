"""Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile and Concat. The elements of a step keep their order."""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.alignment import after_steps, axes_after_steps, axis_after_steps, expanded, with_rank
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import product_of, step_dims, with_steps
from rewrites.batching.table import rule
from rewrites.graph.values import const_array, dim_of, producer_of, static_dims
from rewrites.ops.versions import DYNAMIC, axes_of, axis_of, ints_operand, squeeze, unsqueeze, zero_copies_size
from rewrites.ops.versions import reshape as emit_reshape

__all__ = ["concatenate", "expand", "flatten", "insert_axes", "remove_axes", "reshape", "tile"]


@rule("Unsqueeze")
def insert_axes(call: Call) -> Sequence[Result]:
    """``Unsqueeze(x, axes)`` -> ``Unsqueeze(x', axes + 1)``.

    Negative axes count from the end and are unchanged.
    """
    call.same_each_step(1)
    axes = axes_of(call.node, call.opset, None)
    if axes is DYNAMIC:
        count, rank = dim_of(call.operand(1).inner, 0), call.operand(0).rank
        full = rank + count if rank is not None and isinstance(count, int) else None
        return _on_computed_axes(call, full, full)
    if axes is None:
        raise call.refuse("MALFORMED", "the axes are missing")
    return [Result(unsqueeze(call.build, call.operand(0).value, [after_steps(axis) for axis in axes]))]


@rule("Squeeze")
def remove_axes(call: Call) -> Sequence[Result]:
    """``Squeeze(x, axes)`` -> ``Squeeze(x', axes + 1)``.

    Without axes, all axes of size 1 but the steps are removed.
    """
    call.same_each_step(1)
    axes = axes_of(call.node, call.opset, None)
    if axes is DYNAMIC:
        count, rank = dim_of(call.operand(1).inner, 0), call.operand(0).rank
        if not isinstance(count, int) or count == 0:
            raise call.refuse("DYNAMIC-STRUCTURE", "the number of removed axes is not known")
        return _on_computed_axes(call, rank, None if rank is None else rank - count)
    x = call.operand(0)
    if axes is None:
        dims = static_dims(x.inner)
        if dims is None:
            raise call.refuse("SHAPE-UNKNOWN", f"{x.inner.name!r} has shape {x.inner.shape}: the axes of size 1 are not known")
        axes = tuple(axis for axis, dim in enumerate(dims) if dim == 1)
    return [Result(squeeze(call.build, x.value, [after_steps(axis) for axis in axes]))]


def _on_computed_axes(call: Call, full: int | None, rank: int | None) -> list[Result]:
    """Shift axes that are computed at run time, and emit the node.

    Args:
        call: The call.
        full: The rank of the per-step tensor that the axes index, if known.
        rank: The rank of the per-step result, if known.
    """
    (result,) = call.like([call.operand(0).value, axes_after_steps(call, 1, full)])
    if result.value.shape is None and rank is not None:
        result.value.shape = ir.Shape([None] * (rank + 1))
    return [result]


@rule("Flatten")
def flatten(call: Call) -> Sequence[Result]:
    """``Flatten(x, axis)`` -> a Reshape to [steps, rows, columns].

    ``rows`` is the product of the sizes before ``axis``, and ``columns`` is the product of the other sizes.
    """
    x, rank, b = call.operand(0), call.rank(0), call.build
    axis = axis_of(call.node, 1, rank)
    if axis in (0, rank):
        return [Result(unsqueeze(b, b.op("Flatten", x.value, axis=1), [1 if axis == 0 else 2]))]
    if rank == 2:
        return [Result(b.op("Identity", x.value))]
    dims = step_dims(call, x)
    return [Result(with_steps(call, x.value, [product_of(b, dims[:axis]), product_of(b, dims[axis:])]))]


@rule("Reshape")
def reshape(call: Call) -> Sequence[Result]:
    """``Reshape(x, shape)`` -> ``Reshape(x', [0, *shape])``.

    A 0 copies the dimension with the same index. This stays correct: the leading 0 copies the steps, and each other 0 moves
    together with its dimension. With ``allowzero``, a 0 is a size, so the number of steps replaces the leading 0.

    If a shape contains one computed size, -1 replaces it, as in onnxruntime's fusion. The reason is that a computed size of 0 (an
    empty batch) would copy another size.
    """
    call.same_each_step(1)
    x, b = call.operand(0).value, call.build
    dims = static_dims(call.node.outputs[0])
    if dims is not None:
        return [Result(with_steps(call, x, dims))]
    shape = ints_operand(call.node, 1)
    if shape is DYNAMIC:
        shape = _with_one_inferred(call.node.inputs[1]) or shape
    if shape == (-1,):
        return [Result(b.op("Flatten", x, axis=1))]
    if shape is DYNAMIC or shape is None or -1 in shape:
        call.needs_steps("a dimension must be inferred")
    copies = zero_copies_size(call.node)
    if shape is DYNAMIC or shape is None or (0 in shape and not copies):
        lead = b.const([0]) if copies else call.steps
        sizes = call.operand(1).value
        return call.like([x, b.op("Concat", lead, sizes, axis=0)])
    return [Result(emit_reshape(b, x, [0, *shape]))]


def _with_one_inferred(shape: ir.Value | None) -> tuple[int, ...] | None:
    """Return the elements of the Concat ``shape``, with -1 for its only computed element.

    All other elements must be constant and positive. Return None for any other ``shape``.
    """
    node = producer_of(shape, "Concat")
    if node is None:
        return None
    sizes: list[int] = []
    for part in node.inputs:
        known = const_array(part)
        if known is None and (part is None or dim_of(part, 0) != 1):
            return None
        sizes += [-1] if known is None else [int(number) for number in known.ravel()]
    return tuple(sizes) if sizes.count(-1) == 1 and all(number == -1 or number > 0 for number in sizes) else None


@rule("Concat")
def concatenate(call: Call) -> Sequence[Result]:
    """``Concat(x, w)`` -> ``Concat(x', w repeated for all steps)``, if only x is batched."""
    return call.like([expanded(call, index) for index in range(len(call.operands))], axis=axis_after_steps(call, 0))


@rule("Expand")
def expand(call: Call) -> Sequence[Result]:
    """``Expand(x, shape)`` -> ``Expand(x', shape)``.

    If a step of x has fewer axes than the result, axes of size 1 are inserted after the steps.
    """
    call.same_each_step(1)
    count = dim_of(call.operand(1).inner, 0)
    if not isinstance(count, int):
        raise call.refuse("RANK-UNKNOWN", "the rank of the result is not known")
    return call.like([with_rank(call, call.operand(0), max(count, call.rank(0))), call.value(1)])


@rule("Tile")
def tile(call: Call) -> Sequence[Result]:
    """``Tile(x, repeats)`` -> ``Tile(x', [1, *repeats])``."""
    call.same_each_step(1)
    b, repeats = call.build, ints_operand(call.node, 1)
    if repeats is DYNAMIC or repeats is None:
        return call.like([call.value(0), b.op("Concat", b.const([1]), call.operand(1).value, axis=0)])
    return call.like([call.value(0), b.const([1, *repeats])])
