"""An If that keeps a loop for numbers for which what stands in its place would not do: what is not finite, or too large, or -0."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.fission.copied import copied
from rewrites.graph.branches import say_has_steps, write_if
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import dim_of
from rewrites.loops import ScanView
from rewrites.loops.rebuild import stand_in_for, written_again
from rewrites.ops.versions import reshape, shape_of

__all__ = ["are_plain", "is_kept_loop", "keep_loop", "put_under_if", "put_under_ifs"]

_OTHERWISE = "otherwise_the_loop"


def is_kept_loop(loop: ScanView, ctx: Context) -> bool:
    """Return True if ``loop`` is a fallback, even if a guard was put around it inside the branch of the fallback."""
    graph = loop.node.graph
    while isinstance(graph, ir.Graph) and graph is not ctx.model.graph:
        if (graph.name or "").startswith(_OTHERWISE):
            return True
        guard = ctx.if_around(graph)
        graph = None if guard is None else guard.graph
    return False


def keep_loop(scan: ir.Node, ctx: Context) -> None:
    """Note on the branch that ``scan`` stands in that the loop is kept there."""
    assert scan.graph is not None
    scan.graph.name = ctx.names.fresh(_OTHERWISE)


def are_plain(build: Builder, values: Sequence[ir.Value], largest: float, dtype: np.dtype, *, are_no_minus_zeros: bool) -> ir.Value:
    """Return whether all numbers in ``values`` are finite, and at most ``largest``; and none of them -0, where asked for."""
    squares = [build.op("ReduceSumSquare", value, keepdims=0) for value in values]
    whole = squares[0]
    for square in squares[1:]:
        whole = build.op("Add", whole, square)
    answer = build.op("Less", whole, build.const(np.array(largest * largest, dtype)))
    for value in values if are_no_minus_zeros else ():
        one, least = build.const(np.array(1, dtype)), build.const(np.array(-np.finfo(dtype).max, dtype))
        inverse = build.op("ReduceMin", build.op("Div", one, value), keepdims=0)
        answer = build.op("And", answer, build.op("Less", least, inverse))
    return answer


def put_under_if(
    loop: ScanView, ctx: Context, build: Builder, condition: ir.Value, instead: Builder, found: Sequence[ir.Value | None]
) -> ir.Node:
    """Put ``loop`` under an If: ``found``, of ``instead``, are its results where ``condition`` holds, None where nobody wants one.

    ``build`` holds what comes before the If. Return the loop as it is kept.
    """
    old, scan = loop.node, written_again(loop, ctx.names)
    made = _or_else(scan, ctx, build, condition, instead, found, old.name)
    choice = build.nodes.pop()
    build.insert_before(old)
    stand_in_for(old, choice, [(old.outputs[place], value) for place, value in made.items()], ctx.names)
    return scan


def put_under_ifs(
    loop: ScanView,
    ctx: Context,
    least: int,
    longest: int | None,
    build: Builder,
    condition: ir.Value,
    instead: Builder,
    found: Sequence[ir.Value | None],
) -> list[ir.Node]:
    """Do what ``put_under_if`` does where there are from ``least`` to ``longest`` steps, and keep the loop for other numbers too.

    Return the loops that are kept.
    """
    are_many = ctx.builder()
    first = loop.scan_inputs[0]
    steps = shape_of(are_many, first.outer, first.axis)
    is_fit = are_many.op("Less", are_many.const([least - 1]), steps)
    for scan in loop.scan_inputs[1:]:  # onnxruntime is to refuse stacks of unlike lengths
        if dim_of(scan.outer, scan.axis) is None or dim_of(scan.outer, scan.axis) != dim_of(first.outer, first.axis):
            is_fit = are_many.op("And", is_fit, are_many.op("Equal", shape_of(are_many, scan.outer, scan.axis), steps))
    if longest is not None:
        is_fit = are_many.op("And", is_fit, are_many.op("Less", steps, are_many.const([longest + 1])))
    other = copied(loop, loop.states, ctx)
    made = _or_else(other, ctx, build, condition, instead, found, loop.node.name)
    say_has_steps(other.graph)
    return [other, put_under_if(loop, ctx, are_many, is_fit, build, [made.get(place) for place in range(len(found))])]


def _or_else(
    scan: ir.Node,
    ctx: Context,
    build: Builder,
    condition: ir.Value,
    instead: Builder,
    found: Sequence[ir.Value | None],
    hint: str | None,
) -> dict[int, ir.Value]:
    """End ``build`` with an If that keeps ``scan`` in its other branch; return the results that somebody wants, by their places."""
    kept, wanted = ctx.builder(), {place: value for place, value in enumerate(found) if value is not None}
    kept.nodes.append(scan)
    flag = reshape(build, condition, [1]) if condition.shape is None else condition
    made = write_if(build, flag, (instead, list(wanted.values())), (kept, [scan.outputs[place] for place in wanted]), hint)
    keep_loop(scan, ctx)
    return dict(zip(wanted, made, strict=True))
