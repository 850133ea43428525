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
from rewrites.loop_form.stacks import Collected, Final, collect, only_returned
from rewrites.loops import Loop, LoopView, State
from rewrites.ops.versions import axis_of, concat, move_first_axis, shape_of
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


@dataclass(frozen=True)
class _Collecting:
    state: State
    inserted: ir.Value
    joined: tuple[ir.Node, ...]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if a Loop collects tensors in sequences."""
    if not isinstance(loop, LoopView):
        return NOTHING_HERE
    candidates = [collecting for state in loop.states if (collecting := _collecting(state, loop)) is not None]
    if not candidates:
        return NOTHING_HERE
    with body_with_kept_shapes(loop, ctx, {}):
        candidates = [collecting for collecting in candidates if _can_join(collecting)]
    with body_with_kept_shapes(loop, ctx, {}) as settled:
        collected = [_collected(collecting) for collecting in candidates if _can_join(collecting)] if settled else []
    if not collected:
        return NOTHING_HERE
    names = listed(collecting.state.inner.name for collecting in collected)
    what = f"made the sequences {names}, which collect a tensor a step, stacked results"
    return Patch(what, lambda: collect(loop, collected, ctx))


def _collecting(state: State, loop: LoopView) -> _Collecting | None:
    start, next_value = through_identity(state.initial), through_identity(state.next)
    empty = None if start is None else start.producer()
    node = None if next_value is None else next_value.producer()
    if empty is None or empty.op_type != "SequenceEmpty" or node is None or node.op_type != "SequenceInsert":
        return None
    has_position = len(node.inputs) > 2 and node.inputs[2] is not None
    inserted = node.inputs[1]
    if node.inputs[0] is not state.inner or [user for user, _ in state.inner.uses()] != [node] or has_position:
        return None
    if inserted is None or not only_returned(node.outputs[0], loop):
        return None
    readers = [] if state.final is None else [user for user, _ in state.final.uses()]
    together = all(user.op_type == "ConcatFromSequence" and user.graph is loop.node.graph for user in readers)
    if state.final is None or state.final.is_graph_output() or not readers or not together:
        return None
    return _Collecting(state, inserted, tuple(readers))


def _can_join(collecting: _Collecting) -> bool:
    rank = rank_of(collecting.inserted)
    if rank is None:
        return False
    ranks = [(node, rank + _stacks(node)) for node in collecting.joined]
    if not all(0 <= axis_of(node, 0, joined) < joined for node, joined in ranks):
        return False
    along = [axis_of(node, 0, rank) for node in collecting.joined if not _stacks(node)]
    return all(isinstance(dim_of(collecting.inserted, axis), int) for axis in along)


def _stacks(node: ir.Node) -> bool:
    return bool(node.attributes.get_int("new_axis", 0))


def _collected(collecting: _Collecting) -> Collected:
    inserted, shape = collecting.inserted, collecting.inserted.shape
    assert shape is not None
    return Collected(
        collecting.state, shape, lambda _: inserted, [(node.outputs[0], _join(node, shape)) for node in collecting.joined]
    )


def _join(node: ir.Node, shape: ir.Shape) -> Final:
    stacks, rank = _stacks(node), len(shape)
    axis = axis_of(node, 0, rank + 1 if stacks else rank)

    def final(b: Builder, stack: ir.Value) -> ir.Value:
        moved = move_first_axis(b, stack, axis, rank_of(stack) or 0)
        if stacks:
            return moved
        sizes = [shape_of(b, moved, i if i < axis else i + 1) for i in range(rank)]
        sizes[axis] = b.op("Mul", shape_of(b, stack, 0), sizes[axis])
        return b.op("Reshape", moved, concat(b, sizes, 0))

    return final


RULE = Rule("collected-sequences", "loop_form", "loop", check)
