"""Which rows of tensors from outside a Loop body reads, one in each step, one after the other.

    Gather(X, i)            ->  the rows of X from 0 on
    Gather(X, n - 1 - i)    ->  the rows of X from n - 1 on, backwards

The place must change by one from step to step, and must not be negative in any step (a Gather counts such from the end).
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.induction.affine_expression import STEP, Affine, Dim, at_least, surely_equal
from rewrites.analysis.induction.emission import emit
from rewrites.analysis.induction.integers import Integers
from rewrites.graph.builder import Builder
from rewrites.graph.values import dim_of, rank_of
from rewrites.loops import LoopView
from rewrites.ops.versions import axis_of, count_up, gather, reshape, slice_axis

__all__ = ["RowRead", "row_reads"]


@dataclass(frozen=True)
class RowRead:
    """A Gather of ``source`` along ``axis`` at ``start``, ``start`` + 1, … (``start`` - 1, … where ``reverse``).

    ``ones``: how many axes of size 1 the result has in place of ``axis``.
    """

    node: ir.Node
    source: ir.Value
    axis: int
    start: Affine
    reverse: bool
    ones: int

    def first(self, steps: Affine) -> Affine:
        """Return the lowest place that is read."""
        return self.start - steps + Affine.of(1) if self.reverse else self.start

    def missing(self, steps: Affine) -> bool:
        """Whether a row that is read is surely not there."""
        after = self.first(steps) + steps - _length(self)
        return after.number is not None and after.number > 0

    def rows(self, b: Builder, steps: Affine, count: ir.Value) -> ir.Value:
        """Return the rows that are read, in the order of the source; fails on too few rows just as the loop would.

        ``count``: the number of steps, as one int64 element with one axis.
        """
        first, length = self.first(steps), _length(self)
        if first.number == 0 and surely_equal(steps, length):
            return self.source
        if first.number is not None and steps.number is not None and length.number is not None:
            return slice_axis(b, self.source, self.axis, first.number, first.number + steps.number)
        places = count_up(b, count, as_indices=True)
        if first.number != 0:
            places = b.op("Add", places, emit(b, first))
        return gather(b, self.source, places, self.axis)


def row_reads(loop: LoopView, inside: Integers, steps: Affine) -> list[RowRead]:
    """Find the reads at the number of the step."""
    found = []
    for node in loop.body:
        read = _read(node, loop, inside)
        if read is not None and at_least(read.first(steps), 0, steps):
            found.append(read)
    return found


def _read(node: ir.Node, loop: LoopView, inside: Integers) -> RowRead | None:
    if node.op_type != "Gather" or node.domain != "":
        return None
    source, places = node.inputs[0], inside.of(node.inputs[1])
    if source is None or source.graph is loop.body or source.shape is None or not len(source.shape):
        return None
    if places is None or places.const.size != 1 or abs(places.factor(STEP)) != 1 or places.exact_to is not None:
        return None
    if source.dtype == ir.DataType.STRING and len(source.shape) > 1:  # such a Gather copies one string of each row
        return None
    place = places.reshaped(())
    axis = axis_of(node, 0, rank_of(source))
    return RowRead(node, source, axis, place.without(STEP), place.factor(STEP) < 0, places.const.ndim)


def _length(read: RowRead) -> Affine:
    dim = dim_of(read.source, read.axis)
    if isinstance(dim, int):
        return Affine.of(dim)
    return Affine.symbol(Dim(dim if dim is not None else (id(read.source), read.axis), read.source, read.axis))


def as_vector(b: Builder, number: ir.Value) -> ir.Value:
    """Return a one-element tensor with one axis."""
    return number if rank_of(number) == 1 else reshape(b, number, [1])
