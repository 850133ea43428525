"""A Slice or GatherND at an index that changes from step to step becomes a Gather.

    Slice(X, [i, 0], [i + 1, n], [0, 1])    ->    Unsqueeze(Gather(X, i))
    Slice(X, [i], [10**9], [0], [10**9])    ->    Unsqueeze(Gather(X, i))
    Slice(X, [i], [i + 3], [0])             ->    Gather(X, [0, 1, 2] + i)
    GatherND(X, [i])                        ->    Gather(X, i)

Conditions: X is a value of known rank from outside the loop. Along one axis, a Slice reads an equal number of rows in each step.
The first of these rows is an affine expression of the step number, and all rows exist in every step. Along the other axes, the
Slice reads everything or a constant range.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import STEP, AffineExpression, at_least
from rewrites.analysis.induction.emission import emit, scalar_of
from rewrites.analysis.induction.induction_variables import integers_of, trip_count
from rewrites.analysis.induction.integer_domain import Bounds
from rewrites.analysis.induction.integers import Integers
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
class _SlidingRead:
    """A ``node`` that reads ``width`` rows of ``source`` along ``axis``, from the index ``start`` on.

    If ``width`` is None, it reads one row, without the axis. ``constant_bounds``: the bounds along other axes.
    """

    node: ir.Node
    source: ir.Value
    axis: int
    start: AffineExpression
    width: int | None
    constant_bounds: tuple[Bounds, ...]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if Slices or GatherNDs read outer tensors at an index that changes from step to step."""
    steps = None if not isinstance(loop, LoopView) else trip_count(loop, ctx.opset)
    if not isinstance(loop, LoopView) or steps is None or ctx.opset < since.SLICE_INPUTS:
        return NOTHING_HERE
    integers = integers_of(loop, ctx.opset, steps)
    reads = [read for node in loop.body if (read := _match_read(node, loop, integers, steps)) is not None]
    if not reads:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        for read in reads:
            outside, inside = ctx.builder(), ctx.builder()
            value = _emit_gather(outside, inside, read, loop)
            outside.insert_before(loop.node)
            inside.insert_before(read.node)
            take_over(read.node.outputs[0], value, ctx.names)
        remove_nodes(read.node for read in reads)
        return [loop.node]

    return Patch(f"read {counted(len(reads), 'slice')}, which start elsewhere in each step, by Gather", edit)


def _match_read(node: ir.Node, loop: LoopView, integers: Integers, steps: AffineExpression) -> _SlidingRead | None:
    """Return the Slice or GatherND ``node`` as a _SlidingRead if a Gather can replace it, else None."""
    source = node.inputs[0] if node.inputs else None
    if node.domain != "" or source is None or source.graph is loop.body or source.dtype in (None, ir.DataType.STRING):
        return None
    rank = rank_of(source)
    if node.op_type == "GatherND" and rank:
        indices = integers.operand(node, 1)
        if indices is None or indices.shape != (1,) or not indices.factor(STEP) or bool(node.attributes.get_int("batch_dims", 0)):
            return None
        return _SlidingRead(node, source, 0, indices.reshaped(()), None, ()) if indices.exact_to is None else None
    if node.op_type != "Slice" or not rank:
        return None
    bounds = integers.bounds(node)
    if bounds is None or len({bound.axis for bound in bounds}) != len(bounds):
        return None
    moving = [bound for bound in bounds if bound.start.terms or bound.end.factor(STEP)]
    if len(moving) != 1:
        return None
    (row,) = moving
    width, length = (row.end - row.start).number, integers.size_of(source, row.axis)
    if width is None or width < 1 or length is None or row.start.exact_to is not None or not row.start.factor(STEP):
        return None
    if not at_least(row.start, 0, steps) or not at_least(length - row.start - width, 0, steps):
        return None
    constant_bounds = [
        bound for bound in bounds if bound is not row and not _reads_whole_axis(bound, integers.size_of(source, bound.axis))
    ]
    if any(bound.start.number is None or bound.end.number is None for bound in constant_bounds):
        return None
    return _SlidingRead(node, source, row.axis, row.start, width, tuple(constant_bounds))


def _reads_whole_axis(bound: Bounds, length: AffineExpression | None) -> bool:
    """Return True if ``bound`` is known to include a whole axis of size ``length``."""
    rest = None if length is None else bound.end - length
    to_the_end = bound.end.number is not None and bound.end.number >= (1 << 31) - 1
    return bound.start.number == 0 and (to_the_end or (rest is not None and rest.number is not None and rest.number >= 0))


def _emit_gather(outside: Builder, inside: Builder, read: _SlidingRead, loop: LoopView) -> ir.Value:
    """Emit the nodes that replace ``read``, in the body and before the loop, and return their result."""
    first_start = emit(outside, read.start.without(STEP))
    offset = emit(
        inside,
        AffineExpression.symbol(STEP) * read.start.factor(STEP),
        {STEP: scalar_of(inside, loop.iteration)},
    )
    start = offset if read.start.without(STEP).number == 0 else inside.op("Add", offset, first_start)
    width = read.width
    if width is not None and width > 1:
        start = inside.op("Add", start, inside.const(np.arange(width)))
    value = gather(inside, read.source, start, read.axis)
    if width == 1:
        value = unsqueeze(inside, value, [read.axis])
    for bounds in read.constant_bounds:
        value = slice_axis(inside, value, bounds.axis, bounds.start.number or 0, bounds.end.number or 0)
    return value


RULE = Rule("step-slices", "loop_form", "loop", check)
