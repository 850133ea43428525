"""A loop whose states are multiplied by something, and take something up, becomes a few operators on all steps at once.

    Scan(s0, as, bs) body(s, a, b) => (s2 = Add(Mul(a, s), b), y = s2)
    ->    S = blocks of steps (``scans/varying_decay.py``);  If (S is finite) then S else the Scan as it was

Gated linear recurrences such as minGRU, SRU and the core of a state space model are of this kind. Products of decays may overflow,
or be 0, when the loop does not, and what is not finite then reaches other steps. So the loop stays, in the other branch of an If,
for states that are not finite, or beyond 1e18 (1e150 in double). It also stays for states that are 0, unless all decays are above 0
and multiply before anything is added: zeros then have the signs of the loop. Sums come in another order, and ``s + z * (h - s)`` is
``(1 - z) * s + z * h`` for factors between -4 and 4; nothing else is different.

Conditions: every state is read by itself alone; what it is multiplied by, and what is added, does not depend on states; float or
double; the trip count or the sizes of a row are known; scan outputs are the states, before or after each step; it is faster than
the loop by a fifth; the target runs Scan and If. A loop that is to be compiled stays, if it has a plan.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import rank_of, static_dims, through_identity
from rewrites.loops import Loop, ScanView, State
from rewrites.ops.versions import concat, reshape, slice_axis, squeeze, turned, unsqueeze
from rewrites.recurrences.closed_form import (
    ClosedForm,
    least_steps,
    over_budget,
    passes_ns,
    plain_scan,
    slower_than_loop,
)
from rewrites.recurrences.fallback import WrittenForm, all_finite_and_bounded
from rewrites.recurrences.linear.decay_reader import DecayReader, Drive, NotLinear, Path, gives_states_alone
from rewrites.recurrences.linear.step_rows import decays_of, stack_of
from rewrites.recurrences.results import bind_state
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scans.blocks import Radices
from rewrites.scans.varying_decay import ANY_STEPS, choose_radices, decayed_states

__all__ = ["RULE", "check"]

_LARGEST_SHARE = 4
_LARGEST = {ir.DataType.FLOAT: 1e18, ir.DataType.DOUBLE: 1e150}
_END = 2**63 - 1
_NEAR, _PASSES = 1 << 19, (14, 9, 12)
"""Bytes of a stack up to which all stacks stay in the processor's second cache, and the passes over stacks (``passes_ns``)."""
_AROUND = 20
"""Operators before and after the blocks, those of the If among them."""
_FIRST = 16
"""From how many steps on blocks may pay, if their number is unknown."""


@dataclass(frozen=True)
class _GatedState:
    """One state: its paths and its drive, which ``is_plain`` if it is added once, after all products."""

    state: State
    paths: tuple[Path, ...]
    drive: Drive | ir.Value
    is_plain: bool


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return the patch for a loop all of whose states are gated."""
    scan = plain_scan(loop, ctx, since.CUM_SUM)
    if scan is None:
        return NOTHING_HERE
    try:
        reader = DecayReader(scan, ctx.opset)
        states = [_read(state, reader) for state in scan.states]
    except NotLinear as refusal:
        return refusal.reason or NOTHING_HERE
    if not gives_states_alone(scan):
        return NOTHING_HERE
    radices = choose_radices(scan.steps) if isinstance(scan.steps, int) else ANY_STEPS
    least, names = _least(scan, ctx), ", ".join(f"'{state.inner.name}'" for state in scan.states)
    return ClosedForm(
        scan,
        f"computed the gated state {names} for all {scan.steps} steps at once, in {len(radices.steps)} levels",
        lambda count, context: _unprofitable(scan, choose_radices(count), count, context),
        lambda context: _in_blocks(scan, states, radices, context),
        None if least is None else (least, None),
    ).patch(ctx)


def _read(state: State, reader: DecayReader) -> _GatedState:
    """Return how ``state`` is gated; raises NotLinear."""
    linear = reader.own(state)
    known = rank_of(state.inner) is not None and state.inner.dtype in _LARGEST
    if not known or linear.drive is None or not any(path.factors for path in linear.paths):
        raise NotLinear
    return _GatedState(state, linear.paths, linear.drive, _multiplies_first(state, reader))


def _multiplies_first(state: State, reader: DecayReader) -> bool:
    """Return True if what is free of the state is added to it once, after all products."""
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


def _least(loop: ScanView, ctx: Context) -> int | None:
    """Return from how many steps on blocks pay if their number is unknown; None if they do not, or need it."""
    if isinstance(loop.steps, int) or any((dims := static_dims(state.inner)) is None or 0 in dims for state in loop.states):
        return None
    sizes = StepSizes.of(loop, ctx)
    usual = sizes.steps if sizes.steps_known else None
    return least_steps(usual, _FIRST, lambda count: _unprofitable(loop, ANY_STEPS, count, ctx) is None)


def _unprofitable(loop: ScanView, radices: Radices, steps: int, ctx: Context) -> NotApplicable | None:
    sizes, costs = StepSizes.of(loop, ctx), ctx.options.costs
    step = sum(sizes.step(state.inner) for state in loop.states)
    operators = len(loop.states) * (radices.operators + _AROUND)
    form_ns = passes_ns(costs, operators, steps * step, _NEAR, _PASSES)
    return over_budget("the states of all steps take", 6 * steps * step, ctx) or slower_than_loop(
        "COST-LINEAR", f"{steps} steps with states of {step} bytes", costs.loop_ns(steps, len(loop.body), step), form_ns
    )


def _in_blocks(loop: ScanView, gated: Sequence[_GatedState], radices: Radices, ctx: Context) -> WrittenForm | NotApplicable:
    build, inside = ctx.builder(), ctx.builder()
    stacks, sizes = Stacks(loop, build), StepSizes.of(loop, ctx)
    results, flags = dict[ir.Value, ir.Value](), list[ir.Value]()
    for each in gated:
        drives = stack_of(each.drive, each.state, stacks, sizes)
        decays = decays_of(each.paths, each.state, stacks, sizes) if isinstance(drives, ir.Value) else drives
        if isinstance(drives, NotApplicable) or isinstance(decays, NotApplicable):
            build.discard()
            return drives if isinstance(drives, NotApplicable) else decays if isinstance(decays, NotApplicable) else NOTHING_HERE
        states = _states(build, each, decays, drives, radices, stacks)
        flags.append(_are_fine(build, each, decays, states, ctx))
        results |= _results(inside, loop, each.state, states)
    condition = flags[0]
    for flag in flags[1:]:
        condition = build.op("And", condition, flag)
    return WrittenForm(build, results, (condition, inside))


def _states(build: Builder, gated: _GatedState, decays: ir.Value, drives: ir.Value, radices: Radices, stacks: Stacks) -> ir.Value:
    """Return the states after each step, [steps, numbers]."""
    if static_dims(decays) is None or static_dims(decays) != static_dims(drives):
        decays = build.op("Expand", decays, build.op("Shape", drives))
    ordered = [turned(build, value, stacks.backwards) for value in (decays, drives)]
    steps = stacks.loop.steps
    sizes = [steps, -1] if isinstance(steps, int) else [-1, math.prod(static_dims(gated.state.inner) or ())]
    decays, drives = (reshape(build, value, sizes) for value in ordered)
    initial = reshape(build, gated.state.initial, [1, -1] if isinstance(steps, int) else sizes)
    return decayed_states(build, decays, drives, initial, radices.steps, steps if isinstance(steps, int) else stacks.steps)


def _are_fine(build: Builder, gated: _GatedState, decays: ir.Value, states: ir.Value, ctx: Context) -> ir.Value:
    """Return the flag that the loop computes the same ``states``."""
    kind = gated.state.inner.dtype
    assert kind is not None
    dtype = np.dtype(kind.numpy())
    flag = all_finite_and_bounded(build, [states], _LARGEST[kind], dtype)
    zero = build.const(np.array(0, dtype))
    if len(gated.paths) > 1 or gated.paths[0].is_sum:
        largest = build.op("ReduceMax", build.op("Abs", decays), keepdims=0)
        flag = build.op("And", flag, build.op("Less", largest, build.const(np.array(_LARGEST_SHARE, dtype))))
    if not ctx.options.fast_math:
        have_signs = build.op("Less", zero, build.op("ReduceMin", build.op("Abs", states), keepdims=0))
        if gated.is_plain:
            have_signs = build.op("Or", have_signs, build.op("Less", zero, build.op("ReduceMin", decays, keepdims=0)))
        flag = build.op("And", flag, have_signs)
    return flag


def _results(build: Builder, loop: ScanView, state: State, states: ir.Value) -> dict[ir.Value, ir.Value]:
    """Return the results of ``state``, of the states after each step."""
    dims, steps = static_dims(state.inner), loop.steps if isinstance(loop.steps, int) else -1
    if dims is not None:
        whole = reshape(build, states, [steps, *dims])
    else:
        shape = concat(build, [build.const([steps]), build.op("Shape", state.initial)], 0)
        whole = build.op("Reshape", states, shape, allowzero=1 if build.opset >= since.ALLOWZERO else None)
    return bind_state(
        build,
        loop,
        state,
        lambda: concat(build, [unsqueeze(build, state.initial, [0]), slice_axis(build, whole, 0, 0, -1)], 0),
        lambda: whole,
        lambda: squeeze(build, slice_axis(build, whole, 0, -1, _END), [0]),
    )


RULE = Rule("gated-recurrence", "recurrence", "loop", check, recognises=True)
