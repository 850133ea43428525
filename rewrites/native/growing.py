"""Finds the states of a Loop that grow by a Concat in each step, such as the caches of a decoder.

    Loop(M, c, k0) body(i, c, k) => (c, Concat(k, f(i)))    ->    k' = k;  k'[len(k):] = f(i)

In the memory of a plan, the axis along which a state grows is the outermost axis. Old rows therefore keep their addresses, and a
step only writes the new rows. If a step also chooses among the old rows, as in beam search, old and new state have separate memory.
The length before the step and the length after it are two free sizes. The library changes their values after each step.

Only plans store a state in this way. In a model, a buffer of the final length would need a ScatterND and a Slice in each step. Such
a decoder was measured at 0.5 to 0.8 times the speed of the Concat in onnxruntime, because the Slice copies the old rows too.
"""

import math
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.shapes.refine import body_with_kept_shapes
from rewrites.graph.context import Context
from rewrites.graph.type_names import type_name
from rewrites.graph.values import dim_of, producer_of, rank_of, through_identity
from rewrites.loops import LoopView, State
from rewrites.native.body import Body
from rewrites.native.free_sizes import size_name
from rewrites.native.operations import BOOL, NUMPY
from rewrites.native.plan import Input, InputKind, PlanRefused, Size, Symbol
from rewrites.native.views import Buffer, GrowingState, Origin, view_of_buffer, view_of_rows
from rewrites.ops.versions import axis_of

__all__ = ["Growth", "add_growing_state", "find_growth"]

_MOVES = frozenset({"Identity", "Gather", "Where"})
"""The operators through which a state may pass before and after the Concat, such as the choice of beams."""


@dataclass(frozen=True)
class Growth:
    """How a state grows: the ``concat`` that adds ``rows`` rows along ``axis``.

    ``in_place``: True if the Concat reads the state and returns the new state, with nothing in between.
    """

    concat: ir.Node
    axis: int
    rows: int
    in_place: bool


def find_growth(loop: LoopView, ctx: Context) -> dict[State, Growth]:
    """Return the states to which each step adds a known number of rows, and how they grow.

    It is not certain that the other states keep their shapes, or that these states do not grow in other ways too.
    """
    concats: dict[State, tuple[ir.Node, int]] = {}
    for state in loop.states:
        joined, rank = _before_moves(state.next), rank_of(state.initial)
        node = producer_of(joined, "Concat")
        if node is not None and rank and len(node.inputs) == 2 and _before_moves(node.inputs[0]) is state.inner:
            concats[state] = (node, axis_of(node, 0, rank))
    growth = {}
    if concats:
        with body_with_kept_shapes(loop, ctx, {state.inner: axis for state, (_, axis) in concats.items()}):
            for state, (node, axis) in concats.items():
                added = node.inputs[1]
                rows = None if added is None or rank_of(added) != rank_of(state.initial) else dim_of(added, axis)
                if isinstance(rows, int) and rows:
                    in_place = node.inputs[0] is state.inner and through_identity(state.next) is node.outputs[0]
                    growth[state] = Growth(node, axis, rows, in_place)
    return growth


def _before_moves(value: ir.Value | None) -> ir.Value | None:
    """Return the value from which ``value`` comes by operators that only choose elements."""
    while (node := producer_of(value, *_MOVES)) is not None:
        value = node.inputs[node.op_type == "Where"]
    return value


def add_growing_state(body: Body, state: State, index: int, growth: Growth) -> Input:
    """Add the views of a growing state to ``body``. Return input ``index`` of the plan, its initial value."""
    axis = growth.axis
    dtype, initial = state.inner.dtype, state.initial.shape
    if dtype is None or dtype not in NUMPY or initial is None:
        raise PlanRefused("NATIVE-TYPE", f"'{state.inner.name}' is {type_name(state.inner.dtype)}")
    name = size_name(initial[axis], index, axis)
    before, after = body.free.growing_numbers(name, growth.rows, index, axis)
    others = tuple(
        dim if isinstance(dim, int) else body.free.number(size_name(dim, index, other), Symbol(index, other))
        for other, dim in enumerate(initial)
        if other != axis
    )
    if 0 in others:
        raise PlanRefused("NATIVE-SHAPE", f"'{state.inner.name}' has no elements")
    shapes = [(*others[:axis], length, *others[axis:]) for length in (before, after)]
    old, new = (
        view_of_rows(view_of_buffer(Buffer(origin, math.prod(shape), index, dtype=int(dtype)), shape, truth=dtype == BOOL), axis)
        for origin, shape in zip((Origin.OLD, Origin.COMPUTED), shapes, strict=True)
    )
    body.views[state.inner] = old
    body.growing[growth.concat] = GrowingState(index, axis, growth.rows, old, new, growth.in_place)
    return Input(InputKind.INITIAL, tuple(map(Size, old.shape)), dtype=int(dtype))
