"""MeanVarianceNormalization enters onnx in version 9; before, onnxruntime runs one that names its axes in other words.

MeanVarianceNormalization <across_channels = 0> (x)  ->  MeanVarianceNormalization (x)
MeanVarianceNormalization <across_channels = 1> (x)  ->  MeanVarianceNormalization <axes = [0, 1, 2, 3]> (x)
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible

__all__ = ["name_axes"]


def name_axes(step: Step) -> Sequence[ir.Value] | None:
    """Name the axes; one that leaves the variance as it is is refused."""
    if not step.int_("normalize_variance", 1):
        raise Unconvertible("its variance is not normalized")
    axes = [0, 1, 2, 3] if step.int_("across_channels", 0) else None
    return step.like(across_channels=None, normalize_variance=None, axes=axes)
