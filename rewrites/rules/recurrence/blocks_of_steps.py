"""A loop that would have a form for all steps at once, if their number were known, runs in blocks of so many steps.

    Scan(s0, xs)    ->    If (there are 128 steps or more, and states are no wider than was assumed)
                              s1, ys = Scan over blocks (s0, xs[:n]) body: Scan over the 128 steps of a block
                              If (more are left) then the Scan on s1 and xs[n:], else s1
                          else the Scan as it was

What asked for the number of steps then knows it of the Scan over a block, and takes that out. Fewer steps than a block has run one
by one. Numbers are those of the form that is found.

Conditions: a rule refuses the loop for nothing but the number of its steps, and takes the whole loop over a block; the target
runs Scan and If; opset 14. A loop that is to be compiled stays, where it has a plan. What is scanned backwards stays so.
"""

import math
from dataclasses import replace

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.linear.reading import gives_states_alone
from rewrites.base import since
from rewrites.edits.fission.stackable import not_plain
from rewrites.edits.linear.or_loop import is_kept_loop
from rewrites.edits.recurrence.compiled import is_to_be_compiled
from rewrites.edits.recurrence.step_blocks import Cut, put_in_blocks, tried_on_a_block
from rewrites.edits.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.graph.context import Context, RuleInUse
from rewrites.loops import Loop, LoopView, ScanView

__all__ = ["RULE", "check"]

_ASK_FOR_STEPS = frozenset({"CUMULATIVE-STEPS", "LINEAR-STEPS"})
_LENGTHS = (16, 32, 64, 128, 256, 512)
_USUAL = 128
_WIDTHS = (256, 64, 16, 4, 1)
"""What sizes that are not known may be."""
_BLOCK_NS = 40_000
"""What a block takes beside its steps, about: as much as it saves for one of 64 steps."""


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """See whether a rule takes a loop over a block."""
    if isinstance(loop, LoopView) or not loop.states or isinstance(loop.steps, int) or ctx.opset < since.ALLOWZERO:
        return NOTHING_HERE
    control_flow = ctx.options.target.control_flow
    if not_plain(loop, ctx) is not None or is_kept_loop(loop) or not {"If", "Scan"} <= control_flow:
        return NOTHING_HERE
    asking = [rule for rule in ctx.rules if rule.recognises and _asks_for_steps(rule, loop, ctx)]
    least = _least(loop, asking, ctx) if asking else None
    if least is None:
        return NOTHING_HERE
    if is_to_be_compiled(loop, ctx):
        return NotApplicable("COST-LINEAR", "the plan of the loop, which is to be compiled, is faster than blocks of steps")
    sizes = StepSizes.of(loop, ctx)
    if sizes.steps_known and sizes.steps < least.length:
        return NotApplicable("COST-LINEAR", f"blocks of {least.length} or more steps would be faster, {sizes.steps} are usual")
    cut = replace(least, length=_length(least.length, sizes))
    names, widest = ", ".join(f"'{state.inner.name}'" for state in loop.states), cut.widest(loop, ctx)
    wide = "" if widest is None else f" with at most {widest} numbers in a state"
    return Patch(
        f"put {names} in a loop over blocks of {cut.length} steps, and what is left over behind it",
        lambda: put_in_blocks(loop, cut, ctx),
        (f"by an estimate faster from {cut.length} steps on{wide}; a run that has fewer goes step by step",),
    )


def _asks_for_steps(rule: RuleInUse, loop: ScanView, ctx: Context) -> bool:
    outcome = rule.check(loop, ctx)
    return isinstance(outcome, NotApplicable) and outcome.code in _ASK_FOR_STEPS


def _least(loop: ScanView, rules: list[RuleInUse], ctx: Context) -> Cut | None:
    """Return the shortest blocks that pay, for states as wide as can be."""
    sizes = StepSizes.of(loop, ctx)
    widths = (None,) if all(sizes.hinted(state.inner) for state in loop.states) else _WIDTHS
    cuts = (Cut(length, width) for width in widths for length in _LENGTHS)
    return next((cut for cut in cuts if _is_taken_out(loop, cut, rules, ctx)), None)


def _is_taken_out(loop: ScanView, cut: Cut, rules: list[RuleInUse], ctx: Context) -> bool:
    """Whether one of ``rules`` takes out all of the loop over a block."""
    with tried_on_a_block(loop, cut, ctx) as (block, recorded):
        found = [rule for rule in rules if isinstance(rule.check(block, recorded), Patch)]
    return any(rule.name != "cumulative" or (len(loop.states) == 1 and gives_states_alone(loop)) for rule in found)


def _length(least: int, sizes: StepSizes) -> int:
    """Return how many steps a block is to have: each block has its cost, and half of one is left over."""
    if not sizes.steps_known:
        return max(least, _USUAL)
    best = math.sqrt(2 * sizes.steps * _BLOCK_NS / sizes.options.costs.step)
    return max(least, *(length for length in _LENGTHS if length <= max(best, _LENGTHS[0]) and length <= max(sizes.steps, least)))


RULE = Rule("blocks-of-steps", "recurrence", "loop", check)
