"""Gather, Scatter, OneHot, Compress and Trilu. The data, the indices or both may differ between steps.

``ScatterND(x, i, u)`` -> ``ScatterND(x', [step, i'], u')``: the step number becomes the first coordinate of each index. If a step
updates an element twice, the order of the two updates is unchanged.

Works around ORT-GATHER-STRINGS.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.alignment import after_steps, axis_after_steps, stacked_operand
from rewrites.batching.call import Call, Result
from rewrites.batching.dims import shape_tensor, step_dims
from rewrites.batching.table import rule
from rewrites.ops.versions import axis_of, squeeze, transpose, unsqueeze
from rewrites.ops.versions import gather as emit_gather

__all__ = ["compress", "gather", "gather_elements", "gather_nd", "one_hot", "scatter_elements", "scatter_nd", "triangle"]


@rule("Gather")
def gather(call: Call) -> Sequence[Result]:
    """Emit a Gather, or a GatherND if both data and indices are batched.

    If only the data are batched, the axis is shifted past the steps. If only the indices are batched, the steps become axis 0 of
    the result.

    Strings are refused, because onnxruntime copies only the first element of each slice.
    """
    data, indices = call.operand(0), call.operand(1)
    if data.inner.dtype == ir.DataType.STRING:
        raise call.refuse("STRING-GATHER", "onnxruntime gathers only the first string of each slice")
    if not indices.batched:
        return call.emit(call.values, axis=axis_after_steps(call, 0))
    axis = axis_of(call.node, 0)
    if axis == 0 and not data.batched:
        return call.emit(call.values)
    data_rank, index_rank = call.rank(0), call.rank(1)
    axis = axis_of(call.node, 0, data_rank)
    if data.batched:
        return [Result(_gather_pairwise(call, axis, data_rank, index_rank))]
    picked = emit_gather(call.build, data.value, indices.value, axis)
    rest = [position for position in range(data_rank + index_rank) if position != axis]
    return [Result(transpose(call.build, picked, [axis, *rest]))]


def _gather_pairwise(call: Call, axis: int, data_rank: int, index_rank: int) -> ir.Value:
    b = call.build
    if call.opset < 12:
        raise call.refuse("NO-BATCHING-RULE", "data and indices differ between steps: needs GatherND of opset 12")
    others = [position for position in range(1, data_rank + 1) if position != axis + 1]
    data = transpose(b, call.operand(0).value, [0, axis + 1, *others])
    numbers = call.operand(1).value
    if call.operand(1).inner.dtype != ir.DataType.INT64:
        numbers = b.op("Cast", numbers, to=int(ir.DataType.INT64))
    picked = b.op("GatherND", data, unsqueeze(b, numbers, [index_rank + 1]), batch_dims=1)
    indexed = list(range(1, index_rank + 1))
    kept = list(range(index_rank + 1, index_rank + data_rank))
    return transpose(b, picked, [0, *kept[:axis], *indexed, *kept[axis:]])


@rule("GatherElements")
def gather_elements(call: Call) -> Sequence[Result]:
    """Emit the node with its axis shifted past axis 0 (the steps).

    Data and indices must have the same rank. Therefore a loop-invariant operand is repeated for every step.
    """
    return call.emit([stacked_operand(call, 0), stacked_operand(call, 1)], axis=axis_after_steps(call, 0))


@rule("GatherND")
def gather_nd(call: Call) -> Sequence[Result]:
    """Emit a GatherND with the steps as one more batch axis.

    If the data are loop-invariant and ``batch_dims`` is 0, emit the node unchanged, because GatherND accepts indices of any rank.
    """
    batch_dims = call.node.attributes.get_int("batch_dims", 0)
    if batch_dims == 0 and not call.batched(0):
        return call.emit(call.values)
    if call.opset < 12:
        raise call.refuse("NO-BATCHING-RULE", "the data differ between steps: needs GatherND of opset 12")
    return call.emit([stacked_operand(call, 0), stacked_operand(call, 1)], batch_dims=batch_dims + 1)


@rule("Scatter", "ScatterElements")
def scatter_elements(call: Call) -> Sequence[Result]:
    """Emit the node with its axis shifted past axis 0 (the steps).

    An index selects a position along this axis only. Therefore the updates of a step change only the data of this step.
    """
    return call.emit([stacked_operand(call, index) for index in range(3)], axis=axis_after_steps(call, 0))


@rule("ScatterND")
def scatter_nd(call: Call) -> Sequence[Result]:
    """Emit a ScatterND with the step number inserted as the first coordinate of each index."""
    rank, b = call.rank(1), call.build
    indices = stacked_operand(call, 1)
    numbers = b.op("Range", b.const(0), squeeze(b, call.steps, [0]), b.const(1))
    spread = unsqueeze(b, numbers, range(1, rank + 1))
    dims = step_dims(call, call.operand(1))
    if rank > 1:
        spread = b.op("Expand", spread, shape_tensor(b, [1, *dims[:-1], 1]))
    return call.emit([stacked_operand(call, 0), b.op("Concat", spread, indices, axis=rank), stacked_operand(call, 2)])


@rule("OneHot")
def one_hot(call: Call) -> Sequence[Result]:
    """Emit the node, with the axis that OneHot inserts shifted past axis 0 (the steps).

    A negative axis counts from the end of the result, and needs no shift.
    """
    call.require_invariant(1, 2)
    return call.emit(call.values, axis=after_steps(axis_of(call.node, -1)))


@rule("Compress")
def compress(call: Call) -> Sequence[Result]:
    """Emit a Compress with its axis shifted past axis 0 (the steps).

    If the node has no axis, the data of each step are flattened first. The condition must be loop-invariant, because otherwise the
    number of selected elements could differ between steps.
    """
    if call.batched(1):
        raise call.refuse("DATA-DEPENDENT-SHAPE", "the shape of the result may differ between steps")
    if call.node.attributes.get_int("axis") is not None:
        return call.emit(call.values, axis=axis_after_steps(call, 0))
    return call.emit([call.build.op("Flatten", call.operand(0).value, axis=1), call.value(1)], axis=1)


@rule("Trilu")
@rule("Trilu", domain="com.microsoft")
def triangle(call: Call) -> Sequence[Result]:
    """Emit the node unchanged. Trilu works on the last two axes and accepts any other axes before them."""
    call.require_invariant(1)
    return call.emit(call.values)
