"""Whether any, or all, of what a loop has met so far is true, for all steps at once: by counting with CumSum."""

import numpy as np
import onnx_ir as ir

from rewrites.fission.stacks import Stacks
from rewrites.ops.versions import reduce, unsqueeze
from rewrites.recurrences.cumulative.accumulation import Accumulation
from rewrites.recurrences.cumulative.rows import Ends, is_filled, rows_of, shaped
from rewrites.recurrences.given_states import Wanted

__all__ = ["place_flags"]


def place_flags(stacks: Stacks, found: Accumulation, need: Wanted) -> ir.Value | None:
    """Put the values of the state that are needed of all steps into ``stacks``; return its last value where that is needed."""
    b, initial, ends = stacks.build, found.state.initial, Ends(stacks.build, stacks.backwards)
    rows = rows_of(stacks, found)
    is_all, reverse = found.op_type == "And", 1 if stacks.backwards else None
    counted = b.op("Cast", b.op("Not", rows) if is_all else rows, to=int(ir.DataType.INT32))
    neutral = is_filled(initial, is_all)

    def flags(count: ir.Value, first: ir.Value) -> ir.Value:
        met = b.op("Cast", count, to=int(ir.DataType.BOOL))
        met = b.op("Not", met) if is_all else met
        return met if neutral else b.op(found.op_type, first, met)

    def counts(exclusive: int | None) -> ir.Value:
        return b.op("CumSum", counted, b.const(np.array(0, np.int64)), exclusive=exclusive, reverse=reverse)

    lead = unsqueeze(b, initial, [0])
    if need.before:
        stacks.place(found.state.inner, shaped(flags(counts(1), lead), rows, initial))
    if need.after:
        stacks.place(need.made[0], shaped(flags(counts(None), lead), rows, initial))
    if not need.final:
        return None
    if need.after:
        return ends.last(stacks.full(need.made[0]))
    return flags(reduce(b, "ReduceMax", counted, [0], False), initial)
