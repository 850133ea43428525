"""A loop whose states are multiplied by something, and take something up, becomes a few operators on all steps at once.

    Scan(s0, as, bs) body(s, a, b) => (s2 = Add(Mul(a, s), b), y = s2)
    ->    S = blocks of steps (``recurrences/linear/gated.py``);  If (S is finite) then S else the Scan as it was

Gated linear recurrences such as minGRU, SRU and the core of a state space model are of this kind. Products of decays may overflow,
or come to 0, where the loop does not: what is not finite reaches others then. So the loop stays, in the other branch of an If, for
states that are not finite, or beyond 1e18 (1e150 in double); and for states that are 0, unless all decays are above 0 and multiply
before anything is added, with which zeros have the signs that they have in the loop. Sums come in another order, and ``s + z * (h -
s)`` is ``(1 - z) * s + z * h``, where that is between -4 and 4; nothing else is different.

Conditions: every state is read by itself alone; what it is multiplied by, and what is added, does not depend on states; float or
double; the trip count or the sizes of a row are known; scan outputs are the states, before or after each step; it is faster than
the loop by a fifth; the target runs Scan and If. A loop that is to be compiled stays, where it has a plan.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.fission.stackable import not_plain
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import rank_of, static_dims, through_identity
from rewrites.loops import Loop, LoopView, ScanView, State
from rewrites.ops.versions import concat, reshape, slice_axis, squeeze, turned, unsqueeze
from rewrites.recurrences.linear.decay_rows import decays_of
from rewrites.recurrences.linear.drive_rows import stack_of
from rewrites.recurrences.linear.gated import ANY_CUT, Cut, choose_cut, gated_of_any_steps, gated_states
from rewrites.recurrences.linear.levels import least_steps, steps_unknown
from rewrites.recurrences.linear.reading import Drive, NotLinear, Path, Reader, gives_states_alone
from rewrites.recurrences.narrow_or_loop import at_once_if_narrow
from rewrites.recurrences.or_loop import are_plain, is_kept_loop, put_under_if, put_under_ifs
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule, is_to_be_compiled

__all__ = ["RULE", "check"]

_LARGEST_SHARE = 4
_LARGEST = {ir.DataType.FLOAT: 1e18, ir.DataType.DOUBLE: 1e150}
_END = 2**63 - 1
_NEAR, _FAR = 1 << 19, 1 << 22
_NEAR_PASSES, _PASSES, _FAR_PASSES = 14, 9, 12
_MARGIN = 1.2
_AROUND = 20
"""Operators before and after the blocks, those of the If among them."""
_FIRST = 16
"""From how many steps on blocks may pay, where that is not known."""


@dataclass(frozen=True)
class _Found:
    """One state: how it comes in, and what is added, in each step: once, and after all products, where ``is_plain``."""

    state: State
    paths: tuple[Path, ...]
    drive: Drive | ir.Value
    is_plain: bool


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """See whether all states are multiplied by something and take something up."""
    if isinstance(loop, LoopView) or not loop.states or ctx.opset < since.CUM_SUM or not_plain(loop, ctx) is not None:
        return NOTHING_HERE
    if is_kept_loop(loop, ctx):
        return NOTHING_HERE
    try:
        reader = Reader(loop, ctx.opset)
        found = [_read(state, reader) for state in loop.states]
    except NotLinear as none:
        return none.reason or NOTHING_HERE
    if not gives_states_alone(loop):
        return NOTHING_HERE
    steps = loop.steps
    least = _least(loop, ctx)
    if least is None:
        return steps_unknown(lambda count: _unfit(loop, choose_cut(count), count, ctx) is None)
    if least < 1:
        return NOTHING_HERE
    if is_to_be_compiled(loop, ctx):
        return NotApplicable("COST-LINEAR", "the plan of the loop, which is to be compiled, is faster than blocks of steps")
    if not ctx.options.target.loops or "If" not in ctx.options.target.control_flow:
        return NotApplicable("LINEAR-CORNERS", "a target without Scan and If could not keep the loop for what is not finite")
    if not isinstance(steps, int):
        return _in_blocks(loop, found, ANY_CUT, least, ctx)
    cut = choose_cut(steps)
    return at_once_if_narrow(
        loop,
        lambda context: _in_blocks(loop, found, cut, least, context),
        lambda context: _unfit(loop, cut, steps, context),
        ctx,
    )


def _least(loop: ScanView, ctx: Context) -> int | None:
    """Return for how many steps the form is, or from how many on it pays where that is not known; None where it does not."""
    if isinstance(loop.steps, int):
        return loop.steps
    if any((dims := static_dims(state.inner)) is None or 0 in dims for state in loop.states):
        return None
    sizes = StepSizes.of(loop, ctx)
    usual = sizes.steps if sizes.steps_known else None
    return least_steps(usual, _FIRST, lambda count: _unfit(loop, ANY_CUT, count, ctx) is None)


def _read(state: State, reader: Reader) -> _Found:
    """Read one state; raises NotLinear."""
    linear = reader.linear(state.next)
    if linear.drive is None or not linear.paths or any(path.state is not state for path in linear.paths):
        raise NotLinear
    if rank_of(state.inner) is None or state.inner.dtype not in _LARGEST or not any(path.factors for path in linear.paths):
        raise NotLinear
    return _Found(state, linear.paths, linear.drive, _multiplies_first(state, reader))


def _multiplies_first(state: State, reader: Reader) -> bool:
    """Whether what is free of the state is added to it once, after all products."""
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


def _unfit(loop: ScanView, cut: Cut, steps: int, ctx: Context) -> NotApplicable | None:
    sizes = StepSizes.of(loop, ctx)
    step = sum(sizes.step(state.inner) for state in loop.states)
    most, limit = 6 * steps * step, ctx.options.memory_budget
    if most > limit:
        return NotApplicable("MEMORY-BUDGET", f"the states of all steps take about {most} bytes at a time (limit {limit})")
    costs, size = ctx.options.costs, steps * step
    in_loop = costs.loop_ns(steps, len(loop.body), step)
    passes = _NEAR_PASSES * costs.near_byte if size <= _NEAR else (_PASSES if size <= _FAR else _FAR_PASSES) * costs.far_byte
    blocks = costs.operator * len(loop.states) * (cut.operators + _AROUND) + size * passes
    if blocks * _MARGIN < in_loop:
        return None
    took = f"take about {in_loop / 1000:.0f} µs in the loop and {blocks / 1000:.0f} µs without"
    return NotApplicable("COST-LINEAR", f"{steps} steps with states of {step} bytes {took}")


def _in_blocks(loop: ScanView, found: Sequence[_Found], cut: Cut, least: int, ctx: Context) -> Patch | NotApplicable:
    build, instead = ctx.builder(), ctx.builder()
    stacks, sizes = Stacks(loop, build), StepSizes.of(loop, ctx)
    results, conditions = dict[ir.Value, ir.Value](), list[ir.Value]()
    for one in found:
        drives = stack_of(one.drive, one.state, stacks, sizes)
        decays = decays_of(one.paths, one.state, stacks, sizes) if isinstance(drives, ir.Value) else drives
        if isinstance(drives, NotApplicable) or isinstance(decays, NotApplicable):
            build.discard()
            return drives if isinstance(drives, NotApplicable) else decays if isinstance(decays, NotApplicable) else NOTHING_HERE
        states, are_fine = _states(build, one, decays, drives, cut, stacks, ctx)
        conditions.append(are_fine)
        results |= _read_off(instead, loop, one.state, states)
    condition = conditions[0]
    for another in conditions[1:]:
        condition = build.op("And", condition, another)

    names, made = ", ".join(f"'{state.inner.name}'" for state in loop.states), [results.get(value) for value in loop.node.outputs]
    what = f"computed the gated state {names} for all {loop.steps} steps at once, in {len(cut.radices)} levels"
    what += "; an If keeps the loop for what is not finite"
    if isinstance(loop.steps, int):
        return Patch(what, lambda: [put_under_if(loop, ctx, build, condition, instead, made)])
    return Patch(
        what,
        lambda: put_under_ifs(loop, ctx, least, None, build, condition, instead, made),
        (f"by an estimate faster from {least} steps on; a run that has fewer goes step by step",),
    )


def _states(
    build: Builder, one: _Found, decays: ir.Value, drives: ir.Value, cut: Cut, stacks: Stacks, ctx: Context
) -> tuple[ir.Value, ir.Value]:
    """Return the states after each step, [steps, numbers], and whether the loop has no others."""
    kind, given = one.state.inner.dtype, decays
    assert kind is not None
    dtype = np.dtype(kind.numpy())
    if static_dims(decays) is None or static_dims(decays) != static_dims(drives):
        decays = build.op("Expand", decays, build.op("Shape", drives))
    ordered = [turned(build, value, stacks.backwards) for value in (decays, drives)]
    steps, dims = stacks.loop.steps, static_dims(one.state.inner)
    if isinstance(steps, int):
        flat = [reshape(build, value, [steps, -1]) for value in ordered]
        states = gated_states(build, flat[0], flat[1], reshape(build, one.state.initial, [1, -1]), cut.radices, steps)
    else:
        numbers = math.prod(dims or ())
        rows = [reshape(build, value, [-1, numbers]) for value in (*ordered, one.state.initial)]
        states = gated_of_any_steps(build, ctx, rows[0], rows[1], rows[2], cut.radices, stacks.steps)
    are_fine = are_plain(build, [states], _LARGEST[kind], dtype, are_no_minus_zeros=False)
    zero = build.const(np.array(0, dtype))
    if len(one.paths) > 1 or one.paths[0].is_sum:
        largest = build.op("ReduceMax", build.op("Abs", given), keepdims=0)
        are_fine = build.op("And", are_fine, build.op("Less", largest, build.const(np.array(_LARGEST_SHARE, dtype))))
    if not ctx.options.fast_math:
        have_signs = build.op("Less", zero, build.op("ReduceMin", build.op("Abs", states), keepdims=0))
        if one.is_plain:
            have_signs = build.op("Or", have_signs, build.op("Less", zero, build.op("ReduceMin", given, keepdims=0)))
        are_fine = build.op("And", are_fine, have_signs)
    return states, are_fine


def _read_off(build: Builder, loop: ScanView, state: State, states: ir.Value) -> dict[ir.Value, ir.Value]:
    """Return what stands for the results of a state."""
    found, dims = dict[ir.Value, ir.Value](), static_dims(state.inner)
    steps = loop.steps if isinstance(loop.steps, int) else -1
    if dims is not None:
        whole = reshape(build, states, [steps, *dims])
    else:
        shape = concat(build, [build.const([steps]), build.op("Shape", state.initial)], 0)
        whole = build.op("Reshape", states, shape, allowzero=1 if build.opset >= since.ALLOWZERO else None)
    for output in loop.scan_outputs:
        source = through_identity(output.inner)
        if output.outer is None or source not in (state.inner, through_identity(state.next)):
            continue
        stack = whole
        if source is state.inner:
            stack = concat(build, [unsqueeze(build, state.initial, [0]), slice_axis(build, whole, 0, 0, -1)], 0)
        found[output.outer] = turned(build, stack, output.reverse)
    if state.final is not None and (state.final.uses() or state.final.is_graph_output()):
        found[state.final] = squeeze(build, slice_axis(build, whole, 0, -1, _END), [0])
    return found


RULE = Rule("gated-recurrence", "recurrence", "loop", check, recognises=True)
