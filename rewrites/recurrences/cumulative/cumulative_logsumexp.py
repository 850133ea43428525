"""Compute a running log-sum-exp for all steps at once.

    Scan(s0, xs) body(s, x) => (m = Max(s, x), s2 = m + Log(Exp(s - m) + Exp(x - m)), s2)
    ->    If (no overflow) then Log(CumSum(Exp(xs - m0)) + Exp(s0 - m0)) + m0 else the Scan as it was    # m0 = Max(s0, xs[0])

``log_sums`` recognises many ways to write the step: the one above, which subtracts the larger operand, ReduceLogSumExp, Softplus,
and the plain ``Log(Exp(s) + Exp(x))``. The If runs the original loop in these cases:

* An infinity or NaN occurs.
* A sum exceeds ``_LARGEST``, so that it would lose precision.
* The numbers are so large that the loop itself overflows.

Otherwise the results differ from those of the loop only by rounding: terms are added in another order, and no logarithm is rounded
between two steps.

Conditions:

* The loop has one state, of type float or double. Its scan outputs are the state before or after each step.
* By the cost estimate, the sums are at least a fifth faster than the loop.
* The target runs Scan and If.
* The loop is not compiled to a plan.
"""

from functools import partial

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import const_array, rank_of
from rewrites.loops import Loop, ScanView
from rewrites.ops.versions import reduce, slice_axis, squeeze
from rewrites.recurrences.closed_form import ANY_NUMBER, ClosedForm, Form, over_budget, plain_scan, slower_than_loop
from rewrites.recurrences.cumulative.accumulation import Accumulation, rows_of
from rewrites.recurrences.cumulative.log_sums import LogSum, log_sums
from rewrites.recurrences.fallback import all_of
from rewrites.recurrences.linear.decay_reader import gives_states_alone
from rewrites.recurrences.results import bind_state, put_stacks
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scans.associative_scan import StackEnds

__all__ = ["RULE", "check"]

_OPERATORS = 30
_LARGEST = float(np.exp(36.0))
_END = 2**63 - 1


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return the patch for a loop whose only state is a running log-sum-exp."""
    scan = plain_scan(loop, ctx, since.CUM_SUM)
    log_sum = next(log_sums(scan, ctx.opset), None) if scan is not None and len(scan.states) == 1 else None
    if scan is None or log_sum is None or not gives_states_alone(scan):
        return NOTHING_HERE
    rank, other, name = rank_of(log_sum.state.inner), rank_of(log_sum.operand), log_sum.state.inner.name
    if rank is None or other is None:
        return NOTHING_HERE
    if other > rank + (log_sum.extra is not None):
        return NotApplicable("RANK-UNKNOWN", f"the operand of '{name}' has more axes than '{name}'")
    sizes = StepSizes.of(scan, ctx)
    return ClosedForm(
        scan,
        f"computed '{name}', a running log-sum-exp, for all steps at once by CumSum",
        partial(_too_slow, scan, log_sum),
        partial(_write_form, log_sum),
        ANY_NUMBER,
        work=("CUMULATIVE-COST", "sums of powers"),
        checks_width=False,
        notes=sizes.memory_note(_stack_bytes(log_sum, sizes), [log_sum.state.next]),
    ).patch(ctx)


def _too_slow(loop: ScanView, log_sum: LogSum, steps: int, ctx: Context) -> NotApplicable | None:
    sizes, costs, name = StepSizes.of(loop, ctx), ctx.options.costs, log_sum.state.inner.name
    numbers = sizes.step_elements(log_sum.state.inner)
    loop_ns = costs.loop_ns(steps, len(loop.body), 0) + steps * numbers * (2 * costs.power + costs.logarithm)
    form_ns = costs.operator * _OPERATORS + steps * numbers * (costs.power + costs.logarithm)
    refusal = over_budget(f"'{name}' takes", _stack_bytes(log_sum, sizes), ctx, "for all steps at once")
    return refusal or slower_than_loop("CUMULATIVE-COST", f"{steps} steps of {numbers} logarithms of sums", loop_ns, form_ns)


def _stack_bytes(log_sum: LogSum, sizes: StepSizes) -> int:
    return 4 * sizes.step_bytes(log_sum.state.inner) * sizes.steps


def _write_form(log_sum: LogSum, stacks: Stacks, inside: Builder, ctx: Context) -> Form | NotApplicable:
    loop, state = stacks.loop, log_sum.state
    refusal = put_stacks([log_sum.operand], stacks, StepSizes.of(loop, ctx))
    if refusal is not None:
        return refusal
    has_steps = any(output.outer is not None for output in loop.scan_outputs)
    sums = _LogSums(stacks, log_sum, has_steps=has_steps)
    condition = sums.is_exact()
    after = sums.after(inside) if has_steps else state.initial
    return bind_state(inside, loop, state, after, last=lambda: sums.last(inside), backwards=stacks.backwards), condition


class _LogSums:
    """Writes the nodes that sum the exponentials of all steps.

    If ``has_steps``, they also compute the sum up to each step.
    """

    def __init__(self, stacks: Stacks, log_sum: LogSum, *, has_steps: bool) -> None:
        b, initial, self._log_sum = stacks.build, log_sum.state.initial, log_sum
        self._ends, self._rows, self._backwards = StackEnds(b, stacks.backwards), _rows(stacks, log_sum), stacks.backwards
        array = const_array(initial)
        is_nothing = array is not None and bool((array == -np.inf).all())
        self._first: ir.Value | None = None
        powers, own = self._rows, None if is_nothing else initial
        if not log_sum.is_power:
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
        """Return the row of the first step: the first of ``rows``, or the last if the loop runs backwards."""
        b = self._ends.b
        return squeeze(b, slice_axis(b, rows, 0, -1, _END) if self._backwards else slice_axis(b, rows, 0, 0, 1), [0])

    def is_exact(self) -> ir.Value:
        """Return a flag that is true if no infinity, NaN or overflow occurs in the sums or in the loop."""
        b, log_sum = self._ends.b, self._log_sum
        answers = [self._below(b.op("ReduceSum", self._last, keepdims=0), _LARGEST)]
        if self._first is None:
            first = self._with(self._row(self._powers), self._own)
            answers.append(b.op("Less", self._number(1 / _LARGEST), b.op("ReduceMin", first, keepdims=0)))
            producer = self._rows.producer()
            if producer is None or producer.op_type != "Exp":
                is_negative = b.op("Less", b.op("ReduceMin", self._rows, keepdims=0), self._number(0))
                answers.append(b.op("Not", is_negative))
        elif np.isfinite(log_sum.largest):
            answers.append(self._below(b.op("ReduceMax", b.op("Abs", self._first), keepdims=0), log_sum.largest))
        if np.isfinite(log_sum.reach) and self._first is not None:
            gap = b.op("Sub", self._first, log_sum.state.initial)
            answers.append(self._below(b.op("ReduceMax", gap, keepdims=0), log_sum.reach))
        return all_of(b, answers)

    def _below(self, value: ir.Value, limit: float) -> ir.Value:
        return self._ends.b.op("Less", value, self._number(limit))

    def _number(self, number: float) -> ir.Value:
        kind = self._log_sum.state.initial.dtype
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
        logarithm = b.op("Log", sums)
        return logarithm if self._first is None else b.op("Add", logarithm, self._first)


def _rows(stacks: Stacks, log_sum: LogSum) -> ir.Value:
    """Return the operands of all steps, shaped [steps, *state axes]."""
    if log_sum.extra is not None:
        return squeeze(stacks.build, stacks.stack_of(log_sum.operand), [log_sum.extra + 1])
    return rows_of(stacks, Accumulation(log_sum.state, "", log_sum.nodes[0], log_sum.operand, (), ()))


RULE = Rule("cumulative-logsumexp", "recurrence", "loop", check, recognises=True, computes="running logarithm of a sum of powers")
