"""The axis of DFT becomes an input in version 20, and its default moves from 1 to -2.

DFT <axis = 1> (x, length)  ->  DFT (x, length, 1)
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.migration.step import Step

__all__ = ["axis_to_input"]


def axis_to_input(step: Step) -> Sequence[ir.Value] | None:
    """Write the axis as third input."""
    axis = step.builder.const(np.asarray(step.int_("axis", 1), dtype=np.int64))
    return step.like([step.required(0), step.value(1), axis], axis=None)
