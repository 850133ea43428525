"""The logarithm of the sum of all powers so far, for all steps at once: by CumSum, relative to what is there after the first step.

    m = max(s0, xs[0]);  sums = CumSum(exp(xs - m)) + exp(s0 - m);  s = log(sums) + m

Such a sum is right to the last bits as long as it does not grow beyond ``_LARGEST``, the square of what a rounding is; what is not
finite makes it NaN, or infinite, from there to the last step on.
"""

import numpy as np
import onnx_ir as ir

from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.values import const_array
from rewrites.ops.versions import reduce, slice_axis, squeeze, unsqueeze
from rewrites.recurrences.cumulative.accumulation import Accumulation
from rewrites.recurrences.cumulative.log_sums import LogSum
from rewrites.recurrences.cumulative.rows import Ends, rows_of

__all__ = ["LogSums"]

_LARGEST = float(np.exp(36.0))
_END = 2**63 - 1


class LogSums:
    """The sums of ``found`` up to each step, and of all; ``stacks`` has what is taken up, and its builder takes the operators.

    ``has_steps``: whether more than the last is wanted.
    """

    def __init__(self, stacks: Stacks, found: LogSum, *, has_steps: bool) -> None:
        b, initial, self._found, self._ends = stacks.build, found.state.initial, found, Ends(stacks.build, stacks.backwards)
        self._rows, self._backwards = _rows(stacks, found), stacks.backwards
        array = const_array(initial)
        is_nothing = array is not None and bool((array == -np.inf).all())
        self._first: ir.Value | None = None
        powers, own = self._rows, None if is_nothing else initial
        if not found.is_power:
            self._first = self._row(self._rows)
            self._first = self._first if own is None else b.op("Max", self._first, own)
            powers = b.op("Exp", b.op("Sub", powers, self._first))
            own = None if own is None else b.op("Sub", own, self._first)
        own = None if own is None else b.op("Exp", own)
        self._sums: ir.Value | None = None
        if has_steps:
            axis, reverse = b.const(np.array(0, np.int64)), 1 if stacks.backwards else None
            self._sums = self._with(b.op("CumSum", powers, axis, reverse=reverse), own)
            self._last = self._ends.last(self._sums)
        else:
            self._last = self._with(reduce(b, "ReduceSum", powers, [0], False), own)
        self._powers, self._own = powers, own

    def _with(self, sums: ir.Value, own: ir.Value | None) -> ir.Value:
        return sums if own is None else self._ends.b.op("Add", sums, own)

    def _row(self, rows: ir.Value) -> ir.Value:
        """Return the first step."""
        b = self._ends.b
        return squeeze(b, slice_axis(b, rows, 0, -1, _END) if self._backwards else slice_axis(b, rows, 0, 0, 1), [0])

    def are_right(self) -> ir.Value:
        """Return whether these are the sums of the loop."""
        b, found = self._ends.b, self._found
        answers = [self._below(b.op("ReduceSum", self._last, keepdims=0), _LARGEST)]
        if self._first is None:
            first = self._with(self._row(self._powers), self._own)
            answers.append(b.op("Less", self._number(1 / _LARGEST), b.op("ReduceMin", first, keepdims=0)))
            made = self._rows.producer()
            if made is None or made.op_type != "Exp":
                is_negative = b.op("Less", b.op("ReduceMin", self._rows, keepdims=0), self._number(0))
                answers.append(b.op("Not", is_negative))
        elif np.isfinite(found.largest):
            answers.append(self._below(b.op("ReduceMax", b.op("Abs", self._first), keepdims=0), found.largest))
        if np.isfinite(found.reach) and self._first is not None:
            gap = b.op("Sub", self._first, found.state.initial)
            answers.append(self._below(b.op("ReduceMax", gap, keepdims=0), found.reach))
        answer = answers[0]
        for one in answers[1:]:
            answer = b.op("And", answer, one)
        return answer

    def _below(self, value: ir.Value, limit: float) -> ir.Value:
        return self._ends.b.op("Less", value, self._number(limit))

    def _number(self, number: float) -> ir.Value:
        kind = self._found.state.initial.dtype
        assert kind is not None
        return self._ends.b.const(np.array(number, kind.numpy()))

    def after(self, b: Builder) -> ir.Value:
        """Return the states after each step."""
        assert self._sums is not None
        return self._logarithm(b, self._sums)

    def last(self, b: Builder) -> ir.Value:
        """Return the state after the last step."""
        return self._logarithm(b, self._last)

    def _logarithm(self, b: Builder, sums: ir.Value) -> ir.Value:
        found = b.op("Log", sums)
        return found if self._first is None else b.op("Add", found, self._first)

    def before(self, b: Builder, after: ir.Value) -> ir.Value:
        """Return the states before each step, of those ``after`` each."""
        ends = Ends(b, self._backwards)
        return ends.led(unsqueeze(b, self._found.state.initial, [0]), ends.but_last(after))


def _rows(stacks: Stacks, found: LogSum) -> ir.Value:
    """Return what the state takes up in all steps, with the axes of the state behind the steps."""
    if found.extra is not None:
        return squeeze(stacks.build, stacks.full(found.operand), [found.extra + 1])
    return rows_of(stacks, Accumulation(found.state, found.nodes[0], found.operand, ()))
