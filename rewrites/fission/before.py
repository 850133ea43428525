"""Finds the work that can move before a loop, and emits it for all steps at once.

A node can move if no state is needed to compute its inputs. If the next value of a state can be computed before the loop, the loop
does not need the state either: the stack of the state is the stack of its next values, shifted by one step.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.dependence import not_repeatable, reads
from rewrites.analysis.unsliced_types import unscannable
from rewrites.base.not_applicable import NotApplicable
from rewrites.cleanup.folding import quantized_products
from rewrites.fission.liveness import Liveness
from rewrites.fission.profitability import not_worth_moving
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.graph.walk import node_graphs
from rewrites.loops import ScanView, State
from rewrites.loops.parts import label

__all__ = ["LeavingBefore", "Ready", "find_before"]

_MANY = 8


@dataclass
class LeavingBefore:
    """The work that moves before a loop.

    Args:
        stacks: The stacks of the values that are known before the loop.
        nodes: The nodes that move.
        states: The states that the loop does not need any more.
        refused: The nodes that cannot or should not move, with reasons.
        alive: The memory that the stacks take.
    """

    stacks: Stacks
    nodes: list[ir.Node] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    refused: dict[ir.Node, NotApplicable] = field(default_factory=dict)
    alive: Liveness = field(kw_only=True)


class Ready:
    """A queue of the nodes whose inputs are all known, and of the states whose next value is known.

    A value is known if it has a stack or is the same in all steps. ``has(value)`` is True if a value is known from the start. Other
    values become known by calls of ``know``.
    """

    def __init__(self, nodes: Sequence[ir.Node], states: Sequence[State], has: Callable[[ir.Value], bool]) -> None:
        self._nodes, self._states = nodes, states
        self._missing: dict[int, int] = {}
        self._readers: dict[ir.Value, list[int]] = {}
        self._heap: list[int] = []
        self._delays: list[int] = []
        self._waiting: dict[ir.Value, list[int]] = {}
        for i, node in enumerate(self._nodes):
            missing = {value for value in reads(node) if not has(value)}
            self._missing[i] = len(missing)
            for value in missing:
                self._readers.setdefault(value, []).append(i)
            if not missing:
                self._heap.append(i)
        for i, state in enumerate(self._states):
            if has(state.next):
                self._delays.append(i)
            else:
                self._waiting.setdefault(state.next, []).append(i)

    def know(self, values: Iterable[ir.Value]) -> None:
        """Record that ``values`` are known now, and queue the nodes and states that waited for them."""
        for value in values:
            self._delays.extend(self._waiting.pop(value, ()))
            for i in self._readers.pop(value, ()):
                self._missing[i] -= 1
                if not self._missing[i]:
                    heapq.heappush(self._heap, i)

    def next_node(self) -> ir.Node | None:
        """Remove and return the first node whose inputs are known; None if no such node remains."""
        return self._nodes[heapq.heappop(self._heap)] if self._heap else None

    def next_states(self) -> list[State]:
        """Return the states whose next value became known since the last call, in order."""
        delays, self._delays = sorted(self._delays), []
        return [self._states[i] for i in delays]


def find_before(loop: ScanView, ctx: Context, sizes: StepSizes) -> LeavingBefore:
    """Find the work that can move before the loop, and emit it. The caller inserts or discards the nodes.

    If the loop has no states and its whole body can leave, the memory budget is ignored: ``blocks`` can limit the memory later.
    """
    if not loop.states:
        whole = _attempt(loop, ctx, sizes, {}, bounded=False)
        if not whole.refused:
            return whole
        whole.stacks.build.discard()
    blocked: dict[ir.Node, NotApplicable] = {}
    while True:
        before = _attempt(loop, ctx, sizes, blocked)
        bound = {output.inner for output in loop.scan_outputs} | {state.next for state in before.states}
        too_wide = (
            not_worth_moving(before.nodes, bound, before.stacks, sizes)
            or _beside_products(before.nodes)
            or _unscanned(before.nodes)
        )
        if not too_wide:
            return before
        before.stacks.build.discard()
        blocked.update(before.refused)
        blocked.update(too_wide)


def _attempt(
    loop: ScanView, ctx: Context, sizes: StepSizes, blocked: dict[ir.Node, NotApplicable], *, bounded: bool = True
) -> LeavingBefore:
    before = LeavingBefore(Stacks(loop, ctx.builder()), refused=dict(blocked), alive=Liveness(loop, sizes))
    nodes = [node for node in loop.body if node not in blocked]
    ready = Ready(nodes, loop.states, before.stacks.has)
    while True:
        while (node := ready.next_node()) is not None:
            refusal = _refusal(node, sizes if bounded and _is_stacked(node, before.stacks) else None) or _add(node, before, bounded)
            if refusal is None:
                before.nodes.append(node)
                before.alive.read(node)
                ready.know(node.outputs)
            else:
                before.refused[node] = refusal
        delays = ready.next_states()
        for state in delays:
            before.states.append(state)
            if state.inner.uses():
                built = len(before.stacks.build.nodes)
                before.stacks.set(state.inner, before.stacks.delayed(state))
                before.alive.hold({state.inner: before.stacks.get(state.inner)}, before.stacks.build.nodes[built:])
                ready.know([state.inner])
        if not delays:
            return before


def _refusal(node: ir.Node, sizes: StepSizes | None) -> NotApplicable | None:
    unsafe = not_repeatable(node)
    if unsafe is not None or sizes is None:
        return unsafe
    return next((refusal for value in node.outputs if (refusal := sizes.over_budget(value)) is not None), None)


def _is_stacked(node: ir.Node, stacks: Stacks) -> bool:
    """Return True if the results of ``node`` may differ between steps."""
    sources = stacks.sources()
    return bool(node_graphs(node)) or any(
        value in sources or (value in stacks.replacements and stacks.replacements[value].batched)
        for value in node.inputs
        if value is not None
    )


def _add(node: ir.Node, before: LeavingBefore, bounded: bool) -> NotApplicable | None:
    """Emit ``node`` for all steps at once. Return a reason if this is impossible, else None.

    ``bounded``: True if the result must fit in the memory budget.
    """
    stacks, build = before.stacks, before.stacks.build
    built, known = len(build.nodes), len(stacks.replacements)
    refusal = stacks.add(node)
    if refusal is not None:
        return refusal
    results = {value: stacks.get(value) for value in node.outputs}
    refusal = None
    if bounded:
        refusal = _too_many(node, len(build.nodes) - built, before) or before.alive.refusal(results, build.nodes[built:])
    if refusal is None:
        before.alive.hold(results, build.nodes[built:])
        return None
    for value in list(stacks.replacements)[known:]:
        del stacks.replacements[value]
    build.discard(built)
    return refusal


def _too_many(node: ir.Node, operators: int, before: LeavingBefore) -> NotApplicable | None:
    """Return a reason if ``node`` takes too many operators for all steps at once.

    The limit is ``_MANY`` operators or, if the loop has more steps than that, the number of steps.
    """
    sizes = before.alive.sizes
    if operators <= _MANY or not sizes.steps_known or operators <= sizes.steps:
        return None
    detail = f"{node.op_type} {label(node)} takes {operators} operators for all {sizes.steps} steps at once"
    return NotApplicable("COST-FEW-STEPS", detail)


def _beside_products(nodes: Sequence[ir.Node]) -> dict[ir.Node, NotApplicable]:
    """Return the ``nodes`` that dequantize an operand of a product that stays in the loop, with a reason.

    onnxruntime multiplies integers only if these nodes are in the same graph as the product. Otherwise, it multiplies in float32.
    """
    leaving = set(nodes)
    stay = NotApplicable("COST-WIDER", "the operands of a quantized product are dequantized beside it", silent=True)
    return {node: stay for node in nodes if not leaving.issuperset(quantized_products(node))}


def _unscanned(nodes: Sequence[ir.Node]) -> dict[ir.Node, NotApplicable]:
    """Return the ``nodes`` that must stay because of the types of their results, with reasons.

    If they moved, the loop would have to scan results of a type that no Scan supports.
    """
    leaving = set(nodes)
    refusals = {node: next(filter(None, map(unscannable, node.outputs)), None) for node in nodes}
    return {
        node: refusal
        for node, refusal in refusals.items()
        if refusal is not None and any(user not in leaving for value in node.outputs for user, _ in value.uses())
    }
