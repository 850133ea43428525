"""Gives a cell that runs on its state alone the input that the recurrent operators insist on: zeros, with weights of zero."""

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from rewrites.analysis.recurrence.cell import Cell
from rewrites.edits.fission.stacks import Stacks
from rewrites.ops.versions import concat, slice_axis

__all__ = ["with_input"]


def with_input(stacks: Stacks, cell: Cell) -> tuple[Cell, list[ir.Value]]:
    """Return ``cell`` with an input of one feature, and that input: [steps, ..., 1]."""
    b, initial = stacks.build, cell.hidden.initial
    assert initial.dtype is not None
    rows = slice_axis(b, b.op("Shape", initial), 0, 0, -1)
    zeros = ir.tensor(np.zeros(1, initial.dtype.numpy()))
    made = b.op("ConstantOfShape", concat(b, [stacks.steps, rows, b.const([1])], 0), value=zeros)
    return replace(cell, sources=((("zeros",), 1),), w=np.zeros((len(cell.w), 1))), [made]
