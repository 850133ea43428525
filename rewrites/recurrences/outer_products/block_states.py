"""The matrices before each of a few blocks of steps, by one product with what decays come to between blocks."""

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.ops.versions import concat, reshape, slice_axis, transpose
from rewrites.recurrences.outer_products.block_weights import Weights, constant_weights, product_weights

__all__ = ["states_between"]


def states_between(
    build: Builder,
    taken: ir.Value,
    initial: ir.Value,
    whole: ir.Value | np.ndarray | None,
    blocks: int,
    dtype: np.dtype,
    *,
    has_reads: bool,
) -> tuple[ir.Value | None, ir.Value]:
    """Return the matrices before each block [blocks, heads, keys, values], where ``has_reads``, and that after the last.

    ``taken`` [blocks, heads, keys, values]: what is left of each block; ``initial`` [heads, keys, values]; ``whole``: what the
    matrix is multiplied by in a block, [blocks, heads, 1, 1], or [heads] where that is always the same.
    """
    sides = [] if initial.shape is None else [dim if isinstance(dim, int) else -1 for dim in initial.shape.dims[1:]]
    weights = _weights(build, whole, blocks, dtype)
    rows = reshape(build, transpose(build, taken, [1, 0, 2, 3]), [0, blocks, -1])
    first = reshape(build, initial, [0, 1, -1])
    kept = first if weights.before is None else build.op("Mul", weights.before, first)
    after = build.op("Add", build.op("MatMul", weights.within, rows), kept)
    last = reshape(build, slice_axis(build, after, 1, blocks - 1, blocks), [0, *sides])
    if not has_reads:
        return None, last
    before = concat(build, [first, slice_axis(build, after, 1, 0, blocks - 1)], 1)
    return transpose(build, reshape(build, before, [0, blocks, *sides]), [1, 0, 2, 3]), last


def _weights(build: Builder, whole: ir.Value | np.ndarray | None, blocks: int, dtype: np.dtype) -> Weights:
    if isinstance(whole, ir.Value):
        return product_weights(build, reshape(build, whole, [0, 0, 1]), blocks, dtype, is_flat=False)
    return constant_weights(build, whole, blocks, dtype)
