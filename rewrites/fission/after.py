"""Finds what can leave a loop at its end: all work that reads states, but that no state needs, for all steps at once.

body(h, x) => (h2, Softmax(MatMul(h2, V)))    ->    body(h, x) => (h2, Identity(h2)), then Softmax(MatMul(H2, V)) of the stack
"""

from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.builder import Builder
from rewrites.context import Context
from rewrites.dependence import is_deterministic
from rewrites.fission.before import Before
from rewrites.fission.sizes import StepSizes
from rewrites.fission.stacks import Stacks
from rewrites.loops import ScanOutput, ScanView
from rewrites.moving import node_graphs
from rewrites.not_applicable import NotApplicable
from rewrites.values import dim_of, through_identity

__all__ = ["After", "find_after"]


@dataclass
class After:
    """What leaves at the end: ``nodes``; ``crossing`` are the body values they read, each with the stack that will hold it."""

    nodes: list[ir.Node] = field(default_factory=list)
    crossing: dict[ir.Value, ir.Value] = field(default_factory=dict)
    refused: dict[ir.Node, NotApplicable] = field(default_factory=dict)


def find_after(loop: ScanView, before: Before, ctx: Context, sizes: StepSizes, build: Builder) -> After:
    """Build into ``build`` the work that can leave at the end; ``before.stacks`` learns its results."""
    core = [node for node in loop.body if node not in set(before.nodes)]
    refused = {
        node: NotApplicable(reason.code, reason.detail, silent=True) for node, reason in before.refused.items() if not reason.silent
    }
    stacks = before.stacks
    start = dict(stacks.known)
    stacks.build = build
    while True:
        nodes = _trimmed(loop, _candidates(loop, core, before, refused), sizes, before)
        crossing = _crossing(loop, nodes, before, ctx)
        failed = _too_large(nodes, crossing, sizes)
        if not failed:
            for value, stack in crossing.items():
                stacks.place(value, stack)
            failed = _stacked(nodes, stacks)
        if not failed:
            return After(nodes, crossing, refused)
        refused.update(failed)
        build.discard()
        stacks.known = dict(start)


def _too_large(nodes: list[ir.Node], crossing: dict[ir.Value, ir.Value], sizes: StepSizes) -> dict[ir.Node, NotApplicable]:
    found = {}
    for node in nodes:
        values = [*node.outputs, *(value for value in node.inputs if value is not None and value in crossing)]
        refusal = next((refusal for value in values if (refusal := sizes.refusal(value)) is not None), None)
        if refusal is not None:
            found[node] = refusal
    return found


def _stacked(nodes: list[ir.Node], stacks: Stacks) -> dict[ir.Node, NotApplicable]:
    """Emit ``nodes`` for all steps; gives those that cannot be, each with its reason."""
    failed = {}
    for node in nodes:
        ready = all(value is None or stacks.has(value) for value in node.inputs)
        refusal = stacks.add(node) if ready else None
        if refusal is not None:
            failed[node] = refusal
    return failed


def _candidates(loop: ScanView, core: list[ir.Node], before: Before, refused: dict[ir.Node, NotApplicable]) -> list[ir.Node]:
    """Give the nodes of ``core`` that feed scan outputs and each other only, in order."""
    needed = {state.next for state in loop.states if state not in before.states}
    chosen: set[ir.Node] = set()
    for node in reversed(core):
        free = node not in refused and not node_graphs(node) and is_deterministic(node)
        if free and not any(value in needed for value in node.outputs):
            chosen.add(node)
        else:
            needed.update(value for value in node.inputs if value is not None)
            needed.update(value for graph in node_graphs(node) for inner in graph.all_nodes() for value in inner.inputs if value)
    return [node for node in core if node in chosen]


def _trimmed(loop: ScanView, nodes: list[ir.Node], sizes: StepSizes, before: Before) -> list[ir.Node]:
    """Keep in the loop what, with all that it is made from, reads much more from the recurrence than it gives.

    The stack of what it reads would be the larger one, unless the loop gives that stack anyway. A copy of a value that stays is no
    work either. Products by weights still move where a step has few rows.
    """
    free = {through_identity(output.inner) for output in _reusable(loop, before)}
    chosen = set(nodes)
    for node in nodes:
        group = _makers(node, chosen)
        inside = {value for one in group for value in one.outputs}
        entering = {value for one in group for value in one.inputs if value is not None and value not in inside}
        crossing = {value for value in entering if not before.stacks.has(value)}
        if not crossing or any(map(sizes.few_rows, group)):
            continue
        leaving = [value for value in inside if value.is_graph_output() or any(user not in group for user, _ in value.uses())]
        reads, gives = sum(sizes.step(value) for value in crossing - free), sum(map(sizes.step, leaving))
        if all(one.op_type == "Identity" for one in group) or reads > 2 * gives:
            chosen -= group
    return [node for node in nodes if node in chosen]


def _makers(node: ir.Node, chosen: set[ir.Node]) -> set[ir.Node]:
    """Give ``node`` and the nodes of ``chosen`` that it is made from."""
    group, waiting = {node}, [node]
    while waiting:
        producers = {value.producer() for value in waiting.pop().inputs if value is not None}
        new = {producer for producer in producers if producer in chosen and producer not in group and producer is not None}
        group |= new
        waiting.extend(new)
    return group


def _reusable(loop: ScanView, before: Before) -> list[ScanOutput]:
    """Give the scan outputs that are stacks in the order of the other stacks."""
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
        dims = None if value.shape is None else [dim if isinstance(dim, int) else None for dim in value.shape.dims]
        shape = None if dims is None else ir.Shape([steps, *dims])
        crossing[value] = ir.Value(name=ctx.names.fresh(f"{value.name}_steps"), type=value.type, shape=shape)
    return crossing
