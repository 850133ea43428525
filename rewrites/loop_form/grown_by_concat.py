"""A tensor that each step extends at its start or end becomes a stacked result.

    Loop(M, c, a0, h0) body(i, c, a, h) => (c, Concat(a, Unsqueeze(y)), f(h))
    ->    ys = Loop(M, c, h0) body(i, c, h) => (c, f(h), y);  aT = Concat(a0, ys)

Conditions: in the body, only one Concat reads the state. The body returns the result of this Concat, and nothing else reads the
result. The added part has a known size along the axis, other than 0. Every other state keeps its shape.

An empty ``a0`` may have other sizes along the other axes than the added parts, because onnxruntime does not check the sizes of an
empty operand of a Concat. If the loop runs a step, the result then has the sizes of the added parts. If the loop runs no step, the
result has the sizes of ``a0``. If the added parts are empty as well, the first one determines the sizes.

Works around ORT-CONCAT-MISFIT.
"""

from dataclasses import dataclass
from functools import partial

import onnx_ir as ir

from rewrites.analysis.shapes.refine import body_with_kept_shapes
from rewrites.base import since
from rewrites.base.plain_text import listed
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import dim_of, producer_of, rank_of, through_identity
from rewrites.loop_form.stacks import CollectedState, is_only_returned, join_rows, stack_collected_states
from rewrites.loops import Loop, LoopView, State
from rewrites.ops.versions import axis_of, concat, reversed_if, shape_of, squeeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


@dataclass(frozen=True)
class _GrowingState:
    """A ``state`` to which each step appends the parts ``added`` along ``axis``.

    ``at_start``: True if the parts are inserted before the state instead.
    """

    state: State
    axis: int
    added: tuple[ir.Value, ...]
    at_start: bool


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if each step of a Loop extends a state by a Concat."""
    if not isinstance(loop, LoopView):
        return NOTHING_HERE
    candidates = [growing for state in loop.states if (growing := _match_growing_state(state, loop)) is not None]
    candidates = [growing for growing in candidates if ctx.opset >= (since.SLICE_INPUTS if growing.at_start else since.WHERE)]
    if not candidates:
        return NOTHING_HERE
    with body_with_kept_shapes(loop, ctx, {growing.state.inner: growing.axis for growing in candidates}):
        candidates = [growing for growing in candidates if _growth_per_step(growing) is not None]
    with body_with_kept_shapes(loop, ctx, {growing.state.inner: growing.axis for growing in candidates}) as settled:
        collected = [_to_collected_state(growing, _growth_per_step(growing) or 1) for growing in candidates] if settled else []
    if not collected:
        return NOTHING_HERE
    names = listed(growing.state.inner.name for growing in collected)
    return Patch(f"made the growing states {names} stacked results", lambda: stack_collected_states(loop, collected, ctx))


def _match_growing_state(state: State, loop: LoopView) -> _GrowingState | None:
    """Return ``state`` as a _GrowingState if each step only extends it by a Concat, else None."""
    node, rank = producer_of(through_identity(state.next), "Concat"), rank_of(state.initial)
    users = [user for user, _ in state.inner.uses()]
    if node is None or users != [node] or not rank or len(node.inputs) < 2 or not is_only_returned(node.outputs[0], loop):
        return None
    parts = tuple(value for value in node.inputs if value is not None)
    axis = axis_of(node, 0, rank)
    if parts[0] is state.inner:
        return _GrowingState(state, axis, parts[1:], False)
    return _GrowingState(state, axis, parts[:-1], True) if parts[-1] is state.inner else None


def _growth_per_step(growing: _GrowingState) -> int | None:
    """Return the size by which each step extends the axis; None if this size is unknown or 0."""
    widths = [dim_of(value, growing.axis) for value in growing.added]
    numbers = [width for width in widths if isinstance(width, int)]
    same_rank = all(rank_of(value) == rank_of(growing.state.initial) for value in growing.added)
    return sum(numbers) or None if len(numbers) == len(widths) and same_rank else None


def _to_collected_state(growing: _GrowingState, width: int) -> CollectedState:
    """Return how stacked results replace ``growing``. ``width``: the size that each step adds to the axis."""
    axis, initial = growing.axis, growing.state.initial
    rank = rank_of(initial) or 0
    dims = [dim_of(initial, i) if _has_equal_size(growing, i) else dim_of(growing.added[0], i) for i in range(rank)]
    shape = ir.Shape([*dims[:axis], *([] if width == 1 else [width]), *dims[axis + 1 :]])

    def result(b: Builder) -> ir.Value:
        added = concat(b, growing.added, axis)
        return squeeze(b, added, [axis]) if width == 1 else added

    def final(b: Builder, stack: ir.Value) -> ir.Value:
        ordered = reversed_if(b, stack, growing.at_start)
        is_stack_itself = width == 1 and not any(_has_unequal_size(growing, i) for i in range(rank) if i != axis)
        rows = join_rows(b, ordered, axis, None if is_stack_itself else width, partial(size, b, stack), rank)
        if dim_of(initial, axis) == 0:
            return rows
        return concat(b, [rows, initial] if growing.at_start else [initial, rows], axis)

    def size(b: Builder, stack: ir.Value, i: int) -> ir.Value:
        at_first = shape_of(b, initial, i)
        if _has_equal_size(growing, i):
            return at_first
        has_steps = b.op("Less", b.const([0]), shape_of(b, stack, 0))
        return b.op("Where", has_steps, shape_of(b, stack, i + 1 if i < axis or width != 1 else i), at_first)

    return CollectedState(growing.state, shape, result, [(growing.state.final, final)] if growing.state.final is not None else [])


def _has_unequal_size(growing: _GrowingState, axis: int) -> bool:
    """Return True if the initial tensor and an added part have different known sizes along ``axis``.

    onnxruntime allows this if the initial tensor is empty.
    """
    sizes = {dim_of(value, axis) for value in (growing.state.initial, *growing.added)}
    return sum(isinstance(size, int) for size in sizes) > 1


def _has_equal_size(growing: _GrowingState, axis: int) -> bool:
    """Return True if every added part is known to have the size of the initial tensor along ``axis``."""
    size = dim_of(growing.state.initial, axis)
    return size is not None and all(dim_of(value, axis) == size for value in growing.added)


RULE = Rule("grown-by-concat", "loop_form", "loop", check)
