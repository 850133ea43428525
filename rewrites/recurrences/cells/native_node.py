"""Writes a cell as a native RNN, GRU or LSTM node over all steps.

Parameters of activations are compact lists, one entry for each activation that takes one: onnxruntime reads a padded list wrongly.
``layout`` is never written, since onnxruntime refuses it.

The node does not run on an empty sequence: onnxruntime aborts for LSTM and GRU on no rows, for GRU on no steps, and LSTM returns
uninitialised memory then. A loop runs on a batch of no rows, so an If keeps the node from one if the number of rows is free. A Scan
over no steps fails; here it gives what the operator's text has.

    LSTM(xs, ...)    ->    If(xs holds anything) then LSTM(xs, ...) else an empty sequence, and the initial states

Works round ORT-RECURRENT-LAYOUT, ORT-RNN-NO-STEPS, ORT-GRU-NO-STEPS, ORT-LSTM-NO-STEPS and ORT-RECURRENT-NO-ROWS.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.branches import write_if
from rewrites.graph.builder import Builder
from rewrites.ops.rnn.functions import compact
from rewrites.ops.versions import concat, reshape, slice_axis, squeeze, unsqueeze
from rewrites.recurrences.cells.cell import Cell
from rewrites.recurrences.cells.features import Dims

__all__ = ["NativeResults", "join_inputs", "join_rows", "part_rows", "write_guarded", "write_native", "write_rows"]


@dataclass(frozen=True)
class NativeResults:
    """``sequence`` [steps, ..., hidden], and the final states as the loop has them."""

    sequence: ir.Value
    hidden: ir.Value
    cell: ir.Value | None


def write_native(
    b: Builder, cell: Cell, inputs: list[ir.Value], lead: Dims, *, reverse: bool, between_reversals: bool
) -> NativeResults:
    """Write ``cell`` for ``inputs``, each [steps, *lead, width]; results are in their order. States are [*lead, hidden].

    Args:
        b: collects the nodes.
        cell: the cell.
        inputs: the values of its sources.
        lead: the axes of rows. If there are several, at most one may be unknown.
        reverse: whether the last step comes first.
        between_reversals: whether to write a forward node on reversed steps instead of a reverse node.
    """
    turns = reverse and between_reversals
    x = join_inputs(b, cell, [_reversed(b, each) for each in inputs] if turns else inputs, lead)
    initial = [join_rows(b, state.initial, lead, 0, cell.size) for state in cell.states]
    native = write_rows(b, cell, x, initial, reverse and not turns)
    hidden = part_rows(b, native.hidden, lead, 0, cell.size)
    last_cell = None if native.cell is None else part_rows(b, native.cell, lead, 0, cell.size)
    sequence = part_rows(b, native.sequence, lead, 1, cell.size)
    return NativeResults(_reversed(b, sequence) if turns else sequence, hidden, last_cell)


def _reversed(b: Builder, steps: ir.Value) -> ir.Value:
    return slice_axis(b, steps, 0, -1, -(2**63), -1)


def write_rows(
    b: Builder, cell: Cell, x: ir.Value, initial: list[ir.Value], reverse: bool, lengths: ir.Value | None = None
) -> NativeResults:
    """Write ``cell`` for ``x`` [steps, rows, width] and initial states [rows, hidden]; ``lengths``: int32 [rows]."""

    def array(name: str) -> np.ndarray:
        numbers: np.ndarray = getattr(cell, name)
        return numbers.astype(cell.dtype.numpy())

    def weights(*names: str) -> ir.Value:
        if not any(name in cell.recipes for name in names):
            return b.const(np.concatenate([array(name) for name in names])[None])
        parts = [cell.recipes[name].write(b, cell.dtype) if name in cell.recipes else b.const(array(name)) for name in names]
        return unsqueeze(b, concat(b, parts, 0), [0])

    operands: list[ir.Value | None] = [x, weights("w"), weights("r"), weights("wb", "rb") if cell.has_bias else None, lengths]
    operands += [unsqueeze(b, state, [0]) for state in initial]
    if cell.peepholes is not None:
        operands.append(weights("peepholes"))
    alphas, betas = compact(cell.functions)
    outputs = b.ops(
        cell.op_type,
        operands,
        3 if cell.cell is not None else 2,
        hint=cell.hidden.next.name,
        hidden_size=cell.size,
        direction="reverse" if reverse else None,
        activations=None if cell.has_default_functions else [function.name for function in cell.functions],
        activation_alpha=alphas or None,
        activation_beta=betas or None,
        clip=cell.clip,
        linear_before_reset=1 if cell.linear_before_reset else None,
        input_forget=1 if cell.input_forget else None,
    )
    finals = [squeeze(b, value, [0]) for value in outputs[1:]]
    return NativeResults(squeeze(b, outputs[0], [1]), finals[0], finals[1] if cell.cell is not None else None)


def join_inputs(b: Builder, cell: Cell, inputs: list[ir.Value], lead: Dims) -> ir.Value:
    """Return ``inputs``, each [steps, *lead, width], side by side as [steps, rows, width]."""
    cast = [each if each.dtype == cell.dtype else b.op("Cast", each, to=int(cell.dtype)) for each in inputs]
    return join_rows(b, concat(b, cast, len(lead) + 1), lead, 1, sum(width for _, width in cell.sources))


def join_rows(b: Builder, value: ir.Value, lead: Dims, before: int, width: int) -> ir.Value:
    """Merge the axes ``lead``, of which ``before`` others come first, into one."""
    if len(lead) == 0:
        return unsqueeze(b, value, [before])
    count = math.prod(dim for dim in lead if isinstance(dim, int)) if all(isinstance(dim, int) for dim in lead) else -1
    return value if len(lead) == 1 else reshape(b, value, [*[0] * before, count, width])


def part_rows(b: Builder, value: ir.Value, lead: Dims, before: int, width: int) -> ir.Value:
    """Split one axis into the axes ``lead`` again."""
    if len(lead) == 0:
        return squeeze(b, value, [before])
    sizes = [dim if isinstance(dim, int) else -1 for dim in lead]
    return value if len(lead) == 1 else reshape(b, value, [*[0] * before, *sizes, width])


def write_guarded(b: Builder, cell: Cell, some_input: ir.Value, write: Callable[[Builder], NativeResults]) -> NativeResults:
    """Return the results of ``write``, guarded in case ``some_input``, [steps, ..., width], is empty."""
    is_some = b.op("Greater", b.op("Size", some_input), b.const(0))
    then_part, else_part = b.another(), b.another()
    native = write(then_part)
    results = [native.sequence, native.hidden, *([native.cell] if native.cell is not None else [])]
    sizes = slice_axis(else_part, else_part.op("Shape", some_input), 0, 0, -1)
    shape = concat(else_part, [sizes, b.const([cell.size])], 0)
    empty = else_part.op("ConstantOfShape", shape, value=ir.tensor(np.zeros(1, cell.dtype.numpy())))
    initial = [else_part.op("Identity", state.initial) for state in cell.states]
    sequence, hidden, *cells = write_if(b, is_some, (then_part, results), (else_part, [empty, *initial]), cell.hidden.next.name)
    return NativeResults(sequence, hidden, cells[0] if cells else None)
