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
from rewrites.loops import ScanOutput, ScanView
from rewrites.moving import node_graphs
from rewrites.not_applicable import NotApplicable
from rewrites.values import dim_of, through_identity

__all__ = ["After", "find_after"]

_ATTEMPTS = 8


@dataclass
class After:
    """What leaves at the end: ``nodes``; ``crossing`` are the body values they read, each with the stack that will hold it."""

    nodes: list[ir.Node] = field(default_factory=list)
    crossing: dict[ir.Value, ir.Value] = field(default_factory=dict)
    refused: dict[ir.Node, NotApplicable] = field(default_factory=dict)


def find_after(loop: ScanView, before: Before, ctx: Context, sizes: StepSizes, build: Builder) -> After:
    """Build into ``build`` the work that can leave at the end; ``before.stacks`` learns its results."""
    core = [node for node in loop.body if node not in set(before.nodes)]
    refused: dict[ir.Node, NotApplicable] = {}
    stacks = before.stacks
    start = dict(stacks.known)
    stacks.build = build
    for _ in range(_ATTEMPTS):
        nodes = _trimmed(_candidates(loop, core, before, refused), sizes, before)
        crossing = _crossing(loop, nodes, before, ctx)
        large = next((value for value in crossing if sizes.too_large(value)), None)
        failed: tuple[ir.Node, NotApplicable] | None = None
        if large is not None:
            reader = next(node for node in nodes if large in node.inputs)
            failed = reader, NotApplicable("MEMORY-BUDGET", f"'{large.name}' takes about {sizes.step(large)} bytes a step")
        else:
            for value, stack in crossing.items():
                stacks.place(value, stack)
            failed = next(((node, refusal) for node in nodes if (refusal := stacks.add(node)) is not None), None)
        if failed is None:
            return After(nodes, crossing, refused)
        refused[failed[0]] = failed[1]
        build.discard()
        stacks.known = dict(start)
    return After(refused=refused)


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


def _trimmed(nodes: list[ir.Node], sizes: StepSizes, before: Before) -> list[ir.Node]:
    """Keep in the loop what reads much more from it than it gives: the stack of what it reads would be the larger one.

    A copy of a value that stays is no work either.
    """
    kept: set[ir.Node] = set()
    chosen = set(nodes)
    for node in nodes:
        from_core = {
            value
            for value in node.inputs
            if value is not None and not before.stacks.has(value) and (value.producer() not in chosen or value.producer() in kept)
        }
        read, given = sum(map(sizes.step, from_core)), sum(map(sizes.step, node.outputs))
        from_moved = any(value is not None and value.producer() in chosen - kept for value in node.inputs)
        if from_core and not from_moved and (node.op_type == "Identity" or read > 2 * given):
            kept.add(node)
    return [node for node in nodes if node not in kept]


def _crossing(loop: ScanView, nodes: list[ir.Node], before: Before, ctx: Context) -> dict[ir.Value, ir.Value]:
    made = {value for node in nodes for value in node.outputs}
    existing = {
        through_identity(output.inner): output
        for output in loop.scan_outputs
        if output.reverse == before.stacks.backwards and output.axis == 0 and output.inner not in made
    }
    steps = dim_of(loop.scan_inputs[0].outer, 0)
    crossing: dict[ir.Value, ir.Value] = {}
    for value in (value for node in nodes for value in node.inputs):
        if value is None or value in made or value in crossing or before.stacks.has(value):
            continue
        output: ScanOutput | None = existing.get(value)
        if output is not None and output.outer is not None and not before.stacks.has(output.inner):
            crossing[value] = output.outer
            continue
        shape = None if value.shape is None else ir.Shape([steps, *value.shape.dims])
        crossing[value] = ir.Value(name=ctx.names.fresh(f"{value.name}_steps"), type=value.type, shape=shape)
    return crossing
