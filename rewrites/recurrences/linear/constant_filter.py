"""Compute linear states with constant coefficients, such as filters, by a product per block of steps.

    Scan(s1, s2, xs) body => (y = b0 x + s1, s1 = b1 x - a1 y + s2, s2 = b2 x - a2 y)
    ->    If (all numbers are finite) then Y = MatMul([X, Z], V) ... (``scans/linear_system.py``) else the original Scan

The coefficients may differ from step to step if they are rows of a scanned constant, such as the gains of a Kalman filter.

To compute the output of a step, the matrix product of a block multiplies the inputs of later steps by 0, and 0 times infinity is
NaN. So an If keeps the loop for infinities, NaN, and numbers so large that a sum might overflow. If a -0 could reach a result, the
If also keeps the loop for -0. Results differ from the loop by rounding only: sums have another order, and products of constants are
computed in advance. If the number of steps is unknown, an outer If keeps the loop for few or very many steps.

Conditions:

* Next states and scan outputs are sums of states, inputs and constants, each multiplied by a constant, in float or double.
* Inputs do not depend on states.
* Either all coefficients are single numbers and all values have the same shape, or the states have few elements and known sizes, as
  in a Kalman filter with a constant gain.
* If coefficients differ from step to step, the constants of all blocks take at most 1/64 of the memory budget.
* The powers of the state matrix stay so small that no value grows by ``_MOST`` or more.
* The trip count or the sizes of a row are known.
* By the cost estimate, the products are at least a fifth faster than the loop.
* The target runs Scan and If.
* The loop is not compiled to a plan.

If all states are independent, the rule leaves the loop to another rule in three cases:

* The states decay, and their stacks exceed the second-level cache: ``linear-recurrence`` needs no If.
* The decays differ from step to step, and the stacks exceed the first-level cache: ``gated-recurrence`` is faster.
* A state only accumulates: ``cumulative`` computes it.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.type_names import type_name
from rewrites.graph.values import const_array, static_dims
from rewrites.loops import Loop, ScanView
from rewrites.ops.versions import concat, reshape, reversed_if, split
from rewrites.recurrences.closed_form import ClosedForm, Form, least_steps, over_budget, plain_scan, slower_than_loop, steps_unknown
from rewrites.recurrences.fallback import all_finite_and_bounded
from rewrites.recurrences.linear.system import System
from rewrites.recurrences.linear.system_reader import SystemReader, read_system
from rewrites.recurrences.linear.zeros import gives_negative_zeros
from rewrites.recurrences.results import put_stacks
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scans.block_responses import largest_states
from rewrites.scans.blocks import reshape_with_axes_of
from rewrites.scans.linear_system import SystemBlocks, block_length, varying_ns

__all__ = ["RULE", "check"]

_TYPES = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
_HALVES = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16})
_MOST = 1e9
_LARGEST = {4: (1e18, 1e37), 8: (1e150, 1e306)}
"""For each item size in bytes: the limit for numbers whose squares are summed, and the limit for any sum."""
_OPERATORS, _MORE_BLOCKS, _EACH, _ANY_STEPS, _OF_MATRICES = 6, 8, 3, 20, 14
"""Numbers of operators: for one block and the If, extra for several blocks, for the check of each input and initial state, extra if
the number of steps is unknown, and for a system of matrices."""
_FIRST, _LONGEST = 8, 1 << 17
"""If the number of steps is unknown: the least number for which blocks may pay off, and the most that run in blocks."""
_SHARE, _ITEM = 64, 4
"""The constants of all blocks may take the memory budget divided by ``_SHARE``. A number has ``_ITEM`` bytes."""
_NEAR = 1 << 18
"""The largest stack in bytes that fits the processor's second-level cache together with its results."""
_NEAREST = 1 << 14
"""The largest stack in bytes that fits the processor's first-level cache together with its results."""


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return the patch for a loop that is a linear system with constant coefficients."""
    scan = plain_scan(loop, ctx, since.CUM_SUM)
    if scan is None:
        return NOTHING_HERE
    kinds = {state.inner.dtype for state in scan.states} | {each.inner.dtype for each in scan.scan_inputs}
    if not kinds <= _TYPES | _HALVES or len(kinds) != 1:
        return NOTHING_HERE
    system, reader = read_system(scan, ctx.opset)
    if system is None or not system.inputs or _other_rule_applies(scan, system, ctx):
        return NOTHING_HERE
    if kinds <= _HALVES:
        return NotApplicable("LINEAR-TYPE", f"{_names(system)} is a filter in {type_name(system.states[0].inner.dtype)}")
    if {value.dtype for value in system.inputs} != kinds:
        return NOTHING_HERE  # other rules first move outputs that depend on no state, such as flags, out of the loop
    if system.is_elementwise and not system.has_one_shape:
        return NotApplicable("LINEAR-SHAPE", f"'{system.states[0].inner.name}' is computed from values of perhaps different shapes")
    least = least_steps(scan, ctx, _FIRST, lambda count: _too_slow(scan, system, StepSizes.of(scan, ctx), count) is None)
    return ClosedForm(
        scan,
        f"computed {_names(system)} for all {scan.steps} steps at once, by products with the responses of blocks of steps",
        partial(_unprofitable, scan, system),
        partial(_write_filter, system, reader),
        None if least is None else (least, _LONGEST),
    ).patch(ctx)


def _names(system: System) -> str:
    return ", ".join(f"'{state.inner.name}'" for state in system.states)


def _other_rule_applies(loop: ScanView, system: System, ctx: Context) -> bool:
    """Return True if all states are independent and another rule should replace them.

    The end of the module docstring lists these cases.
    """
    decays = np.diagonal(system.matrices.step, axis1=1, axis2=2)
    if np.count_nonzero(system.matrices.step) > np.count_nonzero(decays):
        return False
    sizes = StepSizes.of(loop, ctx)
    steps, step = loop.steps if isinstance(loop.steps, int) else 0, sum(sizes.step_bytes(state.inner) for state in system.states)
    if system.matrices.varies:
        return system.is_elementwise and steps * step > _NEAREST
    return bool(((decays > 0) & (decays <= 1)).all()) and (bool((decays == 1).any()) or steps * step > _NEAR)


def _unprofitable(loop: ScanView, system: System, steps: int, ctx: Context) -> NotApplicable | None:
    sizes = StepSizes.of(loop, ctx)
    refusal = over_budget("the states of all steps take", 4 * _step_bytes(system, sizes) * steps, ctx)
    refusal = refusal or _too_slow(loop, system, sizes, steps)
    return NOTHING_HERE if refusal is None and _other_rule_applies(loop, system, ctx) else refusal


def _step_bytes(system: System, sizes: StepSizes) -> int:
    return sum(sizes.step_bytes(value) for value in (*(state.inner for state in system.states), *system.inputs))


def _too_slow(loop: ScanView, system: System, sizes: StepSizes, steps: int) -> NotApplicable | None:
    step, costs = _step_bytes(system, sizes), sizes.options.costs
    rows = sizes.step_elements(system.states[0].inner) if system.is_elementwise else 1
    (_, inputs, outputs), states = system.matrices.feedthrough.shape, system.matrices.step.shape[1]
    length = block_length(system.matrices, steps, max(states, inputs, outputs), rows)
    coefficients = (length * inputs + states) * outputs + inputs * states
    size, limit = steps * coefficients * _ITEM, sizes.options.memory_budget // _SHARE
    if system.matrices.varies and size > limit:
        return NotApplicable("MEMORY-BUDGET", f"the constants of all blocks take about {size} bytes (limit {limit})")
    products = steps * rows * coefficients * 2 * costs.product + varying_ns(system.matrices, length, coefficients, steps)
    moved = steps * step * costs.near_byte * (6 if rows == 1 else 12)
    checked = len(system.inputs) + sum(const_array(state.initial) is None for state in system.states)
    operators = _OPERATORS + _EACH * checked + (_MORE_BLOCKS if length < steps else 0)
    operators += 0 if isinstance(loop.steps, int) else _ANY_STEPS
    blocks = (operators if system.is_elementwise else _OF_MATRICES) * costs.operator + products + moved
    work = f"{steps} steps with states of {step} bytes"
    return slower_than_loop("COST-LINEAR", work, costs.loop_ns(steps, len(loop.body), step), blocks)


def _largest(system: System, steps: int, dtype: np.dtype) -> float | None:
    """Return a bound: if no input or initial state exceeds it in magnitude, nothing overflows.

    Return None if values grow too much.
    """
    states = largest_states(system.matrices, steps)
    count = len(states)
    with np.errstate(all="ignore"):
        gain = max(states.max(), (states @ np.abs(system.largest[:count]) + np.abs(system.largest[count:]).sum(0)).max(initial=0))
    squared, summed = _LARGEST[dtype.itemsize]
    return min(squared, summed / (gain * steps)) if gain < _MOST else None


def _write_filter(system: System, reader: SystemReader, stacks: Stacks, inside: Builder, ctx: Context) -> Form | NotApplicable:
    loop, steps, kind, names = stacks.loop, stacks.loop.steps, system.states[0].inner.dtype, _names(system)
    assert kind is not None
    dtype, sizes = np.dtype(kind.numpy()), StepSizes.of(loop, ctx)
    largest = _largest(system, steps if isinstance(steps, int) else _LONGEST, dtype)
    if largest is None and not isinstance(steps, int):
        return steps_unknown(lambda count: _too_slow(loop, system, sizes, count) is None)
    if largest is None:
        return NotApplicable("LINEAR-GROWTH", f"the values of {names} grow too much over {steps} steps")
    constants = {state.inner: const_array(state.initial) for state in system.states}
    if any(array is not None and not (np.abs(array) <= largest).all() for array in constants.values()):
        return NotApplicable("LINEAR-CORNERS", f"an initial value of {names} is too large, or not finite")
    assume_no_negative_zeros = not ctx.options.fast_math and gives_negative_zeros(
        loop, system, reader, constants, assume_no_negative_zeros=False
    )
    if assume_no_negative_zeros and gives_negative_zeros(loop, system, reader, constants, assume_no_negative_zeros=True):
        return NotApplicable("LINEAR-CORNERS", f"zeros of {names} could have another sign, which --fast-math allows")
    refusal = put_stacks(system.inputs, stacks, sizes)
    if refusal is not None:
        return refusal
    inputs = [stacks.stack_of(value) for value in system.inputs]
    initial = [state.initial for state in system.states if const_array(state.initial) is None]
    condition = all_finite_and_bounded(
        stacks.build, [*inputs, *initial], largest, dtype, no_negative_zeros=assume_no_negative_zeros
    )
    rows = [reversed_if(inside, value, stacks.backwards) for value in inputs]
    return dict(_results(system, rows, inside, steps if isinstance(steps, int) else stacks.steps)), condition


def _results(
    system: System, inputs: Sequence[ir.Value], build: Builder, steps: int | ir.Value
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Yield a pair (old value, new value) for each used output of the loop.

    ``inputs``: the inputs of the system for all steps, in the order of steps.
    """
    kind, dims = system.states[0].inner.dtype, static_dims(system.states[0].inner)
    assert kind is not None
    dtype, count = np.dtype(kind.numpy()), steps if isinstance(steps, int) else -1
    rows = 1 if not system.is_elementwise else -1 if dims is None else math.prod(dims)
    parts = [(reshape(build, value, [count, rows, size]), size) for value, size in zip(inputs, system.input_sizes, strict=True)]
    sizes, states = list(system.state_sizes), system.states
    initial = concat(build, [reshape(build, each.initial, [1, rows, size]) for each, size in zip(states, sizes, strict=True)], 2)
    blocks = SystemBlocks(build, rows, dtype)
    stacks, final = blocks.outputs(system.matrices, parts, initial, steps, system.output_sizes, bool(system.kept))
    if final is not None:
        last = split(build, final, 2, sizes, len(states)) if len(states) > 1 else (final,)
        for value, state in zip(last, states, strict=True):
            if state in system.kept and state.final is not None:
                yield state.final, reshape_with_axes_of(build, value, [], state.initial, static_dims(state.inner))
    for output, stack in zip(system.outputs, stacks, strict=True):
        new = reversed_if(
            build, reshape_with_axes_of(build, stack, [count], states[0].initial, static_dims(output.inner)), output.reverse
        )
        if output.outer is not None:
            yield output.outer, new


RULE = Rule("constant-filter", "recurrence", "loop", check, recognises=True, computes="filter with constant coefficients")
