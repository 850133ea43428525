"""The number of elements TopK takes becomes an input in version 10.

TopK <k = 3> (x)  ->  TopK (x, [3])
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step

__all__ = ["k_to_input"]


def k_to_input(step: Step) -> Sequence[ir.Value] | None:
    """Move ``k`` to the second input."""
    return step.like([step.required(0), step.builder.const([step.int_("k", 0)])], k=None)
