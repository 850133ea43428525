"""Operators along some axes. Each axis index grows by one, because the steps are axis 0.

``Softmax(x, axis=1)`` -> ``Softmax(x', axis=2)``. Before opset 13, Softmax, LogSoftmax and Hardmax merge all axes from ``axis`` on.
The same shift is correct then, because the steps come before ``axis`` and are not merged.

``Reduce*(x, axes)`` -> ``Reduce*(x', axes + 1)``. If a Reduce has no axes, the emitted Reduce gets all axes except the steps.

A ReduceLogSumExp over all axes of x is emitted as simpler operators. The reason is that x' has one more axis, so a ReduceLogSumExp
of x' would reduce only some axes. For such a reduction, onnxruntime's kernel returns -inf for ``[-inf, -1000]``.

Works around ORT-LOG-SUM-EXP-FIRST.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.batching.alignment import after_steps, axes_after_steps, axis_after_steps
from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule
from rewrites.graph.builder import Builder
from rewrites.graph.values import dim_of
from rewrites.ops.versions import DYNAMIC, axes_of, keepdims, reduce, softmax_spec, unsqueeze

__all__ = ["along_axis", "cumulative", "fourier", "fourier_by_attribute", "reduction", "softmax", "transpose"]


_DEFAULT_AXIS = {"ArgMax": 0, "ArgMin": 0, "LpNormalization": -1, "Split": 0, "TopK": -1}


@rule(*_DEFAULT_AXIS)
def along_axis(call: Call) -> Sequence[Result]:
    """Emit the node with its attribute ``axis`` shifted past axis 0 (the steps).

    A second input (k of TopK, sizes of Split) must be loop-invariant.
    """
    call.require_invariant(1)
    return call.emit(call.values, axis=axis_after_steps(call, _DEFAULT_AXIS[call.node.op_type]))


@rule("Hardmax", "LogSoftmax", "Softmax")
def softmax(call: Call) -> Sequence[Result]:
    """Emit the node with its attribute ``axis`` shifted past axis 0 (the steps).

    The emitted node always has the attribute, even if the old node relies on the default, because opset 13 changed the default.
    """
    return call.emit(call.values, axis=after_steps(softmax_spec(call.node, call.opset, call.operand(0).rank).axis))


@rule("CumProd", "CumSum")
def cumulative(call: Call) -> Sequence[Result]:
    """Emit a CumSum or CumProd with its axis shifted past axis 0 (the steps).

    The axis is an input of the operator, and need not be constant.
    """
    call.require_invariant(1)
    return call.emit([call.operand(0).value, axes_after_steps(call, 1, call.operand(0).rank)])


@rule("Transpose")
def transpose(call: Call) -> Sequence[Result]:
    """Emit a Transpose that permutes the axes of each step, and keeps the steps as axis 0.

    If the node has no ``perm``, it reverses all axes. Its rank must then be known.
    """
    perm = call.node.attributes.get_ints("perm")
    order = tuple(reversed(range(call.rank(0)))) if perm is None else tuple(perm)
    return call.emit(call.values, perm=[0, *(axis + 1 for axis in order)])


@rule(
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"),
    "ReduceSumSquare",
)
def reduction(call: Call) -> Sequence[Result]:
    """Emit a Reduce over the same axes of each step.

    If the data of a step are a scalar, an axis of size 1 is inserted and reduced. An emitted Reduce without axes would be wrong,
    because it would reduce the steps too.
    """
    call.require_invariant(1)
    axes = axes_of(call.node, call.opset, call.operand(0).rank)
    if axes is DYNAMIC and dim_of(call.operand(1).inner, 0) == 0:
        axes = () if call.node.attributes.get_int("noop_with_empty_axes", 0) else None
    if axes is DYNAMIC:
        return _reduce_over_computed_axes(call)
    x, b = call.operand(0).value, call.build
    if axes == () and call.node.attributes.get_int("noop_with_empty_axes", 0) != 0:
        return call.emit([x])
    if axes is None:
        axes = tuple(range(call.rank(0)))
    if not axes:
        return [Result(reduce(b, call.node.op_type, unsqueeze(b, x, [1]), [1], keepdims=False))]
    shifted, keep = [after_steps(axis) for axis in axes], keepdims(call.node)
    if call.node.op_type == "ReduceLogSumExp" and len(axes) == call.rank(0) and call.opset < since.PLAIN_LOG_SUM_EXP:
        return [Result(_log_sum_exp(b, x, shifted, keep))]
    return [Result(reduce(b, call.node.op_type, x, shifted, keep))]


def _log_sum_exp(b: Builder, x: ir.Value, axes: Sequence[int], keep: bool) -> ir.Value:
    """Emit a ReduceLogSumExp of ``x`` as simpler operators: log(sum(exp(x - m))) + m.

    m is the maximum over ``axes``. If the maximum is infinite, m is the largest or smallest finite number instead. ``keep``: True
    to keep the reduced axes with size 1.
    """
    if x.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return reduce(b, "ReduceLogSumExp", x, axes, keep)
    numbers = np.finfo(x.dtype.numpy())
    least, greatest = b.const(np.asarray(numbers.min)), b.const(np.asarray(numbers.max))

    def finite_maximum(keepdims: bool) -> ir.Value:
        return b.op("Max", b.op("Min", reduce(b, "ReduceMax", x, axes, keepdims), greatest), least)

    inner = finite_maximum(True)
    total = reduce(b, "ReduceSum", b.op("Exp", b.op("Sub", x, inner)), axes, keep)
    return b.op("Add", b.op("Log", total), inner if keep else finite_maximum(False))


def _reduce_over_computed_axes(call: Call) -> list[Result]:
    """Emit a Reduce whose axes are computed at run time, with these axes shifted past axis 0 (the steps).

    The number of axes must be known, because an empty list would mean all axes, including the steps.
    """
    count, rank = dim_of(call.operand(1).inner, 0), call.operand(0).rank
    if not isinstance(count, int):
        raise call.refuse("DYNAMIC-STRUCTURE", "the number of axes is not known")
    (result,) = call.emit([call.operand(0).value, axes_after_steps(call, 1, rank)])
    if result.value.shape is None and rank is not None:
        result.value.shape = ir.Shape([None] * (rank + 1 if keepdims(call.node) else rank + 1 - count))
    return [result]


@rule("DFT", until=20)
def fourier_by_attribute(call: Call) -> Sequence[Result]:
    """Emit a DFT with its axis shifted past axis 0 (the steps). Before opset 20, the axis is an attribute."""
    call.require_invariant(1)
    return call.emit(call.values, axis=axis_after_steps(call, 1))


@rule("DFT", since=20)
def fourier(call: Call) -> Sequence[Result]:
    """Emit a DFT with its axis shifted past axis 0 (the steps). Since opset 20, the axis is an input.

    If the input is absent, the axis is -2. A negative axis counts from the end and needs no shift.
    """
    call.require_invariant(1, 2)
    values = call.values
    if call.optional_operand(2) is not None:
        values[2] = axes_after_steps(call, 2, call.rank(0))
    return call.emit(values)
