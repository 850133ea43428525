"""Concat must name its axis from version 4 on; before, it was 1 where not named.

Concat (x, y)  ->  Concat <axis = 1> (x, y)
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step

__all__ = ["axis_in_full"]


def axis_in_full(step: Step) -> Sequence[ir.Value] | None:
    """Write the axis out."""
    return None if step.has("axis") else step.like(axis=1)
