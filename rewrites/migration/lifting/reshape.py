"""The shape of Reshape becomes an input in version 5, the repeats of Tile in version 6.

Reshape <shape = [2, -1]> (x)  ->  Reshape (x, [2, -1])
Tile (x, tiles, axis)          ->  Tile (x, [1, tiles, 1])     (tiles and axis constant, rank known)
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible

__all__ = ["repeats_for_each_axis", "shape_to_input"]


def shape_to_input(step: Step) -> Sequence[ir.Value] | None:
    """Reshape 1 -> 5."""
    shape = step.ints("shape")
    if shape is None:
        raise Unconvertible("it has no attribute 'shape'")
    return step.like([step.required(0), step.builder.const(shape)], shape=None, consumed_inputs=None)


def repeats_for_each_axis(step: Step) -> Sequence[ir.Value] | None:
    """Tile 1 -> 6."""
    tiles, axis, rank = step.constant(1, "tiles"), step.constant(2, "axis"), step.known_rank()
    if tiles is None or axis is None or tiles.size != 1 or axis.size != 1:
        raise Unconvertible("it needs one number of tiles and one axis")
    repeats = [1] * rank
    repeats[int(axis.reshape(-1)[0])] = int(tiles.reshape(-1)[0])
    return step.like([step.required(0), step.builder.const(repeats)])
