"""Compute gated linear states for all steps at once, by a few operators.

    Scan(s0, as, bs) body(s, a, b) => (s2 = Add(Mul(a, s), b), y = s2)
    ->    S = blocks of steps (``scans/decay.py``);  If (S is finite) then S else the original Scan

minGRU, SRU and state space models have such states. The factor ``a`` is the decay and the summand ``b`` is the drive. A state
without a drive is a running product, for which only opset 26 has an operator. The If keeps the loop in these cases:

* A state is not finite, or exceeds 1e18 (1e150 in double). Then a product of several decays may have overflowed or become 0,
  although no value in the loop does.
* A state is 0, because the sign of this zero may differ from the loop. Exception: The signs agree if the body adds the drive after
  all products and all decays are positive.
* A state without a drive, or its initial value, is closer to 0 than 1e-18 (1e-150 in double), or the initial value exceeds 1e18.
  Then a product of several decays may have lost digits or overflowed.
* A decay is a sum of several terms and is not between -4 and 4. For example, ``s + z * (h - s)`` is ``(1 - z) * s + z * h``, so its
  decay is the sum ``1 - z``.

Otherwise the results differ from the loop by rounding only, because sums have another order.

Conditions:

* Each state depends on no other state. Decays and drives do not depend on states.
* The states are float or double.
* The trip count or the sizes of a row are known. If a state has no drive, the trip count is known.
* Each scan output is the value of a state before or after the step.
* By the cost estimate, blocks are at least a fifth faster than the loop.
* The target runs Scan and If.
* The loop is not compiled to a plan.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import rank_of, static_dims, through_identity
from rewrites.loops import Loop, ScanView, State
from rewrites.ops.versions import concat, reshape, reversed_if, unsqueeze
from rewrites.recurrences.closed_form import ClosedForm, Form, least_steps, over_budget, passes_ns, plain_scan, slower_than_loop
from rewrites.recurrences.fallback import all_finite_and_bounded, all_of
from rewrites.recurrences.linear.decay_reader import DecayReader, Drive, NotLinear, Path, read_states
from rewrites.recurrences.linear.step_rows import decays_of, stack_of
from rewrites.recurrences.results import bind_state
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scans.associative_scan import AssociativeScan, StackEnds
from rewrites.scans.blocks import reshape_with_axes_of
from rewrites.scans.decay import ANY_STEPS, Radices, choose_radices, decayed_states

__all__ = ["RULE", "check"]

_LARGEST_SHARE = 4
_LARGEST = {ir.DataType.FLOAT: 1e18, ir.DataType.DOUBLE: 1e150}
_NEAR, _PASSES = 1 << 19, (14, 9, 12)
"""The size of a stack in bytes up to which all stacks fit the second-level cache, and the passes over stacks (``passes_ns``)."""
_AROUND = 20
"""The number of operators before and after the blocks, including those of the If."""
_FIRST = 16
"""The least number of steps for which blocks may pay off, if the number of steps is unknown."""


@dataclass(frozen=True)
class _GatedState:
    """A state with its paths and its drive (see ``decay_reader``); None if it has no drive.

    ``is_plain``: True if the body adds the drive after all products with the state.
    """

    state: State
    paths: tuple[Path, ...]
    drive: Drive | ir.Value | None
    is_plain: bool


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return the patch for a loop if all its states are gated."""
    scan = plain_scan(loop, ctx, since.CUM_SUM)
    states = NOTHING_HERE if scan is None else read_states(scan, ctx.opset, _read)
    if scan is None or isinstance(states, NotApplicable):
        return states if isinstance(states, NotApplicable) else NOTHING_HERE
    radices = choose_radices(scan.steps) if isinstance(scan.steps, int) else ANY_STEPS
    least = least_steps(scan, ctx, _FIRST, lambda count: _too_slow(scan, ANY_STEPS, count, ctx) is None)
    names = ", ".join(f"'{state.inner.name}'" for state in scan.states)
    return ClosedForm(
        scan,
        f"computed the gated state {names} for all {scan.steps} steps at once, in {len(radices.steps)} levels",
        lambda count, context: _too_slow(scan, choose_radices(count), count, context),
        partial(_write_blocks, states, radices),
        None if least is None or any(each.drive is None for each in states) else (least, None),
    ).patch(ctx)


def _read(state: State, reader: DecayReader) -> _GatedState:
    """Return ``state`` with its paths and drive.

    Raise NotLinear in these cases:

    * The state is not gated, that is, none of its factors changes from step to step.
    * The rank of the state is unknown, or its type is not supported.
    """
    linear = reader.next_value_of(state)
    known = rank_of(state.inner) is not None and state.inner.dtype in _LARGEST
    if not known or not any(path.factors for path in linear.paths):
        raise NotLinear
    return _GatedState(state, linear.paths, linear.drive, _multiplies_first(state, reader))


def _multiplies_first(state: State, reader: DecayReader) -> bool:
    """Return True if the body first multiplies the state, and then adds a value that depends on no state."""
    value, sums = through_identity(state.next), 0
    while value is not None and value is not state.inner:
        node = value.producer()
        if node is None:
            return False
        sums += node.op_type in ("Add", "Sub")
        bound = [operand for operand in node.inputs if operand is not None and not reader.is_free(operand)]
        if len(bound) != 1 or (node.op_type in ("Add", "Sub")) != (sums == 1 and value is through_identity(state.next)):
            return False
        value = through_identity(bound[0])
    return sums == 1


def _too_slow(loop: ScanView, radices: Radices, steps: int, ctx: Context) -> NotApplicable | None:
    sizes, costs = StepSizes.of(loop, ctx), ctx.options.costs
    step = sum(sizes.step_bytes(state.inner) for state in loop.states)
    operators = len(loop.states) * (radices.operators + _AROUND)
    form_ns = passes_ns(costs, operators, steps * step, _NEAR, _PASSES)
    return over_budget("the states of all steps take", 6 * steps * step, ctx) or slower_than_loop(
        "COST-LINEAR", f"{steps} steps with states of {step} bytes", costs.loop_ns(steps, len(loop.body), step), form_ns
    )


def _write_blocks(
    gated: list[_GatedState], radices: Radices, stacks: Stacks, inside: Builder, ctx: Context
) -> Form | NotApplicable:
    loop, build, sizes = stacks.loop, stacks.build, StepSizes.of(stacks.loop, ctx)
    results, flags = dict[ir.Value, ir.Value](), list[ir.Value]()
    for each in gated:
        state = each.state
        drives = None if each.drive is None else stack_of(each.drive, state, stacks, sizes)
        if isinstance(drives, NotApplicable):
            return drives
        decays = decays_of(each.paths, state, stacks, sizes)
        if isinstance(decays, NotApplicable):
            return decays
        if drives is None:
            states = _products(state, decays, stacks)
        else:
            states = _states(state, decays, drives, radices, stacks)
        flags.append(_equals_loop(build, each, decays, states, ctx))
        lead = [loop.steps if isinstance(loop.steps, int) else -1]
        results |= bind_state(
            inside, loop, state, reshape_with_axes_of(inside, states, lead, state.initial, static_dims(state.inner))
        )
    return results, all_of(build, flags)


def _products(state: State, decays: ir.Value, stacks: Stacks) -> ir.Value:
    """Return the states after each step, shaped [steps, elements], if they have no drive."""
    build, steps, initial = stacks.build, stacks.loop.steps, unsqueeze(stacks.build, state.initial, [0])
    assert isinstance(steps, int)
    if static_dims(decays) is None or static_dims(decays) != (steps, *(static_dims(state.initial) or ())):
        sizes = concat(build, [build.const([steps]), build.op("Shape", state.initial)], 0)
        decays = build.op("Expand", decays, sizes)
    scan = AssociativeScan(StackEnds(build, False), state.initial, lambda earlier, later: build.op("Mul", earlier, later))
    return reshape(build, scan.prefixes(reversed_if(build, decays, stacks.backwards), steps, initial), [steps, -1])


def _states(state: State, decays: ir.Value, drives: ir.Value, radices: Radices, stacks: Stacks) -> ir.Value:
    """Return the states after each step, shaped [steps, elements].

    ``decays`` and ``drives`` hold the decays and drives of all steps. ``radices``: the block sizes.
    """
    build, steps = stacks.build, stacks.loop.steps
    if static_dims(decays) is None or static_dims(decays) != static_dims(drives):
        decays = build.op("Expand", decays, build.op("Shape", drives))
    ordered = [reversed_if(build, value, stacks.backwards) for value in (decays, drives)]
    sizes = [steps, -1] if isinstance(steps, int) else [-1, math.prod(static_dims(state.inner) or ())]
    decays, drives = (reshape(build, value, sizes) for value in ordered)
    initial = reshape(build, state.initial, [1, -1] if isinstance(steps, int) else sizes)
    return decayed_states(build, decays, drives, initial, radices.steps, steps if isinstance(steps, int) else stacks.steps)


def _equals_loop(build: Builder, gated: _GatedState, decays: ir.Value, states: ir.Value, ctx: Context) -> ir.Value:
    """Return a flag that is true only if the loop computes the same states, except for rounding.

    Args:
        decays: The decays of all steps.
        states: The states of all steps, computed in blocks.
    """
    kind = gated.state.inner.dtype
    assert kind is not None
    dtype = np.dtype(kind.numpy())
    initial = [] if gated.drive is not None else [gated.state.initial]
    flag = all_finite_and_bounded(build, [states, *initial], _LARGEST[kind], dtype)
    zero = build.const(np.array(0, dtype))
    if gated.drive is None:
        least = [build.op("ReduceMin", build.op("Abs", value), keepdims=0) for value in (states, *initial)]
        return build.op("And", flag, build.op("Less", build.const(np.array(1 / _LARGEST[kind], dtype)), build.op("Min", *least)))
    if len(gated.paths) > 1 or gated.paths[0].is_sum:
        largest = build.op("ReduceMax", build.op("Abs", decays), keepdims=0)
        flag = build.op("And", flag, build.op("Less", largest, build.const(np.array(_LARGEST_SHARE, dtype))))
    if not ctx.options.fast_math:
        have_signs = build.op("Less", zero, build.op("ReduceMin", build.op("Abs", states), keepdims=0))
        if gated.is_plain:
            have_signs = build.op("Or", have_signs, build.op("Less", zero, build.op("ReduceMin", decays, keepdims=0)))
        flag = build.op("And", flag, have_signs)
    return flag


_COMPUTES = "linear recurrence s' = a * s + b, with an a of its own in each step"
RULE = Rule("gated-recurrence", "recurrence", "loop", check, recognises=True, computes=_COMPUTES)
