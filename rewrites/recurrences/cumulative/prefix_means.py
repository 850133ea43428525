"""The mean of what a loop has met so far, for all steps at once: by CumSum, and the loop's own last operations behind.

    m = Scan(m0, xs) body(m, x) => m + (x - m) / (t + 1)    ->    before = CumSum(xs) / t;  m = before + (xs - before) / (t + 1)

The means before each step are computed by sums, and from each the loop's step goes on; so an infinite mean becomes what the loop
makes of it, and zeros have its signs. Sums are taken of shares, so small that none overflows where no mean does: a power of two, or
the number of steps, is divided off; but not where the loop computes the sum itself.
"""

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import nodes_behind
from rewrites.base.not_applicable import NotApplicable
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.values import const_array
from rewrites.ops.versions import count_up, unsqueeze
from rewrites.recurrences.cumulative.averages import Average
from rewrites.recurrences.cumulative.rows import Ends, is_filled, rows_of, shaped
from rewrites.recurrences.given_states import Wanted

__all__ = ["place_means"]

_LISTED = 1 << 16


def place_means(stacks: Stacks, found: Average, need: Wanted) -> ir.Value | NotApplicable | None:
    """Put the values of the state that are needed of all steps into ``stacks``; return its last value where that is needed."""
    initial, ends, made = found.state.initial, Ends(stacks.build, stacks.backwards), need.made[0]
    rows = rows_of(stacks, found)
    before = _means_before(stacks, rows, found)
    stacks.place(found.state.inner, shaped(before, rows, initial))
    given = [*stacks.known, *stacks.sources()]
    reason = stacks.add_all(nodes_behind(stacks.body, [made], given))
    if reason is not None:
        return reason
    if need.before:  # what a sum makes of an infinite mean is not what the loop's steps make of it
        known = ends.led(unsqueeze(stacks.build, initial, [0]), ends.but_last(stacks.full(made)))
        stacks.place(found.state.inner, shaped(known, rows, initial))
    return ends.last(stacks.full(made)) if need.final else None


def _means_before(stacks: Stacks, rows: ir.Value, found: Average) -> ir.Value:
    b, initial, ends = stacks.build, found.state.initial, Ends(stacks.build, stacks.backwards)
    whole, first = _whole(stacks, found), b.const(np.array(0, np.int64))
    shares = rows if whole is None else b.op("Div", rows, whole)
    factors, reverse = _factors(stacks, found, whole), 1 if stacks.backwards else None
    if is_filled(initial, 0):
        means = b.op("Mul", b.op("CumSum", shares, first, exclusive=1, reverse=reverse), factors)
        return b.op("Add", means, _number(b, 0, found))  # a sum of nothing but -0 is 0 in a loop that starts from 0
    share = b.op("Mul", unsqueeze(b, initial, [0]), _number(b, found.weight, found))
    share = (
        share if whole is None else b.op("Div", share, whole)
    )  # where it counts for nothing, infinity becomes NaN, as in the loop
    means = b.op("Mul", b.op("CumSum", ends.led(share, ends.but_last(shares)), first, reverse=reverse), factors)
    return means if found.weight else ends.led(unsqueeze(b, initial, [0]), ends.but_first(means))


def _whole(stacks: Stacks, found: Average) -> ir.Value | None:
    """Return what is divided off before sums are taken: at least the number of all that comes, if anything."""
    steps, b, kind = stacks.loop.steps, stacks.build, found.state.initial.dtype
    if found.sums:
        return None
    if isinstance(steps, int):
        return _number(b, 2.0 ** np.ceil(np.log2(steps + found.weight)), found)
    assert kind is not None
    return b.op("Add", b.op("Cast", stacks.steps, to=int(kind)), _number(b, found.weight, found))


def _factors(stacks: Stacks, found: Average, whole: ir.Value | None) -> ir.Value:
    """Return ``whole`` by the number of what came before each step, one number a step; any number where nothing did."""
    b, initial, steps, rank = stacks.build, found.state.initial, stacks.loop.steps, found.rank
    assert initial.dtype is not None
    number = const_array(whole)
    if isinstance(steps, int) and steps <= _LISTED and (whole is None or number is not None):
        numbers = np.maximum(np.arange(steps, dtype=np.float64) + found.weight, 0.5)
        listed = ((1.0 if number is None else number) / numbers).astype(initial.dtype.numpy())
        return b.const((listed[::-1] if stacks.backwards else listed).reshape(-1, *[1] * rank))
    counted = b.op("Cast", stacks.ordered(count_up(b, stacks.steps), False), to=int(initial.dtype))
    counts = b.op("Max", b.op("Add", counted, _number(b, found.weight, found)), _number(b, 0.5, found))
    return unsqueeze(b, b.op("Div", _number(b, 1, found) if whole is None else whole, counts), range(1, 1 + rank))


def _number(b: Builder, number: float, found: Average) -> ir.Value:
    assert found.state.initial.dtype is not None
    return b.const(np.array(number, found.state.initial.dtype.numpy()))
