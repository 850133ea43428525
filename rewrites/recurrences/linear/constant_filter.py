"""A loop whose states are made of all of them by constant numbers, such as a filter, becomes products with what blocks of steps do.

    Scan(s1, s2, xs) body => (y = b0 x + s1, s1 = b1 x - a1 y + s2, s2 = b2 x - a2 y)
    ->    If (all numbers are finite) then Y = MatMul([X, Z], V) ... (``recurrences/linear/filtered.py``) else the Scan as it was

A product of a block of steps multiplies what comes later by 0, which is 0 for numbers alone. So the loop stays, in the other branch
of an If, for what is infinite, not a number, or so large that a sum might overflow; and for -0, where a zero of that sign could
reach a result. Sums come in another order, and products of constants are one constant; nothing else is different.

For a number of steps that is not known the blocks are as long whatever it is, and a Scan goes over blocks of them
(``recurrences/linear/any_steps.py``); an If around it all keeps the loop for fewer steps than it pays for.

Conditions: the next states and the scan outputs are sums of states, of what does not depend on the states, and of constants,
times constants, of float or double: either constants of one number, and all else of one shape, or constants of any shape,
matrices among them, and few states of known size, as in a Kalman filter with a constant gain; powers of the matrix of the states
do not grow over the steps by more than ``_MOST``; the trip count or the sizes of a row are known; it is faster than the loop by a
fifth; the target runs Scan and If. States that each decay alone are left to ``linear-recurrence``, which needs no If, where their
stacks are known to leave the processor's second cache, and to ``cumulative`` where they only add up. A loop that is to be
compiled stays, where it has a plan.
"""

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.fission.stackable import not_plain
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.graph.dims import same
from rewrites.graph.values import const_array, static_dims
from rewrites.loops import Loop, LoopView, ScanView
from rewrites.ops.versions import turned
from rewrites.recurrences.linear.dense import Dense
from rewrites.recurrences.linear.drive_rows import put_stacks
from rewrites.recurrences.linear.filter_results import filtered
from rewrites.recurrences.linear.filtered import block_length
from rewrites.recurrences.linear.impulses import reach
from rewrites.recurrences.linear.levels import least_steps, steps_unknown
from rewrites.recurrences.linear.system import Followed, System
from rewrites.recurrences.linear.zeros import gives_negative_zeros
from rewrites.recurrences.narrow_or_loop import at_once_if_narrow
from rewrites.recurrences.or_loop import are_plain, is_kept_loop, put_under_if, put_under_ifs
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule, is_to_be_compiled

__all__ = ["RULE", "check"]

_TYPES = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
_MOST = 1e9
_LARGEST = {4: (1e18, 1e37), 8: (1e150, 1e306)}
"""Of numbers of so many bytes: what may be squared and summed up, and what no sum may come to."""
_OPERATORS, _MORE_BLOCKS, _EACH = 6, 8, 3
"""Those of one block and of the If, of more blocks besides, and of what asks each input and initial state whether it is finite."""
_ANY_STEPS = 20
"""Those besides, where the number of steps is not known."""
_FIRST, _LONGEST = 8, 1 << 17
"""From how many steps on blocks may pay, and beyond how many the loop is kept; where their number is not known."""
_OF_MATRICES = 14
_NEAR = 1 << 18
"""Bytes of a stack that stays in the processor's second cache with what is made of it."""


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """See whether the loop is a system of constants."""
    if isinstance(loop, LoopView) or not loop.states or ctx.opset < since.CUM_SUM or not_plain(loop, ctx) is not None:
        return NOTHING_HERE
    kinds = {state.inner.dtype for state in loop.states} | {scan.inner.dtype for scan in loop.scan_inputs}
    if is_kept_loop(loop, ctx) or not kinds <= _TYPES or len(kinds) != 1:
        return NOTHING_HERE
    reader: Followed | Dense = Followed(loop, ctx.opset)
    system = reader.system()
    if (system is None or not _is_alike(system)) and Dense.may_be(loop):
        reader = Dense(loop, ctx.opset)
        dense = reader.system()
        system, reader = (dense, reader) if dense is not None else (system, Followed(loop, ctx.opset))
    if system is None or not system.inputs or (_decay_alone(system) and not _is_near(loop, system, ctx)):
        return NOTHING_HERE
    if {value.dtype for value in system.inputs} != kinds:
        return NOTHING_HERE  # an output that no state has a part in, such as a flag, leaves the loop first
    return at_once_if_narrow(
        loop, lambda context: _filtered(loop, system, reader, context), lambda context: _unprofitable(loop, system, context), ctx
    )


def _unprofitable(loop: ScanView, system: System, ctx: Context) -> NotApplicable | None:
    refusal = _unfit(loop, system, ctx)
    if refusal is None and _decay_alone(system) and not _is_near(loop, system, ctx):
        return NOTHING_HERE
    return refusal


def _is_alike(system: System) -> bool:
    """Whether states, inputs and outputs are surely of one shape."""
    one = system.states[0].inner
    values = [value for state in system.states for value in (state.inner, state.initial, state.next)]
    values += [*system.inputs, *(output.inner for output in system.outputs)]
    return all(same(value.shape, one.shape) for value in values)


def _decay_alone(system: System) -> bool:
    """Whether each state only decays, or is only added to."""
    decays = np.diag(system.step)
    return not (system.step - np.diag(decays)).any() and bool(((decays > 0) & (decays <= 1)).all())


def _is_near(loop: ScanView, system: System, ctx: Context) -> bool:
    """Whether stacks of decaying states stay in the cache; not where a state only adds up."""
    sizes = StepSizes.of(loop, ctx)
    step = sum(sizes.step(state.inner) for state in system.states)
    return not (np.diag(system.step) == 1).any() and (not isinstance(loop.steps, int) or loop.steps * step <= _NEAR)


def _unfit(loop: ScanView, system: System, ctx: Context) -> NotApplicable | None:
    """Return a reason where the loop is to stay."""
    if system.is_elementwise and not _is_alike(system):
        return NotApplicable("LINEAR-SHAPE", f"what '{system.states[0].inner.name}' is made of has not surely one shape")
    sizes = StepSizes.of(loop, ctx)
    steps, step = loop.steps, _step_bytes(system, sizes)
    if isinstance(steps, int) and steps < 1:
        return NOTHING_HERE
    if not isinstance(steps, int) and (_least(loop, system, sizes) is None or not _is_row_known(system)):
        return _steps_unknown(loop, system, sizes)
    if not ctx.options.target.loops or "If" not in ctx.options.target.control_flow:
        return NotApplicable("LINEAR-CORNERS", "a target without Scan and If could not keep the loop for what is not finite")
    if is_to_be_compiled(loop, ctx):
        return NotApplicable("COST-LINEAR", "the plan of the loop, which is to be compiled, is faster than blocks of steps")
    if not isinstance(steps, int):
        return None
    most, limit = 4 * step * steps, ctx.options.memory_budget
    if most > limit:
        return NotApplicable("MEMORY-BUDGET", f"the states of all steps take about {most} bytes at a time (limit {limit})")
    return _too_slow(loop, system, sizes, steps)


def _steps_unknown(loop: ScanView, system: System, sizes: StepSizes) -> NotApplicable:
    return steps_unknown(lambda count: _too_slow(loop, system, sizes, count) is None)


def _step_bytes(system: System, sizes: StepSizes) -> int:
    return sum(sizes.step(value) for value in (*(state.inner for state in system.states), *system.inputs))


def _is_row_known(system: System) -> bool:
    return all((dims := static_dims(state.inner)) is not None and 0 not in dims for state in system.states)


def _least(loop: ScanView, system: System, sizes: StepSizes) -> int | None:
    """Return from how many steps on blocks pay, where their number is not known; None where they do not for the usual number."""
    usual = sizes.steps if sizes.steps_known else None
    return least_steps(usual, _FIRST, lambda count: _too_slow(loop, system, sizes, count) is None)


def _too_slow(loop: ScanView, system: System, sizes: StepSizes, steps: int) -> NotApplicable | None:
    step = _step_bytes(system, sizes)
    rows = sizes.elements(system.states[0].inner) if system.is_elementwise else 1
    (given, made), states = system.through.shape, len(system.step)
    length, costs = block_length(steps, max(states, given, made)), sizes.options.costs
    in_loop = costs.loop_ns(steps, len(loop.body), step)
    products = steps * rows * ((length * given + states) * made + given * states) * 2 * costs.product
    moved = steps * step * costs.near_byte * (6 if rows == 1 else 12)
    asked = len(system.inputs) + sum(const_array(state.initial) is None for state in system.states)
    operators = _OPERATORS + _EACH * asked + (_MORE_BLOCKS if length < steps else 0)
    operators += 0 if isinstance(loop.steps, int) else _ANY_STEPS
    blocks = (operators if system.is_elementwise else _OF_MATRICES) * costs.operator + products + moved
    if blocks * 1.2 < in_loop:
        return None
    took = f"take about {in_loop / 1000:.0f} µs in the loop and {blocks / 1000:.0f} µs without"
    return NotApplicable("COST-LINEAR", f"{steps} steps with states of {step} bytes {took}")


def _largest(system: System, steps: int, dtype: np.dtype) -> float | None:
    """Return how large numbers may be for which no sum overflows; None where states grow too much."""
    total = reach(system.step, steps)
    states = (np.abs(system.drive).sum(0) + np.abs(system.more) + 1) @ total
    count = len(system.step)
    with np.errstate(all="ignore"):
        gain = max(states.max(), (states @ np.abs(system.largest[:count]) + np.abs(system.largest[count:]).sum(0)).max(initial=0))
    squared, summed = _LARGEST[dtype.itemsize]
    return min(squared, summed / (gain * steps)) if gain < _MOST else None


def _filtered(loop: ScanView, system: System, reader: Followed | Dense, ctx: Context) -> Patch | NotApplicable:
    steps, kind = loop.steps, system.states[0].inner.dtype
    assert kind is not None
    dtype = np.dtype(kind.numpy())
    largest = _largest(system, steps if isinstance(steps, int) else _LONGEST, dtype)
    names = ", ".join(f"'{state.inner.name}'" for state in system.states)
    if largest is None and not isinstance(steps, int):
        return _steps_unknown(loop, system, StepSizes.of(loop, ctx))
    if largest is None:
        return NotApplicable("LINEAR-GROWTH", f"what {names} hold grows too much over {steps} steps")
    given = {state.inner: const_array(state.initial) for state in system.states}
    if any(array is not None and not (np.abs(array) <= largest).all() for array in given.values()):
        return NotApplicable("LINEAR-CORNERS", f"an initial value of {names} is too large, or not finite")
    is_clean = not ctx.options.fast_math and gives_negative_zeros(loop, system, reader, given, is_clean=False)
    if is_clean and gives_negative_zeros(loop, system, reader, given, is_clean=True):
        return NotApplicable("LINEAR-CORNERS", f"zeros of {names} could have another sign, which fast_math allows")
    build, instead = ctx.builder(), ctx.builder()
    stacks, sizes = Stacks(loop, build), StepSizes.of(loop, ctx)
    refusal = put_stacks(system.inputs, stacks, sizes)
    if refusal is not None:
        build.discard()
        return refusal
    inputs = [stacks.full(value) for value in system.inputs]
    initial = [state.initial for state in system.states if const_array(state.initial) is None]
    condition = are_plain(build, [*inputs, *initial], largest, dtype, are_no_minus_zeros=is_clean)
    any_steps = None if isinstance(steps, int) else stacks.steps
    found = filtered(loop, system, [turned(instead, value, stacks.backwards) for value in inputs], instead, any_steps, ctx)
    what = f"computed {names} for all {steps} steps at once, by products with the responses of blocks of steps"
    why = "an If keeps the loop for what is not finite"
    if any_steps is None:
        return Patch(f"{what}; {why}", lambda: [put_under_if(loop, ctx, build, condition, instead, found)])
    least = _least(loop, system, sizes)
    assert least is not None
    return Patch(
        f"{what}; {why}",
        lambda: put_under_ifs(loop, ctx, least, _LONGEST, build, condition, instead, found),
        (f"by an estimate faster from {least} steps on; a run that has fewer goes step by step",),
    )


RULE = Rule("constant-filter", "recurrence", "loop", check, recognises=True)
