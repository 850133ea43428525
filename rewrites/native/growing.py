"""Finds the states of a Loop that grow by a Concat in each step, such as the caches of a decoder.

    Loop(M, c, k0) body(i, c, k) => (c, Concat(k, f(i)))    ->    k' = k;  k'[len(k):] = f(i)

In the memory of a plan, the axis along which a state grows is the outermost axis. Old rows therefore keep their addresses, and a
step only writes the new rows. The length before the step and the length after it are two free sizes. The library changes their
values after each step.
"""

import math

import onnx_ir as ir

from rewrites.analysis.shapes.refine import body_with_kept_shapes
from rewrites.graph.context import Context
from rewrites.graph.values import dim_of, producer_of, rank_of, through_identity
from rewrites.loops import LoopView, State
from rewrites.native.body import Body, type_name
from rewrites.native.free_sizes import size_name
from rewrites.native.operations import BOOL, NUMPY
from rewrites.native.plan import Input, InputKind, PlanRefused, Size, Symbol
from rewrites.native.views import Buffer, GrowingState, Origin, View, dense_strides
from rewrites.ops.versions import axis_of

__all__ = ["Growth", "add_growing_state", "find_growth"]

Growth = tuple[ir.Node, int, int]
"""The Concat that extends a state, its axis, and the number of rows that it adds."""


def find_growth(loop: LoopView, ctx: Context) -> dict[State, Growth]:
    """Return the states to which each step adds a known number of rows, and how they grow."""
    concats: dict[State, tuple[ir.Node, int]] = {}
    for state in loop.states:
        node, rank = producer_of(through_identity(state.next), "Concat"), rank_of(state.initial)
        if node is not None and rank and node.graph is loop.body and len(node.inputs) == 2 and node.inputs[0] is state.inner:
            concats[state] = (node, axis_of(node, 0, rank))
    growth = {}
    if concats:
        with body_with_kept_shapes(loop, ctx, {state.inner: axis for state, (_, axis) in concats.items()}):
            for state, (node, axis) in concats.items():
                added = node.inputs[1]
                rows = None if added is None or rank_of(added) != rank_of(state.initial) else dim_of(added, axis)
                if isinstance(rows, int) and rows:
                    growth[state] = (node, axis, rows)
    return growth


def add_growing_state(body: Body, state: State, index: int, growth: Growth) -> Input:
    """Add the views of a growing state to ``body``. Return input ``index`` of the plan, its initial value."""
    concat, grown_axis, rows = growth
    dtype, initial = state.inner.dtype, state.initial.shape
    if dtype is None or dtype not in NUMPY or initial is None:
        raise PlanRefused("NATIVE-TYPE", f"'{state.inner.name}' is {type_name(state.inner)}")
    name = size_name(initial[grown_axis], index, grown_axis)
    before, after = body.free.growing_numbers(name, rows, index, grown_axis)
    others = tuple(
        dim if isinstance(dim, int) else body.free.number(size_name(dim, index, axis), Symbol(index, axis))
        for axis, dim in enumerate(initial)
        if axis != grown_axis
    )
    if 0 in others:
        raise PlanRefused("NATIVE-SHAPE", f"'{state.inner.name}' has no elements")
    old, new = (
        _view_of_rows(Buffer(origin, length * math.prod(others), index, dtype=int(dtype)), length, others, grown_axis)
        for origin, length in ((Origin.OLD, before), (Origin.COMPUTED, after))
    )
    shape = (*others[:grown_axis], rows, *others[grown_axis:])
    added = View(new.buffer, shape, new.strides, before * math.prod(others), new.truth)
    body.views[state.inner] = old
    body.growing[concat] = GrowingState(index, grown_axis, rows, new, added)
    return Input(InputKind.INITIAL, tuple(map(Size, old.shape)), dtype=int(dtype))


def _view_of_rows(buffer: Buffer, length: int, others: tuple[int, ...], axis: int) -> View:
    """Return the view of a tensor whose axis ``axis`` is the outermost axis of ``buffer``."""
    outer, *strides = dense_strides((length, *others))
    shape = (*others[:axis], length, *others[axis:])
    return View(buffer, shape, (*strides[:axis], outer, *strides[axis:]), truth=buffer.dtype == BOOL)
