"""Replace loops by closed forms, which compute all steps of a loop at once.

The rule of each family of recurrences reads the loop and returns a ``ClosedForm``. ``ClosedForm.patch`` checks that the number of
steps, the target and the costs allow the form. If the form does not cover all inputs, the loop is kept as a fallback. If the width
of the states is unknown, an If checks it in each run.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base.abilities import Costs
from rewrites.fission.separate import discarding_context
from rewrites.fission.stacks import Stacks, stacking_obstacle
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import static_dims
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
    "ANY_NUMBER",
    "MARGIN",
    "ClosedForm",
    "Form",
    "first_patch",
    "least_steps",
    "over_budget",
    "passes_ns",
    "plain_scan",
    "plan_is_faster",
    "slower",
    "slower_than_loop",
    "steps_unknown",
    "width_patch",
]

ANY_NUMBER = (0, None)
"""``ClosedForm.steps`` of a form that runs for any number of steps."""
MARGIN = 1.2
"""The factor by which a closed form must be faster than the loop, by the estimate."""
_FAR = 1 << 22
"""The size of a stack in bytes above which stacks do not fit the processor's third-level cache."""
_WIDTHS = (1024, 512, 256, 128)
"""Sizes to try for each unknown dimension, in addition to the assumed size."""
_LONGEST = 18
"""Numbers of steps are tried up to 2 to this power."""
_USUAL, _MOST_LEAST = 1 << 12, 512
"""If the number of steps is unknown: the number to assume, and the highest minimum that a form may require."""


Form = tuple[Mapping[ir.Value, ir.Value], ir.Value | None]
"""The new value of each used output of a loop, and a flag that is true if the form covers the inputs (None if it covers all)."""


@dataclass(frozen=True)
class ClosedForm:
    """A way to compute all steps of ``loop`` at once.

    Args:
        what: The change in words, for the report.
        cost: Takes a number of steps and a context with assumed sizes. Returns a reason to keep the loop, or None.
        write: Writes the form. Its first argument, the stacks of the loop, collects nodes that always run. Its second argument, a
            builder, collects nodes that run only if the form covers the inputs.
        steps: The least and most steps for which the form runs if their number is unknown. None if it must be known.
        needs_fallback: True if the form does not cover all inputs.
        work: A reason code, and the name of the form. They are used in reasons to keep the loop.
        checks_width: True if an If checks unknown widths of states in each run.
        notes: The assumptions, for the report.
    """

    loop: ScanView
    what: str
    cost: Callable[[int, Context], NotApplicable | None]
    write: Callable[[Stacks, Builder, Context], Form | NotApplicable]
    steps: tuple[int, int | None] | None = None
    needs_fallback: bool = True
    work: tuple[str, str] = ("COST-LINEAR", "blocks of steps")
    checks_width: bool = True
    notes: tuple[str, ...] = ()

    def patch(self, ctx: Context) -> Patch | NotApplicable:
        """Return the patch that writes the form, or the reason to keep the loop.

        If the width of states is unknown, the patch only puts the loop under an If. The If checks that the width is at most the
        largest width for which the form pays off. A later patch then writes the form.
        """
        loop = self.loop
        if not isinstance(loop.steps, int) and self.steps is None:
            return steps_unknown(lambda count: self.cost(count, ctx) is None)
        if isinstance(loop.steps, int) and loop.steps < 1:
            return NOTHING_HERE
        reason = plan_is_faster(loop, ctx, *self.work) or (no_fallback(ctx) if self.needs_fallback else None)
        reason = reason or self._cost_reason(ctx)
        if reason is not None:
            return reason
        unknown = states_of_unknown_width(loop, StepSizes.of(loop, ctx)) if self.checks_width else []
        if not unknown or not can_check_width(loop, ctx):
            return self._form_patch(ctx)
        with discarding_context(ctx) as trial_ctx:
            patch = self._form_patch(trial_ctx)
        if isinstance(patch, NotApplicable):
            return patch
        contexts = (replace(ctx, options=replace(ctx.options, assumed_dim=size)) for size in _WIDTHS)
        sizes = StepSizes.of(loop, next((context for context in contexts if self._cost_reason(context) is None), ctx))
        names = ", ".join(f"'{state.inner.name}'" for state in unknown)
        widest = min(sizes.step_bytes(state.inner) for state in unknown)
        return width_patch(loop, unknown, widest, ("COST-LINEAR", names, "all steps at once", "each takes"), ctx)

    def _cost_reason(self, ctx: Context) -> NotApplicable | None:
        if isinstance(self.loop.steps, int):
            return self.cost(self.loop.steps, ctx)
        return self.cost(StepSizes.of(self.loop, ctx).steps, ctx) if self.steps == ANY_NUMBER else None

    def _form_patch(self, ctx: Context) -> Patch | NotApplicable:
        loop, stacks, inside = self.loop, Stacks(self.loop, ctx.builder()), ctx.builder()
        form = self.write(stacks, inside, ctx)
        if isinstance(form, NotApplicable):
            stacks.build.discard()
            return form
        results, flag = form
        steps = None if isinstance(loop.steps, int) or self.steps == ANY_NUMBER else self.steps

        def edit() -> list[ir.Node]:
            if flag is not None:
                guarded = WrittenForm(stacks.build, results, (flag, inside))
                return [guard_with_fallback(loop, guarded, ctx)] if steps is None else guard_steps(loop, guarded, steps, ctx)
            stacks.build.insert_before(loop.node)
            for old, new in results.items():
                replace_value(old, new, ctx.names)
            remove_nodes([loop.node])
            return []

        what = self.what if flag is None else f"{self.what}; an If keeps the loop for values that are not finite"
        note = () if steps is None else (f"by an estimate faster from {steps[0]} steps on; a run that has fewer goes step by step",)
        return Patch(what, edit, (*self.notes, *note))


def plain_scan(loop: Loop, ctx: Context, opset: int, *, needs_fallback: bool = True) -> ScanView | None:
    """Return ``loop`` if it is a Scan whose states can be replaced by stacks, else None.

    Also return None if the model's opset is below ``opset``, or if ``needs_fallback`` is set and the loop is itself a fallback.
    """
    if isinstance(loop, LoopView) or not loop.states or ctx.opset < opset or stacking_obstacle(loop, ctx) is not None:
        return None
    return None if needs_fallback and is_fallback_loop(loop, ctx) else loop


def first_patch(answers: Iterable[Patch | NotApplicable]) -> Patch | NotApplicable:
    """Return the first patch in ``answers``, or the first reason if there is no patch."""
    reason: NotApplicable | None = None
    for answer in answers:
        if isinstance(answer, Patch):
            return answer
        reason = reason or answer
    return reason or NOTHING_HERE


def plan_is_faster(loop: ScanView, ctx: Context, code: str, form: str) -> NotApplicable | None:
    """Return a reason to keep the loop if a loop plan, which is faster than ``form``, will replace it."""
    if not is_to_be_compiled(loop, ctx):
        return None
    return NotApplicable(code, f"the plan of the loop, which is to be compiled, is faster than {form}")


def slower_than_loop(code: str, work: str, loop_ns: float, form_ns: float) -> NotApplicable | None:
    """Return a reason to keep the loop, or None if a closed form is clearly faster, by estimates.

    ``work``: what the loop and the form compute, in words.
    """
    return None if form_ns * MARGIN < loop_ns else slower(code, work, loop_ns, form_ns)


def slower(code: str, work: str, loop_ns: float, form_ns: float, form: str = "without") -> NotApplicable:
    """Return the reason that the loop is faster than a new form of ``work``, with both estimated times."""
    return NotApplicable(code, f"{work} take about {loop_ns / 1000:.0f} µs in the loop and {form_ns / 1000:.0f} µs {form}")


def passes_ns(costs: Costs, operators: int, size: int, near: int, passes: tuple[int, int, int]) -> float:
    """Return the time in ns of ``operators`` operators on stacks of ``size`` bytes.

    ``passes``: the numbers of passes over the stacks if they fit the second-level cache of ``near`` bytes, if they fit only the
    third-level cache, and if they fit no cache.
    """
    near_passes, others, far_passes = passes
    bytes_ns = near_passes * costs.near_byte if size <= near else (others if size <= _FAR else far_passes) * costs.far_byte
    return costs.operator * operators + size * bytes_ns


def over_budget(work: str, size: int, ctx: Context, when: str = "at a time") -> NotApplicable | None:
    """Return a reason if ``work``, which needs ``size`` bytes of memory, exceeds the memory budget."""
    limit = ctx.options.memory_budget
    return NotApplicable("MEMORY-BUDGET", f"{work} about {size} bytes {when} (limit {limit})") if size > limit else None


def least_steps(loop: ScanView, ctx: Context, first: int, pays: Callable[[int], bool]) -> int | None:
    """Return the least number of steps, at least ``first``, for which a form pays off.

    Return None if the number of steps is known, a state has an unknown size, or the form does not pay off for the usual number.
    """
    rows = [static_dims(state.inner) for state in loop.states]
    if isinstance(loop.steps, int) or any(dims is None or 0 in dims for dims in rows):
        return None
    sizes = StepSizes.of(loop, ctx)
    most = (sizes.steps if sizes.steps_known else 0) or _USUAL
    few = (first << power for power in range(_LONGEST))
    return next((count for count in few if count <= min(most, _MOST_LEAST) and pays(count)), None) if pays(most) else None


def steps_unknown(pays: Callable[[int], bool]) -> NotApplicable:
    """Return the reason that the number of steps is unknown.

    The reason names the least power of 2 for which the form pays off, if any. ``pays(n)``: True if the form pays off for n steps.
    """
    count = next((1 << power for power in range(1, _LONGEST) if pays(1 << power)), None)
    ahead = "" if count is None else f"; for {count} or more steps, blocks of steps would be faster, by an estimate"
    return NotApplicable("LINEAR-STEPS", f"the number of steps is not known before the model runs{ahead}")


def width_patch(
    loop: ScanView, states: list[State], widest: int, words: tuple[str, str, str, str], ctx: Context
) -> Patch | NotApplicable:
    """Return the patch that puts ``loop`` under an If, which checks the width of ``states``.

    The If checks that each of ``states`` has at most ``widest`` bytes a step.

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
