"""Reduces a Scan to its recurrence. All other work runs before or after it, for all steps at once.

    Scan(h0, xs) body(h, x) => (h2 = Tanh(Add(MatMul(x, W), MatMul(h, R))), y = MatMul(h2, V))
    ->    xw = MatMul(xs, W);  hs = Scan(h0, xw) body(h, a) => (h2 = Tanh(Add(a, MatMul(h, R))), Identity(h2));  y = MatMul(hs, V)

Without a recurrence, the whole loop is removed. Results stay the same except for the order in which sums are added. Conditions:

* Every operator that leaves has a batching rule, which runs it for all steps at once.
* The stacks of all steps fit in the memory budget.
* At least one state leaves. Or the number of operators that leave is not smaller than the number of inputs and outputs that are
  added to the loop.
* A state that leaves has the size of its initial value in all steps.
* The loop is a Scan of opset 9 or later, and its scanned axes are 0.

Work stays in the loop if the data that enters or leaves the loop would more than double.
"""

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.dependence import reads, unread_nodes
from rewrites.base.plain_text import counted, listed
from rewrites.fission.after import MovedAfter, find_after
from rewrites.fission.before import MovedBefore, find_before
from rewrites.fission.blocks import Blocks, blocks_patch, choose_blocks
from rewrites.fission.stacks import stacking_obstacle
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import shape_dims
from rewrites.loops import Loop, LoopView, ScanInput, ScanOutput, ScanView, State, rebuild
from rewrites.loops.own_results import give_own_nodes
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule, deferring_shapes

__all__ = ["RULE", "check"]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch that moves work before and after the loop, or removes the loop."""
    if isinstance(loop, LoopView):
        return NOTHING_HERE
    refusal = stacking_obstacle(loop, ctx)
    return deferring_shapes(loop.body, lambda: _move_work(loop, ctx)) if refusal is None else refusal


def _move_work(loop: ScanView, ctx: Context) -> Patch | NotApplicable:
    """Return a patch that moves work out of ``loop``, or a reason against it."""
    sizes = StepSizes.of(loop, ctx)
    before = find_before(loop, ctx, sizes)
    resized = next((state for state in before.states if state.inner.uses() and _is_resized(state)), None)
    if resized is not None:
        before.stacks.build.discard()
        return NotApplicable(
            "LOOP-STATE-SHAPE", f"the state '{resized.inner.name}' may have another size before the first step than afterwards"
        )
    if len(before.nodes) == len(loop.body) and len(before.states) == len(loop.states):
        return _replace_loop(loop, before, ctx, sizes)
    head = before.stacks.build
    tail = ctx.builder()
    after = find_after(loop, before, ctx, sizes, tail)
    if not _is_worth_splitting(loop, before, after):
        head.discard()
        tail.discard()
        return _reason_against(loop, before, after)
    return _split_loop(loop, before, after, head, tail, ctx)


def _is_resized(state: State) -> bool:
    """Return True if the next value of ``state`` may have another shape than its initial value."""
    first, later = state.initial.shape, state.next.shape
    if first is None or later is None:
        return False
    pairs = [(a, b) for a, b in zip(shape_dims(first), shape_dims(later), strict=False) if a is not None and b is not None]
    return any(a != b and not (isinstance(a, str) and isinstance(b, str)) for a, b in pairs)


def _replace_loop(loop: ScanView, before: MovedBefore, ctx: Context, sizes: StepSizes) -> Patch | NotApplicable:
    """Return a patch that replaces ``loop``, all of whose work moves before it, by its operators."""
    stacks = before.stacks
    blocks = choose_blocks(loop, before, sizes, ctx.opset)
    if isinstance(blocks, NotApplicable | Blocks):
        stacks.build.discard()
        return blocks if isinstance(blocks, NotApplicable) else blocks_patch(loop, blocks, ctx)
    results = [(output.outer, stacks.ordered(stacks.stack_of(output.inner), output.reverse)) for output in loop.scan_outputs]
    results += [(state.final, stacks.last(state.next)) for state in loop.states]

    def edit() -> list[ir.Node]:
        stacks.build.insert_before(loop.node)
        for old, new in results:
            if old is not None:
                replace_value(old, new, ctx.names)
        remove_nodes([loop.node])
        return []

    what = f"replaced the loop by its {counted(len(before.nodes), 'operator')}, each for all steps at once"
    return Patch(what, edit, _notes(before))


def _split_loop(
    loop: ScanView, before: MovedBefore, after: MovedAfter, build_before: Builder, build_after: Builder, ctx: Context
) -> Patch:
    """Return a patch that moves ``before`` and ``after`` out of ``loop``.

    ``build_before``, ``build_after``: the nodes that were emitted for the two parts.
    """
    stacks = before.stacks
    stacks.build = build_after
    finals = [(state.final, stacks.last(state.next)) for state in before.states]
    moved = {*before.nodes, *after.nodes}
    kept_states = [state for state in loop.states if state not in before.states]
    kept_outputs = [
        output for output in loop.scan_outputs if not stacks.has(output.inner) or output.outer in after.input_stacks.values()
    ]
    entering = _entering_values(loop, before, moved)
    results = [
        (output.outer, stacks.ordered(stacks.stack_of(output.inner), output.reverse))
        for output in loop.scan_outputs
        if output not in kept_outputs
    ]
    present = {id(output.outer) for output in kept_outputs}
    leaving = [
        ScanOutput(value, stack, 0, stacks.backwards) for value, stack in after.input_stacks.items() if id(stack) not in present
    ]

    def edit() -> list[ir.Node]:
        build_before.insert_before(loop.node)
        scans = list(loop.scan_inputs)
        for value in entering:
            operand = stacks.replacements[value]
            stand_in = operand.value
            if operand.batched:
                stand_in = ir.Value(name=ctx.names.fresh(f"{value.name}_in"), type=value.type, shape=value.shape)
                scans.append(ScanInput(operand.value, stand_in, 0, stacks.backwards))
            for node, index in value.uses():
                if node not in moved:
                    node.replace_input_with(index, stand_in)
        outputs = [*kept_outputs, *leaving]
        build_after.insert_after(loop.node)
        for old, new in [*finals, *results]:
            if old is not None:
                replace_value(old, new, ctx.names)
        node = rebuild(loop, ctx.names, states=kept_states, scan_inputs=scans, scan_outputs=outputs)
        remove_nodes(unread_nodes(loop.body))
        give_own_nodes(loop.body, ctx.names)
        after.liveness.record_on(node)
        return [node]

    what = " and ".join(
        f"moved {counted(len(nodes), 'operator')} {where} the loop"
        for nodes, where in ((before.nodes, "before"), (after.nodes, "after"))
        if nodes
    )
    return Patch(what, edit, _notes(before, after))


def _notes(before: MovedBefore, after: MovedAfter | None = None) -> tuple[str, ...]:
    """Return notes for the report on the memory that the stacks take."""
    alive = before.liveness if after is None else after.liveness
    nodes = [*before.nodes, *(after.nodes if after is not None else ())]
    return alive.sizes.memory_note(alive.peak, (value for node in nodes for value in node.outputs))


def _entering_values(loop: ScanView, before: MovedBefore, moved: set[ir.Node]) -> list[ir.Value]:
    """Return the values that are computed before the loop, but that nodes in the loop still read.

    ``moved``: the nodes that leave the loop.
    """
    computed_before = {value for node in before.nodes for value in node.outputs} | {state.inner for state in before.states}
    stay = [node for node in loop.body if node not in moved]
    read = {value: None for node in stay for value in reads(node) if value in computed_before}
    return [value for value in read if value in before.stacks.replacements]


def _is_worth_splitting(loop: ScanView, before: MovedBefore, after: MovedAfter) -> bool:
    """Return True if a state leaves, or as many operators leave as inputs and outputs are added."""
    moved = {*before.nodes, *after.nodes}
    work = sum(node.op_type not in ("Identity", "Constant") for node in moved)
    entering = _entering_values(loop, before, moved)
    stay = [node for node in loop.body if node not in moved]
    still_read = {value for node in stay for value in reads(node)}
    freed = sum(scan.inner not in still_read for scan in loop.scan_inputs)
    leaving = {value for node in moved for value in node.outputs}
    dropped = sum(output.inner in leaving for output in loop.scan_outputs)
    crossing = max(0, len(entering) - freed) + max(0, len(after.input_stacks) - dropped)
    return bool(before.states) or (work > 0 and work >= crossing)


def _reason_against(loop: ScanView, before: MovedBefore, after: MovedAfter) -> NotApplicable:
    """Return the first reason why work stays or, if there is none, that the loop is a recurrence."""
    reasons = [reason for reason in [*before.refused.values(), *after.refused.values()] if not reason.silent]
    if reasons:
        return reasons[0]
    names = listed(state.inner.name for state in loop.states if state not in before.states)
    return NotApplicable(
        "RECURRENCE", f"each step needs the state {names} of the previous step; no family of recurrences is recognised"
    )


RULE = Rule("loop-fission", "fission", "loop", check, formerly="split-loop")
