"""Whether a native node is faster than the Scan it stands for, with its projections hoisted.

onnxruntime 1.31 on CPU, measured: LSTM and GRU nodes win up to a batch of about 8 and tie after that, a GRU losing a little
from 16 rows on; an RNN node loses two to three times from a batch of 4 on, and wins for one row up to a width of about 128, for
two up to 64. Targets that run no loops take native nodes always. The reverse direction of an LSTM or GRU turns its steps round
row by row: 4 to 7 percent slower than Slices around a forward node at 16 rows, within one percent at 4.

Weights that are known only when the model runs are copied into the node's layout each time, at about 1 ns a number in blocks
and 5.5 ns one by one; what a step gains is about 5 microseconds and 0.05 ns a number. Rows that do not run all steps cost a
sort and two gathers, about 15 microseconds. Where the cell state of each step is needed, gates are computed once more for all
steps, which pays for small ones only: 3 times faster for 16 numbers in a state, as fast for 256.
"""

import math
from collections.abc import Sequence

from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Options
from rewrites.recurrences.cells.cell import Cell

__all__ = ["too_slow", "too_slow_with_cells", "turns_slowly"]

_WIDEST_RNN = {1: 128, 2: 64}
_MOST_GRU_ROWS = 16
_MOST_LSTM_ROWS = 32
_MANY_ROWS_TO_TURN = 8
_MOST_CELL_NUMBERS = 192
_FEWEST_MASKED_STEPS = {"RNN": 8, "GRU": 4, "LSTM": 4}


def too_slow(
    cell: Cell, lead: Sequence[int | str | None], steps: int | str | None, masked: bool, options: Options
) -> NotApplicable | None:
    """Return a reason where the native node of ``cell`` would lose for ``steps`` steps whose leading axes are ``lead``.

    ``masked``: whether rows do not run all steps.
    """
    if options.native_always:
        return None
    rows = _rows(lead, options)
    if cell.op_type == "RNN":
        slow = cell.size > _WIDEST_RNN.get(-1 if rows is None else rows, 0)
    else:
        slow = rows is not None and rows > (_MOST_GRU_ROWS if cell.op_type == "GRU" else _MOST_LSTM_ROWS)
    if slow:
        said = "an unknown number of rows" if rows is None else f"{rows} rows"
        return NotApplicable("COST-NATIVE", f"the {cell.op_type} node is slower than the Scan for {said} of width {cell.size}")
    count = steps if isinstance(steps, int) else options.sizes.get(steps or "", options.assumed_dim)
    if count < (_FEWEST_MASKED_STEPS[cell.op_type] if masked else 0):
        return NotApplicable("COST-NATIVE", f"bringing together the rows that run costs more than {count} steps")
    least = _fewest_steps(cell)
    if count < least:
        detail = f"bringing weights that are known only when the model runs into the node's layout costs more than {count} steps"
        return NotApplicable("COST-NATIVE", f"{detail}; from about {least} on it would not")
    return None


def too_slow_with_cells(cell: Cell, lead: Sequence[int | str | None], options: Options) -> NotApplicable | None:
    """Return a reason where the native node would lose because the cell state of each step has to be computed beside it."""
    if options.native_always:
        return None
    rows = _rows(lead, options)
    if rows is not None and rows * cell.size <= _MOST_CELL_NUMBERS:
        return None
    said = "an unknown number of rows" if rows is None else f"{rows} rows"
    detail = (
        f"the cell state of each step is needed, which is too slow beside an {cell.op_type} node for {said} of width {cell.size}"
    )
    return NotApplicable("COST-NATIVE", detail)


def _fewest_steps(cell: Cell) -> int:
    """Return how many steps it takes to make up for what is done to weights that are known only when the model runs."""
    work = [recipe.work for recipe in cell.recipes.values()]
    copied, picked = sum(blocks for blocks, _ in work), sum(single for _, single in work)
    return math.ceil((copied * 1.0 + picked * 5.5) / (5000 + 0.05 * (copied + picked)))


def turns_slowly(cell: Cell, lead: Sequence[int | str | None], options: Options) -> bool:
    """Whether a forward node between two reversals is faster than one that runs backwards."""
    rows = _rows(lead, options)
    return not options.native_always and cell.op_type != "RNN" and rows is not None and rows >= _MANY_ROWS_TO_TURN


def _rows(lead: Sequence[int | str | None], options: Options) -> int | None:
    known = [dim if isinstance(dim, int) else options.sizes.get(dim or "") for dim in lead]
    return math.prod(dim for dim in known if dim is not None) if None not in known else None
