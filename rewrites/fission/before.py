"""Finds what can leave a loop at its start: all work that depends on scan inputs only, for all steps at once.

States whose next value is such work leave with it: their values at the start of each step are the same stack, one step later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.dependence import not_repeatable
from rewrites.analysis.unsliced_types import unscanned
from rewrites.base.not_applicable import NotApplicable
from rewrites.cleanup.quantized_products import quantized_products
from rewrites.fission.liveness import Liveness
from rewrites.fission.profitability import not_worth_moving
from rewrites.fission.ready import Ready
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.graph.walk import node_graphs
from rewrites.loops import ScanView, State
from rewrites.loops.parts import label

__all__ = ["Before", "find_before"]

_MANY = 8


@dataclass
class Before:
    """What leaves at the start: ``nodes``, and ``states`` that are no recurrences; ``refused`` says why a node had to stay.

    ``alive``: the memory that the stacks take.
    """

    stacks: Stacks
    nodes: list[ir.Node] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    refused: dict[ir.Node, NotApplicable] = field(default_factory=dict)
    alive: Liveness = field(kw_only=True)


def find_before(loop: ScanView, ctx: Context, sizes: StepSizes) -> Before:
    """Build the stacks of everything that can leave at the start; the caller inserts or discards them.

    Where everything can leave, blocks of steps bound the memory; else no stack may break the budget.
    """
    if not loop.states:
        whole = _attempt(loop, ctx, sizes, {}, bounded=False)
        if not whole.refused:
            return whole
        whole.stacks.build.discard()
    blocked: dict[ir.Node, NotApplicable] = {}
    while True:
        found = _attempt(loop, ctx, sizes, blocked)
        bound = {output.inner for output in loop.scan_outputs} | {state.next for state in found.states}
        too_wide = (
            not_worth_moving(found.nodes, bound, found.stacks, sizes) or _beside_products(found.nodes) or _unscanned(found.nodes)
        )
        if not too_wide:
            return found
        found.stacks.build.discard()
        blocked.update(found.refused)
        blocked.update(too_wide)


def _beside_products(nodes: Sequence[ir.Node]) -> dict[ir.Node, NotApplicable]:
    """Return those of ``nodes`` that dequantize for a product that stays, which onnxruntime would compute in float32 then."""
    leaving = set(nodes)
    stay = NotApplicable("COST-WIDER", "what is multiplied is dequantized beside the product", silent=True)
    return {node: stay for node in nodes if not leaving.issuperset(quantized_products(node))}


def _unscanned(nodes: Sequence[ir.Node]) -> dict[ir.Node, NotApplicable]:
    """Return those of ``nodes`` whose results the rest of the loop would have to scan, and which no loop can."""
    leaving = set(nodes)
    refusals = {node: next(filter(None, map(unscanned, node.outputs)), None) for node in nodes}
    return {
        node: refusal
        for node, refusal in refusals.items()
        if refusal is not None and any(user not in leaving for value in node.outputs for user, _ in value.uses())
    }


def _attempt(
    loop: ScanView,
    ctx: Context,
    sizes: StepSizes,
    blocked: dict[ir.Node, NotApplicable],
    *,
    bounded: bool = True,
) -> Before:
    found = Before(Stacks(loop, ctx.builder()), refused=dict(blocked), alive=Liveness(loop, sizes))
    nodes = [node for node in loop.body if node not in blocked]
    ready = Ready(nodes, loop.states, found.stacks.has)
    while True:
        while (node := ready.next_node()) is not None:
            refusal = _refusal(node, sizes if bounded and _is_stacked(node, found.stacks) else None) or _add(node, found, bounded)
            if refusal is None:
                found.nodes.append(node)
                found.alive.read(node)
                ready.know(node.outputs)
            else:
                found.refused[node] = refusal
        delays = ready.next_states()
        for state in delays:
            found.states.append(state)
            if state.inner.uses():
                built = len(found.stacks.build.nodes)
                found.stacks.place(state.inner, found.stacks.delayed(state))
                found.alive.hold({state.inner: found.stacks.get(state.inner)}, found.stacks.build.nodes[built:])
                ready.know([state.inner])
        if not delays:
            return found


def _add(node: ir.Node, found: Before, bounded: bool) -> NotApplicable | None:
    """Emit ``node`` for all steps, unless it cannot be, or, where ``bounded``, breaks the memory budget with what is held."""
    stacks, build = found.stacks, found.stacks.build
    built, known = len(build.nodes), len(stacks.known)
    refusal = stacks.add(node)
    if refusal is not None:
        return refusal
    made = {value: stacks.get(value) for value in node.outputs}
    refusal = None
    if bounded:
        refusal = _too_many(node, len(build.nodes) - built, found) or found.alive.refusal(made, build.nodes[built:])
    if refusal is None:
        found.alive.hold(made, build.nodes[built:])
        return None
    for value in list(stacks.known)[known:]:
        del stacks.known[value]
    build.discard(built)
    return refusal


def _too_many(node: ir.Node, operators: int, found: Before) -> NotApplicable | None:
    """Return a reason where ``node`` takes many operators for all steps at once, and more than it runs in the loop."""
    sizes = found.alive.sizes
    if operators <= _MANY or not sizes.steps_known or operators <= sizes.steps:
        return None
    detail = f"{node.op_type} {label(node)} takes {operators} operators for all {sizes.steps} steps at once"
    return NotApplicable("COST-FEW-STEPS", detail)


def _is_stacked(node: ir.Node, stacks: Stacks) -> bool:
    """Whether ``node`` may give something else in each step."""
    sources = stacks.sources()
    return bool(node_graphs(node)) or any(
        value in sources or (value in stacks.known and stacks.known[value].batched) for value in node.inputs if value is not None
    )


def _refusal(node: ir.Node, sizes: StepSizes | None) -> NotApplicable | None:
    unsafe = not_repeatable(node)
    if unsafe is not None or sizes is None:
        return unsafe
    return next((refusal for value in node.outputs if (refusal := sizes.refusal(value)) is not None), None)
