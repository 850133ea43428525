"""Writes a cell as a native RNN, GRU or LSTM node over all steps.

Parameters of activations are compact lists, one entry for each activation that takes one: onnxruntime reads a padded list wrongly.
``layout`` is never written, since onnxruntime refuses it.
"""

from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from rewrites.builder import Builder
from rewrites.recurrences.cell import Cell, Function
from rewrites.spelling import concat, squeeze, unsqueeze

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


def write_native(b: Builder, cell: Cell, inputs: list[ir.Value], reverse: bool, rank: int) -> NativeResults:
    """Write ``cell`` for ``inputs``, each [steps, ..., width]; results are in their order. States have ``rank`` axes, 1 or 2."""
    kind = cell.hidden.inner.dtype
    assert kind is not None

    def weights(array: np.ndarray) -> ir.Value:
        return b.const(np.ascontiguousarray(array[None]).astype(kind.numpy()))

    def state(value: ir.Value) -> ir.Value:
        return unsqueeze(b, value, [0] if rank == 2 else [0, 1])

    x = concat(b, inputs, 2 if rank == 2 else 1)
    x = x if rank == 2 else unsqueeze(b, x, [1])
    bias = np.concatenate([cell.wb, cell.rb])
    operands: list[ir.Value | None] = [x, weights(cell.w), weights(cell.r)]
    operands += [weights(bias) if bias.any() else None, None, state(cell.hidden.initial)]
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
    finals = [squeeze(b, value, [0] if rank == 2 else [0, 1]) for value in made[1:]]
    sequence = squeeze(b, made[0], [1] if rank == 2 else [1, 2])
    return NativeResults(sequence, finals[0], finals[1] if cell.cell is not None else None)
