"""The largest, or smallest, of what a loop has met so far, for all steps at once: in blocks of steps, and blocks of those.

    [T, ...] -> [B, L, ...]    L - 1 times Max between the steps of all blocks;  the same for the ends of the blocks;  Max of both

The operator is the loop's, in its order of operands; so NaN passes on as in the loop. Of 0 and -0 onnxruntime's Max gives either,
by the place of the element in the tensor; here, too.

Works round ORT-REDUCED-NAN.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.recurrence.accumulation import Accumulation
from rewrites.edits.fission.stacks import Stacks
from rewrites.edits.recurrence.given_states import Wanted
from rewrites.edits.recurrence.rows import Ends, rows_of, shaped
from rewrites.graph.values import static_dims
from rewrites.ops.versions import concat, reduce, slice_axis, split, squeeze, unsqueeze, where

__all__ = ["place_extremes"]

_FLAT = 24
_LONGEST = 16
_WIDE = 64


def place_extremes(stacks: Stacks, found: Accumulation, need: Wanted) -> ir.Value | None:
    """Put the values of the state that are needed of all steps into ``stacks``; return its last value where that is needed.

    The number of steps must be known where more than the last value is needed.
    """
    b, initial, ends = stacks.build, found.state.initial, Ends(stacks.build, stacks.backwards)
    rows = rows_of(stacks, found)
    extremes = _Extremes(stacks, found, ends)
    if not need.before and not need.after:
        return extremes.joined(initial, extremes.of_all(rows))
    steps, first = stacks.loop.steps, unsqueeze(b, initial, [0])
    assert isinstance(steps, int)
    whole = shaped(extremes.running(rows, steps, first), rows, initial)
    if need.after:
        stacks.place(need.made[0], whole)
    if need.before:
        stacks.place(found.state.inner, shaped(ends.led(first, ends.but_last(whole)), rows, initial))
    return ends.last(whole) if need.final else None


@dataclass(frozen=True)
class _Extremes:
    stacks: Stacks
    found: Accumulation
    ends: Ends

    def joined(self, earlier: ir.Value, later: ir.Value) -> ir.Value:
        """Return what the loop makes of what was, and of what comes."""
        pair = (earlier, later) if self.found.state_first else (later, earlier)
        return self.stacks.build.op(self.found.op_type, *pair)

    def of_all(self, rows: ir.Value) -> ir.Value:
        """Return the extreme of all steps; NaN where any is."""
        b, kind, steps = self.stacks.build, rows.dtype, self.stacks.loop.steps
        if isinstance(steps, int) and self._is_wide():
            return squeeze(b, self._halved(rows, steps), [0])
        extreme = reduce(b, f"Reduce{self.found.op_type}", rows, [0], False)
        if kind is None or not kind.is_floating_point():
            return extreme
        is_nan = b.op("Cast", b.op("IsNaN", rows), to=int(ir.DataType.INT32))
        any_is = b.op("Cast", reduce(b, "ReduceMax", is_nan, [0], False), to=int(ir.DataType.BOOL))
        return where(b, any_is, b.const(np.array(np.nan, kind.numpy())), extreme)

    def _is_wide(self) -> bool:
        dims = static_dims(self.found.state.initial)
        return dims is not None and math.prod(dims) >= _WIDE

    def _halved(self, rows: ir.Value, steps: int) -> ir.Value:
        """Return the extreme of all steps as one row: of parts that lie side by side, again and again."""
        b = self.stacks.build
        while steps > 1:
            count = min(_LONGEST, steps)
            sizes = [steps // count] * count + [steps % count] * bool(steps % count)
            parts = split(b, rows, 0, sizes, len(sizes))
            extreme = parts[0]
            for part in parts[1:count]:
                extreme = self.joined(extreme, part)
            rows, steps = concat(b, [extreme, *parts[count:]], 0), steps // count + steps % count
        return rows

    def running(self, rows: ir.Value, steps: int, first: ir.Value | None) -> ir.Value:
        """Return the extremes up to each of ``steps`` rows, ``first`` (one row) among them."""
        b = self.stacks.build
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
            whole = self.joined(unsqueeze(b, carried, [1]), within)
        else:
            carried = self.running(self.ends.but_last(last), count - 1, None)
            whole = self._led_by_first(within, self.joined(unsqueeze(b, carried, [1]), self.ends.but_first(within)), count)
        whole = self._reshaped(whole, [count * length])
        if not missing:
            return whole
        return slice_axis(b, whole, 0, *((missing, count * length) if self.ends.backwards else (0, steps)))

    def _along(self, parts: Sequence[ir.Value], first: ir.Value | None) -> list[ir.Value]:
        """Return the extremes along ``parts``, in their order."""
        ordered = list(reversed(parts) if self.ends.backwards else parts)
        found = [ordered[0] if first is None else self.joined(first, ordered[0])]
        for part in ordered[1:]:
            found.append(self.joined(found[-1], part))
        return found[::-1] if self.ends.backwards else found

    def _led_by_first(self, within: ir.Value, rest: ir.Value, count: int) -> ir.Value:
        start = count - 1 if self.ends.backwards else 0
        return self.ends.led(slice_axis(self.stacks.build, within, 0, start, start + 1), rest)

    def _reshaped(self, value: ir.Value, lead: list[int]) -> ir.Value:
        """Return ``value`` with the axes ``lead`` before those of the state."""
        b, initial = self.stacks.build, self.found.state.initial
        dims = static_dims(initial)
        if dims is not None:
            return b.op("Reshape", value, b.const([*lead, *dims]))
        return b.op("Reshape", value, b.op("Concat", b.const(lead), b.op("Shape", initial), axis=0), allowzero=1)
