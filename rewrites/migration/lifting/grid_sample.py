"""GridSample renames its modes in version 20.

GridSample <mode = "bilinear"> (x, grid)  ->  GridSample <mode = "linear"> (x, grid)
GridSample <mode = "bicubic"> (x, grid)   ->  GridSample <mode = "cubic"> (x, grid)
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step

__all__ = ["NEW_MODES", "rename_mode"]

NEW_MODES = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}


def rename_mode(step: Step) -> Sequence[ir.Value] | None:
    """Return the mode its new name."""
    mode = step.string("mode", "bilinear")
    return step.like(mode=NEW_MODES.get(mode, mode))
