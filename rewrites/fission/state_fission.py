"""Splits a loop whose states do not all need each other into two loops if work can then leave.

    Scan(h0, k0, xs) body(h, k, x) => (h2 = Sin(x + h @ R), k2 = Sin(h2 @ W + k @ S))
    ->    hs = Scan(h0, xs) body(h, x) => (h2, h2);  Scan(k0, hs) body(k, g) => (k2 = Sin(g @ W + k @ S))    and then hs @ W leaves

The second loop reads the values of the first loop from stacks (hs). If it needs the previous value of a state of the first loop,
the stack starts with the initial value of this state. The rule cuts a loop in three cases, and may cut the two new loops again:

* A rule that recognises recurrences can replace a loop with only some of the states. Or such a loop can be compiled although the
  original loop cannot.
* No state of the second loop needs its own previous value. All work of the second loop can then leave it, so that no second loop
  remains. This work must have operators other than copies.
* The work between the two parts can run for all steps at once, such as hs @ W above. The time that this saves must exceed the time
  that the second loop costs by more than a fifth. Moving an operator saves 250 ns per step, plus the time for reading weights that
  multiply few rows. The second loop costs 1000 ns per step, plus 300 ns for each value that it reads from a stack (``step_costs``).

The cut nearest to the middle is tried first. Each cut carries the least data from the first loop to the second, and its stacks must
fit in the memory budget. Loops that ``loop-fission`` does not support stay unchanged.
"""

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from rewrites.analysis.cut.components import Components, find_components
from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.cut.step_costs import loop_start_ns, saved_ns, weight_bytes
from rewrites.analysis.dependence import is_deterministic, unread_nodes
from rewrites.base.plain_text import counted, listed
from rewrites.batching import has_rule
from rewrites.fission.before import find_before
from rewrites.fission.separate import copy_to_new_loop, trial_loop
from rewrites.fission.stacks import Stacks, stacking_obstacle
from rewrites.fission.state_cut import StateCut, find_cut, stack_of
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, take_over
from rewrites.graph.values import through_identity
from rewrites.loops import Loop, LoopView, ScanInput, ScanOutput, ScanView, State, rebuild
from rewrites.loops.own_results import give_own_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule, is_to_be_compiled

__all__ = ["RULE", "check"]


_MOST_STATES = 256
_MOST_COMPONENTS = 32


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch that moves some states to a second loop if this is faster."""
    if isinstance(loop, LoopView) or not 2 <= len(loop.states) <= _MOST_STATES or stacking_obstacle(loop, ctx) is not None:
        return NOTHING_HERE
    components = find_components(loop)
    count = len(components.members)
    if count < 2:
        return NOTHING_HERE
    if count > _MOST_COMPONENTS:
        return NotApplicable("COST-SEPARATE", f"{count} groups of states do not need each other, which are too many to try")
    sizes = StepSizes.of(loop, ctx)
    loop_ns = round(ctx.options.costs.step) + loop_start_ns(sizes)
    refusal: NotApplicable | None = None
    for number, second_components in _possible_cuts(components):
        cut = find_cut(loop, components, second_components, sizes)
        if isinstance(cut, NotApplicable):
            refusal = refusal or cut
            continue
        if _needs_no_loop(loop, components, second_components, cut, ctx):
            return _split_loop(loop, cut, ctx, sizes, "which are no recurrence")
        if _would_be_replaced(loop, cut, components.members[number], ctx):
            split_cut = _cut_off_component(loop, components, number, second_components, cut, sizes)
            if isinstance(split_cut, StateCut):
                return _split_loop(loop, split_cut, ctx, sizes, f"so that '{components.members[number][0].inner.name}' can leave")
            refusal = refusal or split_cut
        elif cut.intermediate and _saved_ns(loop, cut, ctx, sizes) > 6 * (loop_ns + cut.cost(sizes)) // 5:
            return _split_loop(
                loop, cut, ctx, sizes, f"so that {counted(len(cut.intermediate), 'operator')} between them can leave"
            )
    names = listed(group[0].inner.name for group in components.members)
    detail = f"the states {names} do not all need each other, but separate loops would gain nothing"
    return refusal or NotApplicable("COST-SEPARATE", detail)


def _possible_cuts(components: Components) -> Iterator[tuple[int, int]]:
    """Yield a pair (number, second_components) for each possible cut, the cut nearest to the middle first.

    The cut moves component ``number`` and all components that need it to the second loop. Bit ``i`` of ``second_components`` is set
    if component ``i`` moves. Because cuts near the middle come first, a stack of layers is halved again and again instead of split
    layer by layer.
    """
    count = len(components.members)
    for number in sorted(range(count), key=lambda number: abs(2 * number - count)):
        yield number, components.with_dependents(number)


def _would_be_replaced(loop: ScanView, cut: StateCut, states: Sequence[State], ctx: Context) -> bool:
    """Return True if a rule would replace a loop that computes only ``states``.

    Two kinds of rules are tried: rules that recognise recurrences and, unless ``loop`` itself is compiled, rules that compile
    loops.
    """
    is_compiled = is_to_be_compiled(loop, ctx)
    rules = [
        rule for rule in ctx.rules if rule.recognises or (rule.phase == "native" and rule.subject == "loop" and not is_compiled)
    ]
    if not rules:
        return False
    with trial_loop(loop, cut, states, ctx) as (states_loop, trial_ctx):
        return any(isinstance(rule.check(states_loop, trial_ctx), Patch) for rule in rules)


def _needs_no_loop(loop: ScanView, components: Components, second_components: int, cut: StateCut, ctx: Context) -> bool:
    """Return True if the second part of ``cut`` needs no loop.

    In this case, no state of the second part needs its own previous value, and all work of the second part can run for all steps at
    once. ``second_components``: the bit set of the components in the second part.
    """
    groups = [group for number, group in enumerate(components.members) if second_components >> number & 1]
    if len(groups) == len(components.members) or any(_needs_itself(group, components) for group in groups):
        return False
    if all(node.op_type == "Identity" for node in cut.nodes):
        return False
    with trial_loop(loop, cut, cut.states, ctx) as (second_loop, trial_ctx):
        before = find_before(second_loop, trial_ctx, StepSizes.of(second_loop, ctx))
        return len(before.nodes) == len(second_loop.body) and len(before.states) == len(second_loop.states)


def _needs_itself(group: Sequence[State], components: Components) -> bool:
    """Return True if a state of the component ``group`` needs its own previous value."""
    own = components.components_of_value[group[0].inner]
    return len(group) > 1 or bool(components.components_of_value.get(group[0].next, 0) & own)


def _cut_off_component(
    loop: ScanView, components: Components, number: int, second_components: int, cut: StateCut, sizes: StepSizes
) -> StateCut | NotApplicable:
    """Return a cut that splits off component ``number`` so that a rule can replace it, or a reason.

    Usually, this is ``cut``: the second loop gets component ``number`` and the components that need it (``second_components``). If
    these are all components, the first loop would be empty. Then the first loop gets component ``number``, and the second loop gets
    all other components. The first loop then does only the work for its own states, because a rule recognises only such a loop.
    """
    everything = (1 << len(components.members)) - 1
    return (
        cut
        if second_components != everything
        else find_cut(loop, components, everything & ~(1 << number), sizes, minimal_first=True)
    )


def _saved_ns(loop: ScanView, cut: StateCut, ctx: Context, sizes: StepSizes) -> int:
    """Return the time in ns per step that is saved if the work between the two parts of ``cut`` leaves."""
    with trial_loop(loop, cut, cut.states, ctx) as (second_loop, trial_ctx):
        before = find_before(second_loop, trial_ctx, StepSizes.of(second_loop, ctx))
        moved_names = {value.name for node in before.nodes for value in node.outputs}
    second_nodes = set(cut.nodes)
    saved_nodes = [
        node
        for node in cut.intermediate
        if (node.outputs[0].name in moved_names if node in second_nodes else has_rule(node) and is_deterministic(node))
    ]
    return saved_ns(saved_nodes, weight_bytes(loop.body, sizes), sizes)


def _split_loop(loop: ScanView, cut: StateCut, ctx: Context, sizes: StepSizes, purpose: str) -> Patch:
    """Return a patch that replaces ``loop`` by the two loops of ``cut``.

    ``purpose``: a phrase for the report that says what the patch is good for.
    """
    stacks = Stacks(loop, ctx.builder())
    kept = [output for output in loop.scan_outputs if output not in cut.outputs]
    known = {through_identity(output.inner): output.outer for output in kept if output.reverse == stacks.backwards and output.outer}
    added: list[ScanOutput] = []
    states_by_inner = {state.inner: state for state in loop.states}
    for value in cut.carried:
        state = states_by_inner.get(value)
        source = value if state is None else state.next
        if not stacks.has(source):
            stack = known.get(through_identity(source))
            if stack is None:
                stack = stack_of(source, loop, ctx.names.fresh(f"{source.name}_steps"))
                added.append(ScanOutput(source, stack, 0, stacks.backwards))
            stacks.set(source, stack)
        if state is not None:
            stacks.set(value, stacks.delayed(state))
    carried = {value: ScanInput(stacks.stack_of(value), value, 0, stacks.backwards) for value in cut.carried}
    states = [state for state in loop.states if state not in cut.states]
    copied_values = (
        {value for node in cut.shared for value in node.outputs} | {scan.inner for scan in loop.scan_inputs} | set(cut.carried)
    )

    def name(value: ir.Value) -> str:
        return ctx.names.fresh(value.name or "value") if value in copied_values else value.name or ""

    def edit() -> list[ir.Node]:
        second = copy_to_new_loop(loop, cut.nodes, cut.states, carried, cut.outputs, ctx, name=name)
        assert loop.node.graph is not None
        loop.node.graph.insert_after(loop.node, second)
        stacks.build.insert_after(loop.node)
        olds = [*(state.final for state in cut.states), *(output.outer for output in cut.outputs)]
        for old, new in zip(olds, second.outputs, strict=True):
            if old is not None:
                take_over(old, new, ctx.names)
        outputs = [*kept, *added]
        first = rebuild(loop, ctx.names, states=states, scan_outputs=outputs)
        remove_nodes(unread_nodes(loop.body))
        give_own_nodes(loop.body, ctx.names)
        cut.liveness.record_on(first)
        cut.liveness.record_on(second)
        return [first, second]

    names = listed(state.inner.name for state in cut.states)
    return Patch(f"gave {names} a loop of their own, {purpose}", edit, sizes.memory_note(cut.liveness.peak, cut.carried))


RULE = Rule("state-fission", "fission", "loop", check, formerly="split-states")
