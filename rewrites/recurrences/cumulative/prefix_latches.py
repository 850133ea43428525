"""The last value that a loop has taken on, for all steps at once: by the number of the step in which it did so.

    s = Scan(s0, cs, xs) body(s, c, x) => Where(c, x, s)
    ->    last = the largest so far of Where(cs, [1, 2, ...], 0);  s = Gather([s0, *xs], last)

Values that are taken on go through a Where on the side on which the loop has them. Works round ORT-WHERE-MINUS-ZERO.
"""

import numpy as np
import onnx_ir as ir

from rewrites.fission.stacks import Stacks
from rewrites.graph.values import rank_of
from rewrites.ops.versions import unsqueeze
from rewrites.recurrences.cumulative.accumulation import Accumulation
from rewrites.recurrences.cumulative.prefix_running import Running
from rewrites.recurrences.cumulative.rows import Ends, aligned, expanded, rows_of, shaped
from rewrites.recurrences.given_states import Wanted

__all__ = ["place_latches"]


def place_latches(stacks: Stacks, found: Accumulation, need: Wanted) -> ir.Value | None:
    """Put the values of the state that are needed of all steps into ``stacks``; return its last value where that is needed.

    The number of steps must be known.
    """
    b, initial, ends = stacks.build, found.state.initial, Ends(stacks.build, stacks.backwards)
    steps, rank = stacks.loop.steps, found.rank
    assert found.mask is not None
    assert isinstance(steps, int)
    condition, when = found.mask
    is_one = rank_of(condition) == 0
    rows = rows_of(stacks, found)
    taken = stacks.full(condition) if is_one else expanded(stacks, aligned(stacks, condition, rank), initial)
    if initial.dtype is not None and initial.dtype.is_floating_point():
        rows = b.op("Where", unsqueeze(b, taken, range(1, 1 + rank)) if is_one else taken, rows, rows)
    numbers = np.arange(1, steps + 1, dtype=np.int32)
    order = b.const((numbers[::-1] if ends.backwards else numbers).reshape(-1, *[1] * (0 if is_one else rank)))
    sides = [order, b.const(np.array(0, np.int32))]
    positions = b.op("Where", taken, *(sides if when else reversed(sides)))
    like = b.const(np.array(0, np.int32)) if is_one else initial
    running = Running(ends, like, lambda earlier, later: b.op("Max", earlier, later))
    last = running.running(positions, steps, None)
    if ends.backwards:
        last = b.op("Sub", b.const(np.array(steps, np.int32)), last)
    values = ends.led(unsqueeze(b, initial, [0]), rows)
    whole = shaped(b.op("Gather" if is_one else "GatherElements", values, last, axis=0), rows, initial)
    if need.after:
        stacks.place(need.made[0], whole)
    if need.before:
        stacks.place(found.state.inner, shaped(ends.led(unsqueeze(b, initial, [0]), ends.but_last(whole)), rows, initial))
    return ends.last(whole) if need.final else None
