"""The states of ``s' = decay * s + drive`` for all steps at once, with another decay in each step: in blocks of steps.

The first step of every block is done at once, then the second of every block, and so on, as if each block began with nothing.
The states after each block are a recurrence again, of fewer steps, whose decays are the products of those of a block. With the
states before each block, its steps are done once more, as in the loop. If the number of steps is unknown, a Scan goes over the
blocks of blocks.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.values import static_dims
from rewrites.ops.versions import concat, reshape, slice_axis, split, squeeze, unsqueeze
from rewrites.scans.blocks import Radices, cut_steps, states_before_blocks

__all__ = ["ANY_STEPS", "choose_radices", "decayed_states"]

_FLAT = 16
_MOST = 12


ANY_STEPS = Radices((8, 8), 100)
"""What an unknown number of steps is cut into; a Scan goes over the blocks of blocks."""


@lru_cache(maxsize=4096)
def choose_radices(steps: int) -> Radices:
    """Return the radices with the fewest operators."""
    best = Radices((steps,), 2 * steps + 3)
    for radix in range(2, _MOST + 1) if steps > _FLAT else ():
        rest = choose_radices(-(-steps // radix))
        operators = 5 * radix + 9 + rest.operators
        if operators < best.operators:
            best = Radices((radix, *rest.steps), operators)
    return best


def decayed_states(
    build: Builder, decays: ir.Value, drives: ir.Value, initial: ir.Value, radices: Sequence[int], steps: int | ir.Value
) -> ir.Value:
    """Return the states after each step.

    Args:
        decays: [steps, numbers], as ``drives``.
        initial: The state before the first step, [1, numbers].
        radices: The steps of a block, of a block of blocks, and so on.
        steps: Their number, or one int64; then the count of numbers is known.
    """
    is_known = isinstance(steps, int)
    if not radices:
        stacks = [unsqueeze(build, decays, [1]), unsqueeze(build, drives, [1])]
        before = states_before_blocks(build, initial, stacks, _step)
        return _step(build, squeeze(build, before, [1]), decays, drives)
    radix, *rest = radices
    if isinstance(steps, int) and not rest:
        parts = [split(build, value, 0, None, steps) if steps > 1 else (value,) for value in (decays, drives)]
        return concat(build, _stepped(build, parts[0], parts[1], initial), 0)
    numbers, kind = -1 if is_known else (static_dims(initial) or (0, 0))[1], drives.dtype
    assert kind is not None
    cut, size = cut_steps(build, steps, radix, 2), -1 if is_known else radix * numbers
    padded = [cut.pad(decays, np.array(1, kind.numpy())), cut.pad(drives)]
    blocks = (reshape(build, value, [cut.blocks, size]) for value in padded)
    decay_rows, drive_rows = (split(build, value, 1, None, radix) for value in (blocks if is_known else [*blocks]))
    drive, decay = _stepped(build, decay_rows[1:], drive_rows[1:], drive_rows[0])[-1], decay_rows[0]
    for row in decay_rows[1:]:
        decay = build.op("Mul", decay, row)
    ends = decayed_states(build, decay, drive, initial, rest, cut.count())
    before = concat(build, [initial, slice_axis(build, ends, 0, 0, cut.blocks - 1 if is_known else -1)], 0)
    states = concat(build, _stepped(build, decay_rows, drive_rows, before), 1)
    return cut.trim(reshape(build, states, [cut.blocks * radix if is_known else -1, numbers]))


def _step(build: Builder, state: ir.Value, decay: ir.Value, drive: ir.Value) -> ir.Value:
    return build.op("Add", build.op("Mul", decay, state), drive)


def _stepped(build: Builder, decays: Sequence[ir.Value], drives: Sequence[ir.Value], state: ir.Value) -> list[ir.Value]:
    """Return the states after each of the steps."""
    states = list[ir.Value]()
    for decay, drive in zip(decays, drives, strict=True):
        state = _step(build, state, decay, drive)
        states.append(state)
    return states
