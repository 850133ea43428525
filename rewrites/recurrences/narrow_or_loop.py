"""An If that computes the states of a loop at once only when a step is narrow, which is not known before the model runs.

    Scan(s0, xs)    ->    If (Size(s0) <= widest) Scan(s0, xs), marked as narrow, else Scan(s0, xs) as a fallback

Rules that are slower than the loop for wide states change the first Scan and leave the fallback alone.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.fission.copied import copied
from rewrites.fission.trial import discarding, tried
from rewrites.graph.branches import has_steps, say_has_steps
from rewrites.graph.context import Context
from rewrites.graph.marks import ASSUMED_SIZE, IS_NARROW
from rewrites.graph.values import bytes_per_element, static_dims
from rewrites.loops import ScanView, State
from rewrites.recurrences.or_loop import is_kept_loop, put_under_if
from rewrites.rule import NotApplicable, Patch

__all__ = ["at_once_if_narrow", "can_ask_for_width", "put_under_width_check", "states_of_unknown_width", "tried_as_narrow"]

_SIZES = (1024, 512, 256, 128)
"""Sizes to try for each unknown dimension, beside the one that is assumed."""


def states_of_unknown_width(loop: ScanView, sizes: StepSizes) -> list[State]:
    """Return the states whose size is neither known, hinted nor checked by an If around ``loop``."""
    if IS_NARROW.on(loop.node) or ASSUMED_SIZE.on(loop.node):
        return []
    return [state for state in loop.states if static_dims(state.initial) is None and not sizes.hinted(state.inner)]


def can_ask_for_width(loop: ScanView, ctx: Context) -> bool:
    """Return True if the target runs an If around ``loop``, and no outer loop does, which an If would keep from being batched."""
    if not ctx.options.target.loops or "If" not in ctx.options.target.control_flow:
        return False
    graph = loop.node.graph
    while isinstance(graph, ir.Graph) and graph is not ctx.model.graph:
        guard = ctx.if_around(graph)
        graph = None if guard is None else guard.graph
    return graph is not None


def at_once_if_narrow(
    loop: ScanView,
    at_once: Callable[[Context], Patch | NotApplicable],
    unprofitable: Callable[[Context], NotApplicable | None],
    ctx: Context,
) -> Patch | NotApplicable:
    """Return the patch of a form, or one that first puts ``loop`` under an If on the widest states for which the form pays.

    Args:
        at_once: Returns the patch of the form.
        unprofitable: Returns why the form is no faster than the loop for the sizes that a context assumes, or None if it is.
    """
    refusal = unprofitable(ctx)
    if refusal is not None:
        return refusal
    unknown = states_of_unknown_width(loop, StepSizes.of(loop, ctx))
    if not unknown or not can_ask_for_width(loop, ctx):
        return at_once(ctx)
    with discarding(ctx) as trial_ctx:
        patch = at_once(trial_ctx)
    if isinstance(patch, NotApplicable):
        return patch
    contexts = (replace(ctx, options=replace(ctx.options, assumed_dim=size)) for size in _SIZES)
    widest_ctx = next((context for context in contexts if unprofitable(context) is None), ctx)
    sizes = StepSizes.of(loop, widest_ctx)
    widest = min(sizes.step(state.inner) for state in unknown)
    names = ", ".join(f"'{state.inner.name}'" for state in unknown)
    if is_kept_loop(loop, ctx):
        return NotApplicable("COST-LINEAR", f"{names} may take more than {widest} bytes a step here, see --shape")
    return Patch(
        f"put {names} under an If: all steps at once if each takes at most {widest} bytes a step, else the loop",
        lambda: put_under_width_check(loop, unknown, widest, ctx),
        (f"by an estimate faster up to {widest} bytes a step; a run with wider states goes step by step",),
    )


def put_under_width_check(loop: ScanView, states: list[State], widest: int, ctx: Context) -> list[ir.Node]:
    """Put ``loop`` under an If on whether each of ``states`` has at most ``widest`` bytes.

    Returns:
        The Scan that runs if they do, and the fallback.
    """
    build, inside = ctx.builder(), ctx.builder()
    condition: ir.Value | None = None
    for state in states:
        limit = build.const([widest // bytes_per_element(state.initial) + 1])
        is_narrow = build.op("Less", build.op("Size", state.initial), limit)
        condition = is_narrow if condition is None else build.op("And", condition, is_narrow)
    assert condition is not None
    always_steps = has_steps(loop.node.graph)
    narrow = _narrow_copy(loop, ctx)
    inside.nodes.append(narrow)
    results = [
        value if old.uses() or old.is_graph_output() else None for old, value in zip(loop.node.outputs, narrow.outputs, strict=True)
    ]
    fallback = put_under_if(loop, ctx, build, condition, inside, results)
    if always_steps:
        say_has_steps(narrow.graph)
        say_has_steps(fallback.graph)
    return [narrow, fallback]


@contextmanager
def tried_as_narrow(loop: ScanView, ctx: Context) -> Iterator[tuple[ScanView, Context]]:
    """Return a copy of ``loop`` that is marked as narrow, all of whose results are wanted, and the context to try rules on it."""
    node = _narrow_copy(loop, ctx)
    with tried(node, ctx) as trial:
        assert isinstance(node.graph, ir.Graph)
        node.graph.outputs.extend(node.outputs)
        yield trial


def _narrow_copy(loop: ScanView, ctx: Context) -> ir.Node:
    node = copied(loop, loop.states, ctx)
    IS_NARROW.put(node, True)
    return node
