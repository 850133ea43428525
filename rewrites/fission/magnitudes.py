"""Up to what magnitude a value's numbers go, whatever a loop is given: NaN aside, which any of them may be."""

import math

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_array, dim_of
from rewrites.loops import Loop, LoopView

__all__ = ["largest"]

_UP_TO_ONE = frozenset({"Cos", "Erf", "HardSigmoid", "Sigmoid", "Sin", "Softmax", "Softsign", "Tanh"})
_OF_THE_FIRST = frozenset(
    {"Abs", "Expand", "Gather", "Identity", "Neg", "Relu", "Reshape", "Slice", "Split", "Squeeze", "Transpose"}
)
_OF_THE_FIRST |= {"Unsqueeze"}
_OF_THE_LARGEST = frozenset({"Concat", "Max", "Min"})
_MOST = 200
_FAR_FROM_OVERFLOW = 1e30


def largest(value: ir.Value, loop: Loop) -> float:
    """Return a bound of what ``value``, of the loop's body, holds in any step; infinity where none is known.

    A state has one where its first value has, and what a step makes of it whatever the states are.
    """
    known = {} if isinstance(loop, LoopView) else {scan.inner: _bound(scan.outer, {}) for scan in loop.scan_inputs}
    free = known | {state.inner: math.inf for state in loop.states}
    states = {state.inner: max(_bound(state.initial, {}), _bound(state.next, dict(free))) for state in loop.states}
    return _bound(value, known | states)


def _bound(value: ir.Value | None, known: dict[ir.Value, float]) -> float:
    """``known``: the bounds that are known already, to which those found on the way are added."""
    if value is None or len(known) > _MOST:
        return math.inf
    if value not in known:
        known[value] = math.inf  # while it is looked for
        found = 1.0 if value.dtype == ir.DataType.BOOL else _of_constant(value) or _of_result(value, known)
        known[value] = found if found <= _FAR_FROM_OVERFLOW else math.inf  # beyond, it might be infinite on the way
    return known[value]


def _of_constant(value: ir.Value) -> float | None:
    array = const_array(value)
    if array is None or array.dtype.kind not in "biuf":
        return None
    found = float(np.abs(array, dtype=np.float64).max(initial=np.finfo(np.float64).tiny))
    return math.inf if math.isnan(found) else found


def _of_result(value: ir.Value, known: dict[ir.Value, float]) -> float:
    node = value.producer()
    if node is None or node.domain != "":
        return math.inf
    if node.op_type in _UP_TO_ONE:
        return 1.0
    operands = [operand for operand in node.inputs if operand is not None]
    if node.op_type in _OF_THE_FIRST or (node.op_type == "Cast" and operands[0].dtype == ir.DataType.BOOL):
        return _bound(operands[0], known)
    if node.op_type in _OF_THE_LARGEST:
        return max(_bound(operand, known) for operand in operands)
    if node.op_type == "Where":
        return max(_bound(operand, known) for operand in operands[1:])
    if node.op_type in ("Add", "Sub", "Sum"):
        return sum(_bound(operand, known) for operand in operands)
    if node.op_type in ("Mul", "MatMul"):
        terms = 1 if node.op_type == "Mul" else dim_of(operands[0], -1)
        bounds = [_bound(operand, known) for operand in operands]
        return math.prod(bounds) * terms if isinstance(terms, int) else math.inf
    return math.inf
