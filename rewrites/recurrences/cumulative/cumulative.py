"""A state to which each step does something associative with what does not depend on it is computed for all steps at once.

    sT, ys = Scan(s0, xs) body(s, x) => (s2 = s + x, s2)    ->    c = CumSum([s0, *xs], axis 0);  sT = c[-1];  ys = c[1:]

Sums and products become CumSum and CumProd (opset 26), equal to the last bit; And and Or a count; Max and Min, also by a choice as
in ``Where(x > s, x, s)``, run in blocks of steps, where the number of steps is known or only the last value is needed, and so does
the last value that was taken on, ``Where(c, x, s)``, such as the argument of the largest; means that are brought up to date in
each step are sums and the step's own last operations; where float32 numbers count the steps, their number must be known, since
those stand still from 2 ** 24 on. Where a condition leaves the state as it was, what changes nothing comes to it. What reads the
state as it was before a step reads the row before.

Conditions: element types that the operators take and treat as the loop does; what comes to the state is computed from scan inputs
and from outside; stacks stay within the memory budget, and steps are narrow enough that going through memory is not slower than
the loop (``forms``); sizes that are not known count as 64 together. If every state of a loop accumulates, and a form without a
kernel of its own stands for one, an If checks their size in each run and keeps the loop for wider steps
(``recurrences/narrow_or_loop.py``). A loop that is to be compiled keeps its states where it has a plan: a sum takes 13 µs
where CumSum takes 17 (1000 steps of 16 numbers), 41 where it takes 96 (1000 of 256), and 2000 where it takes 6900 (4096 of 1024),
a maximum 9 to 47 where blocks take 19 to 325; and other states share its steps.
"""

import math
from itertools import chain

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.dependence import nodes_behind, not_repeatable
from rewrites.base import since
from rewrites.fission.stackable import not_plain
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.graph.marks import ASSUMED_SIZE, ONE_BLOCK
from rewrites.graph.values import bytes_per_element, rank_of, shape_dims, through_identity
from rewrites.loops import Loop, LoopView, ScanView, State
from rewrites.recurrences.cumulative.accumulation import Accumulation, accumulations
from rewrites.recurrences.cumulative.averages import Average, averages
from rewrites.recurrences.cumulative.forms import Form, form_of
from rewrites.recurrences.given_states import Wanted, give, wanted
from rewrites.recurrences.narrow_or_loop import can_ask_for_width, put_under_width_check, states_of_unknown_width, tried_as_narrow
from rewrites.recurrences.or_loop import is_kept_loop
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule, is_to_be_compiled

__all__ = ["RULE", "check"]

_IN_CACHE = 2 << 20
_NO_WHERE = frozenset({ir.DataType.BOOL, ir.DataType.UINT32, ir.DataType.UINT64})
"""Types that have forms, and that onnxruntime's Where does not take."""


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Look for a state that accumulates."""
    if isinstance(loop, LoopView) or not loop.states or ctx.opset < since.CUM_SUM or not_plain(loop, ctx) is not None:
        return NOTHING_HERE
    refusal: NotApplicable | None = None
    for found in chain(accumulations(loop), averages(loop, ctx.opset)):
        answer = _computed(loop, found, ctx)
        if isinstance(answer, Patch):
            return answer
        refusal = refusal or answer
    return refusal or NOTHING_HERE


def _computed(loop: ScanView, found: Accumulation, ctx: Context) -> Patch | NotApplicable:
    form, sizes, need = form_of(found), StepSizes.of(loop, ctx), wanted(loop, found.state, found.makers, found.also)
    reason = (
        _unlike(found, form, ctx)
        or _unknown(loop, found, form, need)
        or _too_much(found, sizes)
        or _too_wide(loop, found, form, need, sizes)
    )
    if reason is not None:
        return reason
    if is_to_be_compiled(loop, ctx):
        return NotApplicable("CUMULATIVE-COST", f"the plan of the loop, which is to be compiled, is faster than {form.name}")
    stacks = Stacks(loop, ctx.builder())
    reason = _operand_refused(stacks, found, sizes)
    if reason is not None:
        stacks.build.discard()
        return reason
    final = form.place(stacks, found, need)
    if isinstance(final, NotApplicable):
        stacks.build.discard()
        return final
    widest = _widest(loop, found, form, need, sizes)
    unknown = [] if widest is None else states_of_unknown_width(loop, sizes)
    if widest is not None and form.loses_when_wide and unknown and can_ask_for_width(loop, ctx) and _takes_every_state(loop, ctx):
        stacks.build.discard()
        return _if_narrow(loop, found, form, unknown, widest, ctx)

    def edit() -> list[ir.Node]:
        return give(loop, need, stacks, final, ctx)

    what = f"computed '{found.state.inner.name}' for all steps at once by {form.name}"
    return Patch(what, edit, sizes.note(_taken(found, sizes), need.made))


def _if_narrow(
    loop: ScanView, found: Accumulation, form: Form, unknown: list[State], widest: int, ctx: Context
) -> Patch | NotApplicable:
    """Return the patch that puts ``loop`` under an If on the width of its states, unless it is the fallback of one."""
    name = found.state.inner.name
    if is_kept_loop(loop, ctx):
        return NotApplicable("CUMULATIVE-COST", f"'{name}' may take more than {widest} bytes a step here, see --shape")
    return Patch(
        f"put '{name}' under an If: {form.name} if the states take at most {widest} bytes a step, else the loop",
        lambda: put_under_width_check(loop, unknown, widest, ctx),
        (f"by an estimate faster up to {widest} bytes a step; a run with wider states goes step by step",),
    )


def _takes_every_state(loop: ScanView, ctx: Context) -> bool:
    """Return True if this rule leaves no state in ``loop``; an If around what is left would hold it twice."""
    if len(loop.states) == 1:
        return True
    with tried_as_narrow(loop, ctx) as (copy, trial_ctx):
        rest = copy
        while rest.states:
            patch = check(rest, trial_ctx)
            if not isinstance(patch, Patch):
                return False
            nodes = patch.edit()
            if not nodes:
                break
            rest = ScanView.of(nodes[0], ctx.opset)
    return True


def _unlike(found: Accumulation, form: Form, ctx: Context) -> NotApplicable | None:
    """Return a reason where the form is none for what the loop does."""
    name, kind = found.state.inner.name, found.state.initial.dtype
    if kind not in form.types or (found.mask is not None and kind in _NO_WHERE):
        said = "elements of a type that is not known" if kind is None else kind.name
        return NotApplicable("CUMULATIVE-TYPE", f"'{name}' cannot be computed by {form.name} with {said} as in the loop")
    if ctx.opset < form.since:
        return NotApplicable(
            "CUMULATIVE-OPSET", f"'{name}' could be computed by {form.name} in opset {form.since}, not in {ctx.opset}"
        )
    rank, others = rank_of(found.state.inner), [rank_of(value) for value in found.given]
    if rank is None or any(other is None or other > rank for other in others):
        return NotApplicable("RANK-UNKNOWN", f"the rank of '{name}', or of what comes to it, is not known")
    return None


def _unknown(loop: ScanView, found: Accumulation, form: Form, need: Wanted) -> NotApplicable | None:
    if isinstance(found, Average) and found.exact_to is not None and not isinstance(loop.steps, int):
        said = f"what counts the steps is exact up to {found.exact_to} only, and their number is not known"
        return NotApplicable("CUMULATIVE-STEPS", f"'{need.state.inner.name}' could be computed by {form.name}, but {said}")
    if not form.by_blocks or isinstance(loop.steps, int) or not (need.before or need.after or form.for_last):
        return None
    detail = f"'{need.state.inner.name}' could be computed by {form.name} if their number were known"
    return NotApplicable("CUMULATIVE-STEPS", detail)


def _too_much(found: Accumulation, sizes: StepSizes) -> NotApplicable | None:
    """Return a reason where stacks of the state break the memory budget: with the initial value, and with its results."""
    made = found.node.outputs[0]
    reason = sizes.not_a_stack(made)
    if reason is not None:
        return reason
    taken, limit = _taken(found, sizes), sizes.options.memory_budget
    if taken > limit:
        return NotApplicable("MEMORY-BUDGET", f"'{made.name}' takes about {taken} bytes for all steps at once (limit {limit})")
    return None


def _taken(found: Accumulation, sizes: StepSizes) -> int:
    return 2 * sizes.step(found.state.inner) * sizes.steps


def _too_wide(loop: ScanView, found: Accumulation, form: Form, need: Wanted, sizes: StepSizes) -> NotApplicable | None:
    """Return a reason where stacks of the state are so large that the loop, which stays in the cache, is faster."""
    width, widest = _width(found.state.inner, sizes), _widest(loop, found, form, need, sizes)
    if widest is None or width <= widest:
        return None
    name = found.state.inner.name
    return NotApplicable(
        "CUMULATIVE-COST", f"'{name}' takes about {width} bytes a step, {widest} at most would be faster by {form.name}"
    )


def _widest(loop: ScanView, found: Accumulation, form: Form, need: Wanted, sizes: StepSizes) -> int | None:
    """Return how many bytes a step of the state may have for the form to be faster; None for any number."""
    read = through_identity(found.operand) in [scan.inner for scan in loop.scan_inputs]
    returned = any(value in sizes.stacked for alike in need.values for value in alike)
    widest = form.widest(found, read and returned)
    if widest is None or not sizes.steps_known or ONE_BLOCK.on(loop.node):
        return widest
    return max(widest, min(_IN_CACHE // sizes.steps, form.widest_cached or _IN_CACHE))


def _width(value: ir.Value, sizes: StepSizes) -> int:
    """Return the bytes of a step of ``value``, for which all of its sizes that are not known are taken as one.

    An If checks the size before each run, unless other states stay in the loop. If an If has checked what was assumed of each, so
    much is let through.
    """
    if ASSUMED_SIZE.on(sizes.loop.node):
        return sizes.step(value)
    known = sizes.options.sizes
    shape = [None] if value.shape is None else shape_dims(value.shape)
    dims = [dim if isinstance(dim, int) else known.get(dim or "") for dim in shape]
    numbers = [dim for dim in dims if dim is not None]
    assumed = sizes.options.assumed_dim if len(numbers) < len(dims) else 1
    return math.prod([*numbers, bytes_per_element(value), assumed])


def _operand_refused(stacks: Stacks, found: Accumulation, sizes: StepSizes) -> NotApplicable | None:
    """Put what comes to the state into ``stacks``; return a reason where it cannot be had for all steps."""
    nodes = nodes_behind(stacks.body, found.given)
    for node in nodes:
        reason = not_repeatable(node) or next((why for value in node.outputs if (why := sizes.not_a_stack(value))), None)
        if reason is not None:
            return reason
    return stacks.add_all(nodes)


RULE = Rule("cumulative", "recurrence", "loop", check, recognises=True)
