"""Writes a cell as a native RNN, GRU or LSTM node over all steps.

Parameters of activations are compact lists, one entry for each activation that takes one: onnxruntime reads a padded list wrongly.
``layout`` is never written, since onnxruntime refuses it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from rewrites.builder import Builder
from rewrites.recurrences.cell import Cell, Function
from rewrites.spelling import concat, reshape, squeeze, unsqueeze

__all__ = ["NativeResults", "write_native"]

_TAKES_ALPHA = frozenset({"Affine", "Elu", "HardSigmoid", "LeakyRelu", "ScaledTanh", "ThresholdedRelu"})
_TAKES_BETA = frozenset({"Affine", "HardSigmoid", "ScaledTanh"})
_DEFAULTS = {
    "RNN": (Function("Tanh"),),
    "GRU": (Function("Sigmoid"), Function("Tanh")),
    "LSTM": (Function("Sigmoid"), Function("Tanh"), Function("Tanh")),
}


@dataclass(frozen=True)
class NativeResults:
    """``sequence`` [steps, ..., hidden], and the final states as the loop has them."""

    sequence: ir.Value
    hidden: ir.Value
    cell: ir.Value | None


def write_native(
    b: Builder, cell: Cell, inputs: list[ir.Value], reverse: bool, lead: Sequence[int | str | None], lengths: ir.Value | None = None
) -> NativeResults:
    """Write ``cell`` for ``inputs``, each [steps, *lead, width], or none; results are in their order. States are [*lead, hidden].

    ``lengths``: the steps of each row as int32 of shape [rows]. Of more than one in ``lead``, at most one may be no number.
    """
    kind = cell.hidden.inner.dtype
    assert kind is not None

    def weights(array: np.ndarray) -> ir.Value:
        return b.const(np.ascontiguousarray(array[None]).astype(kind.numpy()))

    def state(value: ir.Value) -> ir.Value:
        return unsqueeze(b, _rows(b, value, lead, 0, cell.size), [0])

    x = concat(b, [_as_kind(b, each, kind) for each in inputs], len(lead) + 1)
    bias = np.concatenate([cell.wb, cell.rb])
    width = sum(width for _, width in cell.sources)
    operands: list[ir.Value | None] = [_rows(b, x, lead, 1, width), weights(cell.w), weights(cell.r)]
    operands += [weights(bias) if bias.any() else None, lengths, state(cell.hidden.initial)]
    if cell.cell is not None:
        operands.append(state(cell.cell.initial))
        operands.append(None if cell.peepholes is None else weights(cell.peepholes))
    plain = tuple(replace(function, clip=None) for function in cell.functions) == _DEFAULTS[cell.op_type]
    alphas = [f.alpha for f in cell.functions if f.name in _TAKES_ALPHA]
    betas = [f.beta for f in cell.functions if f.name in _TAKES_BETA]
    made = b.ops(
        cell.op_type,
        operands,
        3 if cell.cell is not None else 2,
        hint=cell.hidden.next.name,
        hidden_size=cell.size,
        direction="reverse" if reverse else None,
        activations=None if plain else [f.name for f in cell.functions],
        activation_alpha=None if plain or not alphas else alphas,
        activation_beta=None if plain or not betas else betas,
        clip=cell.clip,
        linear_before_reset=1 if cell.linear_before_reset else None,
        input_forget=1 if cell.input_forget else None,
    )
    finals = [_unrows(b, squeeze(b, value, [0]), lead, 0, cell.size) for value in made[1:]]
    sequence = _unrows(b, squeeze(b, made[0], [1]), lead, 1, cell.size)
    return NativeResults(sequence, finals[0], finals[1] if cell.cell is not None else None)


def _as_kind(b: Builder, value: ir.Value, kind: ir.DataType) -> ir.Value:
    return value if value.dtype == kind else b.op("Cast", value, to=int(kind))


def _rows(b: Builder, value: ir.Value, lead: Sequence[int | str | None], before: int, width: int) -> ir.Value:
    """Make one axis of the axes ``lead``, of which ``before`` others come first."""
    if len(lead) == 0:
        return unsqueeze(b, value, [before])
    return value if len(lead) == 1 else reshape(b, value, [*[0] * before, _count(lead), width])


def _unrows(b: Builder, value: ir.Value, lead: Sequence[int | str | None], before: int, width: int) -> ir.Value:
    if len(lead) == 0:
        return squeeze(b, value, [before])
    sizes = [dim if isinstance(dim, int) else -1 for dim in lead]
    return value if len(lead) == 1 else reshape(b, value, [*[0] * before, *sizes, width])


def _count(lead: Sequence[int | str | None]) -> int:
    return math.prod(dim for dim in lead if isinstance(dim, int)) if all(isinstance(dim, int) for dim in lead) else -1
