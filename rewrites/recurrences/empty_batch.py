"""Keeps a native node from a batch of no rows, on which onnxruntime 1.31 aborts the process for LSTM and GRU.

    LSTM(xs, ...)    ->    If(rows of xs > 0) then LSTM(xs, ...) else a sequence of no rows, and the states as they were

The loop that the node stands for runs on such a batch, so where the number of rows is free the node must not see it.
"""

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.branches import write_if
from rewrites.builder import Builder
from rewrites.recurrences.cell import Cell
from rewrites.recurrences.native import NativeResults
from rewrites.spelling import concat, shape_of, slice_axis, squeeze

__all__ = ["write_guarded"]


def write_guarded(
    b: Builder, cell: Cell, some_input: ir.Value, lead: Sequence[int | str | None], write: Callable[[Builder], NativeResults]
) -> NativeResults:
    """Give what ``write`` writes, guarded where one of ``lead`` may be 0; ``some_input`` is [steps, *lead, width]."""
    kind = cell.hidden.inner.dtype
    assert kind is not None
    free = next(axis for axis, dim in enumerate(lead) if not isinstance(dim, int))
    some = squeeze(b, b.op("Less", b.const([0]), shape_of(b, some_input, 1 + free)), [0])
    then_part, else_part = b.another(), b.another()
    native = write(then_part)
    found = [native.sequence, native.hidden, *([native.cell] if native.cell is not None else [])]
    sizes = slice_axis(else_part, else_part.op("Shape", some_input), 0, 0, -1)
    shape = concat(else_part, [sizes, b.const([cell.size])], 0)
    zero = ir.tensor(np.zeros(1, kind.numpy()))
    nothing = [
        else_part.op("ConstantOfShape", shape, value=zero),
        *(else_part.op("Identity", state.initial) for state in cell.states),
    ]
    made = write_if(b, some, (then_part, found), (else_part, nothing), cell.hidden.next.name)
    return NativeResults(made[0], made[1], made[2] if cell.cell is not None else None)
