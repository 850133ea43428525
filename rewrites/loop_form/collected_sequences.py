"""A sequence that gets one tensor in each step, and is made a tensor after the loop, becomes a stacked result.

    Loop(M, c, q0, h0) body(i, c, q, h) => (c, SequenceInsert(q, y), f(h));  ys = ConcatFromSequence<new_axis = 1>(qT)
    ->    ys = Loop(M, c, h0) body(i, c, h) => (c, f(h), y)

Conditions: the sequence starts empty, is read by nothing but that SequenceInsert (at its end), and its final value by nothing but
ConcatFromSequence; where the tensors are joined along an axis they have, their size along it is known; every other state keeps its
shape. Without any step, where ConcatFromSequence fails, the result is empty.
"""

from dataclasses import dataclass
from functools import partial

import onnx_ir as ir

from rewrites.analysis.shapes.refine import settled_beside
from rewrites.base.plain_text import listed
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import dim_of, rank_of, through_identity
from rewrites.loop_form.stacks import Collected, Final, collect, front_to, only_returned
from rewrites.loops import Loop, LoopView, State
from rewrites.ops.versions import axis_of, concat, shape_of
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


@dataclass(frozen=True)
class _Collecting:
    state: State
    inserted: ir.Value
    joined: tuple[ir.Node, ...]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find collecting sequences."""
    if not isinstance(loop, LoopView):
        return NOTHING_HERE
    found = [collecting for state in loop.states if (collecting := _collecting(state, loop)) is not None]
    if not found:
        return NOTHING_HERE
    with settled_beside(loop, ctx, {}):
        found = [one for one in found if _can_join(one)]
    with settled_beside(loop, ctx, {}) as settled:
        collected = [_collected(one) for one in found if _can_join(one)] if settled else []
    if not collected:
        return NOTHING_HERE
    names = listed(one.state.inner.name for one in collected)
    return Patch(
        f"made the sequences {names}, which collect a tensor a step, stacked results", lambda: collect(loop, collected, ctx)
    )


def _collecting(state: State, loop: LoopView) -> _Collecting | None:
    start, next_value = through_identity(state.initial), through_identity(state.next)
    maker = None if start is None else start.producer()
    node = None if next_value is None else next_value.producer()
    if maker is None or maker.op_type != "SequenceEmpty" or node is None or node.op_type != "SequenceInsert":
        return None
    at_place = len(node.inputs) > 2 and node.inputs[2] is not None
    inserted = node.inputs[1]
    if node.inputs[0] is not state.inner or [user for user, _ in state.inner.uses()] != [node] or at_place or inserted is None:
        return None
    if not only_returned(node.outputs[0], loop):
        return None
    readers = [] if state.final is None else [user for user, _ in state.final.uses()]
    together = all(user.op_type == "ConcatFromSequence" and user.graph is loop.node.graph for user in readers)
    if state.final is None or state.final.is_graph_output() or not readers or not together:
        return None
    return _Collecting(state, inserted, tuple(readers))


def _can_join(one: _Collecting) -> bool:
    rank = rank_of(one.inserted)
    if rank is None:
        return False
    places = [(node, rank + _stacks(node)) for node in one.joined]
    if not all(0 <= axis_of(node, 0, axes) < axes for node, axes in places):
        return False
    along = [axis_of(node, 0, rank) for node in one.joined if not _stacks(node)]
    return all(isinstance(dim_of(one.inserted, axis), int) for axis in along)


def _stacks(node: ir.Node) -> bool:
    return bool(node.attributes.get_int("new_axis", 0))


def _collected(one: _Collecting) -> Collected:
    shape = one.inserted.shape
    assert shape is not None
    return Collected(one.state, shape, partial(_same, one.inserted), [(node.outputs[0], _join(node, shape)) for node in one.joined])


def _join(node: ir.Node, shape: ir.Shape) -> Final:
    stacks, rank = _stacks(node), len(shape)
    axis = axis_of(node, 0, rank + 1 if stacks else rank)

    def final(b: Builder, stack: ir.Value) -> ir.Value:
        moved = front_to(b, stack, axis)
        if stacks:
            return moved
        sizes = [shape_of(b, moved, i if i < axis else i + 1) for i in range(rank)]
        sizes[axis] = b.op("Mul", shape_of(b, stack, 0), sizes[axis])
        return b.op("Reshape", moved, concat(b, sizes, 0))

    return final


def _same(value: ir.Value, b: Builder) -> ir.Value:
    del b
    return value


RULE = Rule("collected-sequences", "loop_form", "loop", check)
