"""A Slice, or a GatherND, at an index that changes from step to step becomes a Gather along one axis.

    Slice(X, [i, 0], [i + 1, n], [0, 1])    ->    Unsqueeze(Gather(X, i))
    Slice(X, [i], [i + 3], [0])             ->    Gather(X, [0, 1, 2] + i)
    GatherND(X, [i])                        ->    Gather(X, i)

Conditions: of the axes of a Slice one is taken from an index that changes evenly, as many rows in each step, which all are there in
every step; the others are taken as they are, or between constants. X is given from outside the loop, of known rank.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import STEP, Affine, at_least
from rewrites.analysis.induction.emission import emit, scalar_of
from rewrites.analysis.induction.induction_variables import integers_of, trip_count
from rewrites.analysis.induction.integers import Bounds, Integers
from rewrites.base import since
from rewrites.base.plain_text import counted
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, take_over
from rewrites.graph.values import rank_of
from rewrites.loops import Loop, LoopView
from rewrites.ops.versions import gather, slice_axis, unsqueeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


@dataclass(frozen=True)
class _Taken:
    """``width`` rows from ``start`` on along ``axis`` (None: one, without the axis); ``cuts``: what is left of other axes."""

    node: ir.Node
    source: ir.Value
    axis: int
    start: Affine
    width: int | None
    cuts: tuple[Bounds, ...]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Find such reads."""
    steps = None if not isinstance(loop, LoopView) else trip_count(loop, ctx.opset)
    if not isinstance(loop, LoopView) or steps is None or ctx.opset < since.SLICE_INPUTS:
        return NOTHING_HERE
    integers = integers_of(loop, ctx.opset, steps)
    found = [taken for node in loop.body if (taken := _taken(node, loop, integers, steps)) is not None]
    if not found:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        for taken in found:
            outside, inside = ctx.builder(), ctx.builder()
            value = _emit(outside, inside, taken, loop)
            outside.insert_before(loop.node)
            inside.insert_before(taken.node)
            take_over(taken.node.outputs[0], value, ctx.names)
        remove_nodes(taken.node for taken in found)
        return [loop.node]

    return Patch(f"read {counted(len(found), 'slice')}, which start elsewhere in each step, by Gather", edit)


def _taken(node: ir.Node, loop: LoopView, integers: Integers, steps: Affine) -> _Taken | None:
    source = node.inputs[0] if node.inputs else None
    if node.domain != "" or source is None or source.graph is loop.body or source.dtype in (None, ir.DataType.STRING):
        return None
    rank = rank_of(source)
    if node.op_type == "GatherND" and rank:
        places = integers.operand(node, 1)
        if places is None or places.shape != (1,) or not places.factor(STEP) or bool(node.attributes.get_int("batch_dims", 0)):
            return None
        return _Taken(node, source, 0, places.reshaped(()), None, ()) if places.exact_to is None else None
    if node.op_type != "Slice" or not rank:
        return None
    bounds = integers.bounds(node)
    if bounds is None or len({one.axis for one in bounds}) != len(bounds):
        return None
    moving = [one for one in bounds if one.start.terms or one.end.factor(STEP)]
    if len(moving) != 1:
        return None
    (row,) = moving
    width, length = (row.end - row.start).number, integers.size_of(source, row.axis)
    if width is None or width < 1 or length is None or row.start.exact_to is not None or not row.start.factor(STEP):
        return None
    if not at_least(row.start, 0, steps) or not at_least(length - row.start - Affine.of(width), 0, steps):
        return None
    cuts = [one for one in bounds if one is not row and not _is_whole(one, integers.size_of(source, one.axis))]
    if any(one.start.number is None or one.end.number is None for one in cuts):
        return None
    return _Taken(node, source, row.axis, row.start, width, tuple(cuts))


def _is_whole(one: Bounds, length: Affine | None) -> bool:
    rest = None if length is None else one.end - length
    to_the_end = one.end.number is not None and one.end.number >= (1 << 31) - 1
    return one.start.number == 0 and (to_the_end or (rest is not None and rest.number is not None and rest.number >= 0))


def _emit(outside: Builder, inside: Builder, taken: _Taken, loop: LoopView) -> ir.Value:
    fixed = emit(outside, taken.start.without(STEP))
    moving = emit(inside, Affine.symbol(STEP) * Affine.of(taken.start.factor(STEP)), {STEP: scalar_of(inside, loop.iteration)})
    none = taken.start.without(STEP).number == 0
    start = moving if none else inside.op("Add", moving, fixed)
    width = taken.width
    if width is not None and width > 1:
        start = inside.op("Add", start, inside.const(np.arange(width)))
    value = gather(inside, taken.source, start, taken.axis)
    if width == 1:
        value = unsqueeze(inside, value, [taken.axis])
    for cut in taken.cuts:
        value = slice_axis(inside, value, cut.axis, cut.start.number or 0, cut.end.number or 0)
    return value


RULE = Rule("step-slices", "loop_form", "loop", check)
