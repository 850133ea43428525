"""A sequence that grows in each step and is concatenated after the loop becomes a stacked result.

    Loop(M, c, q0, h0) body(i, c, q, h) => (c, SequenceInsert(q, y), f(h));  ys = ConcatFromSequence<new_axis = 1>(qT)
    ->    ys = Loop(M, c, h0) body(i, c, h) => (c, f(h), y)

Conditions: the sequence starts empty. In the body, only one SequenceInsert reads it, and inserts at its end. Only
ConcatFromSequence reads the final value. If the tensors are concatenated along an existing axis, their size along this axis is
known. Every other state keeps its shape. If the loop runs zero steps, the new model returns an empty result, but ConcatFromSequence
would fail.
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.shapes.refine import body_with_kept_shapes
from rewrites.base.plain_text import listed
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import dim_of, rank_of, through_identity
from rewrites.loop_form.stacks import CollectedState, EmitFinal, is_only_returned, stack_collected_states
from rewrites.loops import Loop, LoopView, State
from rewrites.ops.versions import axis_of, concat, move_first_axis, shape_of
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


@dataclass(frozen=True)
class _CollectedSequence:
    """A sequence ``state``. Each step inserts ``inserted``. The ``concats`` read the final sequence."""

    state: State
    inserted: ir.Value
    concats: tuple[ir.Node, ...]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a Loop collects tensors in sequences."""
    if not isinstance(loop, LoopView):
        return NOTHING_HERE
    candidates = [sequence for state in loop.states if (sequence := _match_collected_sequence(state, loop)) is not None]
    if not candidates:
        return NOTHING_HERE
    with body_with_kept_shapes(loop, ctx, {}):
        candidates = [sequence for sequence in candidates if _can_join(sequence)]
    with body_with_kept_shapes(loop, ctx, {}) as settled:
        collected = [_to_collected_state(sequence) for sequence in candidates if _can_join(sequence)] if settled else []
    if not collected:
        return NOTHING_HERE
    names = listed(sequence.state.inner.name for sequence in collected)
    what = f"made the sequences {names}, which collect a tensor a step, stacked results"
    return Patch(what, lambda: stack_collected_states(loop, collected, ctx))


def _match_collected_sequence(state: State, loop: LoopView) -> _CollectedSequence | None:
    """Return ``state`` as a _CollectedSequence if each step only appends a tensor to it, else None."""
    start, next_value = through_identity(state.initial), through_identity(state.next)
    empty = None if start is None else start.producer()
    node = None if next_value is None else next_value.producer()
    if empty is None or empty.op_type != "SequenceEmpty" or node is None or node.op_type != "SequenceInsert":
        return None
    has_position = len(node.inputs) > 2 and node.inputs[2] is not None
    inserted = node.inputs[1]
    if node.inputs[0] is not state.inner or [user for user, _ in state.inner.uses()] != [node] or has_position:
        return None
    if inserted is None or not is_only_returned(node.outputs[0], loop):
        return None
    readers = [] if state.final is None else [user for user, _ in state.final.uses()]
    together = all(user.op_type == "ConcatFromSequence" and user.graph is loop.node.graph for user in readers)
    if state.final is None or state.final.is_graph_output() or not readers or not together:
        return None
    return _CollectedSequence(state, inserted, tuple(readers))


def _can_join(sequence: _CollectedSequence) -> bool:
    """Return True if enough sizes are known to replace the ConcatFromSequence nodes."""
    rank = rank_of(sequence.inserted)
    if rank is None:
        return False
    ranks = [(node, rank + _has_new_axis(node)) for node in sequence.concats]
    if not all(0 <= axis_of(node, 0, joined_rank) < joined_rank for node, joined_rank in ranks):
        return False
    existing_axes = [axis_of(node, 0, rank) for node in sequence.concats if not _has_new_axis(node)]
    return all(isinstance(dim_of(sequence.inserted, axis), int) for axis in existing_axes)


def _has_new_axis(node: ir.Node) -> bool:
    """Return True if the ConcatFromSequence ``node`` joins the tensors along a new axis."""
    return bool(node.attributes.get_int("new_axis", 0))


def _to_collected_state(sequence: _CollectedSequence) -> CollectedState:
    """Return how stacked results replace ``sequence``."""
    inserted, shape = sequence.inserted, sequence.inserted.shape
    assert shape is not None
    return CollectedState(
        sequence.state, shape, lambda _: inserted, [(node.outputs[0], _emit_concatenated(node, shape)) for node in sequence.concats]
    )


def _emit_concatenated(node: ir.Node, shape: ir.Shape) -> EmitFinal:
    """Return a function that emits the result of the ConcatFromSequence ``node`` from the stack.

    ``shape``: the shape of the tensors in the sequence.
    """
    has_new_axis, rank = _has_new_axis(node), len(shape)
    axis = axis_of(node, 0, rank + 1 if has_new_axis else rank)

    def final(b: Builder, stack: ir.Value) -> ir.Value:
        moved = move_first_axis(b, stack, axis, rank_of(stack) or 0)
        if has_new_axis:
            return moved
        sizes = [shape_of(b, moved, i if i < axis else i + 1) for i in range(rank)]
        sizes[axis] = b.op("Mul", shape_of(b, stack, 0), sizes[axis])
        return b.op("Reshape", moved, concat(b, sizes, 0))

    return final


RULE = Rule("collected-sequences", "loop_form", "loop", check)
