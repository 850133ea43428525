"""Lets a model fail where a row's length is not one, as onnxruntime's own kernels do."""

import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.ops.versions import count_up, gather, where

__all__ = ["checked_lengths"]


def checked_lengths(b: Builder, lengths: ir.Value, steps: ir.Value) -> ir.Value:
    """Return ``lengths`` (int64), by way of a Gather that fails where one is not in 0..T; ``steps`` holds T alone."""
    after = b.op("Add", steps, b.const([1]))
    below = b.op("Less", lengths, b.const([0]))
    return gather(b, count_up(b, after), where(b, below, after, lengths), 0)
