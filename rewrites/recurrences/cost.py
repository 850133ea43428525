"""Whether a native node is faster than the Scan it stands for, with its projections hoisted.

onnxruntime 1.31 on CPU, measured: LSTM and GRU nodes win up to a batch of about 8 and tie after that, a GRU losing a little from 16
rows on; an RNN node loses two to three times from a batch of 4 on, and wins for one row only up to a width of about 128. Targets
that run no loops take native nodes always.
"""

import math
from collections.abc import Sequence

from rewrites.context import Options
from rewrites.not_applicable import NotApplicable
from rewrites.recurrences.cell import Cell

__all__ = ["too_slow"]

_WIDEST_RNN = 128
_MOST_RNN_ROWS = 2
_MOST_GRU_ROWS = 16
_MOST_LSTM_ROWS = 32


def too_slow(cell: Cell, lead: Sequence[int | str | None], options: Options) -> NotApplicable | None:
    """Say so where the native node of ``cell`` would lose for steps whose leading axes are ``lead``."""
    if options.native_always:
        return None
    known = [dim if isinstance(dim, int) else options.sizes.get(dim or "") for dim in lead]
    rows = math.prod(dim for dim in known if dim is not None) if None not in known else None
    if cell.op_type == "RNN":
        slow = rows is None or rows > _MOST_RNN_ROWS or cell.size > _WIDEST_RNN
    else:
        slow = rows is not None and rows > (_MOST_GRU_ROWS if cell.op_type == "GRU" else _MOST_LSTM_ROWS)
    if not slow:
        return None
    said = "an unknown number of rows" if rows is None else f"{rows} rows"
    return NotApplicable("COST-NATIVE", f"the {cell.op_type} node is slower than the Scan for {said} of width {cell.size}")
