"""Every cell that a body may be: read as it is, with rows that keep their states, with weights known only when the model runs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.loops import ScanView
from rewrites.recurrences.cells.cell import Cell
from rewrites.recurrences.cells.families import find_cells
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.masks import Mask, masked_cells
from rewrites.recurrences.cells.run_time_weights import cells_of_run_time_weights, run_time_weights

__all__ = ["Found", "found_cells"]


@dataclass(frozen=True)
class Found:
    """A cell, the reading it was found in, and what else it depends on: a mask, tensors known only when the model runs."""

    cell: Cell
    reading: Interpretation
    mask: Mask | None = None
    weights: tuple[ir.Value, ...] = ()


def found_cells(loop: ScanView, opset: int) -> Iterator[Found]:
    """Return the cells the body may be, the plainest first."""

    def plain(numbers: Mapping[ir.Value, np.ndarray]) -> list[tuple[Cell, tuple[Interpretation, Mask | None]]]:
        reading = Interpretation.of_body(loop, opset, numbers=numbers)
        return [(cell, (reading, None)) for cell in find_cells(reading)]

    def masked(numbers: Mapping[ir.Value, np.ndarray]) -> list[tuple[Cell, tuple[Interpretation, Mask | None]]]:
        return [(cell, (mask.taken, mask)) for cell, mask in masked_cells(loop, opset, numbers)]

    for find in (plain, masked):
        yield from (Found(cell, reading, mask) for cell, (reading, mask) in find({}))
    weights = tuple(run_time_weights(loop, opset))
    for find in (plain, masked) if weights else ():
        yield from (Found(cell, reading, mask, weights) for cell, (reading, mask) in cells_of_run_time_weights(weights, find))
