"""Writes the numbers 0, 1, 2, … up to a length that may be known only at run time.

Works round ORT-GATHER-AT-RANGE.
"""

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.builder import Builder
from rewrites.graph.values import const_array
from rewrites.ops.versions.emit import squeeze

__all__ = ["count_up"]

_CONSTANT_UP_TO = 1 << 13


def count_up(b: Builder, length: ir.Value, *, as_indices: bool = False) -> ir.Value:
    """Return 0, 1, … ``length`` - 1 as int64; ``length`` is a one-element int64 tensor.

    ``as_indices``: for a Gather that is to fail out of range. Of a Gather at a Range onnxruntime makes a Slice, which does not.
    """
    known = const_array(length)
    if known is not None and known.item() <= _CONSTANT_UP_TO:
        return b.const(np.arange(known.item(), dtype=np.int64))
    if b.opset >= since.RANGE and not as_indices:
        zero, one = b.const(np.array(0, np.int64)), b.const(np.array(1, np.int64))
        return b.op("Range", zero, squeeze(b, length, [0]), one)
    ones = b.op("ConstantOfShape", length, value=ir.tensor(np.ones(1, np.int64)))
    return squeeze(b, b.op("NonZero", ones), [0])
