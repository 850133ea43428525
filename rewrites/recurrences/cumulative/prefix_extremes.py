"""The largest, or smallest, of what a loop has met so far, for all steps at once (``prefix_running``).

The operator is the loop's, in its order of operands; so NaN passes on as in the loop. Of 0 and -0 onnxruntime's Max gives either,
by the place of the element in the tensor; here, too. Where the loop chooses by a comparison, NaN is never taken on: here it counts
as what is never larger, and a value that is taken on goes through a Where on the side on which the loop has it.

Works round ORT-REDUCED-NAN.
"""

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.ops.versions import reduce, squeeze, unsqueeze, where
from rewrites.recurrences.cumulative.accumulation import Accumulation, Choice
from rewrites.recurrences.cumulative.prefix_running import Running
from rewrites.recurrences.cumulative.rows import Ends, neutral, rows_of, shaped
from rewrites.recurrences.given_states import Wanted

__all__ = ["place_extremes"]


def place_extremes(stacks: Stacks, found: Accumulation, need: Wanted) -> ir.Value | None:
    """Put the values of the state that are needed of all steps into ``stacks``; return its last value where that is needed.

    The number of steps must be known where more than the last value is needed.
    """
    b, initial, ends = stacks.build, found.state.initial, Ends(stacks.build, stacks.backwards)
    rows, join = rows_of(stacks, found), _join(found, b)
    if isinstance(found, Choice) and initial.dtype is not None and initial.dtype.is_floating_point():
        rows = b.op("Where", b.op("Equal", rows, rows), rows, b.const(neutral(found)))
    extremes = Running(ends, initial, join)
    if not need.before and not need.after:
        return join(initial, _of_all(extremes, rows, stacks.loop.steps, found))
    steps, first = stacks.loop.steps, unsqueeze(b, initial, [0])
    assert isinstance(steps, int)
    whole = shaped(extremes.running(rows, steps, first), rows, initial)
    if need.after:
        stacks.place(need.made[0], whole)
    if need.before:
        stacks.place(found.state.inner, shaped(ends.led(first, ends.but_last(whole)), rows, initial))
    return ends.last(whole) if need.final else None


def _join(found: Accumulation, b: Builder) -> Callable[[ir.Value, ir.Value], ir.Value]:
    """Return what makes what the loop does of what was, and of what comes."""

    def chosen(earlier: ir.Value, later: ir.Value) -> ir.Value:
        return b.op("Where", b.op("Greater" if found.op_type == "Max" else "Less", later, earlier), later, earlier)

    def joined(earlier: ir.Value, later: ir.Value) -> ir.Value:
        return b.op(found.op_type, *((earlier, later) if found.state_first else (later, earlier)))

    return chosen if isinstance(found, Choice) else joined


def _of_all(extremes: Running, rows: ir.Value, steps: int | str | None, found: Accumulation) -> ir.Value:
    """Return the extreme of all steps; NaN where any is."""
    b, kind = extremes.ends.b, rows.dtype
    if isinstance(steps, int) and extremes.is_wide:
        return squeeze(b, extremes.halved(rows, steps), [0])
    extreme = reduce(b, f"Reduce{found.op_type}", rows, [0], False)
    if kind is None or not kind.is_floating_point() or isinstance(found, Choice):
        return extreme
    is_nan = b.op("Cast", b.op("IsNaN", rows), to=int(ir.DataType.INT32))
    any_is = b.op("Cast", reduce(b, "ReduceMax", is_nan, [0], False), to=int(ir.DataType.BOOL))
    return where(b, any_is, b.const(np.array(np.nan, kind.numpy())), extreme)
