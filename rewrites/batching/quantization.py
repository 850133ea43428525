"""QuantizeLinear and DequantizeLinear: one scale, one scale for each index of an axis, or one scale for each step.

A scalar scale that differs between steps is a scale along axis 0: ``QuantizeLinear(x', scale', zero', axis=0)``.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.batching.alignment import axis_after_steps, expanded
from rewrites.batching.call import Call, Operand, Result
from rewrites.batching.table import rule
from rewrites.spelling import squeeze
from rewrites.values import static_dims

__all__ = ["quantize"]

_AXIS_SINCE = 13


@rule("DequantizeLinear", "QuantizeLinear")
@rule("DequantizeLinear", "QuantizeLinear", domain="com.microsoft")
def quantize(call: Call) -> Sequence[Result]:
    """A scale of one element applies to the whole tensor, one of more to the axis."""
    if call.node.attributes.get_int("block_size", 0):
        raise call.refuse("NO-BATCHING-RULE", "the scales are blocked")
    scale, zero = call.operand(1), call.given(2)
    if scale.batched or (zero is not None and zero.batched):
        return _scale_of_step(call)
    if _is_single(call, scale):
        return call.like(call.values)
    return call.like(call.values, axis=axis_after_steps(call, 1))


def _scale_of_step(call: Call) -> list[Result]:
    if not call.node.domain and call.opset < _AXIS_SINCE:
        raise call.refuse("NO-BATCHING-RULE", f"the scale differs between steps, and there is no axis before opset {_AXIS_SINCE}")
    for index in range(1, 3):
        operand = call.given(index)
        if operand is not None and not _is_single(call, operand):
            raise call.refuse("BATCHED-STRUCTURE", f"{operand.inner.name!r} has more than one element and differs between steps")
    zero = None if call.given(2) is None else _vector(call, 2)
    return call.like([expanded(call, 0), _vector(call, 1), zero], axis=0)


def _vector(call: Call, index: int) -> ir.Value:
    """Give a one-element operand as one element for each step."""
    return squeeze(call.build, expanded(call, index), range(1, 1 + call.rank(index)))


def _is_single(call: Call, operand: Operand) -> bool:
    """Whether the operand has one element; where that is not known, the axis matters and the rule refuses."""
    dims = static_dims(operand.inner)
    if dims is None:
        raise call.refuse("SHAPE-UNKNOWN", f"whether {operand.inner.name!r} has one element is not known")
    return dims in ((), (1,))
