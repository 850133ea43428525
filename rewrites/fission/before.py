"""Finds what can leave a loop at its start: all work that depends on scan inputs only, for all steps at once.

States whose next value is such work leave with it: their values at the start of each step are the same stack, one step later.
"""

from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.context import Context
from rewrites.dependence import is_deterministic
from rewrites.fission.sizes import StepSizes
from rewrites.fission.stacks import Stacks
from rewrites.loops import ScanView, State
from rewrites.not_applicable import NotApplicable
from rewrites.values import rank_of

__all__ = ["Before", "find_before"]

_HEAVY = frozenset(
    {"MatMul", "Gemm", "Conv", "Einsum", "MatMulInteger", "FusedMatMul", "FusedGemm", "LayerNormalization", "Softmax"}
)


@dataclass
class Before:
    """What leaves at the start: ``nodes``, and ``states`` that are no recurrences; ``refused`` says why a node had to stay."""

    stacks: Stacks
    nodes: list[ir.Node] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    refused: dict[ir.Node, NotApplicable] = field(default_factory=dict)


def find_before(loop: ScanView, ctx: Context, sizes: StepSizes) -> Before:
    """Build the stacks of everything that can leave at the start; the caller inserts or discards them."""
    blocked: dict[ir.Node, NotApplicable] = {}
    while True:
        found = _attempt(loop, ctx, sizes, blocked)
        too_wide = _not_worth_moving(loop, found, sizes)
        if not too_wide:
            return found
        found.stacks.build.discard()
        blocked.update(found.refused)
        blocked.update(too_wide)


def _attempt(loop: ScanView, ctx: Context, sizes: StepSizes, blocked: dict[ir.Node, NotApplicable]) -> Before:
    found = Before(Stacks(loop, ctx.builder()), refused=dict(blocked))
    waiting = [node for node in loop.body if node not in blocked]
    while True:
        rest = []
        for node in waiting:
            if not all(value is None or found.stacks.has(value) for value in node.inputs):
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
            if state.inner.uses() and not found.stacks.has(state.inner) and rank_of(state.inner) is not None:
                found.stacks.place(state.inner, found.stacks.delayed(state))
        if not delays:
            return found


def _refusal(node: ir.Node, sizes: StepSizes) -> NotApplicable | None:
    if not is_deterministic(node):
        return NotApplicable("RANDOM", f"{node.op_type} '{node.name}' gives something else each time")
    for value in node.outputs:
        if sizes.too_large(value):
            per_step, limit = sizes.step(value), sizes.options.memory_budget
            return NotApplicable(
                "MEMORY-BUDGET",
                f"'{value.name}' takes about {per_step} bytes a step, {per_step * sizes.steps} in all (limit {limit})",
            )
    return None


def _not_worth_moving(loop: ScanView, found: Before, sizes: StepSizes) -> dict[ir.Node, NotApplicable]:
    """Give the nodes at the border to the recurrence whose results are much larger than what they are made from.

    Such a value (an outer product, an Expand) is cheaper made in each step than written for all steps and read back.
    """
    moved = set(found.nodes)
    body_outputs = {output.inner for output in loop.scan_outputs} | {state.next for state in found.states}
    worse = {}
    for node in found.nodes:
        users = [user for value in node.outputs for user, _ in value.uses()]
        at_border = bool(users) and not any(user in moved for user in users)
        if not at_border or node.op_type in _HEAVY or any(value in body_outputs for value in node.outputs):
            continue
        made_from = sum(sizes.step(value) for value in node.inputs if value is not None and found.stacks.get(value).batched)
        gives = sum(sizes.step(value) for value in node.outputs)
        if made_from and gives > 2 * made_from:
            worse[node] = NotApplicable(
                "COST-WIDER", f"'{node.outputs[0].name}' is {gives // made_from} times what it is made from", True
            )
    return worse
