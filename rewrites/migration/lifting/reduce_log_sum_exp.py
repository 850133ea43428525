"""ReduceLogSumExp of opset 28 is another computation in onnxruntime than that of opset 27.

    27 -> 28  refused
    28 -> 27  ReduceLogSumExp (x, axes)  ->  Log (ReduceSum (Exp (x), axes))

onnxruntime has a kernel up to opset 27, which subtracts a maximum first. From opset 28 on it expands the function of the
operator's text, which overflows above 88 and gives -inf below -103 in float32. An HMM of some hundred steps then gives only NaN.
No other nodes compute exactly what the kernel does, because its maximum depends on whether the first number is finite.

Works round ORT-LOG-SUM-EXP-28.
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible

__all__ = ["refuse_overflow", "write_plainly"]


def refuse_overflow(_step: Step) -> None:
    """27 -> 28."""
    raise Unconvertible("onnxruntime lets it overflow from opset 28 on; opset 27 is the newest that computes the same")


def write_plainly(step: Step) -> Sequence[ir.Value]:
    """28 -> 27."""
    b, noop = step.builder, step.int_("noop_with_empty_axes", 0)
    powers = b.op("Exp", step.required(0))
    total = b.op("ReduceSum", powers, step.value(1), keepdims=step.int_("keepdims", 1), noop_with_empty_axes=noop)
    return [b.op("Log", total)]
