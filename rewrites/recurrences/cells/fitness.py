"""Whether the types and shapes of a cell are ones that a native node has.

Works round ORT-RECURRENT-DOUBLE.
"""

import numpy as np
import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.recurrences.cells.cell import Cell, source_of
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.reading import rows_of

__all__ = ["unfit"]


def unfit(cell: Cell, reading: Interpretation) -> NotApplicable | None:
    """Say why no native node can be this cell, which is one by its equations."""
    states = cell.states
    kinds = {state.inner.dtype for state in states}
    if kinds not in ({ir.DataType.FLOAT}, {ir.DataType.FLOAT16}):
        detail = f"onnxruntime runs {cell.op_type} on float32 and float16 only, and '{states[0].inner.name}' is neither"
        return NotApplicable("CELL-TYPE", detail)
    if kinds == {ir.DataType.FLOAT16} and not all(_fits_float16(cell, name) for name in ("w", "r")):
        return NotApplicable("CELL-TYPE", f"the weights of the {cell.op_type} of '{states[0].inner.name}' are no float16 numbers")
    lead = reading.dims[source_of(cell.hidden)]
    own, others = [reading.dims[source_of(state)] for state in states], [reading.dims[key] for key, _ in cell.sources]
    unknown = sum(not isinstance(dim, int) for dim in lead)
    if (
        (unknown > 1 and len(lead) > 1)
        or None in lead
        or 0 in lead
        or any(each != lead for each in own)
        or any(rows_of(each) != rows_of(lead) for each in others)
    ):
        detail = f"the {cell.op_type} of '{states[0].inner.name}' has inputs or states that are not rows of one batch"
        return NotApplicable("CELL-ROWS", detail)
    return None


def _fits_float16(cell: Cell, name: str) -> bool:
    if name in cell.recipes:
        return cell.recipes[name].is_exact
    array = getattr(cell, name)
    return bool((array.astype(np.float16) == array).all())
