"""A condition that depends only on induction variables becomes part of the trip count.

    Loop(M, 0 < n, 0, h0) body(i, c, k, h) => (And(i + 1 < m, k + 1 < n), k + 1, f(h))
    ->    Loop(Min(M, m, n), true, 0, h0) body(i, c, k, h) => (c, k + 1, f(h))

Conditions: the body's condition is an And of comparisons. Each compares an affine expression of the step number (an induction
variable) with an integer known before the loop. The loop has a trip count, or the condition becomes false at some step.

Comparisons of floats are supported if the floats represent the integers exactly. For constant bounds, the rule proves this. If only
the start or the bound is constant, the rule assumes for float32 that the numbers are exact, and a note in the report says that this
holds up to 2 ** 24 steps. It does not assume this for float16, nor for float32 induction variables, which stop growing at 2 ** 24.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import STEP, AffineExpression, Dim, at_least, counts_exactly
from rewrites.analysis.induction.emission import emit, exceeds, larger, scalar_of, smaller
from rewrites.analysis.induction.induction_variables import integers_of
from rewrites.analysis.induction.integers import Integers
from rewrites.base.postorder import postorder
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import const_scalar, producer_of
from rewrites.loops import Loop, LoopView
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scan_form.step_counts import run_for

__all__ = ["RULE", "check"]


_UNBOUNDED = 1 << 62
_CONJOINED = frozenset({"And", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


@dataclass(frozen=True)
class _Bound:
    """A comparison in the condition. It is true after step t if ``room - slope * t`` is at least 1.

    ``slope``: an integer of at least 1.
    """

    room: AffineExpression
    slope: int


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the condition only compares induction variables with known integers."""
    if not isinstance(loop, LoopView) or loop.never_stops_early:
        return NOTHING_HERE
    outside, inside = Integers(ctx.opset), integers_of(loop, ctx.opset, any_rank=True)
    bounds = _bounds(loop, inside)
    limit = None if loop.limit is None else outside.scalar(loop.limit)
    if limit is not None and limit.number is not None and limit.number >= _UNBOUNDED:
        limit = None
    if bounds is None or (not bounds and limit is None):
        return NotApplicable("LOOP-CONDITION", "the condition depends on more than the step number", silent=True)
    starts = _starts(loop.condition, outside)
    fixed = _number(limit, bounds, starts)
    compared = [*(bound.room for bound in bounds), *(starts if isinstance(starts, list) else [])]
    rounded = [room.exact_to for room in compared if room.exact_to is not None]
    notes = []
    if rounded and (fixed is None or not counts_exactly(fixed, min(rounded))):
        if fixed is not None or min(rounded) < 1 << 24:
            return NotApplicable("LOOP-CONDITION", f"the condition compares in floating point, exact to {min(rounded)} only")
        if any(_may_cancel(room) for room in compared if room.exact_to is not None):
            detail = "the condition compares two numbers that are not known in floating point"
            return NotApplicable("LOOP-CONDITION", f"{detail}: they may be large, and near each other")
        notes = [f"the condition compares in floating point: assumed to be exact, which holds up to {min(rounded)} steps"]

    def edit() -> list[ir.Node]:
        build = ctx.builder()
        count = build.const(np.array(fixed, np.int64)) if fixed is not None else _emit(build, loop, limit, bounds, starts)
        build.insert_before(loop.node)
        run_for(loop, count, ctx)
        return [loop.node]

    return Patch("moved the condition, which counts steps, into the trip count", edit, tuple(notes))


def _may_cancel(room: AffineExpression) -> bool:
    """Return True if ``room`` may be a small difference of large numbers, which floats round."""
    free = [key for key in room.terms if key is not STEP and not isinstance(key, Dim)]
    return len(free) > 1 or any(room.factor(key) < 0 for key in free)


def _bounds(loop: LoopView, inside: Integers) -> list[_Bound] | None:
    bounds = []
    for part in _conjuncts(loop.condition_out):
        if part is loop.condition_in or const_scalar(part) is True:
            continue
        room = inside.positive_if_true(part)
        if room is None or room.const.size != 1:
            return None
        slope = -room.factor(STEP)
        if slope < 1:
            return None
        bounds.append(_Bound(room.reshaped(()).without(STEP), slope))
    return bounds


def _conjuncts(value: ir.Value | None) -> list[ir.Value | None]:
    """Return the distinct operands of the nested And nodes that compute ``value``, or ``value`` alone."""

    def sides(part: ir.Value | None) -> Sequence[ir.Value | None]:
        node = producer_of(part, *_CONJOINED)
        if node is None:
            return ()
        return node.inputs[::-1] if node.op_type == "And" else node.inputs[:1]

    return [part for part in postorder([value], sides) if not sides(part)]


def _starts(condition: ir.Value | None, outside: Integers) -> list[AffineExpression] | ir.Value | bool:
    """Return what is known of the initial condition.

    Returns:
        True or False if the value of the condition is known. A list of numbers if the condition is an And of comparisons: it is
        true if and only if all these numbers are at least 1. Otherwise, ``condition`` itself.
    """
    if condition is None:
        return True
    rooms = []
    for part in _conjuncts(condition):
        known = outside.truth_in_all_steps(part)
        room = outside.positive_if_true(part)
        if known is False:
            return False
        if known is None and (room is None or room.const.size != 1):
            return condition
        if known is None and room is not None:
            rooms.append(room.reshaped(()))
    return rooms or True


def _number(limit: AffineExpression | None, bounds: list[_Bound], starts: list[AffineExpression] | ir.Value | bool) -> int | None:
    """Return the trip count if it is a constant, else None."""
    if starts is False or (limit is not None and limit.number is not None and limit.number <= 0):
        return 0
    numbers = [] if limit is None else [limit.number]
    numbers += [None if bound.room.number is None else 1 + max(0, -(-bound.room.number // bound.slope)) for bound in bounds]
    known = [number for number in numbers if number is not None]
    return min(known) if starts is True and len(known) == len(numbers) else None


def _emit(
    b: Builder,
    loop: LoopView,
    limit: AffineExpression | None,
    bounds: list[_Bound],
    starts: list[AffineExpression] | ir.Value | bool,
) -> ir.Value:
    """Emit the trip count: the minimum of ``limit`` and all bounds that may be the smallest."""
    ends = [_end(bound) for bound in bounds]
    base = limit
    if base is None:
        base = next((end for end in ends if end is not None and _starts_below(starts, end)), None)
    rooms = starts if isinstance(starts, list) else []
    if base is not None:
        # if the base is 0 or less, there is no step; otherwise, the omitted bounds are at least as large as the base
        left = [bound for bound, end in zip(bounds, ends, strict=True) if end is None or not at_least(end - base, 0)]
        rooms = [room for room in rooms if not at_least(room - base, 0)]
        count = scalar_of(b, loop.limit) if base is limit and loop.limit is not None else emit(b, base)
    else:
        left, count = bounds[1:], _steps(b, bounds[0])
    for bound in left:
        count = smaller(b, count, _steps(b, bound))
    if isinstance(starts, ir.Value):
        count = b.op("Mul", count, scalar_of(b, starts))
    for room in rooms:
        count = b.op("Mul", count, b.op("Cast", exceeds(b, emit(b, room), b.const(0)), to=int(ir.DataType.INT64)))
    return count


def _end(bound: _Bound) -> AffineExpression | None:
    """Return the number of steps that ``bound`` allows, or None if this needs a division.

    A result of 0 or less means one step, because the body's condition is first checked after a step.
    """
    return bound.room + 1 if bound.slope == 1 else None


def _starts_below(starts: list[AffineExpression] | ir.Value | bool, end: AffineExpression) -> bool:
    """Return True if the initial condition is known to be false whenever ``end`` is 0 or less."""
    return isinstance(starts, list) and any(at_least(end - room, 0) for room in starts)


def _steps(b: Builder, bound: _Bound) -> ir.Value:
    room = emit(b, bound.room + (bound.slope - 1))
    if bound.slope != 1:
        room = b.op("Div", room, b.const(np.array(bound.slope, np.int64)))
    unit = b.const(np.array(1, np.int64))
    return larger(b, b.op("Add", room, unit), unit)


RULE = Rule("trip-count", "loop_form", "loop", check)
