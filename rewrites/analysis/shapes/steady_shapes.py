"""Whether a Loop's states keep their shapes from step to step, as a Scan's have to.

One inference of the body, from the shapes of the initial values, tells: if the body gives the same shapes back, induction gives
them for all steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import onnx_ir as ir

from rewrites.analysis.induction.integers import Integers
from rewrites.analysis.shapes.bodies import Walk
from rewrites.analysis.shapes.refine import infer_sharply, sharpen
from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context
from rewrites.graph.dims import same, with_size
from rewrites.graph.node_inference import LearnedShapes, put_shapes, shapes_kept, taken_back
from rewrites.graph.values import rank_of
from rewrites.graph.walk import all_nodes, inner_values
from rewrites.loops import LoopView, State
from rewrites.loops.view import captured_values

__all__ = ["settled_beside", "unsettled_shapes"]

_Growing = Mapping[ir.Value, int | None]


def unsettled_shapes(loop: LoopView, ctx: Context) -> NotApplicable | LearnedShapes:
    """Say which state may change its shape, or which result has no known rank; where all is settled, return the shapes found.

    All values have the shapes they had. A declared shape proves nothing of a state, and counts for other values only where nothing
    can be inferred. Where too little is known, what the loop is given is looked at again.
    """
    with _looked_at(loop, ctx, {}) as (refusal, before):
        return taken_back(before) if refusal is None else refusal


@contextmanager
def settled_beside(loop: LoopView, ctx: Context, growing: _Growing) -> Iterator[bool]:
    """Tell whether all states keep their shapes beside sequences and those of ``growing``, which may change along the axis given.

    Where they do, the values of the body have the shapes found as long as the context lasts, and those they had afterwards.
    """
    sequences = {state.inner: None for state in loop.states if not isinstance(state.initial.type, ir.TensorType)}
    with _looked_at(loop, ctx, {**sequences, **growing}) as (refusal, _):
        yield refusal is None


@contextmanager
def _looked_at(loop: LoopView, ctx: Context, growing: _Growing) -> Iterator[tuple[NotApplicable | None, LearnedShapes]]:
    """Look at the loop, and if need be again; tell why it is not settled, and what shapes values had that have others meanwhile."""
    with shapes_kept([*loop.body.inputs, *inner_values(loop.body)]) as before:
        refusal = _unsettled(loop, ctx, growing, before)
        if refusal is not None:
            sharpened = sharpen([*captured_values(loop.body), *(state.initial for state in loop.states)], ctx)
            refusal = _unsettled(loop, ctx, growing, before) if sharpened else refusal
            before.update(sharpened)
        yield refusal, before


def _unsettled(loop: LoopView, ctx: Context, growing: _Growing, before: LearnedShapes) -> NotApplicable | None:
    """Infer the body, whose values have the shapes of ``before``; where it is not settled, they have them again.

    What nested Loops give stays open. Sizes have names only where they are those of values outside, or of initial values, so a name
    is one size in every step.
    """

    def infer(node: ir.Node) -> None:
        infer_sharply(node, ctx, Integers(ctx.opset, node.graph, same_sizes=True))

    for state in loop.states:
        axis, shape = growing.get(state.inner), state.initial.shape
        state.inner.shape = shape if axis is None else with_size(shape, axis, None)
    Walk(ctx.opset, infer, lambda _: None, declared_rows=True).follow(loop.body)
    refusal = _changing_state([state for state in loop.states if state.inner not in growing])
    put_shapes({value: before[value] for node in all_nodes(loop.body) for value in node.outputs if value.shape is None})
    vague = next((output.inner for output in loop.scan_outputs if rank_of(output.inner) is None), None)
    if refusal is None and vague is not None:
        refusal = NotApplicable("RANK-UNKNOWN", f"the rank of the result '{vague.name}' is not known, which a Scan needs")
    if refusal is not None:
        put_shapes(before)
    return refusal


def _changing_state(states: Sequence[State]) -> NotApplicable | None:
    for state in states:
        given, back = state.initial.shape, state.next.shape
        if not same(given, back):
            detail = f"state '{state.inner.name}' starts with the shape {given}, and the body gives {back}"
            return NotApplicable("LOOP-STATE-SHAPE", detail)
    return None
