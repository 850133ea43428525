"""RoiAlign shifts its coordinates by half a pixel from version 16 on, unless told not to.

RoiAlign (x, rois, batch)  ->  RoiAlign <coordinate_transformation_mode = "output_half_pixel"> (x, rois, batch)
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step

__all__ = ["say_coordinates"]


def say_coordinates(step: Step) -> Sequence[ir.Value] | None:
    """Write out what version 10 did."""
    return step.like(coordinate_transformation_mode="output_half_pixel")
