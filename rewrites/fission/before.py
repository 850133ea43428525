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

__all__ = ["MovedBefore", "ReadyQueue", "find_before"]

_FREE_OPERATORS = 8


@dataclass
class MovedBefore:
    """The work that moves before a loop.

    Args:
        stacks: The stacks of all body values that can be computed before the loop.
        nodes: The nodes that move.
        states: The states that the loop no longer needs.
        refused: For each node that cannot or should not move, the reason.
        liveness: The memory that the stacks take.
    """

    stacks: Stacks
    nodes: list[ir.Node] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    refused: dict[ir.Node, NotApplicable] = field(default_factory=dict)
    liveness: Liveness = field(kw_only=True)


class ReadyQueue:
    """A queue of the nodes whose inputs are all known, and of the states whose next value is known.

    A body value is known if it has a stack or is the same in all steps. ``is_known`` returns True for values that are known at
    first. ``mark_known`` adds further values.
    """

    def __init__(self, nodes: Sequence[ir.Node], states: Sequence[State], is_known: Callable[[ir.Value], bool]) -> None:
        self._nodes, self._states = nodes, states
        self._missing: dict[int, int] = {}
        self._readers: dict[ir.Value, list[int]] = {}
        self._heap: list[int] = []
        self._delays: list[int] = []
        self._waiting: dict[ir.Value, list[int]] = {}
        for i, node in enumerate(self._nodes):
            missing = {value for value in reads(node) if not is_known(value)}
            self._missing[i] = len(missing)
            for value in missing:
                self._readers.setdefault(value, []).append(i)
            if not missing:
                self._heap.append(i)
        for i, state in enumerate(self._states):
            if is_known(state.next):
                self._delays.append(i)
            else:
                self._waiting.setdefault(state.next, []).append(i)

    def mark_known(self, values: Iterable[ir.Value]) -> None:
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


def find_before(loop: ScanView, ctx: Context, sizes: StepSizes) -> MovedBefore:
    """Find the work that can move before the loop, and emit it.

    The caller inserts or discards the emitted nodes. If the loop has no states and its whole body can move, the memory budget is
    ignored, because ``blocks`` limits the memory later.
    """
    if not loop.states:
        whole = _find_unblocked(loop, ctx, sizes, {}, within_budget=False)
        if not whole.refused:
            return whole
        whole.stacks.build.discard()
    blocked: dict[ir.Node, NotApplicable] = {}
    while True:
        before = _find_unblocked(loop, ctx, sizes, blocked)
        always_needed = {output.inner for output in loop.scan_outputs} | {state.next for state in before.states}
        staying = (
            not_worth_moving(before.nodes, always_needed, before.stacks, sizes)
            or _needed_beside_products(before.nodes)
            or _without_scan_type(before.nodes)
        )
        if not staying:
            return before
        before.stacks.build.discard()
        blocked.update(before.refused)
        blocked.update(staying)


def _find_unblocked(
    loop: ScanView, ctx: Context, sizes: StepSizes, blocked: dict[ir.Node, NotApplicable], *, within_budget: bool = True
) -> MovedBefore:
    """Find the work that can move before the loop if the nodes of ``blocked`` stay, and emit it.

    ``within_budget``: True if the stacks must fit in the memory budget.
    """
    before = MovedBefore(Stacks(loop, ctx.builder()), refused=dict(blocked), liveness=Liveness(loop, sizes))
    nodes = [node for node in loop.body if node not in blocked]
    queue = ReadyQueue(nodes, loop.states, before.stacks.has)
    while True:
        while (node := queue.next_node()) is not None:
            refusal = _obstacle(node, sizes if within_budget and _is_stacked(node, before.stacks) else None) or _emit_for_all_steps(
                node, before, within_budget
            )
            if refusal is None:
                before.nodes.append(node)
                before.liveness.release_after(node)
                queue.mark_known(node.outputs)
            else:
                before.refused[node] = refusal
        known_states = queue.next_states()
        for state in known_states:
            before.states.append(state)
            if state.inner.uses():
                built = len(before.stacks.build.nodes)
                before.stacks.set(state.inner, before.stacks.delayed(state))
                before.liveness.add({state.inner: before.stacks.get(state.inner)}, before.stacks.build.nodes[built:])
                queue.mark_known([state.inner])
        if not known_states:
            return before


def _obstacle(node: ir.Node, sizes: StepSizes | None) -> NotApplicable | None:
    """Return a reason if ``node`` must run once per step, or if its results are too large for stacks.

    ``sizes``: the sizes of the values of a step. None allows results of any size.
    """
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


def _emit_for_all_steps(node: ir.Node, before: MovedBefore, within_budget: bool) -> NotApplicable | None:
    """Emit ``node`` for all steps at once. Return a reason if this is impossible, else None.

    ``within_budget``: True if the result must fit in the memory budget.
    """
    stacks, build = before.stacks, before.stacks.build
    built, known = len(build.nodes), len(stacks.replacements)
    refusal = stacks.add(node)
    if refusal is not None:
        return refusal
    results = {value: stacks.get(value) for value in node.outputs}
    refusal = None
    if within_budget:
        refusal = _operator_count_obstacle(node, len(build.nodes) - built, before) or before.liveness.refusal(
            results, build.nodes[built:]
        )
    if refusal is None:
        before.liveness.add(results, build.nodes[built:])
        return None
    for value in list(stacks.replacements)[known:]:
        del stacks.replacements[value]
    build.discard(built)
    return refusal


def _operator_count_obstacle(node: ir.Node, operators: int, before: MovedBefore) -> NotApplicable | None:
    """Return a reason if running ``node`` for all steps at once takes too many operators.

    ``operators``: their number. At most ``_FREE_OPERATORS``, or one per step, are allowed.
    """
    sizes = before.liveness.sizes
    if operators <= _FREE_OPERATORS or not sizes.steps_known or operators <= sizes.steps:
        return None
    detail = f"{node.op_type} {label(node)} takes {operators} operators for all {sizes.steps} steps at once"
    return NotApplicable("COST-FEW-STEPS", detail)


def _needed_beside_products(nodes: Sequence[ir.Node]) -> dict[ir.Node, NotApplicable]:
    """Return reasons for the ``nodes`` that must stay beside a quantized product in the loop.

    These nodes dequantize an operand of the product. onnxruntime multiplies integers only if the product and the DequantizeLinear
    are in the same graph.
    """
    leaving = set(nodes)
    stay = NotApplicable("COST-WIDER", "the operands of a quantized product are dequantized beside it", silent=True)
    return {node: stay for node in nodes if not leaving.issuperset(quantized_products(node))}


def _without_scan_type(nodes: Sequence[ir.Node]) -> dict[ir.Node, NotApplicable]:
    """Return reasons for the ``nodes`` whose results have a type that no Scan supports.

    Such a node must stay if the loop reads its result, because the loop would have to scan the result.
    """
    leaving = set(nodes)
    refusals = {node: next(filter(None, map(unscannable, node.outputs)), None) for node in nodes}
    return {
        node: refusal
        for node, refusal in refusals.items()
        if refusal is not None and any(user not in leaving for value in node.outputs for user, _ in value.uses())
    }
