"""A state to which each step adds as logarithms of what they stand for is computed for all steps at once.

    Scan(s0, xs) body(s, x) => (m = Max(s, x), s2 = m + Log(Exp(s - m) + Exp(x - m)), s2)
    ->    If (that does) then Log(CumSum(Exp(xs - m0)) + Exp(s0 - m0)) + m0 else the Scan as it was    # m0 = Max(s0, xs[0])

However the step is spelled (``recurrences/cumulative/log_sums.py``): by the larger of both, ReduceLogSumExp, Softplus, or plainly.
The loop stays, in the other branch of the If, for what is not finite, sums that grow by 36 and more after the first step, and
numbers for which the spelling overflows. Sums come in another order, and logarithms of sums are not rounded in each step; nothing
else is different.

Conditions: the state is the only one, and scan outputs are the state, before or after each step; float or double; it is faster than
the loop by a fifth; the target runs Scan and If. A loop that is to be compiled stays, where it has a plan.
"""

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.fission.stackable import not_plain
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.graph.values import rank_of, through_identity
from rewrites.loops import Loop, LoopView, ScanView
from rewrites.ops.versions import slice_axis
from rewrites.recurrences.cumulative.log_sums import LogSum, log_sums
from rewrites.recurrences.cumulative.prefix_log_sums import LogSums
from rewrites.recurrences.linear.drive_rows import put_stacks
from rewrites.recurrences.or_loop import is_kept_loop, put_under_if
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule, is_to_be_compiled

__all__ = ["RULE", "check"]

_OPERATORS = 30
_MARGIN = 1.2
_END = 2**63 - 1


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """See whether the only state is such a sum."""
    if isinstance(loop, LoopView) or len(loop.states) != 1 or ctx.opset < since.CUM_SUM or not_plain(loop, ctx) is not None:
        return NOTHING_HERE
    found = None if is_kept_loop(loop, ctx) else next(log_sums(loop, ctx.opset), None)
    if found is None:
        return NOTHING_HERE
    seen = (found.state.inner, through_identity(found.state.next))
    rank, other = rank_of(found.state.inner), rank_of(found.operand)
    if any(through_identity(output.inner) not in seen for output in loop.scan_outputs) or rank is None or other is None:
        return NOTHING_HERE
    if other > rank + (found.extra is not None):
        return NotApplicable("RANK-UNKNOWN", f"what comes to '{found.state.inner.name}' has more axes than that")
    if is_to_be_compiled(loop, ctx):
        return NotApplicable("CUMULATIVE-COST", "the plan of the loop, which is to be compiled, is faster than sums of powers")
    if not ctx.options.target.loops or "If" not in ctx.options.target.control_flow:
        return NotApplicable("LINEAR-CORNERS", "a target without Scan and If could not keep the loop for what is not finite")
    return _unfit(loop, found, StepSizes.of(loop, ctx)) or _at_once(loop, found, ctx)


def _unfit(loop: ScanView, found: LogSum, sizes: StepSizes) -> NotApplicable | None:
    state = found.state.inner
    most, limit = _taken(found, sizes), sizes.options.memory_budget
    if most > limit:
        return NotApplicable("MEMORY-BUDGET", f"'{state.name}' takes about {most} bytes for all steps at once (limit {limit})")
    numbers, costs = sizes.elements(state), sizes.options.costs
    in_loop = costs.loop_ns(sizes.steps, len(loop.body), 0) + sizes.steps * numbers * (2 * costs.power + costs.logarithm)
    at_once = costs.operator * _OPERATORS + sizes.steps * numbers * (costs.power + costs.logarithm)
    if at_once * _MARGIN < in_loop:
        return None
    took = f"take about {in_loop / 1000:.0f} µs in the loop and {at_once / 1000:.0f} µs without"
    return NotApplicable("CUMULATIVE-COST", f"{sizes.steps} steps of {numbers} logarithms of sums {took}")


def _at_once(loop: ScanView, found: LogSum, ctx: Context) -> Patch | NotApplicable:
    build, instead, sizes = ctx.builder(), ctx.builder(), StepSizes.of(loop, ctx)
    stacks = Stacks(loop, build)
    refusal = put_stacks([found.operand], stacks, sizes)
    if refusal is not None:
        build.discard()
        return refusal
    outer = [output.outer is not None for output in loop.scan_outputs]
    sums = LogSums(stacks, found, has_steps=any(outer))
    condition = sums.are_right()
    results = dict[ir.Value, ir.Value]()
    after = sums.after(instead) if any(outer) else None
    for output in loop.scan_outputs:
        if output.outer is not None and after is not None:
            stack = sums.before(instead, after) if through_identity(output.inner) is found.state.inner else after
            turned = output.reverse != stacks.backwards
            results[output.outer] = slice_axis(instead, stack, 0, -1, -_END, -1) if turned else stack
    final = found.state.final
    if final is not None and (final.uses() or final.is_graph_output()):
        results[final] = sums.last(instead)

    def edit() -> list[ir.Node]:
        return [put_under_if(loop, ctx, build, condition, instead, [results.get(value) for value in loop.node.outputs])]

    what = f"computed '{found.state.inner.name}', the logarithm of a sum of powers, for all steps at once by CumSum"
    return Patch(f"{what}; an If keeps the loop for what is not finite", edit, sizes.note(_taken(found, sizes), [found.state.next]))


def _taken(found: LogSum, sizes: StepSizes) -> int:
    return 4 * sizes.step(found.state.inner) * sizes.steps


RULE = Rule("cumulative-logsumexp", "recurrence", "loop", check, recognises=True)
