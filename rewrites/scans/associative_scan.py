"""Computes the prefixes ``x1``, ``x1 * x2``, ... of an associative operator ``*`` in blocks of steps.

The rows [T, ...] are reshaped to B blocks of L rows, [B, L, ...]. The computation has three stages:

1. The prefixes within all blocks are computed at once, by L - 1 operators. The last prefix of a block combines all its rows.
2. The prefixes of these B combined rows are computed in the same way.
3. Each prefix within a block is combined with the prefix of all earlier blocks.

If the steps run backwards, the first step is the last row of a stack.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.values import static_dims
from rewrites.ops.versions import concat, slice_axis, split, squeeze, unsqueeze
from rewrites.scans.blocks import reshape_with_axes_of

__all__ = ["AssociativeScan", "StackEnds"]

_MAX_UNBLOCKED = 24
_MAX_LENGTH = 16
_MIN_WIDTH = 64
_END = 2**63 - 1


@dataclass(frozen=True)
class StackEnds:
    """Adds steps before the first step of a stack, or reads and removes its first or last step.

    Row 0 of a stack is the first step, or the last step if ``backwards``.
    """

    b: Builder
    backwards: bool

    def with_first(self, first: ir.Value, rows: ir.Value) -> ir.Value:
        """Return a stack of the steps in ``first``, followed by the steps in ``rows``."""
        return concat(self.b, [rows, first] if self.backwards else [first, rows], 0)

    def without_last(self, rows: ir.Value) -> ir.Value:
        """Return the stack ``rows`` without its last step."""
        return slice_axis(self.b, rows, 0, 1, _END) if self.backwards else slice_axis(self.b, rows, 0, 0, -1)

    def without_first(self, rows: ir.Value) -> ir.Value:
        """Return the stack ``rows`` without its first step."""
        return slice_axis(self.b, rows, 0, 0, -1) if self.backwards else slice_axis(self.b, rows, 0, 1, _END)

    def last(self, rows: ir.Value) -> ir.Value:
        """Return the last step of the stack ``rows``, without the steps axis."""
        start, end = (0, 1) if self.backwards else (-1, _END)
        return squeeze(self.b, slice_axis(self.b, rows, 0, start, end), [0])


@dataclass(frozen=True)
class AssociativeScan:
    """Combines rows with an associative operator.

    Args:
        ends: Accesses the first and last steps of stacks.
        like: A value with the shape of a row.
        operator: Emits the node that combines two rows, the earlier row first. The operator must be associative. For ``total``, it
            must also be commutative.
    """

    ends: StackEnds
    like: ir.Value
    operator: Callable[[ir.Value, ir.Value], ir.Value]

    @property
    def is_wide(self) -> bool:
        """Return True if rows are so wide that ``total`` is as fast as a reduction such as ReduceMax."""
        return math.prod(static_dims(self.like) or (0,)) >= _MIN_WIDTH

    def total(self, rows: ir.Value, steps: int) -> ir.Value:
        """Return all rows combined into one row, [1, ...].

        The rows are split into parts of equal length, and the parts are combined with each other. This is repeated until one row
        is left.
        """
        b = self.ends.b
        while steps > 1:
            count = min(_MAX_LENGTH, steps)
            sizes = [steps // count] * count + [steps % count] * bool(steps % count)
            parts = split(b, rows, 0, sizes, len(sizes))
            joined = parts[0]
            for part in parts[1:count]:
                joined = self.operator(joined, part)
            rows, steps = concat(b, [joined, *parts[count:]], 0), steps // count + steps % count
        return rows

    def prefixes(self, rows: ir.Value, steps: int, initial: ir.Value | None) -> ir.Value:
        """Return the prefix at each row: ``initial`` (if any) combined with all rows up to this row.

        ``steps``: the number of rows.
        """
        b = self.ends.b
        if steps <= _MAX_UNBLOCKED:
            parts = [rows] if steps == 1 else list(split(b, rows, 0, None if b.opset >= 18 else [1] * steps, steps))
            return concat(b, self._prefixes_of_parts(parts, initial), 0)
        length = min(_MAX_LENGTH, round(steps**0.5))
        count = -(-steps // length)
        missing = count * length - steps
        padded = rows
        if missing:  # repeat some rows as padding after the last step; the prefixes at these rows are cut off below
            padding = slice_axis(b, rows, 0, *((0, missing) if self.ends.backwards else (steps - missing, steps)))
            padded = concat(b, [padding, rows] if self.ends.backwards else [rows, padding], 0)
        blocks = self._with_row_axes(padded, [count, length])
        block_prefixes = self._prefixes_of_parts(split(b, blocks, 1, None if b.opset >= 18 else [1] * length, length), None)
        within, last = concat(b, block_prefixes, 1), self._with_row_axes(block_prefixes[0 if self.ends.backwards else -1], [count])
        if initial is not None:
            before = self.prefixes(self.ends.with_first(initial, self.ends.without_last(last)), count, None)
            result = self.operator(unsqueeze(b, before, [1]), within)
        else:
            before = self.prefixes(self.ends.without_last(last), count - 1, None)
            later = self.operator(unsqueeze(b, before, [1]), self.ends.without_first(within))
            start = count - 1 if self.ends.backwards else 0
            result = self.ends.with_first(slice_axis(b, within, 0, start, start + 1), later)
        result = self._with_row_axes(result, [count * length])
        if not missing:
            return result
        return slice_axis(b, result, 0, *((missing, count * length) if self.ends.backwards else (0, steps)))

    def _prefixes_of_parts(self, parts: Sequence[ir.Value], initial: ir.Value | None) -> list[ir.Value]:
        """Return the prefix at each part: ``initial`` (if any) combined with all parts up to this part.

        The prefixes are in the order of ``parts``.
        """
        ordered = list(reversed(parts) if self.ends.backwards else parts)
        joined = [ordered[0] if initial is None else self.operator(initial, ordered[0])]
        for part in ordered[1:]:
            joined.append(self.operator(joined[-1], part))
        return joined[::-1] if self.ends.backwards else joined

    def _with_row_axes(self, value: ir.Value, leading_sizes: list[int]) -> ir.Value:
        """Reshape ``value`` to the axes ``leading_sizes`` followed by the axes of a row."""
        return reshape_with_axes_of(self.ends.b, value, leading_sizes, self.like, static_dims(self.like))
