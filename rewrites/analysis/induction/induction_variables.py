"""Finds the induction variables of a loop and its trip count, as affine expressions.

A state is an induction variable in two cases:

- its next value is the state plus a constant;
- its next value is an affine function of the step number, and its initial value is the function's value at step -1.

By induction, it then equals its initial value plus a multiple of the step number in every step. A float counts exactly only up to
some limit. Therefore a float counter, and integers computed from it, must start from a small constant and change little per step.
``within`` tests if the number of steps is small enough.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import EXACT, INTEGERS, SLOPE_IN_FLOATS, STEP, AffineExpression
from rewrites.analysis.induction.integers import Integers
from rewrites.analysis.induction.progressions import INDEX, Progression, Progressions
from rewrites.graph.values import const_array, static_dims
from rewrites.loops import Loop, LoopView, ScanInput, ScanView, State

__all__ = ["Counter", "counters", "integers_of", "trip_count"]


@dataclass(frozen=True)
class Counter:
    """An induction variable: its value is ``start`` in the first step and grows by ``step`` in each step.

    ``exact_to``: the limit up to which the state counts exactly; see AffineExpression.
    """

    state: State
    start: AffineExpression
    step: int
    exact_to: int | None

    @property
    def value(self) -> AffineExpression:
        """Return the value of the state in each step, as an expression of the step number."""
        return (self.start + AffineExpression.symbol(STEP) * self.step).with_exact_limit(self.exact_to)


def trip_count(loop: Loop, opset: int) -> AffineExpression | None:
    """Return the number of steps of ``loop``, or None if it is unknown.

    For a Loop, this is its limit if it never stops early. A negative limit means 0 steps. Limits that are computed in float32 are
    assumed to be exact, limits that are computed in float16 are not.
    """
    if isinstance(loop, LoopView):
        if loop.limit is None or not loop.never_stops_early:
            return None
        limit = Integers(opset).scalar(loop.limit)
        is_rounded = limit is not None and limit.number is None and (limit.exact_to or 1 << 24) < 1 << 24
        return AffineExpression.symbol(loop.limit) if is_rounded else limit
    scan, steps = loop.scan_inputs[0], loop.steps
    if loop.batched:
        return None
    return AffineExpression.of(steps) if isinstance(steps, int) else Integers(opset).size_of(scan.outer, scan.axis)


def counters(loop: Loop, opset: int, *, any_rank: bool = False) -> list[Counter]:
    """Return the induction variables of ``loop``.

    ``any_rank``: True to include one-element states whose rank differs between their initial and their next value.
    """
    outside = Integers(opset)
    starts: dict[ir.Value, AffineExpression] = {}
    for state in loop.states:
        start, kind = outside.scalar(state.initial), state.initial.dtype
        if start is not None and (kind in INTEGERS or (kind in EXACT and start.number is not None)):
            starts[state.inner] = start.with_exact_limit(_exact_limit(kind))
    shapes = {state.inner: static_dims(state.initial) or () for state in loop.states}
    known: dict[ir.Value, AffineExpression] = {
        inner: AffineExpression.symbol(inner, shapes[inner]).with_exact_limit(_exact_limit(inner.dtype)) for inner in starts
    }
    if isinstance(loop, LoopView):
        known[loop.iteration] = AffineExpression.symbol(STEP, _shape_of_step_number(loop.iteration))
    body = Integers(opset, loop.body, known)
    variables = []
    for state in loop.states:
        after = body.of(state.next) if state.inner in starts else None
        if after is not None and (after.shape == shapes[state.inner] or (any_rank and after.const.size == 1)):
            counter = _counter(state, starts[state.inner], after.reshaped(()))
            variables += [counter] if counter is not None else []
    return variables


def _shape_of_step_number(iteration: ir.Value) -> tuple[int, ...]:
    """Return the shape of ``iteration``, the step number of a Loop.

    It is the declared shape, if the declared shape has one element. Otherwise, it is ().
    """
    dims = static_dims(iteration)
    return dims if dims is not None and all(dim == 1 for dim in dims) else ()


def _exact_limit(dtype: ir.DataType | None) -> int | None:
    """Return the largest number up to which the float type ``dtype`` counts exactly; None for other types."""
    return EXACT[dtype] - 1 if dtype in EXACT else None


def _counter(state: State, start: AffineExpression, after: AffineExpression) -> Counter | None:
    slope = after.factor(STEP)
    if not after.terms.keys() - {state.inner} and after.factor(state.inner) == 1:
        step = int(after.const.item())
    elif not after.terms.keys() - {STEP} and start.number is not None and start.number == int(after.const.item()) - slope:
        step = slope
    else:
        return None
    limit = after.exact_to
    if limit is not None and (abs(step) > SLOPE_IN_FLOATS or (start.number is not None and abs(start.number) > limit >> 2)):
        return None
    return Counter(state, start, step, limit)


def integers_of(loop: Loop, opset: int, steps: AffineExpression | None = None, *, any_rank: bool = False) -> Integers:
    """Return the analysis of the integers in the body of ``loop``.

    Args:
        loop: The loop.
        opset: The opset of the model.
        steps: The trip count, if known.
        any_rank: True to include counters whose rank changes in a step. The ranks of the expressions may then be wrong.
    """
    known: dict[ir.Value, AffineExpression] = {
        counter.state.inner: counter.value.reshaped(static_dims(counter.state.initial) or ())
        for counter in counters(loop, opset, any_rank=any_rank)
    }
    if isinstance(loop, LoopView):
        known[loop.iteration] = AffineExpression.symbol(STEP, _shape_of_step_number(loop.iteration))
    for scan in loop.scan_inputs if isinstance(loop, ScanView) and not loop.batched else ():
        number = _scanned_number(scan, opset)
        if number is not None:
            known[scan.inner] = number
    return Integers(opset, loop.body, known, steps)


def _scanned_number(scan: ScanInput, opset: int) -> AffineExpression | None:
    """Return the integer that each step reads from ``scan``, as an expression of the step number.

    Return None if the scanned tensor is no progression such as a Range.
    """
    array, row, dims = const_array(scan.outer), Progressions(Integers(opset)).of(scan.outer), static_dims(scan.inner)
    if array is not None and array.dtype in (np.int32, np.int64) and array.size > 1:
        first, second = map(int, array.reshape(-1)[:2])
        is_even = (array.reshape(-1) == first + (second - first) * np.arange(array.size)).all()
        number = AffineExpression.symbol(INDEX) * (second - first) + first
        row = Progression(number, AffineExpression.of(array.size)) if is_even else None
    if row is None or scan.axis != 0 or dims not in ((), (1,)):
        return None
    step = AffineExpression.symbol(STEP)
    return row.element.substituted({INDEX: row.length - step - 1 if scan.reverse else step}).reshaped(dims)
