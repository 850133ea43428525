"""A loop whose states are made of all of them by constant numbers, such as a filter, becomes products with what blocks of steps do.

    Scan(s1, s2, xs) body => (y = b0 x + s1, s1 = b1 x - a1 y + s2, s2 = b2 x - a2 y)
    ->    If (all numbers are finite) then Y = MatMul([X, Z], V) ... (``edits/linear/filtered.py``) else the Scan as it was

A product of a block of steps multiplies what comes later by 0, which is 0 for numbers alone. So the loop stays, in the other branch
of an If, for what is infinite, not a number, or so large that a sum might overflow; and for -0, where a zero of that sign could
reach a result. Sums come in another order, and products of constants are one constant; nothing else is different.

Conditions: the next states and the scan outputs are sums of states, of what does not depend on the states, and of constants, times
constants, of float or double: either constants of one number, and all else of one shape, or constants of any shape, matrices among
them, and few states of known size, as in a Kalman filter with a constant gain; powers of the matrix of the states do not grow over
the steps by more than ``_MOST``; the trip count is known; it is faster than the loop by a fifth; the target runs Scan and If.
States that each decay alone are ``linear-recurrence``'s, which needs no If. A loop that is to be compiled stays, where it has a
plan.
"""

import math

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.linear.dense import Dense
from rewrites.analysis.linear.impulses import reach
from rewrites.analysis.linear.levels import steps_unknown
from rewrites.analysis.linear.system import Followed, System
from rewrites.analysis.linear.zeros import gives_negative_zeros
from rewrites.base import since
from rewrites.edits.fission.stackable import not_plain
from rewrites.edits.fission.stacks import Stacks
from rewrites.edits.linear.drives import put_stacks
from rewrites.edits.linear.filtered import Blocks, Matrices, block_length
from rewrites.edits.linear.or_loop import are_plain, is_kept_loop, put_under_if
from rewrites.edits.recurrence.compiled import is_to_be_compiled
from rewrites.edits.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import same
from rewrites.graph.values import const_array, static_dims
from rewrites.loops import Loop, LoopView, ScanView
from rewrites.ops.versions import concat, reshape, slice_axis, split

__all__ = ["RULE", "check"]

_TYPES = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
_MOST = 1e9
_LARGEST = {4: (1e18, 1e37), 8: (1e150, 1e306)}
"""Of numbers of so many bytes: what may be squared and summed up, and what no sum may come to."""
_END = 2**63 - 1
_OPERATORS = {True: 26, False: 14}
"""Those of the blocks and around them, of the If too, by whether states are multiplied by numbers alone."""


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """See whether the loop is a system of constants."""
    if isinstance(loop, LoopView) or not loop.states or ctx.opset < since.CUM_SUM or not_plain(loop, ctx) is not None:
        return NOTHING_HERE
    kinds = {state.inner.dtype for state in loop.states} | {scan.inner.dtype for scan in loop.scan_inputs}
    if is_kept_loop(loop) or not kinds <= _TYPES or len(kinds) != 1:
        return NOTHING_HERE
    reader: Followed | Dense = Followed(loop, ctx.opset)
    system = reader.system()
    if (system is None or not _is_alike(system)) and Dense.may_be(loop):
        reader = Dense(loop, ctx.opset)
        dense = reader.system()
        system, reader = (dense, reader) if dense is not None else (system, Followed(loop, ctx.opset))
    if system is None or not system.inputs or _decay_alone(system):
        return NOTHING_HERE
    if {value.dtype for value in system.inputs} != kinds:
        return NOTHING_HERE  # an output that no state has a part in, such as a flag, leaves the loop first
    return _unfit(loop, system, ctx) or _filtered(loop, system, reader, ctx)


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


def _unfit(loop: ScanView, system: System, ctx: Context) -> NotApplicable | None:
    """Return a reason where the loop is to stay."""
    if system.is_elementwise and not _is_alike(system):
        return NotApplicable("LINEAR-SHAPE", f"what '{system.states[0].inner.name}' is made of has not surely one shape")
    sizes = StepSizes.of(loop, ctx)
    step = sum(sizes.step(value) for value in (*(state.inner for state in system.states), *system.inputs))
    steps = loop.steps
    if not isinstance(steps, int):
        return steps_unknown(lambda count: _too_slow(loop, system, sizes, step, count) is None)
    if steps < 1:
        return NOTHING_HERE
    if not ctx.options.target.loops or "If" not in ctx.options.target.control_flow:
        return NotApplicable("LINEAR-CORNERS", "a target without Scan and If could not keep the loop for what is not finite")
    if is_to_be_compiled(loop, ctx):
        return NotApplicable("COST-LINEAR", "the plan of the loop, which is to be compiled, is faster than blocks of steps")
    most, limit = 4 * step * steps, ctx.options.memory_budget
    if most > limit:
        return NotApplicable("MEMORY-BUDGET", f"the states of all steps take about {most} bytes at a time (limit {limit})")
    return _too_slow(loop, system, sizes, step, steps)


def _too_slow(loop: ScanView, system: System, sizes: StepSizes, step: int, steps: int) -> NotApplicable | None:
    rows = sizes.elements(system.states[0].inner) if system.is_elementwise else 1
    (given, made), states = system.through.shape, len(system.step)
    length, costs = block_length(steps, max(states, given, made)), sizes.options.costs
    in_loop = costs.loop_ns(steps, len(loop.body), step)
    products = steps * rows * ((length * given + states) * made + given * states) * 2 * costs.product
    moved = steps * step * costs.near_byte * (6 if rows == 1 else 12)
    blocks = _OPERATORS[system.is_elementwise] * costs.operator + products + moved
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
    assert isinstance(steps, int)
    assert kind is not None
    dtype = np.dtype(kind.numpy())
    largest = _largest(system, steps, dtype)
    names = ", ".join(f"'{state.inner.name}'" for state in system.states)
    if largest is None:
        return NotApplicable("LINEAR-GROWTH", f"what {names} hold grows too much over {steps} steps")
    given = {state.inner: const_array(state.initial) for state in system.states}
    if any(array is not None and not (np.abs(array) <= largest).all() for array in given.values()):
        return NotApplicable("LINEAR-CORNERS", f"an initial value of {names} is too large, or not finite")
    is_clean = not ctx.options.fast_math and gives_negative_zeros(loop, system, reader, given, is_clean=False)
    if is_clean and gives_negative_zeros(loop, system, reader, given, is_clean=True):
        return NotApplicable("LINEAR-CORNERS", f"zeros of {names} could have another sign, which fast_math allows")
    build, instead = ctx.builder(), ctx.builder()
    stacks = Stacks(loop, build)
    refusal = put_stacks(system.inputs, stacks, StepSizes.of(loop, ctx))
    if refusal is not None:
        build.discard()
        return refusal
    inputs = [stacks.full(value) for value in system.inputs]
    initial = [state.initial for state in system.states if const_array(state.initial) is None]
    condition = are_plain(build, [*inputs, *initial], largest, dtype, are_no_minus_zeros=is_clean)
    found = _results(loop, system, [_turned(value, stacks.backwards, instead) for value in inputs], instead, dtype)

    def edit() -> list[ir.Node]:
        return [put_under_if(loop, ctx, build, condition, instead, found)]

    what = f"computed {names} for all {steps} steps at once, by products with the responses of blocks of steps"
    return Patch(f"{what}; an If keeps the loop for what is not finite", edit)


def _results(loop: ScanView, system: System, inputs: list[ir.Value], build: Builder, dtype: np.dtype) -> list[ir.Value | None]:
    """Return the results of the loop; None for those that nobody wants."""
    steps, dims = loop.steps, static_dims(system.states[0].inner)
    assert isinstance(steps, int)
    rows = 1 if not system.is_elementwise else -1 if dims is None else math.prod(dims)
    blocks = Blocks(build, rows, dtype)
    matrices = Matrices(system.step, system.drive, system.more, system.seen, system.through, system.offset)
    parts = [(reshape(build, value, [steps, rows, size]), size) for value, size in zip(inputs, system.input_sizes, strict=True)]
    sizes = list(system.state_sizes)
    initial = concat(
        build, [reshape(build, one.initial, [1, rows, size]) for one, size in zip(system.states, sizes, strict=True)], 2
    )
    stacks, final = blocks.outputs(matrices, parts, initial, steps, system.output_sizes, bool(system.kept))
    count = len(system.states)
    found: list[ir.Value | None] = [None] * count
    if final is not None:
        last = split(build, final, 2, sizes, count) if count > 1 else (final,)
        for place, state in enumerate(system.states):
            if state in system.kept:
                found[place] = _shaped(last[place], None, state.inner, state.initial, build)
    for output, stack in zip(system.outputs, stacks, strict=True):
        found.append(_turned(_shaped(stack, steps, output.inner, system.states[0].initial, build), output.reverse, build))
    return found


def _shaped(value: ir.Value, steps: int | None, inner: ir.Value, like: ir.Value, build: Builder) -> ir.Value:
    """Return ``value`` in the shape of ``inner``, which is that of ``like`` where that is known at run time only."""
    dims, lead = static_dims(inner), [] if steps is None else [steps]
    if dims is not None:
        return reshape(build, value, [*lead, *dims])
    shape, allowzero = build.op("Shape", like), 1 if build.opset >= since.ALLOWZERO else None
    return build.op("Reshape", value, concat(build, [build.const(lead), shape], 0) if lead else shape, allowzero=allowzero)


def _turned(stack: ir.Value, is_backwards: bool, build: Builder) -> ir.Value:
    return slice_axis(build, stack, 0, -1, -_END, -1) if is_backwards else stack


RULE = Rule("constant-filter", "recurrence", "loop", check, recognises=True)
