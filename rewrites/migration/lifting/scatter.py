"""Scatter is called ScatterElements from version 11 on.

Scatter <axis = 1> (x, indices, updates)  ->  ScatterElements <axis = 1> (x, indices, updates)
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step

__all__ = ["rename"]


def rename(step: Step) -> Sequence[ir.Value] | None:
    """Return it its new name."""
    return step.become("ScatterElements")
