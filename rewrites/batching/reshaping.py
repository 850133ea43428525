"""Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile and Concat.

In the emitted nodes, the elements of each step keep their order.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.alignment import after_steps, axes_after_steps, axis_after_steps, stacked_operand, with_rank
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import product_of, reshape_to_steps, step_dims
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
    call.require_invariant(1)
    axes = axes_of(call.node, call.opset, None)
    if axes is DYNAMIC:
        count, rank = dim_of(call.operand(1).inner, 0), call.operand(0).rank
        full = rank + count if rank is not None and isinstance(count, int) else None
        return _shift_computed_axes(call, full, full)
    if axes is None:
        raise call.refuse("MALFORMED", "the axes are missing")
    return [Result(unsqueeze(call.build, call.operand(0).value, [after_steps(axis) for axis in axes]))]


@rule("Squeeze")
def remove_axes(call: Call) -> Sequence[Result]:
    """``Squeeze(x, axes)`` -> ``Squeeze(x', axes + 1)``.

    If the node has no axes, the emitted node removes all axes of size 1 except the steps.
    """
    call.require_invariant(1)
    axes = axes_of(call.node, call.opset, None)
    if axes is DYNAMIC:
        count, rank = dim_of(call.operand(1).inner, 0), call.operand(0).rank
        if not isinstance(count, int) or count == 0:
            raise call.refuse("DYNAMIC-STRUCTURE", "the number of removed axes is not known")
        return _shift_computed_axes(call, rank, None if rank is None else rank - count)
    x = call.operand(0)
    if axes is None:
        dims = static_dims(x.inner)
        if dims is None:
            raise call.refuse("SHAPE-UNKNOWN", f"{x.inner.name!r} has shape {x.inner.shape}: the axes of size 1 are not known")
        axes = tuple(axis for axis, dim in enumerate(dims) if dim == 1)
    return [Result(squeeze(call.build, x.value, [after_steps(axis) for axis in axes]))]


def _shift_computed_axes(call: Call, indexed_rank: int | None, rank: int | None) -> list[Result]:
    """Emit the node with its axes, which are computed at run time, shifted past axis 0 (the steps).

    Args:
        call: The call.
        indexed_rank: The rank of the per-step tensor that the axes index, if known.
        rank: The rank of the per-step result, if known.
    """
    (result,) = call.emit([call.operand(0).value, axes_after_steps(call, 1, indexed_rank)])
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
    return [Result(reshape_to_steps(call, x.value, [product_of(b, dims[:axis]), product_of(b, dims[axis:])]))]


@rule("Reshape")
def reshape(call: Call) -> Sequence[Result]:
    """``Reshape(x, shape)`` -> ``Reshape(x', [0, *shape])``.

    A 0 copies the dimension with the same index. So the leading 0 copies the steps, and each other 0 still copies the same
    dimension of x. If the attribute ``allowzero`` is set, a 0 is a size, so the number of steps replaces the leading 0.

    If exactly one size in ``shape`` is computed at run time, -1 replaces it, as in a fusion of onnxruntime. Without this, a
    computed size of 0 (an empty batch) would copy another size.
    """
    call.require_invariant(1)
    x, b = call.operand(0).value, call.build
    dims = static_dims(call.node.outputs[0])
    if dims is not None:
        return [Result(reshape_to_steps(call, x, dims))]
    shape = ints_operand(call.node, 1)
    if shape is DYNAMIC:
        shape = _with_one_inferred(call.node.inputs[1]) or shape
    if shape == (-1,):
        return [Result(b.op("Flatten", x, axis=1))]
    if shape is DYNAMIC or shape is None or -1 in shape:
        call.require_steps("a dimension must be inferred")
    copies = zero_copies_size(call.node)
    if shape is DYNAMIC or shape is None or (0 in shape and not copies):
        lead = b.const([0]) if copies else call.steps
        sizes = call.operand(1).value
        return call.emit([x, b.op("Concat", lead, sizes, axis=0)])
    return [Result(emit_reshape(b, x, [0, *shape]))]


def _with_one_inferred(shape: ir.Value | None) -> tuple[int, ...] | None:
    """Return the elements of ``shape`` with -1 for the one element that is computed at run time.

    Return None unless ``shape`` is a Concat of one computed element and positive constants.
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
    return call.emit([stacked_operand(call, index) for index in range(len(call.operands))], axis=axis_after_steps(call, 0))


@rule("Expand")
def expand(call: Call) -> Sequence[Result]:
    """``Expand(x, shape)`` -> ``Expand(x', shape)``.

    If x has fewer axes in one step than the result, axes of size 1 are inserted after axis 0 (the steps).
    """
    call.require_invariant(1)
    count = dim_of(call.operand(1).inner, 0)
    if not isinstance(count, int):
        raise call.refuse("RANK-UNKNOWN", "the rank of the result is not known")
    return call.emit([with_rank(call, call.operand(0), max(count, call.rank(0))), call.value(1)])


@rule("Tile")
def tile(call: Call) -> Sequence[Result]:
    """``Tile(x, repeats)`` -> ``Tile(x', [1, *repeats])``."""
    call.require_invariant(1)
    b, repeats = call.build, ints_operand(call.node, 1)
    if repeats is DYNAMIC or repeats is None:
        return call.emit([call.value(0), b.op("Concat", b.const([1]), call.operand(1).value, axis=0)])
    return call.emit([call.value(0), b.const([1, *repeats])])
