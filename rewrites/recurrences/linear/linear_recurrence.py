"""A loop whose states only decay, by constants, and take something up becomes a few operators on all steps at once.

    Scan(s0, xs) body(s, x) => (s2 = Add(Mul(s, a), x), y = s2)    # a constant, above 0 and at most 1
    ->    x0, x1, x2, ... = Split(Reshape(Concat(s0, xs)));  s1 = Add(Mul(x0, a), x1);  s2 = Add(Mul(s1, a), x2);  ...

That is: the first steps of all blocks of steps at once, then the second steps, and so on; what is left of earlier blocks is added
behind, level by level (``recurrences/linear/blocked.py``). Sums come in another order, and nothing else is different:

    NaN and infinity reach the states that they reach in the loop, and no earlier one: no step is multiplied by what comes after it,
    powers of decays are never 0, and a spelling such as ``s + a * (x - s)``, which makes NaN of an infinite state, does so here
    zeros have the sign that they have in the loop, but for those that stand for numbers too small to be any
    a sum that overflows within a block need not do so in the loop, nor the other way round, as in all sums in another order

Conditions: every state is read by itself alone; its decay is constant, above 0 and at most 1 (with ``fast_math``, from -1 to 1, and
signs of zeros may differ, and what comes of infinite states); the trip count is known; scan outputs are the states, before or after
each step; it is faster than the loop by a fifth, or the target runs none. A loop that is to be
compiled stays, where it has a plan: measured, that takes 12 µs where blocks take 72 (1024 steps of 16 numbers), 135 where they take
1860 (4096 steps of 256), and 77 where they take 90 (16000 steps of one).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.fission.stackable import not_plain
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import rank_of, through_identity
from rewrites.loops import Loop, LoopView, ScanView, State
from rewrites.ops.versions import concat, slice_axis, squeeze, turned, unsqueeze
from rewrites.recurrences.linear.blocked import Blocked
from rewrites.recurrences.linear.corners import form_of
from rewrites.recurrences.linear.decays import Decay
from rewrites.recurrences.linear.drive_rows import stack_of
from rewrites.recurrences.linear.levels import Levels, choose_levels, steps_unknown, too_slow
from rewrites.recurrences.linear.reading import Drive, NotLinear, Reader, gives_states_alone
from rewrites.recurrences.narrow_or_loop import at_once_if_narrow
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule, is_to_be_compiled

__all__ = ["RULE", "check"]

_TYPES = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
_END = 2**63 - 1


@dataclass(frozen=True)
class _Found:
    """One state: what it is multiplied by, and what is added, in each step."""

    state: State
    decay: Decay
    drive: Drive | ir.Value


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """See whether all states are linear in what they were."""
    if isinstance(loop, LoopView) or not loop.states or not_plain(loop, ctx) is not None:
        return NOTHING_HERE
    try:
        reader = Reader(loop, ctx.opset)
        found = [_read(state, reader, ctx.options.fast_math) for state in loop.states]
    except NotLinear as none:
        return none.reason or NOTHING_HERE
    if not gives_states_alone(loop):
        return NOTHING_HERE
    steps = loop.steps
    if not isinstance(steps, int):
        return steps_unknown(lambda count: _unfit(loop, choose_levels(count + 1), count, ctx) is None)
    if steps < 1:
        return NOTHING_HERE
    if is_to_be_compiled(loop, ctx):
        return NotApplicable("COST-LINEAR", "the plan of the loop, which is to be compiled, is faster than blocks of steps")
    levels = choose_levels(steps + 1)
    return at_once_if_narrow(
        loop,
        lambda context: _without_loop(loop, found, levels, steps, context),
        lambda context: _unfit(loop, levels, steps, context),
        ctx,
    )


def _read(state: State, reader: Reader, fast_math: bool) -> _Found:
    """Read one state; raises NotLinear."""
    linear = reader.linear(state.next)
    if linear.drive is None or not linear.paths or any(path.state is not state for path in linear.paths):
        raise NotLinear
    varying = next((path.factors[0].value for path in linear.paths if path.factors), None)
    if varying is not None:
        detail = f"'{varying.name}', which a state is multiplied by in each step, is not constant"
        raise NotLinear(NotApplicable("LINEAR-DECAY", detail))
    rank, kind = rank_of(state.inner), state.inner.dtype
    if rank is None or kind not in _TYPES:
        raise NotLinear
    numbers = np.asarray(sum(path.numbers for path in linear.paths))
    if numbers.ndim > rank:
        raise NotLinear
    if (np.abs(numbers) > 1).any():
        detail = f"the state '{state.inner.name}' is multiplied by {np.abs(numbers).max():g} in each step, which is more than 1"
        raise NotLinear(NotApplicable("LINEAR-GROWTH", detail))
    form = "" if fast_math else form_of(state, linear, numbers, reader)
    if form is None:
        detail = f"other states would follow where '{state.inner.name}' is infinite or zero, which fast_math allows"
        raise NotLinear(NotApplicable("LINEAR-CORNERS", detail))
    return _Found(state, Decay(numbers, np.dtype(kind.numpy()), form), linear.drive)


def _unfit(loop: ScanView, levels: Levels, steps: int, ctx: Context) -> NotApplicable | None:
    sizes = StepSizes.of(loop, ctx)
    step = sum(sizes.step(state.inner) for state in loop.states)
    most = 4 * levels.rows * step
    if most > ctx.options.memory_budget:
        limit = ctx.options.memory_budget
        return NotApplicable("MEMORY-BUDGET", f"the states of all steps take about {most} bytes at a time (limit {limit})")
    if not ctx.options.target.loops:
        return None
    return too_slow(levels, len(loop.states), steps, len(loop.body), step, ctx.options.costs)


def _without_loop(loop: ScanView, found: list[_Found], levels: Levels, steps: int, ctx: Context) -> Patch | NotApplicable:
    build = ctx.builder()
    stacks, sizes = Stacks(loop, build), StepSizes.of(loop, ctx)
    if stacks.backwards and ctx.opset < since.SLICE_INPUTS:
        return NOTHING_HERE
    results = list[tuple[ir.Value, ir.Value]]()
    for one in found:
        drives = stack_of(one.drive, one.state, stacks, sizes)
        if isinstance(drives, NotApplicable):
            build.discard()
            return drives
        states = Blocked(build, one.state, one.decay).states(turned(build, drives, stacks.backwards), levels.radices, steps)
        results += _read_off(loop, one.state, states, levels.rows - steps, build)

    def edit() -> list[ir.Node]:
        build.insert_before(loop.node)
        for old, new in results:
            replace_value(old, new, ctx.names)
        remove_nodes([loop.node])
        return []

    names = ", ".join(f"'{state.inner.name}'" for state in loop.states)
    return Patch(f"computed the decaying state {names} for all {steps} steps at once, in {len(levels.radices)} levels", edit)


def _read_off(loop: ScanView, state: State, states: ir.Value, first: int, build: Builder) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Return what stands for the results of a state; row ``first`` of ``states`` is that after the first step."""
    for output in loop.scan_outputs:
        source = through_identity(output.inner)
        if output.outer is not None and source is state.inner:
            rows = [unsqueeze(build, state.initial, [0]), slice_axis(build, states, 0, first, -1)]
            yield output.outer, turned(build, concat(build, rows, 0), output.reverse)
        elif output.outer is not None and source is through_identity(state.next):
            yield output.outer, turned(build, slice_axis(build, states, 0, first, _END), output.reverse)
    if state.final is not None:
        yield state.final, squeeze(build, slice_axis(build, states, 0, -1, _END), [0])


RULE = Rule("linear-recurrence", "recurrence", "loop", check, recognises=True)
