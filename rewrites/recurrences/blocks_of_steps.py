"""A loop that would have a form for all steps at once, if their number were known, runs in blocks of so many steps.

    Scan(s0, xs)    ->    If (there are 128 steps or more, and states are no wider than was assumed)
                              s1, ys = Scan over blocks (s0, xs[:n]) body: Scan over the 128 steps of a block
                              If (more are left) then the Scan on s1 and xs[n:], else s1
                          else the Scan as it was

The rule that needs the number of steps then takes out the Scan over a block. Fewer steps than a block has run one by one.

Conditions: a rule refuses the loop only because the number of steps is unknown, or there are several states; rules take out the
whole loop over a block, at once or part after part, and not as a native cell; the target runs Scan and If; opset 14. A loop that is
to be compiled stays, if it has a plan. Directions stay as they are.
"""

import math
from dataclasses import replace

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.graph.context import Context, RuleInUse
from rewrites.loops import Loop, ScanView
from rewrites.recurrences.closed_form import plain_scan, plan_is_faster
from rewrites.recurrences.step_blocks import StepCut, put_in_blocks, tried_on_a_block
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_ASK_FOR_STEPS = frozenset({"CUMULATIVE-STEPS", "LINEAR-STEPS"})
_BY_STATES = "cumulative"
"""The rule that takes out one state at a time."""
_CUTTING = ("recurrence", "fission")
_MOST = 4
"""How many patches are tried for each state."""
_LENGTHS = (16, 32, 64, 128, 256, 512)
_USUAL = 128
_WIDTHS = (256, 64, 16, 4, 1)
"""Sizes that unknown ones may have."""
_BLOCK_NS = 40_000
"""What a block takes beside its steps, about as much as it saves for 64 steps."""


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return the patch for a loop that rules take out once it is over a block."""
    scan = plain_scan(loop, ctx, since.ALLOWZERO)
    if scan is None or isinstance(scan.steps, int) or not {"If", "Scan"} <= ctx.options.target.control_flow:
        return NOTHING_HERE
    answers = [rule.check(scan, ctx) for rule in ctx.rules if rule.recognises]
    needs_steps = any(isinstance(answer, NotApplicable) and answer.code in _ASK_FOR_STEPS for answer in answers)
    least = _least(scan, ctx) if needs_steps or len(scan.states) > 1 else None
    if least is None:
        return NOTHING_HERE
    return plan_is_faster(scan, ctx, "COST-LINEAR", "blocks of steps") or _in_blocks(scan, least, ctx)


def _in_blocks(loop: ScanView, least: StepCut, ctx: Context) -> Patch | NotApplicable:
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


def _least(loop: ScanView, ctx: Context) -> StepCut | None:
    """Return the shortest blocks that pay, for states as wide as can be."""
    sizes = StepSizes.of(loop, ctx)
    widths = (None,) if all(sizes.hinted(state.inner) for state in loop.states) else _WIDTHS
    if not _is_taken_out(loop, StepCut(_LENGTHS[-1], widths[-1]), ctx):  # the most that could be asked for
        return None
    cuts = (StepCut(length, width) for width in widths for length in _LENGTHS)
    return next((cut for cut in cuts if _is_taken_out(loop, cut, ctx)), None)


def _is_taken_out(loop: ScanView, cut: StepCut, ctx: Context) -> bool:
    """Return True if rules take out all of the loop over a block: one of them, or one after the other."""
    with tried_on_a_block(loop, cut, ctx) as (block, recorded):
        left = [block]
        for _ in range(_MOST * len(loop.states)):
            choice = _first(left.pop(), recorded)
            if choice is None:
                return False
            rule, patch = choice
            if not rule.recognises or rule.name == _BY_STATES:
                left += [ScanView.of(node, ctx.opset) for node in patch.edit()]
            if not left:
                return True
    return False


def _first(loop: ScanView, ctx: Context) -> tuple[RuleInUse, Patch] | None:
    """Return the first rule that would cut ``loop``, or take something out of it, and how; None for a native cell.

    Cells know their price for any number of steps.
    """
    for rule in ctx.rules:
        if rule.subject == "loop" and rule.phase in _CUTTING and rule.name != RULE.name:
            answer = rule.check(loop, ctx)
            if isinstance(answer, Patch):
                return None if answer.made.native else (rule, answer)
    return None


def _length(least: int, sizes: StepSizes) -> int:
    """Return how many steps a block is to have: each block has its cost, and half of one is left over."""
    if not sizes.steps_known:
        return max(least, _USUAL)
    best = math.sqrt(2 * sizes.steps * _BLOCK_NS / sizes.options.costs.step)
    return max(least, *(length for length in _LENGTHS if length <= max(best, _LENGTHS[0]) and length <= max(sizes.steps, least)))


RULE = Rule("blocks-of-steps", "recurrence", "loop", check)
