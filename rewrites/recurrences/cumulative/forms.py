"""The closed forms of states that accumulate, with the types and row sizes for which they are used.

``prefix_sums`` writes the forms of sums, means and flags. This module writes the other forms, and lists all of them in ``_FORMS``.

Max, Min, and products of integers before opset 26 become associative scans. The scan uses the loop's own operator with the same
order of operands, so that NaN propagates as in the loop. For operands 0 and -0, onnxruntime's Max returns either of them, both in
the loop and in the scan. A loop that chooses by a comparison, ``Where(x > s, x, s)``, never chooses NaN, so the scan replaces NaN
operands by the neutral element. Products use no ReduceProd, because onnxruntime's does not wrap around as Mul does.

For latches, the form finds the last step that changed the state:

    s = Scan(s0, cs, xs) body(s, c, x) => Where(c, x, s)
    ->    last = running maximum of Where(cs, [1, 2, ...], 0);  s = Gather([s0, *xs], last)

Speed compared with the loop, measured on onnxruntime 1.32 with one thread:

* Sums and products, if the number of steps is unknown: at least 2.5 times faster for rows of 2 KiB, 1.3 to 1.9 times faster for
  rows of 8 KiB, and equally fast for rows of 16 KiB.
* Max and Min: twice as fast for rows of 1 KiB, and equally fast for rows of 4 KiB while the stacks stay in the cache.
* Choices by a comparison and latches: equally fast for rows of 2 KiB.

Works around ORT-REDUCED-NAN and ORT-WHERE-MINUS-ZERO.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.base.not_applicable import NotApplicable
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.values import rank_of, through_identity
from rewrites.ops.versions import reduce, squeeze, unsqueeze, where
from rewrites.recurrences.cumulative.accumulation import Accumulation, aligned, expanded, neutral, put_states, rows_of
from rewrites.recurrences.cumulative.prefix_sums import place_flags, place_means, place_sums, starts_neutral
from rewrites.recurrences.results import StateUse
from rewrites.scans.associative_scan import AssociativeScan, StackEnds

__all__ = ["PrefixForm", "form_of"]


@dataclass(frozen=True)
class PrefixForm:
    """The closed form of one kind of accumulation.

    Args:
        name: The name of the form in reports.
        place: Function that writes the nodes of the form. It puts the states that other nodes read into the stacks. It returns the
            last state, or None if nothing reads it.
        types: The element types for which the form computes the same as the loop.
        since: The first opset that has the operators of the form.
        widest_new: The row size in bytes up to which the form is not slower than the loop.
        widest_returned: Replaces ``widest_new`` for a loop that already scans the operands and returns the stacked states.
        by_blocks: True if the number of steps must be known, unless only the last value is read.
        for_last: True if the number of steps must be known even if only the last value is read.
        widest_cached: A larger row size that is allowed if the stacks fit the processor's cache. None allows any row size then.
    """

    name: str
    place: Callable[[Stacks, Any, StateUse], ir.Value | NotApplicable | None]
    types: frozenset[ir.DataType]
    since: int
    widest_new: int
    widest_returned: int
    by_blocks: bool = False
    for_last: bool = False
    widest_cached: int | None = None

    @property
    def loses_when_wide(self) -> bool:
        """Return True if the form is much slower than the loop for wide rows.

        Return False for sums and products, which are only a little slower.
        """
        return self.place is not place_sums

    def widest(self, total: Accumulation, returned: bool) -> int | None:
        """Return the row size in bytes up to which the form is not slower than the loop; None for no limit.

        ``returned``: True if the loop already scans the operands and returns the stacked states.
        """
        if returned and self.place is place_sums and starts_neutral(total):
            return None
        return self.widest_returned if returned else self.widest_new


def form_of(total: Accumulation, opset: int) -> PrefixForm:
    """Return the closed form for the accumulation ``total`` in ``opset``."""
    if total.op_type == "Mul" and opset < _PRODUCTS.since and total.state.initial.dtype in _INTEGER_PRODUCTS.types:
        return _INTEGER_PRODUCTS
    return _CHOICES if total.is_choice else _FORMS[total.op_type]


def _place_extremes(stacks: Stacks, extreme: Accumulation, use: StateUse) -> ir.Value | None:
    b, initial, steps = stacks.build, extreme.state.initial, stacks.loop.steps
    rows, operator = rows_of(stacks, extreme), _operator(extreme, b)
    if extreme.is_choice and initial.dtype is not None and initial.dtype.is_floating_point():
        rows = b.op("Where", b.op("Equal", rows, rows), rows, b.const(neutral(extreme)))
    scan = AssociativeScan(StackEnds(b, stacks.backwards), initial, operator)
    if not use.before and not use.after:
        return operator(initial, _total(scan, rows, steps, extreme))
    first = unsqueeze(b, initial, [0])
    assert isinstance(steps, int)
    return put_states(stacks, use, rows, scan.prefixes(rows, steps, first), first)


def _operator(extreme: Accumulation, b: Builder) -> Callable[[ir.Value, ir.Value], ir.Value]:
    """Return a function that combines an earlier state with a later one by the loop's operator.

    The function keeps the loop's order of operands.
    """

    def chosen(earlier: ir.Value, later: ir.Value) -> ir.Value:
        return b.op("Where", b.op("Greater" if extreme.op_type == "Max" else "Less", later, earlier), later, earlier)

    def joined(earlier: ir.Value, later: ir.Value) -> ir.Value:
        return b.op(extreme.op_type, *((earlier, later) if state_first else (later, earlier)))

    state_first = through_identity(extreme.node.inputs[0]) is extreme.state.inner
    return chosen if extreme.is_choice else joined


def _total(scan: AssociativeScan, rows: ir.Value, steps: int | str | None, extreme: Accumulation) -> ir.Value:
    """Return the maximum, minimum or product of all steps.

    If an operand is NaN, the result is NaN, unless the loop chooses by a comparison.
    """
    b, kind = scan.ends.b, rows.dtype
    if isinstance(steps, int) and (scan.is_wide or extreme.op_type == "Mul"):
        return squeeze(b, scan.total(rows, steps), [0])
    total = reduce(b, f"Reduce{extreme.op_type}", rows, [0], False)
    if kind is None or not kind.is_floating_point() or extreme.is_choice:
        return total
    is_nan = b.op("Cast", b.op("IsNaN", rows), to=int(ir.DataType.INT32))
    any_is = b.op("Cast", reduce(b, "ReduceMax", is_nan, [0], False), to=int(ir.DataType.BOOL))
    return where(b, any_is, b.const(np.array(np.nan, kind.numpy())), total)


def _place_latches(stacks: Stacks, latch: Accumulation, use: StateUse) -> ir.Value | None:
    b, initial, ends = stacks.build, latch.state.initial, StackEnds(stacks.build, stacks.backwards)
    steps, rank = stacks.loop.steps, latch.rank
    assert latch.mask is not None
    assert isinstance(steps, int)
    condition, when = latch.mask
    is_one = rank_of(condition) == 0
    rows = rows_of(stacks, latch)
    flags = stacks.stack_of(condition) if is_one else expanded(stacks, aligned(stacks, condition, rank), initial)
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
    values = ends.with_first(unsqueeze(b, initial, [0]), rows)
    return put_states(stacks, use, rows, b.op("Gather" if is_one else "GatherElements", values, last, axis=0))


_KIB = 1 << 10
_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
_NUMBERS = _FLOATS | {ir.DataType.INT32, ir.DataType.INT64}
_UNSIGNED = frozenset({ir.DataType.UINT32, ir.DataType.UINT64})
_SMALL = frozenset({ir.DataType.FLOAT16, ir.DataType.UINT8, ir.DataType.INT8, ir.DataType.INT16})
_SUMS = PrefixForm("CumSum", place_sums, _NUMBERS, since.CUM_SUM, 8 * _KIB, 8 * _KIB)
_PRODUCTS = replace(_SUMS, name="CumProd", types=_NUMBERS | _UNSIGNED, since=since.CUM_PROD)
_MEANS = PrefixForm("CumSum", place_means, _FLOATS, since.CUM_SUM, 2 * _KIB, 2 * _KIB)
_FLAGS = PrefixForm("counting", place_flags, frozenset({ir.DataType.BOOL}), since.CUM_SUM, 256, 256)
_CHOICES = PrefixForm("blocks of steps", _place_extremes, _NUMBERS, since.ALLOWZERO, _KIB, _KIB, True, widest_cached=_KIB)
_EXTREMES = replace(_CHOICES, widest_cached=3 * _KIB)
_INTEGER_PRODUCTS = replace(_EXTREMES, types=frozenset({ir.DataType.INT32, ir.DataType.INT64}), for_last=True)
_LATCH_TYPES, _LATCH_NAME = _NUMBERS | _SMALL, "the last step that took a value on"
_LATCHES = replace(_CHOICES, name=_LATCH_NAME, place=_place_latches, types=_LATCH_TYPES, for_last=True)
_FORMS = {
    "Add": _SUMS,
    "Sub": _SUMS,
    "Mul": _PRODUCTS,
    "Max": _EXTREMES,
    "Min": _EXTREMES,
    "And": _FLAGS,
    "Or": _FLAGS,
    "Latch": _LATCHES,
    "Mean": _MEANS,
}
