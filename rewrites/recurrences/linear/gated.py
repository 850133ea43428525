"""The states of ``s' = decay * s + drive`` for all steps at once, where the decay is another in each step: in blocks of steps.

The first step of every block is done at once, then the second of every block, and so on, as if each block began with nothing, and
beside it what the decays of the block come to. What is in the states after each block is a recurrence again, of fewer steps. With
the states before each block, its steps are done once more, as in the loop. Where the number of steps is not known, a Scan goes over
the blocks of blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.values import static_dims
from rewrites.ops.versions import concat, reshape, slice_axis, split, squeeze, unsqueeze
from rewrites.recurrences.linear.carried import carried

__all__ = ["ANY_CUT", "Cut", "choose_cut", "gated_of_any_steps", "gated_states"]

_FLAT = 16
_MOST = 12


@dataclass(frozen=True)
class Cut:
    """``radices``: the steps of a block, of a block of blocks, and so on; ``operators``: how many that takes."""

    radices: tuple[int, ...]
    operators: int


ANY_CUT = Cut((8, 8), 100)
"""What steps are cut into where their number is not known; a Scan goes over the blocks of blocks."""


@lru_cache(maxsize=4096)
def choose_cut(steps: int) -> Cut:
    """Return the cut with the fewest operators."""
    best = Cut((steps,), 2 * steps + 3)
    for radix in range(2, _MOST + 1) if steps > _FLAT else ():
        rest = choose_cut(-(-steps // radix))
        found = Cut((radix, *rest.radices), 5 * radix + 9 + rest.operators)
        if found.operators < best.operators:
            best = found
    return best


def gated_states(
    build: Builder, decays: ir.Value, drives: ir.Value, initial: ir.Value, radices: Sequence[int], steps: int
) -> ir.Value:
    """Return the states after each of ``steps`` steps; ``decays`` and ``drives`` are [steps, numbers], ``initial`` [1, numbers]."""
    radix, *rest = radices
    if not rest:
        alike, taken = (split(build, value, 0, None, steps) if steps > 1 else (value,) for value in (decays, drives))
        return concat(build, _stepped(build, alike, taken, initial), 0)
    blocks = -(-steps // radix)
    missing = blocks * radix - steps
    if missing:
        kind = drives.dtype
        assert kind is not None
        one = build.const(np.array(1, kind.numpy()))
        decays = build.op("Pad", decays, build.const([0, 0, missing, 0]), one)
        drives = build.op("Pad", drives, build.const([0, 0, missing, 0]))
    alike, taken = (split(build, reshape(build, value, [blocks, -1]), 1, None, radix) for value in (decays, drives))
    alone = _stepped(build, alike[1:], taken[1:], taken[0])[-1]
    together = alike[0]
    for row in alike[1:]:
        together = build.op("Mul", together, row)
    ends = gated_states(build, together, alone, initial, rest, blocks)
    before = concat(build, [initial, slice_axis(build, ends, 0, 0, blocks - 1)], 0)
    whole = reshape(build, concat(build, _stepped(build, alike, taken, before), 1), [blocks * radix, -1])
    return slice_axis(build, whole, 0, 0, steps) if missing else whole


def gated_of_any_steps(
    build: Builder, ctx: Context, decays: ir.Value, drives: ir.Value, initial: ir.Value, radices: Sequence[int], steps: ir.Value
) -> ir.Value:
    """Return what ``gated_states`` does, for a number of ``steps`` that is one int64; how many numbers there are is known."""
    if not radices:
        before = carried(build, ctx, initial, [unsqueeze(build, decays, [1]), unsqueeze(build, drives, [1])], _step)
        before = squeeze(build, before, [1])
        return build.op("Add", build.op("Mul", decays, before), drives)
    radix, *rest = radices
    (_, numbers), kind = static_dims(initial) or (0, 0), drives.dtype
    assert kind is not None
    missing = build.op("Mod", build.op("Neg", steps), build.const([radix]))
    whole = build.op("Add", steps, missing)
    pads = concat(build, [build.const([0, 0]), missing, build.const([0])], 0)
    decays = build.op("Pad", decays, pads, build.const(np.array(1, kind.numpy())))
    drives = build.op("Pad", drives, pads)
    blocks = [reshape(build, value, [-1, radix * numbers]) for value in (decays, drives)]
    alike, taken = (split(build, value, 1, None, radix) for value in blocks)
    alone, together = _stepped(build, alike[1:], taken[1:], taken[0])[-1], alike[0]
    for row in alike[1:]:
        together = build.op("Mul", together, row)
    ends = gated_of_any_steps(build, ctx, together, alone, initial, rest, build.op("Div", whole, build.const([radix])))
    before = concat(build, [initial, slice_axis(build, ends, 0, 0, -1)], 0)
    states = reshape(build, concat(build, _stepped(build, alike, taken, before), 1), [-1, numbers])
    return build.op("Slice", states, build.const([0]), steps, build.const([0]))


def _step(build: Builder, state: ir.Value, decay: ir.Value, drive: ir.Value) -> ir.Value:
    return build.op("Add", build.op("Mul", decay, state), drive)


def _stepped(build: Builder, decays: Sequence[ir.Value], drives: Sequence[ir.Value], state: ir.Value) -> list[ir.Value]:
    """Return the states after each of the steps."""
    found = list[ir.Value]()
    for decay, drive in zip(decays, drives, strict=True):
        state = _step(build, state, decay, drive)
        found.append(state)
    return found
