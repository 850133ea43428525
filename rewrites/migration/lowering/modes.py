"""Attributes that an older version has under another name, or whose meaning it always has.

GridSample <mode = "linear">                               ->  GridSample <mode = "bilinear">
RoiAlign <coordinate_transformation_mode = output_half_pixel>  ->  RoiAlign
Resize <asymmetric, linear> (x, [], scales)                ->  Resize <linear> (x, scales)
ScatterElements                                            ->  Scatter
Split <num_outputs = 2> (x)                                ->  Split (x)              (parts known to be equal)
Reshape <allowzero = 1> (x, [2, 3])                        ->  Reshape (x, [2, 3])    (no 0 that would copy another size)
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.graph.dims import equal, is_one_size
from rewrites.graph.values import const_array, dim_of, static_dims
from rewrites.migration.lifting.grid_sample import NEW_MODES
from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible

__all__ = [
    "drop_allowzero",
    "drop_coordinates_of_roi_align",
    "drop_number",
    "old_mode",
    "rename_scatter",
]


def old_mode(step: Step) -> Sequence[ir.Value] | None:
    """GridSample: 20 -> 19."""
    mode = step.string("mode", "linear")
    if step.known_rank() != 4:
        raise Unconvertible("it has an input of rank 4 before opset 20")
    return step.like(mode={new: old for old, new in NEW_MODES.items()}.get(mode, mode))


def drop_coordinates_of_roi_align(step: Step) -> Sequence[ir.Value] | None:
    """RoiAlign: 16 -> 15."""
    if step.string("coordinate_transformation_mode", "half_pixel") != "output_half_pixel":
        raise Unconvertible("before opset 16 its coordinates are never shifted by half a pixel")
    return step.like(coordinate_transformation_mode=None)


def rename_scatter(step: Step) -> Sequence[ir.Value] | None:
    """ScatterElements: 11 -> 10."""
    return step.become("Scatter")


def drop_number(step: Step) -> Sequence[ir.Value] | None:
    """Split: 18 -> 17."""
    if not step.has("num_outputs"):
        return None
    dim = dim_of(step.required(0), step.int_("axis", 0))
    if not isinstance(dim, int) or dim % len(step.node.outputs):
        raise Unconvertible("its parts may differ in size")
    return step.like(num_outputs=None)


def drop_allowzero(step: Step) -> Sequence[ir.Value] | None:
    """Reshape: 14 -> 13. A size that may be 0 must be the size of the same axis of the input, which a 0 copies there."""
    if not step.int_("allowzero", 0):
        return step.like(allowzero=None) if step.has("allowzero") else None
    if not _each_size_is_positive_or_copied(step.required(0).shape, step.node.outputs[0].shape):
        dims = static_dims(step.node.outputs[0]) if const_array(step.value(1)) is None else None
        sizes = dims or step.constant(1, "dimensions")
        if sizes is None or 0 in sizes:
            raise Unconvertible("its shape holds a 0 that stands for itself")
    return step.like(allowzero=None)


def _each_size_is_positive_or_copied(before: ir.Shape | None, after: ir.Shape | None) -> bool:
    if after is None:
        return False
    same = [is_one_size(dim) and equal(dim, own) for dim, own in zip(after.dims, before.dims if before else (), strict=False)]
    return all((isinstance(dim, int) and dim > 0) or (axis < len(same) and same[axis]) for axis, dim in enumerate(after.dims))
