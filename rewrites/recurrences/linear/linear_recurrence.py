"""Compute states that decay by constants for all steps at once, by a few operators.

    Scan(s0, xs) body(s, x) => (s2 = Add(Mul(s, a), x), y = s2)    # a constant, above 0 and at most 1
    ->    x0, x1, x2, ... = Split(Reshape(Concat(s0, xs)));  s1 = Add(Mul(x0, a), x1);  s2 = Add(Mul(s1, a), x2);  ...

``scans/decay.py`` writes the blocks. Results differ from the loop only because sums have another order:

* NaN and infinity reach the same states as in the loop. This is also true for ``s + a * (x - s)``, which turns infinity into NaN.
* Zeros have the same sign as in the loop, except for zeros that result from underflow.
* A sum may overflow within a block but not in the loop, or in the loop but not within a block.

Conditions:

* Each state depends on no other state.
* Its decay ``a`` is constant, above 0 and at most 1. With ``fast_math``, ``a`` may be from -1 to 1. Signs of zeros and infinite
  states may then differ from the loop.
* The trip count is known.
* Each scan output is the value of a state before or after the step.
* By the cost estimate, blocks are at least a fifth faster than the loop, or the target runs no loops.
* The loop is not compiled to a plan, which would be faster. Measured: 12 µs in a plan and 72 µs in blocks for 1024 steps of 16
  numbers; 135 and 1860 µs for 4096 steps of 256 numbers; 77 and 90 µs for 16000 steps of 1 number.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.base.postorder import postorder
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import rank_of
from rewrites.loops import Loop, ScanView, State
from rewrites.ops.versions import reversed_if
from rewrites.recurrences.closed_form import ClosedForm, Form, over_budget, passes_ns, plain_scan, slower_than_loop
from rewrites.recurrences.constants import NUMPY
from rewrites.recurrences.linear.decay_reader import DecayReader, Drive, Linear, NotLinear, read_states
from rewrites.recurrences.linear.step_rows import stack_of
from rewrites.recurrences.results import bind_state
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scans.decay import Decay, DecayBlocks, choose_levels

__all__ = ["RULE", "check"]

_TYPES = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
_CORNERS = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1.5, -0.75)
_MOST_LEAVES = 3
_NEAR, _PASSES = 1 << 18, (6, 5, 7)
"""The size of a stack in bytes up to which all stacks fit the second-level cache, and the passes over stacks (``passes_ns``)."""
_IN_LOOP = 0.6
"""The cost of a byte in a loop whose stacks fit the second-level cache, relative to other loops."""
_ENDS = 6
"""The number of operators before and after the blocks."""


_Part = Drive | ir.Value


@dataclass(frozen=True)
class _DecayingState:
    """A state with its constant decay and its drive (see ``decay_reader``)."""

    state: State
    decay: Decay
    drive: Drive | ir.Value


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return the patch for a loop if all its states decay by constants."""
    scan = plain_scan(loop, ctx, 1, needs_fallback=False)
    states = NOTHING_HERE if scan is None else read_states(scan, ctx.opset, partial(_read, fast_math=ctx.options.fast_math))
    if scan is None or isinstance(states, NotApplicable):
        return states if isinstance(states, NotApplicable) else NOTHING_HERE
    names, steps = ", ".join(f"'{state.inner.name}'" for state in scan.states), scan.steps
    levels = len(choose_levels(steps + 1).steps) if isinstance(steps, int) else 0
    return ClosedForm(
        scan,
        f"computed the decaying state {names} for all {steps} steps at once, in {levels} levels",
        partial(_too_slow, scan),
        partial(_write_blocks, states),
        needs_fallback=False,
    ).patch(ctx)


def _read(state: State, reader: DecayReader, *, fast_math: bool) -> _DecayingState:
    """Return ``state`` with its decay and drive.

    Raise NotLinear if the decay is not constant or not supported.
    """
    linear = reader.next_value_of(state)
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
    form = "" if fast_math else _corner_form(state, linear, numbers, np.dtype(kind.numpy()), reader)
    if form is None:
        detail = f"after an infinite or zero '{state.inner.name}', states could differ from the loop, which --fast-math allows"
        raise NotLinear(NotApplicable("LINEAR-CORNERS", detail))
    return _DecayingState(state, Decay(numbers, np.dtype(kind.numpy()), form), linear.drive)


def _too_slow(loop: ScanView, steps: int, ctx: Context) -> NotApplicable | None:
    sizes, levels, costs = StepSizes.of(loop, ctx), choose_levels(steps + 1), ctx.options.costs
    step = sum(sizes.step_bytes(state.inner) for state in loop.states)
    refusal = over_budget("the states of all steps take", 4 * levels.rows * step, ctx)
    if refusal is not None or not ctx.options.target.loops:
        return refusal
    cached = round(step * _IN_LOOP) if steps * step <= 2 * _NEAR else step
    form_ns = passes_ns(costs, len(loop.states) * (levels.operators + _ENDS), levels.rows * step, _NEAR, _PASSES)
    work = f"{steps} steps with states of {step} bytes"
    return slower_than_loop("COST-LINEAR", work, costs.loop_ns(steps, len(loop.body), cached), form_ns)


def _write_blocks(states: list[_DecayingState], stacks: Stacks, _: Builder, ctx: Context) -> Form | NotApplicable:
    loop, build, steps = stacks.loop, stacks.build, stacks.loop.steps
    assert isinstance(steps, int)
    sizes, levels = StepSizes.of(loop, ctx), choose_levels(steps + 1)
    if stacks.backwards and ctx.opset < since.SLICE_INPUTS:
        return NOTHING_HERE
    results = dict[ir.Value, ir.Value]()
    for each in states:
        drives = stack_of(each.drive, each.state, stacks, sizes)
        if isinstance(drives, NotApplicable):
            return drives
        rows = DecayBlocks(build, each.state, each.decay).states(reversed_if(build, drives, stacks.backwards), levels.steps, steps)
        results |= bind_state(build, loop, each.state, rows, first=levels.rows - steps)
    return results, None


def _corner_form(state: State, linear: Linear, decay: np.ndarray, dtype: np.dtype, reader: DecayReader) -> str | None:
    """Return how a block must prepare a state ``s`` to treat infinities, NaN and zeros as the loop does.

    This function runs the step of the loop and the prepared step on all combinations of infinities, NaN, zeros and some other
    numbers, and compares the results.

    Returns:
        "": ``s`` itself is multiplied by ``decay``.
        "Add": ``s + 0 * s`` is multiplied by ``decay``.
        "Sub": ``s - 0 * s`` is multiplied by ``decay``.
        None: No preparation agrees with the loop.
    """
    if (decay <= 0).any():
        return None  # signs of zeros would differ: for a <= 0, a * (0 + -0) is not a * 0 + a * -0
    assert linear.drive is not None
    operands, roots = partial(_operands, state, reader), list[_Part]([state.next])
    ends = [part for part in postorder(roots, operands) if isinstance(part, ir.Value) and not operands(part)]
    constants = {part: reader.constant(part) for part in ends if part is not state.inner}
    leaves = [part for part, array in constants.items() if array is None]
    if len(leaves) > _MOST_LEAVES:
        return None
    rank = max(array.ndim for array in (decay, *constants.values()) if array is not None)
    corners = np.array(list(itertools.product(_CORNERS, repeat=1 + len(leaves))), dtype)
    inputs = {value: corners[:, index].reshape(-1, *[1] * rank) for index, value in enumerate([state.inner, *leaves])}
    with np.errstate(all="ignore"):
        wanted, drive = (_computed(root, operands, inputs, reader, dtype) for root in (state.next, linear.drive))
        old_state = inputs[state.inner]
        zero = old_state * dtype.type(0)
        for name, prepared in {"": old_state, "Add": old_state + zero, "Sub": old_state - zero}.items():
            if _same_corners(wanted, drive + decay.astype(dtype) * prepared):
                return name
    return None


def _operands(state: State, reader: DecayReader, part: _Part) -> list[_Part]:
    """Return the operands of ``part``.

    Return an empty list for the state itself and for values that do not depend on a state.
    """
    if isinstance(part, Drive):
        return [operand for operand in part.operands if operand is not None]
    node = part.producer()
    if part is state.inner or reader.is_free(part) or node is None:
        return []
    return [operand for operand in node.inputs if operand is not None]


def _computed(
    root: _Part,
    operands: Callable[[_Part], list[_Part]],
    inputs: Mapping[ir.Value, np.ndarray],
    reader: DecayReader,
    dtype: np.dtype,
) -> np.ndarray:
    """Evaluate ``root`` in numpy, with the operators of the body.

    Args:
        root: A value of the body, or a drive: the part of a value that does not depend on the states (see ``Drive``).
        operands: Function that returns the operands of a value or drive.
        inputs: Maps the values at which the evaluation starts to arrays, for example the state. Constants may be omitted.
    """
    known = dict[_Part, np.ndarray]()
    for part in postorder([root], operands):
        array = None if isinstance(part, Drive) else inputs.get(part, reader.constant(part))
        if array is not None:
            known[part] = array.astype(dtype)
            continue
        node, numbers = part.node if isinstance(part, Drive) else part.producer(), [known[each] for each in operands(part)]
        assert node is not None
        if isinstance(part, Drive) and len(numbers) < len(part.operands):
            known[part] = -numbers[0] if part.operands[0] is None and node.op_type == "Sub" else numbers[0]
        else:
            known[part] = numbers[0] if node.op_type == "Identity" else np.asarray(NUMPY[node.op_type](*numbers))
    return known[root]


def _same_corners(left: np.ndarray, right: np.ndarray) -> bool:
    """Return True if both arrays are equal except for rounding.

    Infinities, NaN, zeros and the signs of zeros must agree exactly.
    """
    left, right = np.broadcast_arrays(left, right)
    zeros = (left == 0) | (right == 0)
    same_zeros = (left[zeros] == right[zeros]).all() and (np.signbit(left[zeros]) == np.signbit(right[zeros])).all()
    return bool(same_zeros and np.allclose(left, right, rtol=1e-3, atol=0, equal_nan=True))


RULE = Rule("linear-recurrence", "recurrence", "loop", check, recognises=True, computes="linear recurrence s' = a * s + b")
