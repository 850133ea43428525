"""Resize and Upsample.

If axis 0 keeps its size, the steps are merged into it. Otherwise, the steps become one more axis that is not resized. onnxruntime
interpolates over at most two or three axes, so this is possible only for the mode "nearest", or for images without batch and
channel axes.

Works around ORT-RESIZE-AXES.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.batching.alignment import expanded
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import first_dim, folded, rows_first, unfolded
from rewrites.batching.table import rule
from rewrites.graph.values import const_array, dim_of
from rewrites.ops.versions import concat, ints_operand, slice_axis, squeeze, unsqueeze

__all__ = ["affine_grid", "resize", "upsample"]

_END = 2**63 - 1


@rule("Upsample")
def upsample(call: Call) -> Sequence[Result]:
    """Insert a scale of 1 for the steps, or merge the steps into axis 0.

    Up to opset 8, the scales are an attribute.
    """
    scales = call.node.attributes.get_floats("scales")
    if scales is None:
        return resize(call)
    return call.like(call.values, scales=[1.0, *scales]) if _nearest(call) or len(scales) == 2 else _merged(call, call.values)


@rule("Resize", since=11)
def resize(call: Call) -> Sequence[Result]:
    """Merge the steps into axis 0, or make them an axis that is not resized.

    Operands: data, region of interest, scales, sizes.
    """
    call.same_each_step(*range(1, len(call.operands)))
    rank, axes = call.rank(0), call.node.attributes.get_ints("axes")
    values = [*call.values, None, None, None][:4] if call.node.op_type == "Resize" and call.opset >= 11 else call.values
    if axes is not None:
        places = [axis + rank if axis < 0 else axis for axis in axes]
        if 0 not in places and rank > 2:
            return _merged(call, values)
        return call.like([expanded(call, 0), *values[1:]], axes=[position + 1 for position in places])
    if _keeps_first(call, rank):
        return _merged(call, _with_rows(call, values))
    return _one_more_axis(call, values, rank)


@rule("Resize", until=11)
def resize_by_scales(call: Call) -> Sequence[Result]:
    """Batch a Resize of opset 10, whose operands are data and scales."""
    return resize(call)


def _nearest(call: Call) -> bool:
    return call.node.attributes.get_string("mode", "nearest") == "nearest"


def _keeps_first(call: Call, rank: int) -> bool:
    """Return True if axis 0 is known to keep its size.

    This is known in three cases: its scale is the constant 1; its new size is a constant, and equal to its old size; or the data
    have more than 3 axes and the mode is not "nearest", because onnxruntime then supports nothing else.
    """
    if rank < 3:
        return False
    first, by_inputs = dim_of(call.operand(0).inner, 0), len(call.operands) > 2
    for index in range(2 if by_inputs else 1, len(call.operands)):
        operand = call.given(index)
        array = None if operand is None else const_array(operand.inner)
        if array is not None and array.size == rank and (array.dtype.kind == "f" or isinstance(first, int)):
            return bool(array[0] == (1 if array.dtype.kind == "f" else first))
    return not _nearest(call) and rank > 3


def _with_rows(call: Call, values: list[ir.Value | None]) -> list[ir.Value | None]:
    """Return ``values``, the operands of a Resize, for data that have the rows of all steps on axis 0.

    The first of the new sizes is replaced by the number of these rows. Without an operand for sizes, ``values`` is unchanged.
    """
    if len(values) < 4 or values[3] is None:
        return values
    return [*values[:3], rows_first(call, values[3], first_dim(call, 0))]


def _merged(call: Call, values: list[ir.Value | None]) -> Sequence[Result]:
    (result,) = call.build.like(call.node, [folded(call, 0), *values[1:]])
    sizes, attributes = ints_operand(call.node, 3), call.node.attributes
    if (
        isinstance(sizes, tuple)
        and len(sizes) == call.rank(0)
        and attributes.get_string("keep_aspect_ratio_policy", "stretch") == "stretch"
    ):
        result.shape = ir.Shape([None, *sizes[1:]])
    return unfolded(call, [result], first_dim(call, 0))


def _one_more_axis(call: Call, values: list[ir.Value | None], rank: int) -> Sequence[Result]:
    """Make the steps an axis that is not resized.

    An image without batch and channel axes also gets a channel axis.
    """
    b = call.build
    picture = rank == 2 and not _nearest(call)
    more = 2 if picture else 1
    if not picture and not _nearest(call):
        raise call.refuse("NO-BATCHING-RULE", f"onnxruntime does not interpolate over {rank} axes besides the steps")
    x = expanded(call, 0)
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
    """Merge the steps into the batch axis N.

    ``AffineGrid(theta [N, ...], [N, C, ...])`` -> ``AffineGrid(theta' [steps * N, ...], [steps * N, C, ...])``.
    """
    call.same_each_step(1)
    batch, size = first_dim(call, 0), call.operand(1).value
    (result,) = call.build.like(call.node, [folded(call, 0), rows_first(call, size, batch)])
    known = ints_operand(call.node, 1)
    if isinstance(known, tuple):
        result.shape = ir.Shape([None, *known[2:], len(known) - 2])
    return unfolded(call, [result], batch)
