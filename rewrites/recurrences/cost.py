"""Whether a native node is faster than the Scan it stands for, with its projections hoisted.

onnxruntime 1.31 on CPU, measured: LSTM and GRU nodes win up to a batch of about 8 and tie after that, a GRU losing a little from 16
rows on; an RNN node loses two to three times from a batch of 4 on, and wins for one row only up to a width of about 128. Targets
that run no loops take native nodes always. The reverse direction of an LSTM or GRU turns its steps round row by row: 4 to 7 percent
slower than Slices around a forward node at 16 rows, within one percent at 4.
"""

import math
from collections.abc import Sequence

from rewrites.context import Options
from rewrites.not_applicable import NotApplicable
from rewrites.recurrences.cell import Cell

__all__ = ["too_slow", "turns_slowly"]

_WIDEST_RNN = 128
_MOST_RNN_ROWS = 2
_MOST_GRU_ROWS = 16
_MOST_LSTM_ROWS = 32
_MANY_ROWS_TO_TURN = 8


def too_slow(cell: Cell, lead: Sequence[int | str | None], options: Options) -> NotApplicable | None:
    """Say so where the native node of ``cell`` would lose for steps whose leading axes are ``lead``."""
    if options.native_always:
        return None
    rows = _rows(lead, options)
    if cell.op_type == "RNN":
        slow = rows is None or rows > _MOST_RNN_ROWS or cell.size > _WIDEST_RNN
    else:
        slow = rows is not None and rows > (_MOST_GRU_ROWS if cell.op_type == "GRU" else _MOST_LSTM_ROWS)
    if not slow:
        return None
    said = "an unknown number of rows" if rows is None else f"{rows} rows"
    return NotApplicable("COST-NATIVE", f"the {cell.op_type} node is slower than the Scan for {said} of width {cell.size}")


def turns_slowly(cell: Cell, lead: Sequence[int | str | None], options: Options) -> bool:
    """Whether a forward node between two reversals is faster than one that runs backwards."""
    rows = _rows(lead, options)
    return not options.native_always and cell.op_type != "RNN" and rows is not None and rows >= _MANY_ROWS_TO_TURN


def _rows(lead: Sequence[int | str | None], options: Options) -> int | None:
    known = [dim if isinstance(dim, int) else options.sizes.get(dim or "") for dim in lead]
    return math.prod(dim for dim in known if dim is not None) if None not in known else None
