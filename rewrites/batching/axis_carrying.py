"""Operators that work along one axis, and keep the others apart: the axis moves one position up.

``Softmax(x, axis=1)`` -> ``Softmax(x', axis=2)``. Before opset 13 Softmax, LogSoftmax and Hardmax take all axes from ``axis`` on
together; the same shift is right for them, since the axes before, now with the steps, stay apart.
"""

from collections.abc import Sequence

from rewrites.batching.alignment import after_steps, axes_after_steps, axis_after_steps
from rewrites.batching.call import Call, Result
from rewrites.batching.table import rule
from rewrites.ops.versions import softmax_spec

__all__ = ["along_axis", "cumulative", "softmax", "transpose"]

_DEFAULT_AXIS = {"ArgMax": 0, "ArgMin": 0, "LpNormalization": -1, "Split": 0, "TopK": -1}


@rule(*_DEFAULT_AXIS)
def along_axis(call: Call) -> Sequence[Result]:
    """The axis is an attribute; the second input (k, sizes) must be loop-invariant."""
    call.same_each_step(1)
    return call.like(call.values, axis=axis_after_steps(call, _DEFAULT_AXIS[call.node.op_type]))


@rule("Hardmax", "LogSoftmax", "Softmax")
def softmax(call: Call) -> Sequence[Result]:
    """The default axis changed in opset 13, so it is always written out."""
    return call.like(call.values, axis=after_steps(softmax_spec(call.node, call.opset, call.operand(0).rank).axis))


@rule("CumProd", "CumSum")
def cumulative(call: Call) -> Sequence[Result]:
    """The axis is an input; it need not be constant."""
    call.same_each_step(1)
    return call.like([call.operand(0).value, axes_after_steps(call, 1, call.operand(0).rank)])


@rule("Transpose")
def transpose(call: Call) -> Sequence[Result]:
    """The steps stay in front; without ``perm`` the per-step axes are reversed, which takes their number."""
    perm = call.node.attributes.get_ints("perm")
    order = tuple(reversed(range(call.rank(0)))) if perm is None else tuple(perm)
    return call.like(call.values, perm=[0, *(axis + 1 for axis in order)])
