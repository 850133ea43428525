"""A loop whose states only decay, by constants, and take something up becomes a few operators on all steps at once.

    Scan(s0, xs) body(s, x) => (s2 = Add(Mul(s, a), x), y = s2)    # a constant, above 0 and at most 1
    ->    x0, x1, x2, ... = Split(Reshape(Concat(s0, xs)));  s1 = Add(Mul(x0, a), x1);  s2 = Add(Mul(s1, a), x2);  ...

``scans/constant_decay.py`` writes the blocks. Sums come in another order, and nothing else is different:

    NaN and infinity reach the states that they reach in the loop: a spelling such as ``s + a * (x - s)`` makes NaN of infinity
    zeros have the sign that they have in the loop, but for those that stand for numbers too small to be any
    a sum may overflow within a block and not in the loop, or the other way round, as in all sums in another order

Conditions: every state is read by itself alone; its decay is constant, above 0 and at most 1 (with ``fast_math``, from -1 to 1, and
signs of zeros may differ, and what comes of infinite states); the trip count is known; scan outputs are the states, before or after
each step; it is faster than the loop by a fifth, or the target runs none. A loop that is to be compiled stays, if it has a plan.
Measured: the plan takes 12 µs and blocks 72 (1024 steps of 16 numbers), 135 and 1860 (4096 steps of 256), 77 and 90 (16000 steps
of 1).
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.base.postorder import postorder
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.graph.values import rank_of
from rewrites.loops import Loop, ScanView, State
from rewrites.ops.versions import concat, slice_axis, squeeze, turned, unsqueeze
from rewrites.recurrences.closed_form import ClosedForm, over_budget, passes_ns, plain_scan, slower_than_loop
from rewrites.recurrences.fallback import WrittenForm
from rewrites.recurrences.linear.decay_reader import DecayReader, Drive, Linear, NotLinear, drives_in_order, gives_states_alone
from rewrites.recurrences.linear.step_rows import stack_of
from rewrites.recurrences.results import bind_state
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scans.constant_decay import Decay, DecayBlocks, choose_levels

__all__ = ["RULE", "check"]

_TYPES = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
_END = 2**63 - 1
_CORNERS = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1.5, -0.75)
_MOST_LEAVES = 3
_NEAR, _PASSES = 1 << 18, (6, 5, 7)
"""Bytes of a stack up to which all stacks stay in the processor's second cache, and the passes over stacks (``passes_ns``)."""
_IN_LOOP = 0.6
"""The part of what a byte takes in a loop whose stacks stay in the second cache."""
_ENDS = 6
"""Operators before and after the blocks."""
_OPERATORS: Mapping[str, Callable[..., np.ndarray]] = {
    "Identity": lambda x: x,
    "Neg": lambda x: -x,
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Div": lambda x, y: x / y,
}


@dataclass(frozen=True)
class _DecayingState:
    """One state: what it is multiplied by, and what is added, in each step."""

    state: State
    decay: Decay
    drive: Drive | ir.Value


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return the patch for a loop all of whose states decay by constants."""
    scan = plain_scan(loop, ctx, 1, needs_fallback=False)
    if scan is None:
        return NOTHING_HERE
    try:
        reader = DecayReader(scan, ctx.opset)
        states = [_read(state, reader, ctx.options.fast_math) for state in scan.states]
    except NotLinear as refusal:
        return refusal.reason or NOTHING_HERE
    if not gives_states_alone(scan):
        return NOTHING_HERE
    names, steps = ", ".join(f"'{state.inner.name}'" for state in scan.states), scan.steps
    levels = len(choose_levels(steps + 1).steps) if isinstance(steps, int) else 0
    return ClosedForm(
        scan,
        f"computed the decaying state {names} for all {steps} steps at once, in {levels} levels",
        lambda count, context: _unprofitable(scan, count, context),
        lambda context: _without_loop(scan, states, context),
        needs_fallback=False,
    ).patch(ctx)


def _read(state: State, reader: DecayReader, fast_math: bool) -> _DecayingState:
    """Return how ``state`` decays; raises NotLinear."""
    linear = reader.own(state)
    varying = next((path.factors[0].value for path in linear.paths if path.factors), None)
    if varying is not None:
        detail = f"'{varying.name}', which a state is multiplied by in each step, is not constant"
        raise NotLinear(NotApplicable("LINEAR-DECAY", detail))
    rank, kind = rank_of(state.inner), state.inner.dtype
    numbers = np.asarray(sum(path.numbers for path in linear.paths))
    if rank is None or kind not in _TYPES or numbers.ndim > rank or linear.drive is None:
        raise NotLinear
    if (np.abs(numbers) > 1).any():
        detail = f"the state '{state.inner.name}' is multiplied by {np.abs(numbers).max():g} in each step, which is more than 1"
        raise NotLinear(NotApplicable("LINEAR-GROWTH", detail))
    form = "" if fast_math else _corner_form(state, linear, numbers, reader)
    if form is None:
        detail = f"other states would follow where '{state.inner.name}' is infinite or zero, which fast_math allows"
        raise NotLinear(NotApplicable("LINEAR-CORNERS", detail))
    return _DecayingState(state, Decay(numbers, np.dtype(kind.numpy()), form), linear.drive)


def _unprofitable(loop: ScanView, steps: int, ctx: Context) -> NotApplicable | None:
    sizes, levels, costs = StepSizes.of(loop, ctx), choose_levels(steps + 1), ctx.options.costs
    step = sum(sizes.step(state.inner) for state in loop.states)
    refusal = over_budget("the states of all steps take", 4 * levels.rows * step, ctx)
    if refusal is not None or not ctx.options.target.loops:
        return refusal
    cached = round(step * _IN_LOOP) if steps * step <= 2 * _NEAR else step
    form_ns = passes_ns(costs, len(loop.states) * (levels.operators + _ENDS), levels.rows * step, _NEAR, _PASSES)
    work = f"{steps} steps with states of {step} bytes"
    return slower_than_loop("COST-LINEAR", work, costs.loop_ns(steps, len(loop.body), cached), form_ns)


def _without_loop(loop: ScanView, states: list[_DecayingState], ctx: Context) -> WrittenForm | NotApplicable:
    build, steps = ctx.builder(), loop.steps
    assert isinstance(steps, int)
    stacks, sizes, levels = Stacks(loop, build), StepSizes.of(loop, ctx), choose_levels(steps + 1)
    if stacks.backwards and ctx.opset < since.SLICE_INPUTS:
        return NOTHING_HERE
    results, first = dict[ir.Value, ir.Value](), levels.rows - steps
    for each in states:
        drives = stack_of(each.drive, each.state, stacks, sizes)
        if isinstance(drives, NotApplicable):
            build.discard()
            return drives
        rows = DecayBlocks(build, each.state, each.decay).states(turned(build, drives, stacks.backwards), levels.steps, steps)
        results |= _results(loop, each.state, rows, first, stacks)
    return WrittenForm(build, results)


def _results(loop: ScanView, state: State, rows: ir.Value, first: int, stacks: Stacks) -> dict[ir.Value, ir.Value]:
    """Return the results of ``state``; row ``first`` of ``rows`` is the state after the first step."""
    build = stacks.build
    return bind_state(
        build,
        loop,
        state,
        lambda: concat(build, [unsqueeze(build, state.initial, [0]), slice_axis(build, rows, 0, first, -1)], 0),
        lambda: slice_axis(build, rows, 0, first, _END),
        lambda: squeeze(build, slice_axis(build, rows, 0, -1, _END), [0]),
    )


def _corner_form(state: State, linear: Linear, decay: np.ndarray, reader: DecayReader) -> str | None:
    """Return how a state is prepared before its ``decay``, so that infinities, NaN and zeros become what they become in the loop.

    "Add" and "Sub" put 0 times the state to it, "" is the state itself, None that there is no such form. The step as the loop
    computes it and the step as it would be written are run on all combinations of such values.
    """
    if (decay <= 0).any():
        return None  # 0 and what is negative do not keep the signs of zeros apart: a * (0 + -0) is not a * 0 + a * -0
    step = _BodyStep(state, reader)
    leaves = step.leaves(state.next)
    if len(leaves) > _MOST_LEAVES:
        return None
    axes = [1] * decay.ndim
    corners = np.array(list(itertools.product(_CORNERS, repeat=1 + len(leaves))), step.dtype)
    inputs = {value: corners[:, index].reshape(-1, *axes) for index, value in enumerate([state.inner, *leaves])}
    with np.errstate(all="ignore"):
        wanted = step.value(state.next, inputs)
        drive, own = step.driven(linear.drive, inputs), inputs[state.inner]
        zero = own * step.dtype.type(0)
        forms = {"": own, "Add": own + zero, "Sub": own - zero}
        for name, prepared in forms.items():
            if _same_corners(wanted, drive + decay.astype(step.dtype) * prepared):
                return name
    return None


class _BodyStep:
    """The body's own arithmetic on ``state``, in numpy."""

    def __init__(self, state: State, reader: DecayReader) -> None:
        assert state.inner.dtype is not None
        self.dtype = np.dtype(state.inner.dtype.numpy())
        self._state, self._reader = state, reader

    def leaves(self, value: ir.Value) -> list[ir.Value]:
        """Return the values that ``value`` is computed from, beside the state and constants."""
        ends = [each for each in self._in_order(value) if not self._operands(each) and self._reader.constant(each) is None]
        return [each for each in ends if each is not self._state.inner]

    def value(self, value: ir.Value, inputs: Mapping[ir.Value, np.ndarray]) -> np.ndarray:
        """Return ``value`` for these ``inputs``, the state and the leaves."""
        known = dict[ir.Value, np.ndarray]()
        for each in self._in_order(value):
            array, node = inputs.get(each, self._reader.constant(each)), each.producer()
            if array is not None:
                known[each] = array.astype(self.dtype)
            else:
                assert node is not None
                known[each] = _OPERATORS[node.op_type](*(known[operand] for operand in self._operands(each)))
        return known[value]

    def _in_order(self, value: ir.Value) -> list[ir.Value]:
        """Return ``value`` and all that it is computed from, back to the state and the leaves, each after its operands."""
        return postorder([value], self._operands)

    def _operands(self, value: ir.Value) -> list[ir.Value]:
        node = value.producer()
        if value is self._state.inner or self._reader.is_free(value) or node is None:
            return []
        return [operand for operand in node.inputs if operand is not None]

    def driven(self, drive: Drive | ir.Value | None, inputs: Mapping[ir.Value, np.ndarray]) -> np.ndarray:
        """Return the drive."""
        assert drive is not None
        known = dict[Drive | ir.Value, np.ndarray]()
        for part in drives_in_order(drive):
            if isinstance(part, ir.Value):
                known[part] = self.value(part, inputs)
                continue
            operands = [known[operand] for operand in part.operands if operand is not None]
            if len(operands) == len(part.operands):
                known[part] = _OPERATORS[part.node.op_type](*operands)
            else:
                is_subtracted = part.operands[0] is None and part.node.op_type == "Sub"
                known[part] = -operands[0] if is_subtracted else operands[0]
        return known[drive]


def _same_corners(left: np.ndarray, right: np.ndarray) -> bool:
    """Return True if numbers are close, infinities and zeros have one sign, and NaN is in the same elements."""
    left, right = np.broadcast_arrays(left, right)
    zeros = (left == 0) | (right == 0)
    same_zeros = (left[zeros] == right[zeros]).all() and (np.signbit(left[zeros]) == np.signbit(right[zeros])).all()
    return bool(same_zeros and np.allclose(left, right, rtol=1e-3, atol=0, equal_nan=True))


RULE = Rule("linear-recurrence", "recurrence", "loop", check, recognises=True)
