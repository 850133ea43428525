"""Resize and Upsample.

If axis 0 keeps its size, the steps are merged into it. Otherwise, the steps become one more axis that is not resized. onnxruntime
interpolates over at most two or three axes, so this is possible only for the mode "nearest", or for images without batch and
channel axes.

Works around ORT-RESIZE-AXES.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.batching.alignment import stacked_operand
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import first_dim, fold_operand, unfold_results, with_folded_first_size
from rewrites.batching.table import rule
from rewrites.graph.values import const_array, dim_of
from rewrites.ops.versions import concat, ints_operand, slice_axis, squeeze, unsqueeze

__all__ = ["affine_grid", "resize", "upsample"]

_END = 2**63 - 1


@rule("Upsample")
def upsample(call: Call) -> Sequence[Result]:
    """Emit the node with a scale of 1 for the steps, or with the steps merged into axis 0.

    Up to opset 8, the scales are an attribute.
    """
    scales = call.node.attributes.get_floats("scales")
    if scales is None:
        return resize(call)
    return (
        call.emit(call.values, scales=[1.0, *scales])
        if _is_nearest(call) or len(scales) == 2
        else _fold_into_axis_0(call, call.values)
    )


@rule("Resize", since=11)
def resize(call: Call) -> Sequence[Result]:
    """Emit the node with the steps merged into axis 0, or as one more axis that is not resized.

    Operands: data, region of interest, scales, sizes.
    """
    call.require_invariant(*range(1, len(call.operands)))
    rank, axes = call.rank(0), call.node.attributes.get_ints("axes")
    values = [*call.values, None, None, None][:4] if call.node.op_type == "Resize" and call.opset >= 11 else call.values
    if axes is not None:
        places = [axis + rank if axis < 0 else axis for axis in axes]
        if 0 not in places and rank > 2:
            return _fold_into_axis_0(call, values)
        return call.emit([stacked_operand(call, 0), *values[1:]], axes=[position + 1 for position in places])
    if _keeps_first_size(call, rank):
        return _fold_into_axis_0(call, _with_folded_sizes(call, values))
    return _add_axis(call, values, rank)


@rule("Resize", until=11)
def resize_by_scales(call: Call) -> Sequence[Result]:
    """Batch a Resize of opset 10, whose operands are data and scales."""
    return resize(call)


def _is_nearest(call: Call) -> bool:
    return call.node.attributes.get_string("mode", "nearest") == "nearest"


def _keeps_first_size(call: Call, rank: int) -> bool:
    """Return True if axis 0 is known to keep its size.

    This is known in three cases:

    * Its scale is the constant 1.
    * Its new size is a constant and equals its old size.
    * The data have more than 3 axes and the mode is not "nearest". onnxruntime supports no other scale in this case.
    """
    if rank < 3:
        return False
    first, by_inputs = dim_of(call.operand(0).inner, 0), len(call.operands) > 2
    for index in range(2 if by_inputs else 1, len(call.operands)):
        operand = call.optional_operand(index)
        array = None if operand is None else const_array(operand.inner)
        if array is not None and array.size == rank and (array.dtype.kind == "f" or isinstance(first, int)):
            return bool(array[0] == (1 if array.dtype.kind == "f" else first))
    return not _is_nearest(call) and rank > 3


def _with_folded_sizes(call: Call, values: list[ir.Value | None]) -> list[ir.Value | None]:
    """Return the operands ``values`` of a Resize, changed for data whose steps are merged into axis 0.

    Only the operand for new sizes changes: its first element becomes the size of the merged axis 0. If this operand is absent,
    return ``values`` unchanged.
    """
    if len(values) < 4 or values[3] is None:
        return values
    return [*values[:3], with_folded_first_size(call, values[3], first_dim(call, 0))]


def _fold_into_axis_0(call: Call, values: list[ir.Value | None]) -> Sequence[Result]:
    """Emit the Resize with the steps merged into axis 0."""
    (result,) = call.build.like(call.node, [fold_operand(call, 0), *values[1:]])
    sizes, attributes = ints_operand(call.node, 3), call.node.attributes
    if (
        isinstance(sizes, tuple)
        and len(sizes) == call.rank(0)
        and attributes.get_string("keep_aspect_ratio_policy", "stretch") == "stretch"
    ):
        result.shape = ir.Shape([None, *sizes[1:]])
    return unfold_results(call, [result], first_dim(call, 0))


def _add_axis(call: Call, values: list[ir.Value | None], rank: int) -> Sequence[Result]:
    """Emit the Resize with the steps as one more axis, which is not resized.

    An image without batch and channel axes also gets a channel axis.
    """
    b = call.build
    picture = rank == 2 and not _is_nearest(call)
    more = 2 if picture else 1
    if not picture and not _is_nearest(call):
        raise call.refuse("NO-BATCHING-RULE", f"onnxruntime does not interpolate over {rank} axes besides the steps")
    x = stacked_operand(call, 0)
    by_inputs = len(values) == 4
    for index, value in enumerate(values):
        if index == 0 or value is None or dim_of(call.operand(index).inner, 0) == 0:
            continue
        if by_inputs and index == 1:
            dtype = call.operand(1).inner.dtype
            kind = np.float32 if dtype is None else dtype.numpy()
            zeros, ones = b.const(np.zeros(more, kind)), b.const(np.ones(more, kind))
            parts = [zeros, slice_axis(b, value, 0, 0, rank), ones, slice_axis(b, value, 0, rank, _END)]
        elif by_inputs and index == 3:
            parts = [call.steps, *([b.const([1])] if picture else []), value]
        else:
            parts = [b.const(np.ones(more, np.float32)), value]
        values[index] = concat(b, parts, axis=0)
    (result,) = b.like(call.node, [unsqueeze(b, x, [1]) if picture else x, *values[1:]])
    if not picture:
        return [Result(result)]
    return [Result(squeeze(b, result, [1]))]


@rule("AffineGrid")
def affine_grid(call: Call) -> Sequence[Result]:
    """Emit the node with the steps merged into its batch axis N.

    ``AffineGrid(theta [N, ...], [N, C, ...])`` -> ``AffineGrid(theta' [steps * N, ...], [steps * N, C, ...])``.
    """
    call.require_invariant(1)
    batch, size = first_dim(call, 0), call.operand(1).value
    (result,) = call.build.like(call.node, [fold_operand(call, 0), with_folded_first_size(call, size, batch)])
    known = ints_operand(call.node, 1)
    if isinstance(known, tuple):
        result.shape = ir.Shape([None, *known[2:], len(known) - 2])
    return unfold_results(call, [result], batch)
