"""Finds what can leave a loop at its end: all work that reads states, but that no state needs, for all steps at once.

body(h, x) => (h2, Softmax(MatMul(h2, V)))    ->    body(h, x) => (h2, Identity(h2)), then Softmax(MatMul(H2, V)) of the stack

Works round ORT-SCAN-RESULT-RANK.
"""

from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.cut.step_costs import staying_ns, to_carry
from rewrites.analysis.dependence import is_deterministic
from rewrites.base.not_applicable import NotApplicable
from rewrites.batching import Operand, has_rule
from rewrites.fission.before import Before
from rewrites.fission.groups import Groups
from rewrites.fission.liveness import Liveness
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import with_axes, without_names
from rewrites.graph.values import dim_of, through_identity
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import ScanOutput, ScanView

__all__ = ["After", "find_after"]


@dataclass
class After:
    """What leaves at the end: ``nodes``; ``crossing`` are the body values they read, each with the stack that will hold it.

    ``alive``: the memory that the stacks take, those that left at the start among them.
    """

    nodes: list[ir.Node] = field(default_factory=list)
    crossing: dict[ir.Value, ir.Value] = field(default_factory=dict)
    refused: dict[ir.Node, NotApplicable] = field(default_factory=dict)
    alive: Liveness | None = None


def find_after(loop: ScanView, before: Before, ctx: Context, sizes: StepSizes, build: Builder) -> After:
    """Build into ``build`` the work that can leave at the end; ``before.stacks`` learns its results."""
    leaves = set(before.nodes)
    core = [node for node in loop.body if node not in leaves]
    refused = {
        node: NotApplicable(reason.code, reason.detail, silent=True) for node, reason in before.refused.items() if not reason.silent
    }
    stacks = before.stacks
    start = dict(stacks.known)
    stacks.build = build
    while True:
        nodes = _trimmed(loop, _candidates(loop, core, before, refused), sizes, before)
        crossing = _crossing(loop, nodes, before, ctx)
        alive = before.alive.copy()
        alive.forget(state for state in loop.states if state not in before.states)
        failed = _not_crossing(nodes, crossing, sizes, alive)
        if not failed:
            for value, stack in crossing.items():
                stacks.place(value, stack)
            failed = _stacked(nodes, stacks, alive)
        if not failed:
            return After(nodes, crossing, refused, alive)
        refused.update(failed)
        build.discard()
        stacks.known = dict(start)


def _not_crossing(
    nodes: list[ir.Node], crossing: dict[ir.Value, ir.Value], sizes: StepSizes, alive: Liveness
) -> dict[ir.Node, NotApplicable]:
    """Return the nodes that want stacks which cannot be, or are too large; ``alive`` holds those of the others."""
    found: dict[ir.Node, NotApplicable] = {}
    held: set[ir.Value] = set()
    for node in nodes:
        entering = [value for value in node.inputs if value is not None and value in crossing]
        new = {value: Operand(crossing[value], True, value) for value in entering if value not in held}
        refusals = [*map(_without_rank, entering), *map(sizes.refusal, node.outputs), *map(sizes.not_a_stack, entering)]
        refusals.append(alive.refusal(new))
        refusal = next((refusal for refusal in refusals if refusal is not None), None)
        if refusal is not None:
            found[node] = refusal
            continue
        alive.hold(new)
        held.update(new)
    return found


def _without_rank(value: ir.Value) -> NotApplicable | None:
    """Return a reason where onnxruntime could not give ``value`` as a result of a Scan."""
    if value.shape is not None:
        return None
    return NotApplicable("RANK-UNKNOWN", f"the rank of '{value.name}' is not known, which a result of the loop needs")


def _stacked(nodes: list[ir.Node], stacks: Stacks, alive: Liveness) -> dict[ir.Node, NotApplicable]:
    """Emit ``nodes`` for all steps; return those that cannot be, each with its reason."""
    failed: dict[ir.Node, NotApplicable] = {}
    for node in nodes:
        missing = [value for value in node.inputs if value is not None and not stacks.has(value)]
        refusal = None
        if not missing:
            built = len(stacks.build.nodes)
            refusal = stacks.add(node)
            made = {} if refusal is not None else {value: stacks.get(value) for value in node.outputs}
            refusal = refusal or alive.refusal(made, stacks.build.nodes[built:])
            if refusal is None:
                alive.hold(made, stacks.build.nodes[built:])
                alive.read(node)
        elif not has_rule(node) and any(value.producer() in failed for value in missing):
            refusal = NotApplicable("NO-BATCHING-RULE", f"{node.op_type} '{node.name}' has no batching rule")
        if refusal is not None:
            failed[node] = refusal
    return failed


def _candidates(loop: ScanView, core: list[ir.Node], before: Before, refused: dict[ir.Node, NotApplicable]) -> list[ir.Node]:
    """Return the nodes of ``core`` that feed scan outputs and each other only, in order."""
    needed = {state.next for state in loop.states if state not in before.states}
    chosen: set[ir.Node] = set()
    for node in reversed(core):
        free = node not in refused and not node_graphs(node) and is_deterministic(node)
        if free and not any(value in needed for value in node.outputs):
            chosen.add(node)
        else:
            needed.update(value for value in node.inputs if value is not None)
            needed.update(value for graph in node_graphs(node) for inner in all_nodes(graph) for value in inner.inputs if value)
    return [node for node in core if node in chosen]


def _trimmed(loop: ScanView, nodes: list[ir.Node], sizes: StepSizes, before: Before) -> list[ir.Node]:
    """Keep in the loop what, with all that it is made from, reads much more from the recurrence than it gives.

    The stack of what it reads would be the larger one, unless the loop gives that stack anyway; or the stacks are so many and large
    that they cost more than the work. A copy of a value that stays is no work either. Products by weights still move where a
    step has few rows.
    """
    free = {through_identity(output.inner) for output in _reusable(loop, before)}
    groups = Groups(nodes, before, sizes, lambda value: 0 if value in free else sizes.step(value))
    for node in nodes:
        made = groups.of(node)
        if not made.crossing.members or made.few_rows:
            continue
        read, given = made.crossing.size, groups.least_given(node)
        if not made.copies and read <= 2 * given and to_carry(read, sizes) <= made.least_ns + to_carry(given, sizes):
            continue
        group = groups.all_makers(node)
        inside = {value for one in group for value in one.outputs}
        leaving = [value for value in inside if value.is_graph_output() or any(user not in group for user, _ in value.uses())]
        given = sum(map(sizes.step, leaving))
        if made.copies or read > 2 * given or to_carry(read, sizes) > staying_ns(group, 0, sizes) + to_carry(given, sizes):
            groups.keep(group)
    return [node for node in nodes if node in groups.chosen]


def _reusable(loop: ScanView, before: Before) -> list[ScanOutput]:
    """Return the scan outputs that are stacks in the order of the other stacks."""
    return [output for output in loop.scan_outputs if output.reverse == before.stacks.backwards and output.axis == 0]


def _crossing(loop: ScanView, nodes: list[ir.Node], before: Before, ctx: Context) -> dict[ir.Value, ir.Value]:
    made = {value for node in nodes for value in node.outputs}
    existing = {through_identity(output.inner): output for output in _reusable(loop, before) if output.inner not in made}
    steps = dim_of(loop.scan_inputs[0].outer, 0)
    crossing: dict[ir.Value, ir.Value] = {}
    for value in (value for node in nodes for value in node.inputs):
        if value is None or value in made or value in crossing or before.stacks.has(value):
            continue
        output: ScanOutput | None = existing.get(value)
        if output is not None and output.outer is not None and not before.stacks.has(output.inner):
            crossing[value] = output.outer
            continue
        shape = with_axes(without_names(value.shape), 0, steps)
        crossing[value] = ir.Value(name=ctx.names.fresh(f"{value.name}_steps"), type=value.type, shape=shape)
    return crossing
