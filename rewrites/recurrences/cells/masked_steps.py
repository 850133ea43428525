"""Writes a cell that only some rows run in each step, as a native node over the steps that each row runs.

    steps of a row   a . b c .      ->   a b c    through the node with sequence length 3    ->   h1 h1 h2 h3 h3

A stable sort brings the steps that a row runs together, and the node's results are spread the same way; a row that has not run yet
has its initial state. This equals the loop for every mask: nothing of the node past a row's length is read, and none of its final
states for a length of 0.

Works round ORT-RECURRENT-EMPTY-ROW.
"""

import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.ops.versions import concat, count_up, reshape, shape_of, slice_axis, squeeze, unsqueeze, where
from rewrites.recurrences.cells.cell import Cell
from rewrites.recurrences.cells.features import Dims
from rewrites.recurrences.cells.native_node import NativeResults, join_inputs, join_rows, part_rows, write_rows

__all__ = ["has_run", "write_masked"]

_INT64, _INT32 = int(ir.DataType.INT64), int(ir.DataType.INT32)


def has_run(b: Builder, mask: ir.Value, backwards: bool) -> ir.Value:
    """Return which rows have run by which steps: bool, in the shape of ``mask``, [steps, ..., 1]."""
    runs = b.op("CumSum", b.op("Cast", mask, to=_INT64), b.const(0), reverse=1 if backwards else None)
    return b.op("Less", b.const(0), runs)


def write_masked(b: Builder, cell: Cell, inputs: list[ir.Value], backwards: bool, lead: Dims, mask: ir.Value) -> NativeResults:
    """Write ``cell`` as ``write_native`` does; ``mask``: which rows run, bool [steps, *lead, 1], or with 1 for each of lead."""
    x = join_inputs(b, cell, inputs, lead)
    initial = [join_rows(b, state.initial, lead, 0, cell.size) for state in cell.states]
    steps, rows = shape_of(b, x, 0), shape_of(b, x, 1)
    spread = b.op("Expand", reshape(b, mask, [0, -1]), concat(b, [b.const([1]), rows], 0))
    runs = b.op("Cast", spread, to=_INT64)
    counts = b.op("CumSum", runs, b.const(0), reverse=1 if backwards else None)
    total = slice_axis(b, counts, 0, 0, 1) if backwards else slice_axis(b, counts, 0, -1, 2**63 - 1)
    columns = b.op("Expand", unsqueeze(b, count_up(b, rows), [0]), b.op("Shape", runs))
    _, order = b.ops("TopK", [_keys(b, runs, steps), steps], 2, axis=0)
    together = b.op("GatherND", x, _indices(b, order, columns))
    lengths = b.op("Cast", squeeze(b, total, [0]), to=_INT32)
    native = write_rows(b, cell, together, initial, backwards, lengths)
    first = unsqueeze(b, initial[0], [0])
    if backwards:
        after = b.op("Sub", total, counts)
        at = where(b, b.op("Less", after, total), after, steps)
        table = concat(b, [native.sequence, first], 0)
    else:
        at, table = counts, concat(b, [first, native.sequence], 0)
    sequence = b.op("GatherND", table, _indices(b, at, columns))
    ran = unsqueeze(b, b.op("Less", b.const([0]), squeeze(b, total, [0])), [1])
    finals = [native.hidden, *([] if native.cell is None else [native.cell])]
    hidden, *cells = (
        part_rows(b, where(b, ran, final, state), lead, 0, cell.size) for state, final in zip(initial, finals, strict=True)
    )
    return NativeResults(part_rows(b, sequence, lead, 1, cell.size), hidden, cells[0] if cells else None)


def _keys(b: Builder, runs: ir.Value, steps: ir.Value) -> ir.Value:
    """Return numbers that sort the steps that run before the others, and each kind in its order."""
    number = unsqueeze(b, count_up(b, steps), [1])
    return b.op("Sub", b.op("Mul", runs, steps), number)


def _indices(b: Builder, first: ir.Value, second: ir.Value) -> ir.Value:
    return concat(b, [unsqueeze(b, first, [2]), unsqueeze(b, second, [2])], 2)
