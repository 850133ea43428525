"""Check that a native node can replace the loop of a cell, and that it is faster.

Measured with onnxruntime 1.31 on CPU, against a Scan with hoisted projections:

* LSTM and GRU nodes are faster up to a batch of about 8 and equally fast for larger batches. But from 16 rows on, a GRU node is
  slightly slower.
* An RNN node is faster for one row up to a width of 128, and for two rows up to 64. From 4 rows on, it is two to three times
  slower.
* At 16 rows, a reverse LSTM or GRU is 4 to 7 percent slower than a forward node between two reversing Slices. At 4 rows, the
  difference is within one percent.
* Weights that are known only at run time are copied in each run. Copying a number takes about 1 ns in a block, and 5.5 ns alone.
  Each step of the node saves about 5 µs, and 0.05 ns for each number.
* A mask costs a sort and two gathers, about 15 µs.
* If the cell state of each step is needed, the gates are computed twice, by the node and by a loop. This is still 3 times faster
  than the original loop for states of 16 numbers, and equally fast for 256.

Targets that run no loops always use native nodes.

Works around ORT-RECURRENT-DOUBLE.
"""

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.analysis.unroll_limits import node_too_long, too_long
from rewrites.base.abilities import Abilities
from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context, Options
from rewrites.loops import Loop
from rewrites.recurrences.cells.cell import Cell, source_of
from rewrites.recurrences.cells.features import Dims, rows_of
from rewrites.recurrences.cells.masks import CellMatch

__all__ = ["absent_from_target", "reverses_slowly", "stays_on_cpu", "too_slow", "too_slow_with_cells", "wrong_types"]

_WIDEST_RNN = {1: 128, 2: 64}
_MOST_GRU_ROWS = 16
_MOST_LSTM_ROWS = 32
_MANY_ROWS_TO_REVERSE = 8
_MOST_CELL_NUMBERS = 192
_FEWEST_MASKED_STEPS = {"RNN": 8, "GRU": 4, "LSTM": 4}


def wrong_types(match: CellMatch) -> NotApplicable | None:
    """Return a reason if no native node supports the types and shapes of the cell."""
    cell, lead, dims = match.cell, match.lead, match.reading.dims
    name = cell.hidden.inner.name
    dtypes = {state.inner.dtype for state in cell.states}
    if dtypes not in ({ir.DataType.FLOAT}, {ir.DataType.FLOAT16}):
        detail = f"onnxruntime runs {cell.op_type} on float32 and float16 only, and '{name}' is neither"
        return NotApplicable("CELL-TYPE", detail)
    exact = (cell.recipes[name].is_exact if name in cell.recipes else _fits_float16(getattr(cell, name)) for name in ("w", "r"))
    if dtypes == {ir.DataType.FLOAT16} and not all(exact):
        return NotApplicable("CELL-TYPE", f"the weights of the {cell.op_type} of '{name}' are not exact in float16")
    unknown = sum(not isinstance(dim, int) for dim in lead)
    if (
        (unknown > 1 and len(lead) > 1)
        or None in lead
        or 0 in lead
        or any(dims[source_of(state)] != lead for state in cell.states)
        or any(rows_of(dims[key]) != rows_of(lead) for key, _ in cell.sources)
    ):
        detail = f"the {cell.op_type} of '{name}' has inputs or states that are not rows of one batch"
        return NotApplicable("CELL-ROWS", detail)
    return None


def _fits_float16(array: np.ndarray) -> bool:
    return bool((array.astype(np.float16) == array).all())


def absent_from_target(cell: Cell, has_lengths: bool, target: Abilities) -> NotApplicable | None:
    """Return a reason if ``target`` does not run the native node of ``cell``.

    ``has_lengths``: True if the node needs ``sequence_lens``, because the cell has a mask.
    """
    limits = target.recurrent.get(cell.op_type)
    if limits is None:
        return NotApplicable("CELL-TARGET", f"{target.name} has no {cell.op_type}")
    lacks = limits.lacking(
        activations=not cell.has_default_functions,
        clip=cell.clip is not None,
        peepholes=cell.peepholes is not None,
        input_forget=cell.input_forget,
        reset_before=cell.op_type == "GRU" and not cell.linear_before_reset,
        lengths=has_lengths,
    )
    return NotApplicable("CELL-TARGET", f"{target.name} runs no {cell.op_type} with {lacks}") if lacks else None


def stays_on_cpu(loop: Loop, ctx: Context) -> bool:
    """Return True if ``loop`` would run on onnxruntime's CPU even without a native node.

    This is so if the target runs no loops and the loop cannot be unrolled. A loop cannot be unrolled if it has too many steps or an
    unknown number of steps.
    """
    if ctx.options.target.loops:
        return False
    steps = loop.steps
    if not isinstance(steps, int):
        return True
    return too_long(loop, steps, (), ctx) is not None and node_too_long(steps, 1, ctx.options.unroll) is not None


def too_slow(match: CellMatch, steps: int | str | None, options: Options) -> NotApplicable | None:
    """Return a reason if the native node would be slower than a loop of ``steps`` steps."""
    if options.native_always:
        return None
    cell, rows = match.cell, _rows(match.lead, options)
    if cell.op_type == "RNN":
        slow = cell.size > _WIDEST_RNN.get(-1 if rows is None else rows, 0)
    else:
        slow = rows is not None and rows > (_MOST_GRU_ROWS if cell.op_type == "GRU" else _MOST_LSTM_ROWS)
    if slow:
        detail = f"the {cell.op_type} node is slower than the Scan for {_count(rows)} of width {cell.size}"
        return NotApplicable("COST-NATIVE", detail)
    count = steps if isinstance(steps, int) else options.sizes.get(steps or "", options.assumed_dim)
    if match.mask is not None and count < _FEWEST_MASKED_STEPS[cell.op_type]:
        return NotApplicable("COST-NATIVE", f"sorting the steps of each row by its mask costs more than {count} steps of the loop")
    least = _fewest_steps(cell)
    if count < least:
        detail = f"converting weights that are known only at run time costs more than the node saves in {count} steps"
        return NotApplicable("COST-NATIVE", f"{detail}; from about {least} steps on, the node would be faster")
    return None


def too_slow_with_cells(match: CellMatch, options: Options) -> NotApplicable | None:
    """Return a reason if the native node is too slow because the cell state of each step is also needed.

    A loop must then compute the cell states in addition to the node.
    """
    cell, rows = match.cell, _rows(match.lead, options)
    if options.native_always or (rows is not None and rows * cell.size <= _MOST_CELL_NUMBERS):
        return None
    detail = f"the cell state of each step is needed, which is too slow beside an {cell.op_type} node for {_count(rows)}"
    return NotApplicable("COST-NATIVE", f"{detail} of width {cell.size}")


def _count(rows: int | None) -> str:
    return "an unknown number of rows" if rows is None else f"{rows} rows"


def _fewest_steps(cell: Cell) -> int:
    """Return the smallest number of steps for which a native node is worth the copies of run-time weights.

    The copies take time once in each run. The native node saves time in each step. From the returned number of steps on, it saves
    at least as much time as the copies take.
    """
    work = [recipe.work for recipe in cell.recipes.values()]
    copied, picked = sum(blocks for blocks, _ in work), sum(single for _, single in work)
    return math.ceil((copied * 1.0 + picked * 5.5) / (5000 + 0.05 * (copied + picked)))


def reverses_slowly(cell: Cell, lead: Dims, options: Options) -> bool:
    """Return True if a forward node between two reversals is faster than a reverse node."""
    rows = _rows(lead, options)
    return not options.native_always and cell.op_type != "RNN" and rows is not None and rows >= _MANY_ROWS_TO_REVERSE


def _rows(lead: Sequence[int | str | None], options: Options) -> int | None:
    known = [dim if isinstance(dim, int) else options.sizes.get(dim or "") for dim in lead]
    return math.prod(dim for dim in known if dim is not None) if None not in known else None
