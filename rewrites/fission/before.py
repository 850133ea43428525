"""Finds what can leave a loop at its start: all work that depends on scan inputs only, for all steps at once.

States whose next value is such work leave with it: their values at the start of each step are the same stack, one step later.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.context import Context
from rewrites.dependence import is_deterministic, reads
from rewrites.fission.sizes import StepSizes
from rewrites.fission.stacks import Stacks
from rewrites.loops import ScanView, State
from rewrites.not_applicable import NotApplicable

__all__ = ["Before", "find_before"]


@dataclass
class Before:
    """What leaves at the start: ``nodes``, and ``states`` that need no loop; ``refused`` says why a node had to stay.

    ``finals``: final values that are not the last of a stack.
    """

    stacks: Stacks
    nodes: list[ir.Node] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    refused: dict[ir.Node, NotApplicable] = field(default_factory=dict)
    finals: dict[State, ir.Value] = field(default_factory=dict)

    def final(self, state: State) -> ir.Value:
        """Give the final value of one of ``states``."""
        return self.finals[state] if state in self.finals else self.stacks.last(state.next)


def find_before(loop: ScanView, ctx: Context, sizes: StepSizes, seed: Callable[[Before], None] | None = None) -> Before:
    """Build the stacks of everything that can leave at the start; the caller inserts or discards them.

    Where everything can leave, blocks of steps bound the memory; else no stack may break the budget. ``seed`` puts into an empty
    Before what is known already.
    """
    if not loop.states:
        whole = _attempt(loop, ctx, None, {}, None)
        if not whole.refused:
            return whole
        whole.stacks.build.discard()
    blocked: dict[ir.Node, NotApplicable] = {}
    while True:
        found = _attempt(loop, ctx, sizes, blocked, seed)
        too_wide = _not_worth_moving(loop, found, sizes)
        if not too_wide:
            return found
        found.stacks.build.discard()
        blocked.update(found.refused)
        blocked.update(too_wide)


def _attempt(
    loop: ScanView,
    ctx: Context,
    sizes: StepSizes | None,
    blocked: dict[ir.Node, NotApplicable],
    seed: Callable[[Before], None] | None,
) -> Before:
    found = Before(Stacks(loop, ctx.builder()), refused=dict(blocked))
    if seed is not None:
        seed(found)
    waiting = [node for node in loop.body if node not in blocked]
    while True:
        rest = []
        for node in waiting:
            if not all(map(found.stacks.has, reads(node))):
                rest.append(node)
                continue
            refusal = _refusal(node, sizes) or found.stacks.add(node)
            if refusal is None:
                found.nodes.append(node)
            else:
                found.refused[node] = refusal
        waiting = rest
        delays = [state for state in loop.states if state not in found.states and found.stacks.has(state.next)]
        for state in delays:
            found.states.append(state)
            if state.inner.uses():
                found.stacks.place(state.inner, found.stacks.delayed(state))
        if not delays:
            return found


def _refusal(node: ir.Node, sizes: StepSizes | None) -> NotApplicable | None:
    if not is_deterministic(node):
        return NotApplicable("RANDOM", f"{node.op_type} '{node.name}' gives something else each time")
    if sizes is None:
        return None
    return next((refusal for value in node.outputs if (refusal := sizes.refusal(value)) is not None), None)


def _not_worth_moving(loop: ScanView, found: Before, sizes: StepSizes) -> dict[ir.Node, NotApplicable]:
    """Give the last node that, with all that moves and is made from it, hands the recurrence much more than it reads; and those.

    Such a value (an outer product, an Expand) is cheaper made in each step than written for all steps and read back. Products by
    weights still move where a step has few rows: all steps at once read the weights once.
    """
    moved = set(found.nodes)
    bound = {output.inner for output in loop.scan_outputs} | {state.next for state in found.states}
    for node in reversed(found.nodes):
        group = _made_from(node, moved)
        values = [value for one in group for value in one.outputs]
        if any(value in bound for value in values) or any(map(sizes.few_rows, group)):
            continue
        leaving = [value for value in values if any(user not in moved for user, _ in value.uses())]
        entering = {value for one in group for value in one.inputs if value is not None and value.producer() not in group}
        gives = sum(map(sizes.step, leaving))
        reads = sum(sizes.step(value) for value in entering if found.stacks.get(value).batched)
        if reads and gives > 2 * reads:
            detail = f"'{leaving[0].name}' and its like take {gives} bytes a step, and are made from {reads}"
            return dict.fromkeys(group, NotApplicable("COST-WIDER", detail, silent=True))
    return {}


def _made_from(node: ir.Node, moved: set[ir.Node]) -> dict[ir.Node, None]:
    """Give ``node`` and the nodes of ``moved`` that depend on it."""
    group = {node: None}
    waiting = [node]
    while waiting:
        users = {user: None for value in waiting.pop().outputs for user, _ in value.uses() if user in moved and user not in group}
        group.update(users)
        waiting.extend(users)
    return group
