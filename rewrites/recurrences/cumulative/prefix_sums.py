"""Compute running sums, products, means and flags for all steps at once, by CumSum and CumProd.

onnxruntime's CumSum and CumProd add row after row, as the loop does. So each result has the same bits as in the loop, also for NaN,
infinities and overflows. The initial value enters the sum or product in one of three ways:

* It is inserted as row 0.
* If nothing reads the state before each step, the initial value is added to the first row, or multiplied with it (by ScatterND).
* An initial value of 0 for a sum, or 1 for a product, is omitted. If all terms of a sum are -0, the sum would then be -0, while the
  loop returns 0. So 0 is added to the first row or to all sums.

Running means:

    m = Scan(m0, xs) body(m, x) => m + (x - m) / (t + 1)    ->    before = CumSum(xs) / t;  m = before + (xs - before) / (t + 1)

The mean before each step is computed from a sum. The loop's own nodes then compute the mean after the step from the mean before
it. So infinite means and the signs of zeros are those of the loop. The operands are divided by a power of two, or by the number of
steps, before they are added. So no sum overflows unless a mean does. If the loop itself computes the sum, the operands are not
divided.
"""

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import nodes_computing
from rewrites.base import since
from rewrites.base.not_applicable import NotApplicable
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.values import const_array
from rewrites.ops.versions import count_up, reduce, slice_axis, unsqueeze
from rewrites.recurrences.constants import NUMPY
from rewrites.recurrences.cumulative.accumulation import Accumulation, is_filled, put_states, rows_of, shaped
from rewrites.recurrences.cumulative.averages import Average
from rewrites.recurrences.results import StateUse
from rewrites.scans.associative_scan import StackEnds

__all__ = ["place_flags", "place_means", "place_sums", "starts_neutral"]

_COUNTED = 1 << 13
"""The largest number of steps for which a sum of constants becomes a constant."""
_LISTED = 1 << 16
"""The largest number of steps for which the factors of means become a constant."""


def starts_neutral(total: Accumulation) -> bool:
    """Return True if the initial value is neutral: zeros for a sum, ones for a product."""
    return is_filled(total.state.initial, 1 if total.op_type == "Mul" else 0)


def place_sums(stacks: Stacks, total: Accumulation, use: StateUse) -> ir.Value | None:
    """Compute the running sums or products, and put the values that other nodes read into ``stacks``.

    Return the sum or product of all steps if it is read, else None.
    """
    b, initial, ends = stacks.build, total.state.initial, StackEnds(stacks.build, stacks.backwards)
    counted = _constant_states(stacks, total)
    if counted is not None:
        if use.before:
            stacks.set(total.state.inner, b.const(counted[1:] if stacks.backwards else counted[:-1]))
        if use.after:
            stacks.set(use.nexts[0], b.const(counted[:-1] if stacks.backwards else counted[1:]))
        return b.op("Identity", b.const(np.asarray(counted[0 if stacks.backwards else -1]))) if use.final else None
    rows, steps = rows_of(stacks, total), stacks.loop.steps
    has_first = not use.before and isinstance(steps, int) and steps > 0
    adds_initial = has_first and use.after and _may_be_minus_zero(total) and b.opset >= since.SCATTER_REDUCTION
    if starts_neutral(total) and not adds_initial and not (use.before and (use.after or use.final)):
        if use.before:
            stacks.set(
                total.state.inner,
                shaped(_without_minus_zeros(b, _cumulate(stacks, rows, total, exclusive=1), total), rows, initial),
            )
            return None
        if use.after:
            return put_states(stacks, use, rows, _without_minus_zeros(b, _cumulate(stacks, rows, total), total))
        return _without_minus_zeros(b, ends.last(_cumulate(stacks, rows, total)), total)
    if has_first:
        assert isinstance(steps, int)
        return put_states(stacks, use, rows, _cumulate(stacks, _combined_with_initial(stacks, rows, total, steps), total))
    whole = _cumulate(stacks, ends.with_first(unsqueeze(b, initial, [0]), rows), total)
    if use.before:
        stacks.set(total.state.inner, shaped(ends.without_last(whole), rows, initial))
    if use.after:
        stacks.set(use.nexts[0], shaped(ends.without_first(whole), rows, initial))
    return ends.last(whole) if use.final else None


def _combined_with_initial(stacks: Stacks, rows: ir.Value, total: Accumulation, steps: int) -> ir.Value:
    """Return a copy of ``rows`` in which the first step's row contains the initial value.

    The initial value is added to this row, or multiplied with it if ``total`` is a product.
    """
    b, index, initial = stacks.build, steps - 1 if stacks.backwards else 0, total.state.initial
    if b.opset >= since.SCATTER_REDUCTION:
        return b.op("ScatterND", rows, b.const([index]), initial, reduction="mul" if total.op_type == "Mul" else "add")
    first = slice_axis(b, rows, 0, index, index + 1)
    begun = b.op("Mul" if total.op_type == "Mul" else "Add", initial, first)
    return b.op("ScatterND", rows, b.const(np.array([[index]], np.int64)), begun)


def _constant_states(stacks: Stacks, total: Accumulation) -> np.ndarray | None:
    """Compute the initial state and the state after each step in numpy, as one array [steps + 1, ...].

    If the loop runs backwards, the array is in reversed order. Return None if the initial state or the operand is not a constant of
    one element, or if the number of steps is unknown or large.
    """
    initial, number, steps = const_array(total.state.initial), const_array(total.operand), stacks.loop.steps
    if total.mask is not None or initial is None or number is None or initial.size != 1 or number.size != 1:
        return None
    if not isinstance(steps, int) or steps > _COUNTED:
        return None
    rows = np.full((steps + 1, *initial.shape), number.reshape(()), initial.dtype)
    rows[0] = initial
    with np.errstate(all="ignore"):
        numbers = NUMPY[total.op_type].accumulate(rows, dtype=initial.dtype)
    return np.ascontiguousarray(numbers[::-1]) if stacks.backwards else np.asarray(numbers)


def _cumulate(stacks: Stacks, rows: ir.Value, total: Accumulation, exclusive: int | None = None) -> ir.Value:
    kind, reverse = "CumProd" if total.op_type == "Mul" else "CumSum", 1 if stacks.backwards else None
    return stacks.build.op(kind, rows, stacks.build.const(np.array(0, np.int64)), exclusive=exclusive, reverse=reverse)


def _may_be_minus_zero(total: Accumulation) -> bool:
    kind = total.state.initial.dtype
    return total.op_type != "Mul" and kind is not None and kind.is_floating_point()


def _without_minus_zeros(b: Builder, whole: ir.Value, total: Accumulation) -> ir.Value:
    """Return ``whole``, the sums, with each -0 replaced by 0."""
    if whole.dtype is None or not _may_be_minus_zero(total):
        return whole
    return b.op("Add", whole, b.const(np.array(0, whole.dtype.numpy())))


def place_means(stacks: Stacks, mean: Average, use: StateUse) -> ir.Value | NotApplicable | None:
    """Compute the running means, and put the means that other nodes read into ``stacks``.

    Return the mean of all steps if it is read, else None. If the means cannot be computed, return the reason.
    """
    initial, ends, after = mean.state.initial, StackEnds(stacks.build, stacks.backwards), use.nexts[0]
    rows = rows_of(stacks, mean)
    stacks.set(mean.state.inner, shaped(_means_before(stacks, rows, mean), rows, initial))
    reason = stacks.add_all(nodes_computing(stacks.body, [after], [*stacks.replacements, *stacks.sources()]))
    if reason is not None:
        return reason
    if use.before:  # stack the results of the loop's own nodes, because sums treat infinite means differently
        known = ends.with_first(unsqueeze(stacks.build, initial, [0]), ends.without_last(stacks.stack_of(after)))
        stacks.set(mean.state.inner, shaped(known, rows, initial))
    return ends.last(stacks.stack_of(after)) if use.final else None


def _means_before(stacks: Stacks, rows: ir.Value, mean: Average) -> ir.Value:
    b, initial, ends = stacks.build, mean.state.initial, StackEnds(stacks.build, stacks.backwards)
    divisor, first = _divisor(stacks, mean), b.const(np.array(0, np.int64))
    shares = rows if divisor is None else b.op("Div", rows, divisor)
    factors, reverse = _factors(stacks, mean, divisor), 1 if stacks.backwards else None
    if is_filled(initial, 0):
        means = b.op("Mul", b.op("CumSum", shares, first, exclusive=1, reverse=reverse), factors)
        return b.op("Add", means, _number(b, 0, mean))  # a sum of only -0 is 0 in a loop that starts from 0
    share = b.op("Mul", unsqueeze(b, initial, [0]), _number(b, mean.weight, mean))
    if divisor is not None:
        share = b.op("Div", share, divisor)  # an infinite initial mean of weight 0 becomes NaN, as in the loop
    means = b.op("Mul", b.op("CumSum", ends.with_first(share, ends.without_last(shares)), first, reverse=reverse), factors)
    return means if mean.weight else ends.with_first(unsqueeze(b, initial, [0]), ends.without_first(means))


def _divisor(stacks: Stacks, mean: Average) -> ir.Value | None:
    """Return the number by which each operand is divided before the sum; None if operands are not divided.

    The divisor is at least the number of values in the last mean.
    """
    steps, b, kind = stacks.loop.steps, stacks.build, mean.state.initial.dtype
    if mean.sums:
        return None
    if isinstance(steps, int):
        return _number(b, 2.0 ** np.ceil(np.log2(steps + mean.weight)), mean)
    assert kind is not None
    return b.op("Add", b.op("Cast", stacks.steps, to=int(kind)), _number(b, mean.weight, mean))


def _factors(stacks: Stacks, mean: Average, divisor: ir.Value | None) -> ir.Value:
    """Return one factor per step. The sum before the step times this factor is the mean before the step.

    The factor of a step is ``divisor`` (1 if None) divided by the number of values before the step. If there is no value before
    the step, any number may be returned.
    """
    b, initial, steps, rank = stacks.build, mean.state.initial, stacks.loop.steps, mean.rank
    assert initial.dtype is not None
    number = const_array(divisor)
    if isinstance(steps, int) and steps <= _LISTED and (divisor is None or number is not None):
        numbers = np.maximum(np.arange(steps, dtype=np.float64) + mean.weight, 0.5)
        listed = ((1.0 if number is None else number) / numbers).astype(initial.dtype.numpy())
        return b.const((listed[::-1] if stacks.backwards else listed).reshape(-1, *[1] * rank))
    counted = b.op("Cast", stacks.ordered(count_up(b, stacks.steps), False), to=int(initial.dtype))
    counts = b.op("Max", b.op("Add", counted, _number(b, mean.weight, mean)), _number(b, 0.5, mean))
    return unsqueeze(b, b.op("Div", _number(b, 1, mean) if divisor is None else divisor, counts), range(1, 1 + rank))


def _number(b: Builder, number: float, mean: Average) -> ir.Value:
    assert mean.state.initial.dtype is not None
    return b.const(np.array(number, mean.state.initial.dtype.numpy()))


def place_flags(stacks: Stacks, flag: Accumulation, use: StateUse) -> ir.Value | None:
    """Compute the running And or Or of flags by a cumulative count.

    Put the flags that other nodes read into ``stacks``. Return the flag after the last step if it is read, else None.
    """
    b, initial, ends = stacks.build, flag.state.initial, StackEnds(stacks.build, stacks.backwards)
    rows = rows_of(stacks, flag)
    is_all, reverse = flag.op_type == "And", 1 if stacks.backwards else None
    counted = b.op("Cast", b.op("Not", rows) if is_all else rows, to=int(ir.DataType.INT32))
    neutral = is_filled(initial, is_all)

    def flags(count: ir.Value, first: ir.Value) -> ir.Value:
        met = b.op("Cast", count, to=int(ir.DataType.BOOL))
        met = b.op("Not", met) if is_all else met
        return met if neutral else b.op(flag.op_type, first, met)

    def counts(exclusive: int | None) -> ir.Value:
        return b.op("CumSum", counted, b.const(np.array(0, np.int64)), exclusive=exclusive, reverse=reverse)

    lead = unsqueeze(b, initial, [0])
    if use.before:
        stacks.set(flag.state.inner, shaped(flags(counts(1), lead), rows, initial))
    if use.after:
        stacks.set(use.nexts[0], shaped(flags(counts(None), lead), rows, initial))
    if not use.final:
        return None
    if use.after:
        return ends.last(stacks.stack_of(use.nexts[0]))
    return flags(reduce(b, "ReduceMax", counted, [0], False), initial)
