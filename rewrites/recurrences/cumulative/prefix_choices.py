"""The largest or smallest value so far, and the last value that a loop has taken on, for all steps at once.

An extreme is a scan with the loop's own operator, in its order of operands, so that NaN passes on as in the loop. Of 0 and -0
onnxruntime's Max gives either, by the index of the element in the tensor; here, too. If the loop chooses by a comparison, NaN is
never taken on: here it counts as what is never larger.

    s = Scan(s0, cs, xs) body(s, c, x) => Where(c, x, s)
    ->    last = the largest so far of Where(cs, [1, 2, ...], 0);  s = Gather([s0, *xs], last)

Values that are taken on go through a Where on the side on which the loop has them.

Works round ORT-REDUCED-NAN and ORT-WHERE-MINUS-ZERO.
"""

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.values import rank_of
from rewrites.ops.versions import reduce, squeeze, unsqueeze, where
from rewrites.recurrences.cumulative.accumulation import Accumulation, Choice, aligned, expanded, neutral, rows_of, shaped
from rewrites.recurrences.results import StateUse
from rewrites.scans.associative_scan import AssociativeScan, Ends

__all__ = ["place_extremes", "place_latches"]


def place_extremes(stacks: Stacks, extreme: Accumulation, use: StateUse) -> ir.Value | None:
    """Put the states that are read of all steps into ``stacks``; return the last state if it is read.

    The number of steps must be known if more than the last state is read.
    """
    b, initial = stacks.build, extreme.state.initial
    rows, operator = rows_of(stacks, extreme), _operator(extreme, b)
    if isinstance(extreme, Choice) and initial.dtype is not None and initial.dtype.is_floating_point():
        rows = b.op("Where", b.op("Equal", rows, rows), rows, b.const(neutral(extreme)))
    scan = AssociativeScan(Ends(b, stacks.backwards), initial, operator)
    if not use.before and not use.after:
        return operator(initial, _total(scan, rows, stacks.loop.steps, extreme))
    steps, first = stacks.loop.steps, unsqueeze(b, initial, [0])
    assert isinstance(steps, int)
    return _place(stacks, use, scan.prefixes(rows, steps, first), rows, first)


def _place(stacks: Stacks, use: StateUse, states: ir.Value, rows: ir.Value, first: ir.Value | None = None) -> ir.Value | None:
    """Put ``states`` after each step where they are read; ``first``: the initial state as a row, if there is one."""
    initial, ends = use.state.initial, Ends(stacks.build, stacks.backwards)
    states = shaped(states, rows, initial)
    if use.after:
        stacks.place(use.nexts[0], states)
    if use.before:
        before = ends.led(first or unsqueeze(stacks.build, initial, [0]), ends.but_last(states))
        stacks.place(use.state.inner, shaped(before, rows, initial))
    return ends.last(states) if use.final else None


def _operator(extreme: Accumulation, b: Builder) -> Callable[[ir.Value, ir.Value], ir.Value]:
    """Return the associative operator that combines an earlier state with a later one, as the loop does."""

    def chosen(earlier: ir.Value, later: ir.Value) -> ir.Value:
        return b.op("Where", b.op("Greater" if extreme.op_type == "Max" else "Less", later, earlier), later, earlier)

    def joined(earlier: ir.Value, later: ir.Value) -> ir.Value:
        return b.op(extreme.op_type, *((earlier, later) if extreme.state_first else (later, earlier)))

    return chosen if isinstance(extreme, Choice) else joined


def _total(scan: AssociativeScan, rows: ir.Value, steps: int | str | None, extreme: Accumulation) -> ir.Value:
    """Return the extreme of all steps; NaN if any is."""
    b, kind = scan.ends.b, rows.dtype
    if isinstance(steps, int) and scan.is_wide:
        return squeeze(b, scan.total(rows, steps), [0])
    total = reduce(b, f"Reduce{extreme.op_type}", rows, [0], False)
    if kind is None or not kind.is_floating_point() or isinstance(extreme, Choice):
        return total
    is_nan = b.op("Cast", b.op("IsNaN", rows), to=int(ir.DataType.INT32))
    any_is = b.op("Cast", reduce(b, "ReduceMax", is_nan, [0], False), to=int(ir.DataType.BOOL))
    return where(b, any_is, b.const(np.array(np.nan, kind.numpy())), total)


def place_latches(stacks: Stacks, latch: Accumulation, use: StateUse) -> ir.Value | None:
    """Put the states that are read of all steps into ``stacks``; return the last state if it is read.

    The number of steps must be known.
    """
    b, initial, ends = stacks.build, latch.state.initial, Ends(stacks.build, stacks.backwards)
    steps, rank = stacks.loop.steps, latch.rank
    assert latch.mask is not None
    assert isinstance(steps, int)
    condition, when = latch.mask
    is_one = rank_of(condition) == 0
    rows = rows_of(stacks, latch)
    flags = stacks.full(condition) if is_one else expanded(stacks, aligned(stacks, condition, rank), initial)
    if initial.dtype is not None and initial.dtype.is_floating_point():
        rows = b.op("Where", unsqueeze(b, flags, range(1, 1 + rank)) if is_one else flags, rows, rows)
    numbers = np.arange(1, steps + 1, dtype=np.int32)
    order = b.const((numbers[::-1] if ends.backwards else numbers).reshape(-1, *[1] * (0 if is_one else rank)))
    sides = [order, b.const(np.array(0, np.int32))]
    positions = b.op("Where", flags, *(sides if when else reversed(sides)))
    like = b.const(np.array(0, np.int32)) if is_one else initial
    scan = AssociativeScan(ends, like, lambda earlier, later: b.op("Max", earlier, later))
    last = scan.prefixes(positions, steps, None)
    if ends.backwards:
        last = b.op("Sub", b.const(np.array(steps, np.int32)), last)
    values = ends.led(unsqueeze(b, initial, [0]), rows)
    return _place(stacks, use, b.op("Gather" if is_one else "GatherElements", values, last, axis=0), rows)
