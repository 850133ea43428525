"""The driver of closed forms, which compute all steps of a loop at once.

A family's rule reads the loop and returns a ``ClosedForm``. The driver asks whether the number of steps, the target and the costs
allow it. It keeps the loop as a fallback if the form does not cover all inputs. It checks the width of the states in each run if
that is unknown before.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base.abilities import Costs
from rewrites.fission.separate import discarding
from rewrites.fission.stacks import not_plain
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.loops import Loop, LoopView, ScanView, State
from rewrites.recurrences.fallback import (
    WrittenForm,
    can_check_width,
    guard_steps,
    guard_width,
    guard_with_fallback,
    is_fallback_loop,
    no_fallback,
    states_of_unknown_width,
)
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, is_to_be_compiled

__all__ = [
    "MARGIN",
    "ClosedForm",
    "first_patch",
    "least_steps",
    "over_budget",
    "passes_ns",
    "plain_scan",
    "plan_is_faster",
    "replace_loop",
    "slower",
    "slower_than_loop",
    "steps_unknown",
    "width_patch",
]

MARGIN = 1.2
"""By what factor a closed form must be faster than the loop, by the estimate."""
_FAR = 1 << 22
"""Bytes of a stack beyond which stacks leave the processor's third cache."""
_WIDTHS = (1024, 512, 256, 128)
"""Sizes to try for each unknown dimension, beside the assumed one."""
_LONGEST = 18
"""The power of 2 up to which numbers of steps are tried."""
_USUAL, _MOST_LEAST = 1 << 12, 512
"""The assumed number of steps, and from how many on a form must pay, if their number is unknown."""


@dataclass(frozen=True)
class ClosedForm:
    """A way to compute all steps of ``loop`` at once.

    Args:
        what: The change in words, for the report.
        unprofitable: Returns why the loop stays, for a number of steps and the sizes that a context assumes.
        write: Writes the form.
        steps: From how many steps on, and up to how many, the form runs if their number is unknown; None if it needs the number.
        needs_fallback: The form does not cover all inputs.
    """

    loop: ScanView
    what: str
    unprofitable: Callable[[int, Context], NotApplicable | None]
    write: Callable[[Context], WrittenForm | NotApplicable]
    steps: tuple[int, int | None] | None = None
    needs_fallback: bool = True

    def patch(self, ctx: Context) -> Patch | NotApplicable:
        """Return the patch that writes the form, or why the loop stays."""
        steps = self.loop.steps
        if not isinstance(steps, int) and self.steps is None:
            return steps_unknown(lambda count: self.unprofitable(count, ctx) is None)
        if isinstance(steps, int) and steps < 1:
            return NOTHING_HERE
        reason = plan_is_faster(self.loop, ctx, "COST-LINEAR", "blocks of steps")
        reason = reason or (no_fallback(ctx) if self.needs_fallback else None)
        return reason or self._if_narrow(ctx)

    def _unprofitable(self, ctx: Context) -> NotApplicable | None:
        return self.unprofitable(self.loop.steps, ctx) if isinstance(self.loop.steps, int) else None

    def _if_narrow(self, ctx: Context) -> Patch | NotApplicable:
        """Return the patch, or one that first puts the loop under an If on the widest states for which the form pays."""
        loop, reason = self.loop, self._unprofitable(ctx)
        if reason is not None:
            return reason
        unknown = states_of_unknown_width(loop, StepSizes.of(loop, ctx))
        if not unknown or not can_check_width(loop, ctx):
            return self._written(ctx)
        with discarding(ctx) as trial_ctx:
            patch = self._written(trial_ctx)
        if isinstance(patch, NotApplicable):
            return patch
        contexts = (replace(ctx, options=replace(ctx.options, assumed_dim=size)) for size in _WIDTHS)
        sizes = StepSizes.of(loop, next((context for context in contexts if self._unprofitable(context) is None), ctx))
        names = ", ".join(f"'{state.inner.name}'" for state in unknown)
        widest = min(sizes.step(state.inner) for state in unknown)
        return width_patch(loop, unknown, widest, ("COST-LINEAR", names, "all steps at once", "each takes"), ctx)

    def _written(self, ctx: Context) -> Patch | NotApplicable:
        form = self.write(ctx)
        return form if isinstance(form, NotApplicable) else replace_loop(self.loop, form, self.what, ctx, self.steps)


def plain_scan(loop: Loop, ctx: Context, opset: int, *, needs_fallback: bool = True) -> ScanView | None:
    """Return ``loop`` as a Scan with states that stacks can replace, or None; a fallback needs no fallback of its own."""
    if isinstance(loop, LoopView) or not loop.states or ctx.opset < opset or not_plain(loop, ctx) is not None:
        return None
    return None if needs_fallback and is_fallback_loop(loop, ctx) else loop


def first_patch(answers: Iterable[Patch | NotApplicable]) -> Patch | NotApplicable:
    """Return the first patch of ``answers``, or the first reason."""
    reason: NotApplicable | None = None
    for answer in answers:
        if isinstance(answer, Patch):
            return answer
        reason = reason or answer
    return reason or NOTHING_HERE


def plan_is_faster(loop: ScanView, ctx: Context, code: str, form: str) -> NotApplicable | None:
    """Return a reason if the library of loop plans takes the loop, which is then faster than ``form``."""
    if not is_to_be_compiled(loop, ctx):
        return None
    return NotApplicable(code, f"the plan of the loop, which is to be compiled, is faster than {form}")


def slower_than_loop(code: str, work: str, loop_ns: float, form_ns: float) -> NotApplicable | None:
    """Return a reason if a closed form does ``work`` not clearly faster than the loop, by the estimates in ns."""
    return None if form_ns * MARGIN < loop_ns else slower(code, work, loop_ns, form_ns)


def slower(code: str, work: str, loop_ns: float, form_ns: float, form: str = "without") -> NotApplicable:
    """Return the reason with both estimates."""
    return NotApplicable(code, f"{work} take about {loop_ns / 1000:.0f} µs in the loop and {form_ns / 1000:.0f} µs {form}")


def passes_ns(costs: Costs, operators: int, size: int, near: int, passes: tuple[int, int, int]) -> float:
    """Return what ``operators`` on stacks of ``size`` bytes take.

    ``passes``: how often they go over the stacks if these stay in the second cache, up to ``near`` bytes, in the third, or in none.
    """
    near_passes, others, far_passes = passes
    bytes_ns = near_passes * costs.near_byte if size <= near else (others if size <= _FAR else far_passes) * costs.far_byte
    return costs.operator * operators + size * bytes_ns


def over_budget(work: str, size: int, ctx: Context, when: str = "at a time") -> NotApplicable | None:
    """Return a reason if ``work`` needs ``size`` bytes, which is more than the memory budget."""
    limit = ctx.options.memory_budget
    return NotApplicable("MEMORY-BUDGET", f"{work} about {size} bytes {when} (limit {limit})") if size > limit else None


def least_steps(usual: int | None, first: int, pays: Callable[[int], bool]) -> int | None:
    """Return from how many steps on, ``first`` or more, a form pays; None if it does not for the ``usual`` number."""
    most = usual or _USUAL
    few = (first << power for power in range(_LONGEST))
    return next((count for count in few if count <= min(most, _MOST_LEAST) and pays(count)), None) if pays(most) else None


def steps_unknown(pays: Callable[[int], bool]) -> NotApplicable:
    """Return the reason for an unknown number of steps, with the number from which on the form ``pays``."""
    count = next((1 << power for power in range(1, _LONGEST) if pays(1 << power)), None)
    ahead = "" if count is None else f"; for {count} or more blocks of steps would be faster, by an estimate"
    return NotApplicable("LINEAR-STEPS", f"how many steps there are is not known before the model runs{ahead}")


def width_patch(
    loop: ScanView, states: list[State], widest: int, words: tuple[str, str, str, str], ctx: Context
) -> Patch | NotApplicable:
    """Return the patch that puts ``loop`` under an If on whether ``states`` have at most ``widest`` bytes a step.

    Args:
        words: The reason code, the names of states, the form, and the start of the condition, for the report.
    """
    code, names, form, condition = words
    if is_fallback_loop(loop, ctx):
        return NotApplicable(code, f"{names} may take more than {widest} bytes a step here, see --shape")
    return Patch(
        f"put {names} under an If: {form} if {condition} at most {widest} bytes a step, else the loop",
        lambda: guard_width(loop, states, widest, ctx),
        (f"by an estimate faster up to {widest} bytes a step; a run with wider states goes step by step",),
    )


def replace_loop(
    loop: ScanView,
    form: WrittenForm,
    what: str,
    ctx: Context,
    steps: tuple[int, int | None] | None = None,
    notes: tuple[str, ...] = (),
) -> Patch:
    """Return the patch that puts ``form`` in the place of ``loop``; ``steps`` bounds their number if the form needs it."""

    def edit() -> list[ir.Node]:
        if form.guard is None:
            form.build.insert_before(loop.node)
            for old, new in form.results.items():
                replace_value(old, new, ctx.names)
            remove_nodes([loop.node])
            return []
        if steps is None or isinstance(loop.steps, int):
            return [guard_with_fallback(loop, form, ctx)]
        return guard_steps(loop, form, steps, ctx)

    if form.guard is not None:
        what += "; an If keeps the loop for what is not finite"
    if steps is not None and not isinstance(loop.steps, int):
        notes = (*notes, f"by an estimate faster from {steps[0]} steps on; a run that has fewer goes step by step")
    return Patch(what, edit, notes)
