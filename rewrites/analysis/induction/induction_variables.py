"""What a loop's states and trip count are as integers: which states are induction variables.

A state is one where its next value is itself plus a constant, or the number of the step plus a constant that fits its initial
value. By induction it is its initial value then, plus a multiple of the number of the step, in every step. Where floating-point
numbers count, or integers by way of them, that is so for as many steps as ``within`` says: they stand still at some number. They
start from constants then that leave room for that, and their steps are small.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import EXACT, INTEGERS, SLOPE_IN_FLOATS, STEP, AffineExpression
from rewrites.analysis.induction.integers import Integers
from rewrites.graph.values import static_dims
from rewrites.loops import Loop, LoopView, State

__all__ = ["Counter", "counters", "integers_of", "trip_count"]


@dataclass(frozen=True)
class Counter:
    """A state that is ``start`` in the first step and ``step`` more in each after it; ``exact_to``: see Affine."""

    state: State
    start: AffineExpression
    step: int
    exact_to: int | None

    @property
    def value(self) -> AffineExpression:
        """What the state is in a step."""
        return (self.start + AffineExpression.of(self.step) * AffineExpression.symbol(STEP)).limited(self.exact_to)


def trip_count(loop: LoopView, opset: int) -> AffineExpression | None:
    """Return the limit of a Loop that nothing stops early, as one element without axes; a Loop takes a negative one as 0."""
    return Integers(opset).scalar(loop.limit) if loop.limit is not None and loop.never_stops_early else None


def counters(loop: Loop, opset: int, *, any_rank: bool = False) -> list[Counter]:
    """Find the induction variables; with ``any_rank`` also one element that gets another rank in a step."""
    outside = Integers(opset)
    starts: dict[ir.Value, AffineExpression] = {}
    for state in loop.states:
        start, kind = outside.scalar(state.initial), state.initial.dtype
        if start is not None and (kind in INTEGERS or (kind in EXACT and start.number is not None)):
            starts[state.inner] = start.limited(_last_exact(kind))
    shapes = {state.inner: static_dims(state.initial) or () for state in loop.states}
    known: dict[ir.Value, AffineExpression] = {
        inner: AffineExpression.symbol(inner, shapes[inner]).limited(_last_exact(inner.dtype)) for inner in starts
    }
    if isinstance(loop, LoopView):
        known[loop.iteration] = AffineExpression.symbol(STEP, _one_element(loop.iteration))
    body = Integers(opset, loop.body, known)
    variables = []
    for state in loop.states:
        after = body.of(state.next) if state.inner in starts else None
        if after is not None and (after.shape == shapes[state.inner] or (any_rank and after.const.size == 1)):
            counter = _counter(state, starts[state.inner], after.reshaped(()))
            variables += [counter] if counter is not None else []
    return variables


def _one_element(iteration: ir.Value) -> tuple[int, ...]:
    """Return the shape of a step's number, whatever else is declared."""
    dims = static_dims(iteration)
    return dims if dims is not None and all(dim == 1 for dim in dims) else ()


def _last_exact(dtype: ir.DataType | None) -> int | None:
    """Return up to which number those of ``dtype`` count; None for integers."""
    return EXACT[dtype] - 1 if dtype in EXACT else None


def _counter(state: State, start: AffineExpression, after: AffineExpression) -> Counter | None:
    counter = _of_step(state, start, after)
    if counter is None or counter.exact_to is None:
        return counter
    is_far = start.number is not None and abs(start.number) > counter.exact_to >> 2
    return None if is_far or abs(counter.step) > SLOPE_IN_FLOATS else counter


def _of_step(state: State, start: AffineExpression, after: AffineExpression) -> Counter | None:
    if not after.terms.keys() - {state.inner} and after.factor(state.inner) == 1:
        return Counter(state, start, int(after.const.item()), after.exact_to)
    slope = after.factor(STEP)
    if not after.terms.keys() - {STEP} and start.number is not None and start.number == int(after.const.item()) - slope:
        return Counter(state, start, slope, after.exact_to)
    return None


def integers_of(loop: LoopView, opset: int, steps: AffineExpression | None = None, *, any_rank: bool = False) -> Integers:
    """Return the integers of the body of ``loop``: its step number is STEP. With ``any_rank``, the ranks of the expressions mean
    nothing.
    """
    known: Mapping[ir.Value, AffineExpression] = {
        counter.state.inner: counter.value.reshaped(static_dims(counter.state.initial) or ())
        for counter in counters(loop, opset, any_rank=any_rank)
    }
    number = AffineExpression.symbol(STEP, _one_element(loop.iteration))
    return Integers(opset, loop.body, {**known, loop.iteration: number}, steps)
