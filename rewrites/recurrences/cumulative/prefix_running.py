"""What is joined so far, for all steps at once: in blocks of steps, and blocks of those.

[T, ...] -> [B, L, ...]    L - 1 times the join between the steps of all blocks;  the same for the ends of the blocks;  both joined
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.graph.values import static_dims
from rewrites.ops.versions import concat, slice_axis, split, unsqueeze
from rewrites.recurrences.cumulative.rows import Ends

__all__ = ["Running"]

_FLAT = 24
_LONGEST = 16
_WIDE = 64


@dataclass(frozen=True)
class Running:
    """``join`` makes one of two rows, the earlier first; it is associative. ``like``: a row, whose shape all have."""

    ends: Ends
    like: ir.Value
    join: Callable[[ir.Value, ir.Value], ir.Value]

    @property
    def is_wide(self) -> bool:
        """Whether rows are known to be so wide that joining some of them side by side is no loss."""
        dims = static_dims(self.like)
        return dims is not None and math.prod(dims) >= _WIDE

    def halved(self, rows: ir.Value, steps: int) -> ir.Value:
        """Return all of ``steps`` rows joined, as one row: parts that lie side by side, again and again."""
        b = self.ends.b
        while steps > 1:
            count = min(_LONGEST, steps)
            sizes = [steps // count] * count + [steps % count] * bool(steps % count)
            parts = split(b, rows, 0, sizes, len(sizes))
            joined = parts[0]
            for part in parts[1:count]:
                joined = self.join(joined, part)
            rows, steps = concat(b, [joined, *parts[count:]], 0), steps // count + steps % count
        return rows

    def running(self, rows: ir.Value, steps: int, first: ir.Value | None) -> ir.Value:
        """Return what is joined up to each of ``steps`` rows, ``first`` (one row) with them."""
        b = self.ends.b
        if steps <= _FLAT:
            parts = [rows] if steps == 1 else list(split(b, rows, 0, None if b.opset >= 18 else [1] * steps, steps))
            return concat(b, self._along(parts, first), 0)
        length = min(_LONGEST, round(steps**0.5))
        count = -(-steps // length)
        missing = count * length - steps
        filled = rows
        if missing:  # the rows that are added come last, and nothing comes of the end of the last block
            again = slice_axis(b, rows, 0, *((0, missing) if self.ends.backwards else (steps - missing, steps)))
            filled = concat(b, [again, rows] if self.ends.backwards else [rows, again], 0)
        blocks = self._reshaped(filled, [count, length])
        along = self._along(split(b, blocks, 1, None if b.opset >= 18 else [1] * length, length), None)
        within, last = concat(b, along, 1), self._reshaped(along[0 if self.ends.backwards else -1], [count])
        if first is not None:
            carried = self.running(self.ends.led(first, self.ends.but_last(last)), count, None)
            whole = self.join(unsqueeze(b, carried, [1]), within)
        else:
            carried = self.running(self.ends.but_last(last), count - 1, None)
            whole = self._led_by_first(within, self.join(unsqueeze(b, carried, [1]), self.ends.but_first(within)), count)
        whole = self._reshaped(whole, [count * length])
        if not missing:
            return whole
        return slice_axis(b, whole, 0, *((missing, count * length) if self.ends.backwards else (0, steps)))

    def _along(self, parts: Sequence[ir.Value], first: ir.Value | None) -> list[ir.Value]:
        """Return what is joined along ``parts``, in their order."""
        ordered = list(reversed(parts) if self.ends.backwards else parts)
        found = [ordered[0] if first is None else self.join(first, ordered[0])]
        for part in ordered[1:]:
            found.append(self.join(found[-1], part))
        return found[::-1] if self.ends.backwards else found

    def _led_by_first(self, within: ir.Value, rest: ir.Value, count: int) -> ir.Value:
        start = count - 1 if self.ends.backwards else 0
        return self.ends.led(slice_axis(self.ends.b, within, 0, start, start + 1), rest)

    def _reshaped(self, value: ir.Value, lead: list[int]) -> ir.Value:
        """Return ``value`` with the axes ``lead`` before those of a row."""
        b, dims = self.ends.b, static_dims(self.like)
        if dims is not None:
            return b.op("Reshape", value, b.const([*lead, *dims]))
        return b.op("Reshape", value, b.op("Concat", b.const(lead), b.op("Shape", self.like), axis=0), allowzero=1)
