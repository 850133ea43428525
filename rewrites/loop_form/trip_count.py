"""A condition that depends only on induction variables becomes part of the trip count.

    Loop(M, 0 < n, 0, h0) body(i, c, k, h) => (And(i + 1 < m, k + 1 < n), k + 1, f(h))
    ->    Loop(Min(M, m, n), true, 0, h0) body(i, c, k, h) => (c, k + 1, f(h))

Conditions: the body's condition is an And of comparisons. Each compares an affine expression of the step number (an induction
variable) with an integer known before the loop. The loop has a trip count, or the condition becomes false at some step.

If the And has other operands too, they remain the condition. The trip count is then a constant, the largest number of steps:

    Loop(, c0, h0) body(i, c, h) => (And(i + 1 < 200, g(h)), f(h))    ->    Loop(200, c0, h0) body(i, c, h) => (g(h), f(h))

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
from rewrites.scan_form.step_counts import set_trip_count

__all__ = ["RULE", "check"]


_UNBOUNDED = 1 << 62
_CONJOINED = frozenset({"And", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


@dataclass(frozen=True)
class _Bound:
    """A comparison in the condition. It is true after step t if ``margin - slope * t`` is at least 1.

    ``slope``: an integer of at least 1.
    """

    margin: AffineExpression
    slope: int


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the condition only compares induction variables with known integers."""
    if not isinstance(loop, LoopView) or loop.never_stops_early:
        return NOTHING_HERE
    outside, inside = Integers(ctx.opset), integers_of(loop, ctx.opset, any_rank=True)
    bounds, others = _bounds_and_others(loop, inside)
    limit = None if loop.limit is None else outside.scalar(loop.limit)
    if limit is not None and limit.number is not None and limit.number >= _UNBOUNDED:
        limit = None
    initial = True if others else _initial_condition(loop.condition, outside)
    constant_count = _constant_trip_count(limit, bounds, initial) if bounds or limit is not None else None
    if (not bounds and (others or limit is None)) or (others and constant_count is None):
        return NotApplicable("LOOP-CONDITION", "the condition depends on more than the step number", silent=True)
    compared = [*(bound.margin for bound in bounds), *(initial if isinstance(initial, list) else [])]
    rounded = [margin.exact_to for margin in compared if margin.exact_to is not None]
    notes = []
    if rounded and (constant_count is None or not counts_exactly(constant_count, min(rounded))):
        if constant_count is not None or min(rounded) < 1 << 24:
            return NotApplicable("LOOP-CONDITION", f"the condition compares in floating point, exact to {min(rounded)} only")
        if any(_may_cancel(margin) for margin in compared if margin.exact_to is not None):
            detail = "the condition compares two numbers that are not known in floating point"
            return NotApplicable("LOOP-CONDITION", f"{detail}: they may be large, and near each other")
        notes = [f"the condition compares in floating point: assumed to be exact, which holds up to {min(rounded)} steps"]

    def edit() -> list[ir.Node]:
        build = ctx.builder()
        count = (
            build.const(np.array(constant_count, np.int64))
            if constant_count is not None
            else _emit_trip_count(build, loop, limit, bounds, initial)
        )
        build.insert_before(loop.node)
        set_trip_count(loop, count, ctx, others)
        return [loop.node]

    whole = "moved the condition, which counts steps, into the trip count"
    return Patch(f"found that the loop runs at most {constant_count} steps" if others else whole, edit, tuple(notes))


def _may_cancel(margin: AffineExpression) -> bool:
    """Return True if ``margin`` may be a small difference of large numbers, which floats round."""
    free = [key for key in margin.terms if key is not STEP and not isinstance(key, Dim)]
    return len(free) > 1 or any(margin.factor(key) < 0 for key in free)


def _bounds_and_others(loop: LoopView, inside: Integers) -> tuple[list[_Bound], list[ir.Value]]:
    """Return the bounds in the condition of ``loop``, and the other operands of its And."""
    bounds, others = [], []
    for part in _conjuncts(loop.condition_out):
        if part is loop.condition_in or const_scalar(part) is True:
            continue
        margin = inside.positive_if_true(part)
        slope = 0 if margin is None or margin.const.size != 1 else -margin.factor(STEP)
        if margin is not None and slope >= 1:
            bounds.append(_Bound(margin.reshaped(()).without(STEP), slope))
        elif part is not None:
            others.append(part)
    return bounds, others


def _conjuncts(value: ir.Value | None) -> list[ir.Value | None]:
    """Return the distinct operands of the nested And nodes that compute ``value``, or ``value`` alone."""

    def sides(part: ir.Value | None) -> Sequence[ir.Value | None]:
        node = producer_of(part, *_CONJOINED)
        if node is None:
            return ()
        return node.inputs[::-1] if node.op_type == "And" else node.inputs[:1]

    return [part for part in postorder([value], sides) if not sides(part)]


def _initial_condition(condition: ir.Value | None, outside: Integers) -> list[AffineExpression] | ir.Value | bool:
    """Return what is known about the initial condition.

    Returns:
        True or False if the value of the condition is known. A list of numbers if the condition is an And of comparisons: it is
        then true if and only if all these numbers are at least 1. Otherwise, ``condition`` itself.
    """
    if condition is None:
        return True
    margins = []
    for part in _conjuncts(condition):
        known = outside.truth_in_all_steps(part)
        margin = outside.positive_if_true(part)
        if known is False:
            return False
        if known is None and (margin is None or margin.const.size != 1):
            return condition
        if known is None and margin is not None:
            margins.append(margin.reshaped(()))
    return margins or True


def _constant_trip_count(
    limit: AffineExpression | None, bounds: list[_Bound], initial: list[AffineExpression] | ir.Value | bool
) -> int | None:
    """Return the trip count if it is a constant, else None. ``initial``: see ``_initial_condition``."""
    if initial is False or (limit is not None and limit.number is not None and limit.number <= 0):
        return 0
    numbers = [] if limit is None else [limit.number]
    numbers += [None if bound.margin.number is None else 1 + max(0, -(-bound.margin.number // bound.slope)) for bound in bounds]
    known = [number for number in numbers if number is not None]
    return min(known) if initial is True and len(known) == len(numbers) else None


def _emit_trip_count(
    b: Builder,
    loop: LoopView,
    limit: AffineExpression | None,
    bounds: list[_Bound],
    initial: list[AffineExpression] | ir.Value | bool,
) -> ir.Value:
    """Emit the trip count: the minimum of ``limit`` and all bounds that may be the smallest."""
    ends = [_undivided_steps(bound) for bound in bounds]
    base = limit
    if base is None:
        base = next((end for end in ends if end is not None and _is_initially_false_below(initial, end)), None)
    margins = initial if isinstance(initial, list) else []
    if base is not None:
        # if the base is 0 or less, there is no step; otherwise, the omitted bounds are at least as large as the base
        remaining = [bound for bound, end in zip(bounds, ends, strict=True) if end is None or not at_least(end - base, 0)]
        margins = [margin for margin in margins if not at_least(margin - base, 0)]
        count = scalar_of(b, loop.limit) if base is limit and loop.limit is not None else emit(b, base)
    else:
        remaining, count = bounds[1:], _emit_steps(b, bounds[0])
    for bound in remaining:
        count = smaller(b, count, _emit_steps(b, bound))
    if isinstance(initial, ir.Value):
        count = b.op("Mul", count, scalar_of(b, initial))
    for margin in margins:
        count = b.op("Mul", count, b.op("Cast", exceeds(b, emit(b, margin), b.const(0)), to=int(ir.DataType.INT64)))
    return count


def _undivided_steps(bound: _Bound) -> AffineExpression | None:
    """Return the number of steps that ``bound`` allows, or None if a division is necessary.

    A result of 0 or less means one step, because the loop checks the condition of its body only after a step.
    """
    return bound.margin + 1 if bound.slope == 1 else None


def _is_initially_false_below(initial: list[AffineExpression] | ir.Value | bool, end: AffineExpression) -> bool:
    """Return True if the initial condition is known to be false whenever ``end`` is 0 or less."""
    return isinstance(initial, list) and any(at_least(end - margin, 0) for margin in initial)


def _emit_steps(b: Builder, bound: _Bound) -> ir.Value:
    """Emit the number of steps that ``bound`` allows, at least 1."""
    margin = emit(b, bound.margin + (bound.slope - 1))
    if bound.slope != 1:
        margin = b.op("Div", margin, b.const(np.array(bound.slope, np.int64)))
    unit = b.const(np.array(1, np.int64))
    return larger(b, b.op("Add", margin, unit), unit)


RULE = Rule("trip-count", "loop_form", "loop", check)
