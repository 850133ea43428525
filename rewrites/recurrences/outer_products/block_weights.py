"""What decays come to between two steps of a block, for all pairs of steps: weights of products of matrices.

Each is a product of the decays in between, or the power of e of the sum of their exponents in between: never a quotient of products
of all decays so far, nor the difference of such sums. A decay of 0 is so as good as any other.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.ops.versions import slice_axis, split, transpose
from rewrites.ops.versions.emit import where

__all__ = ["Weights", "constant_weights", "exponent_weights", "product_weights"]


@dataclass(frozen=True)
class Weights:
    """``within``: [..., heads, t, s] of what comes in step s for what is read in step t, 0 where that is earlier.

    ``before`` [..., heads, t, 1]: of the state before the block for step t; ``left`` [..., heads, s, 1]: of step s for the state
    after the block; ``whole`` [..., heads, 1, 1]: of the state before for that after. These are None where nothing decays.
    """

    within: ir.Value
    before: ir.Value | None = None
    left: ir.Value | None = None
    whole: ir.Value | None = None


def constant_weights(build: Builder, decay: np.ndarray | None, length: int, dtype: np.dtype) -> Weights:
    """Return the weights of ``decay`` [heads], the same in each step, or of none; they have no axis in front of the heads."""
    lag = np.arange(length)[:, None] - np.arange(length)[None, :]
    if decay is None:
        return Weights(build.const((lag >= 0).astype(dtype)))
    powers = decay.astype(np.float64)[:, None] ** np.arange(length + 1)
    within = np.where(lag >= 0, powers[:, np.maximum(lag, 0)], 0)
    parts = (within, powers[:, 1:, None], powers[:, length - 1 :: -1, None], powers[:, length:, None])
    return Weights(*(build.const(part.astype(dtype)) for part in parts))


def product_weights(build: Builder, decays: ir.Value, length: int, dtype: np.dtype, *, is_flat: bool) -> Weights:
    """Return the weights of ``decays`` [..., steps, heads, 1], with one axis in front where ``is_flat``."""
    rank = 4 if is_flat else 3
    found = where(build, build.const(_is_between(length)), _column(build, decays, rank), build.const(np.array(1, dtype)))
    reach = 1
    while reach < length:
        pads = [0] * (2 * rank)
        pads[rank - 2] = reach
        earlier = slice_axis(build, found, rank - 2, 0, length - reach)
        found = build.op("Mul", found, build.op("Pad", earlier, build.const(pads), build.const(np.array(1, dtype))))
        reach *= 2
    return _parted(build, found, length, dtype, rank)


def exponent_weights(build: Builder, exponents: ir.Value, length: int, dtype: np.dtype, *, is_flat: bool) -> Weights:
    """Return the weights of decays by their ``exponents`` [..., steps, heads, 1], as above."""
    rank = 4 if is_flat else 3
    zero, axis = build.const(np.array(0, dtype)), build.const(np.array(rank - 2, np.int64))
    taken = where(build, build.const(_is_between(length)), _column(build, exponents, rank), zero)
    return _parted(build, build.op("Exp", build.op("CumSum", taken, axis)), length, dtype, rank)


def _is_between(length: int) -> np.ndarray:
    """Return whether the decay of step t counts for what was there after step s, which is one less than the column."""
    found: np.ndarray = np.arange(length)[:, None] >= np.arange(length + 1)[None, :]
    return found


def _column(build: Builder, rows: ir.Value, rank: int) -> ir.Value:
    """Return [..., steps, heads, 1] as [..., heads, steps, 1]."""
    return transpose(build, rows, [0, 2, 1, 3] if rank == 4 else [1, 0, 2])


def _parted(build: Builder, found: ir.Value, length: int, dtype: np.dtype, rank: int) -> Weights:
    before, after = split(build, found, rank - 1, [1, length], 2)
    last = slice_axis(build, after, rank - 2, length - 1, length)
    order = [*range(rank - 2), rank - 1, rank - 2]
    within = build.op("Mul", after, build.const(np.tril(np.ones((length, length), dtype))))
    whole = slice_axis(build, before, rank - 2, length - 1, length)
    return Weights(within, before, transpose(build, last, order), whole)
