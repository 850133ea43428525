"""Keeps a native node from sequences of nothing.

    LSTM(xs, ...)    ->    If(xs holds anything) then LSTM(xs, ...) else an empty sequence, and the states as they were

On no rows onnxruntime aborts the process for LSTM and GRU, on no steps for GRU, and LSTM gives uninitialised memory then.
A loop runs on a batch of no rows, so where their number is free the node must not see it. A Scan over no steps fails; here it
gives what the operator's text has.

Works round ORT-RNN-NO-STEPS, ORT-GRU-NO-STEPS, ORT-LSTM-NO-STEPS and ORT-RECURRENT-NO-ROWS.
"""

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from rewrites.graph.branches import write_if
from rewrites.graph.builder import Builder
from rewrites.ops.versions import concat, slice_axis
from rewrites.recurrences.cells.cell import Cell
from rewrites.recurrences.cells.native_node import NativeResults

__all__ = ["write_guarded"]


def write_guarded(b: Builder, cell: Cell, some_input: ir.Value, write: Callable[[Builder], NativeResults]) -> NativeResults:
    """Return what ``write`` writes, guarded where ``some_input``, [steps, ..., width], may hold nothing."""
    kind = cell.hidden.inner.dtype
    assert kind is not None
    some = b.op("Greater", b.op("Size", some_input), b.const(0))
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
