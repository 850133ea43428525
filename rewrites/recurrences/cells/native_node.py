"""Writes a cell as a native RNN, GRU or LSTM node over all steps.

Parameters of activations are compact lists, one entry for each activation that takes one: onnxruntime reads a padded list wrongly.
``layout`` is never written, since onnxruntime refuses it.

Works round ORT-RECURRENT-LAYOUT.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.ops.rnn.functions import DEFAULTS, compact
from rewrites.ops.versions import concat, reshape, slice_axis, squeeze, unsqueeze
from rewrites.recurrences.cells.cell import Cell

__all__ = ["NativeResults", "join_inputs", "join_rows", "part_rows", "write_between_reversals", "write_native", "write_rows"]


@dataclass(frozen=True)
class NativeResults:
    """``sequence`` [steps, ..., hidden], and the final states as the loop has them."""

    sequence: ir.Value
    hidden: ir.Value
    cell: ir.Value | None


def write_native(b: Builder, cell: Cell, inputs: list[ir.Value], reverse: bool, lead: Sequence[int | str | None]) -> NativeResults:
    """Write ``cell`` for ``inputs``, each [steps, *lead, width]; results are in their order. States are [*lead, hidden].

    Of more than one in ``lead``, at most one may be no number.
    """
    x = join_inputs(b, cell, inputs, lead)
    initial = [join_rows(b, state.initial, lead, 0, cell.size) for state in cell.states]
    native = write_rows(b, cell, x, initial, reverse)
    finals = [None if final is None else part_rows(b, final, lead, 0, cell.size) for final in (native.hidden, native.cell)]
    assert finals[0] is not None
    return NativeResults(part_rows(b, native.sequence, lead, 1, cell.size), finals[0], finals[1])


def write_between_reversals(b: Builder, cell: Cell, inputs: list[ir.Value], lead: Sequence[int | str | None]) -> NativeResults:
    """Write what ``write_native`` does for ``reverse``, as a forward node on reversed steps."""
    native = write_native(b, cell, [_reversed(b, each) for each in inputs], False, lead)
    return NativeResults(_reversed(b, native.sequence), native.hidden, native.cell)


def _reversed(b: Builder, steps: ir.Value) -> ir.Value:
    return slice_axis(b, steps, 0, -1, -(2**63), -1)


def write_rows(
    b: Builder, cell: Cell, x: ir.Value, initial: list[ir.Value], reverse: bool, lengths: ir.Value | None = None
) -> NativeResults:
    """Write ``cell`` for ``x`` [steps, rows, width] and initial states [rows, hidden]; ``lengths``: int32 [rows]."""
    kind = cell.hidden.inner.dtype
    assert kind is not None

    def weights(*names: str) -> ir.Value:
        if not any(name in cell.recipes for name in names):
            return b.const(np.concatenate([getattr(cell, name) for name in names])[None].astype(kind.numpy()))
        parts = [cell.recipes[name].write(b, kind) if name in cell.recipes else b.const(_array(cell, name, kind)) for name in names]
        return unsqueeze(b, concat(b, parts, 0), [0])

    operands: list[ir.Value | None] = [x, weights("w"), weights("r"), weights("wb", "rb") if cell.has_bias else None, lengths]
    operands += [unsqueeze(b, state, [0]) for state in initial]
    if cell.peepholes is not None:
        operands.append(weights("peepholes"))
    plain = tuple(function.name for function in cell.functions) == DEFAULTS[cell.op_type]
    alphas, betas = compact(cell.functions)
    made = b.ops(
        cell.op_type,
        operands,
        3 if cell.cell is not None else 2,
        hint=cell.hidden.next.name,
        hidden_size=cell.size,
        direction="reverse" if reverse else None,
        activations=None if plain else [f.name for f in cell.functions],
        activation_alpha=alphas or None,
        activation_beta=betas or None,
        clip=cell.clip,
        linear_before_reset=1 if cell.linear_before_reset else None,
        input_forget=1 if cell.input_forget else None,
    )
    finals = [squeeze(b, value, [0]) for value in made[1:]]
    return NativeResults(squeeze(b, made[0], [1]), finals[0], finals[1] if cell.cell is not None else None)


def _array(cell: Cell, name: str, kind: ir.DataType) -> np.ndarray:
    array: np.ndarray = getattr(cell, name)
    return array.astype(kind.numpy())


def join_inputs(b: Builder, cell: Cell, inputs: list[ir.Value], lead: Sequence[int | str | None]) -> ir.Value:
    """Return ``inputs``, each [steps, *lead, width], side by side as [steps, rows, width]."""
    kind = cell.hidden.inner.dtype
    assert kind is not None
    x = concat(b, [each if each.dtype == kind else b.op("Cast", each, to=int(kind)) for each in inputs], len(lead) + 1)
    return join_rows(b, x, lead, 1, sum(width for _, width in cell.sources))


def join_rows(b: Builder, value: ir.Value, lead: Sequence[int | str | None], before: int, width: int) -> ir.Value:
    """Make one axis of the axes ``lead``, of which ``before`` others come first."""
    if len(lead) == 0:
        return unsqueeze(b, value, [before])
    count = math.prod(dim for dim in lead if isinstance(dim, int)) if all(isinstance(dim, int) for dim in lead) else -1
    return value if len(lead) == 1 else reshape(b, value, [*[0] * before, count, width])


def part_rows(b: Builder, value: ir.Value, lead: Sequence[int | str | None], before: int, width: int) -> ir.Value:
    """Make the axes ``lead`` of one again."""
    if len(lead) == 0:
        return squeeze(b, value, [before])
    sizes = [dim if isinstance(dim, int) else -1 for dim in lead]
    return value if len(lead) == 1 else reshape(b, value, [*[0] * before, *sizes, width])
