"""A tensor whose rows the steps write one by one becomes a stacked result.

    Loop(n, c, t0, h0) body(i, c, t, h) => (c, ScatterND(t, [[i]], [y]), f(h))
    ->    ys = Loop(n, c, h0) body(i, c, h) => (c, f(h), y);  tT = Concat(ys, t0[n:])

The loop may also be a Scan with an induction variable. Conditions: the index of the written row changes by a constant per step, and
all written rows exist. Apart from the write, each node that reads the state reads only its shape, the row that the same step writes
(this row still has its initial value), or the row that the previous step wrote (a new state carries this row). Nothing in the body
reads the updated tensor. Every other state keeps its shape. Rows that are not written keep their values.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import STEP, AffineExpression, at_least, surely_equal
from rewrites.analysis.induction.emission import emit
from rewrites.analysis.induction.induction_variables import integers_of, trip_count
from rewrites.analysis.induction.integers import Integers
from rewrites.analysis.shapes.refine import body_with_kept_shapes
from rewrites.base import since
from rewrites.base.plain_text import listed
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import without_axis
from rewrites.graph.values import producer_of, rank_of, through_identity
from rewrites.loop_form.reads_of_written_rows import carry_previous_row, has_row_before, reads_initial_value, reads_previous_row
from rewrites.loop_form.row_operators import RowWrite
from rewrites.loop_form.row_writes import row_write
from rewrites.loop_form.stacks import CollectedState, is_only_returned, join_rows, stack_collected_states
from rewrites.loops import Loop, ScanView, State
from rewrites.ops.versions import (
    concat,
    count_up,
    move_axis_first,
    move_first_axis,
    reshape,
    reversed_if,
    shape_of,
    unsqueeze,
)
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


@dataclass(frozen=True)
class _WrittenState:
    """A state to which each step writes a row.

    ``initial_reads``: the nodes that can read the initial value of the state instead. ``previous_reads``: the nodes that read the
    row of the previous step.
    """

    state: State
    write: RowWrite
    initial_reads: tuple[ir.Node, ...]
    previous_reads: tuple[ir.Node, ...]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the loop writes states row by row."""
    steps, candidates = trip_count(loop, ctx.opset), [state for state in loop.states if _may_write(state)]
    if steps is None or not candidates or ctx.opset < since.SLICE_INPUTS:
        return NOTHING_HERE
    with _other_states_keep_shapes(loop, candidates, ctx):
        integers = integers_of(loop, ctx.opset, steps)
        candidates = [state for state in candidates if _match_written_state(state, loop, integers, steps) is not None]
    # a write keeps the shape of its tensor, but the shapes of the other states were only assumed
    with _other_states_keep_shapes(loop, candidates, ctx) as settled:
        integers = integers_of(loop, ctx.opset, steps)
        writes = [_match_written_state(state, loop, integers, steps) for state in candidates] if settled else []
    written = [write for write in writes if write is not None]
    if not written:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        for state in written:
            for node in state.initial_reads:
                node.replace_input_with(0, state.state.initial)
        return stack_collected_states(loop, [_to_collected_state(state, steps, loop, ctx) for state in written], ctx)

    names = listed(state.state.inner.name for state in written)
    return Patch(f"made the states {names}, written row by row, stacked results", edit)


def _other_states_keep_shapes(loop: Loop, states: Sequence[State], ctx: Context) -> AbstractContextManager[bool]:
    """Yield True if all states other than ``states`` are known to keep their shapes.

    In a Scan, they always do.
    """
    if isinstance(loop, ScanView):
        return nullcontext(True)
    return body_with_kept_shapes(loop, ctx, dict.fromkeys(state.inner for state in states))


def _may_write(state: State) -> bool:
    """Return True if the operator that computes the next value of ``state`` can write a row of it.

    The shape of the state must be known.
    """
    node = producer_of(through_identity(state.next), "ScatterND", "ScatterElements", "Where", "Concat", "Transpose")
    return node is not None and state.initial.shape is not None


def _match_written_state(state: State, loop: Loop, integers: Integers, steps: AffineExpression) -> _WrittenState | None:
    """Return ``state`` as a _WrittenState if each step writes one of its rows, else None."""
    node = producer_of(through_identity(state.next))
    write = None if node is None or node.graph is not loop.body else row_write(node, state, integers)
    if write is None or not _rows_exist(write, state, integers, steps):
        return None
    reads: dict[bool, list[ir.Node]] = {True: [], False: []}
    for user, index in state.inner.uses():
        if user is write.node or user in write.helper_nodes:
            continue
        reads_initial = user.graph is loop.body and index == 0 and reads_initial_value(user, write, integers)
        if not reads_initial and (user.graph is not loop.body or index != 0 or not reads_previous_row(user, write, integers)):
            return None
        reads[reads_initial].append(user)
    previous = tuple(reads[False])
    if not is_only_returned(write.node.outputs[0], loop):
        return None
    if previous and not has_row_before(write, state, previous, loop, integers, steps):
        return None
    return _WrittenState(state, write, tuple(reads[True]), previous)


def _rows_exist(write: RowWrite, state: State, integers: Integers, steps: AffineExpression) -> bool:
    """Return True if all rows that the steps write are known to exist in the tensor."""
    length = integers.size_of(state.initial, write.axis)
    room = None if length is None else length - write.index - 1
    if abs(write.index.factor(STEP)) > 1 and integers.opset < since.SCATTER_ND:
        return False
    return room is not None and at_least(write.index, 0, steps) and at_least(room, 0, steps)


def _to_collected_state(written: _WrittenState, steps: AffineExpression, loop: Loop, ctx: Context) -> CollectedState:
    """Return how stacked results replace ``written``. ``steps``: the trip count."""
    state, write = written.state, written.write

    def final(b: Builder, stack: ir.Value) -> ir.Value:
        if abs(write.index.factor(STEP)) > 1:
            return _scatter_rows(b, written, stack)
        falling = write.index.factor(STEP) < 0
        ordered = reversed_if(b, stack, falling)
        rows = join_rows(b, ordered, write.axis, None, partial(shape_of, b, state.initial), rank_of(state.initial) or 0)
        start = write.index.without(STEP)
        first = start - steps + 1 if falling else start
        length = Integers(b.opset).size_of(state.initial, write.axis)
        assert length is not None
        parts = [rows]
        if first.number != 0:
            parts.insert(0, _emit_slice(b, state.initial, write.axis, AffineExpression.of(0), first))
        if not surely_equal(first + steps, length):
            parts.append(_emit_slice(b, state.initial, write.axis, first + steps, length))
        return concat(b, parts, write.axis)

    row = without_axis(state.initial.shape, write.axis) or ir.Shape([])
    finals = [(state.final, final)] if state.final is not None else []
    return CollectedState(state, row, write.emit_row, finals, carry_previous_row(write, state, written.previous_reads, loop, ctx))


def _scatter_rows(b: Builder, written: _WrittenState, stack: ir.Value) -> ir.Value:
    """Emit the initial tensor with the rows of ``stack`` at the indices at which the steps wrote them."""
    initial, write = written.state.initial, written.write
    rank = rank_of(initial) or 0
    tensor = move_axis_first(b, initial, write.axis, rank)
    rows = join_rows(b, stack, 0, None, partial(shape_of, b, tensor), rank)
    offsets = b.op("Mul", count_up(b, shape_of(b, stack, 0)), b.const([write.index.factor(STEP)]))
    indices = b.op("Add", offsets, emit(b, write.index.without(STEP)))
    return move_first_axis(b, b.op("ScatterND", tensor, unsqueeze(b, indices, [1]), rows), write.axis, rank)


def _emit_slice(b: Builder, tensor: ir.Value, axis: int, start: AffineExpression, end: AffineExpression) -> ir.Value:
    """Emit the rows ``start`` to ``end`` - 1 of ``tensor`` along ``axis``."""
    bounds = [reshape(b, emit(b, bound), [1]) if bound.number is None else b.const([bound.number]) for bound in (start, end)]
    return b.op("Slice", tensor, *bounds, b.const([axis]))


RULE = Rule("written-rows", "loop_form", "loop", check)
