"""RNN, GRU and LSTM nodes that do one step: what TorchScript makes of a cell, within a loop over the steps.

    LSTM(Unsqueeze(x), W, R, B, , Unsqueeze(h), Unsqueeze(c))    is read as the polynomials of its equations

Conditions: one step, one direction, constant weights, no sequence lengths, ``layout`` 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.ops.rnn.functions import Function
from rewrites.ops.rnn.recurrent_node import GATES, read
from rewrites.recurrences.cells.equations import Equations
from rewrites.recurrences.cells.features import Features, same_lead
from rewrites.recurrences.cells.polynomial import Polynomial
from rewrites.recurrences.cells.reading import AbstractValue, OperatorReader, Reading

__all__ = ["SINGLE_STEPS"]

_OPERANDS = ("X", "W", "R", "B", "initial_h", "initial_c", "P")


def _read(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    view = read(node)
    if isinstance(view, NotApplicable) or view.directions != 1 or view.batch_first or view.input("sequence_lens") is not None:
        return None
    operands = {name: reading.abstract(view.input(name)) for name in _OPERANDS}
    if any(operand is None and view.input(name) is not None for name, operand in operands.items()):
        return None
    x, size = operands["X"], view.hidden
    w, r, bias, peepholes = (_array(operands[name]) for name in ("W", "R", "B", "P"))
    if not isinstance(x, Features) or w is None or r is None or x.lead != 2 or x.dims[0] != 1 or len(x.shape) != 1:
        return None
    if r.shape != (GATES[view.kind] * size, size) or w.shape != (len(r), x.width):
        return None
    h, c = (_state(operands[name], x, size) for name in ("initial_h", "initial_c"))
    if h is None or c is None:
        return None
    wb, rb = np.split(np.zeros(2 * len(w)) if bias is None else bias, 2)
    # the output activation of an LSTM is not clipped
    functions = (replace(function, clip=view.clip if which < 2 else None) for which, function in enumerate(view.functions[0]))
    equations = Equations(
        op_type=view.kind,
        w=w,
        r=r,
        wb=wb,
        rb=rb,
        functions=tuple(functions),
        peepholes=peepholes,
        linear_before_reset=view.linear_before_reset,
        input_forget=view.input_forget,
    )
    states = equations.step(_PolynomialAlgebra(reading), x.whole() or Polynomial(reading.as_source(x)), h, c)
    outputs = [Features((1, *x.dims), (size,), (states[0],)), *(Features(x.dims, (size,), (state,)) for state in states)]
    return outputs[: len(node.outputs)]


def _array(operand: AbstractValue) -> np.ndarray | None:
    """Return a constant of the one direction."""
    return operand[0].astype(np.float64) if isinstance(operand, np.ndarray) and len(operand) == 1 else None


def _state(operand: AbstractValue, x: Features, size: int) -> Polynomial | None:
    """Return an initial state: [1, rows, size], or nothing for zeros."""
    if operand is None:
        return Polynomial.constant(np.zeros(size))
    if isinstance(operand, np.ndarray):
        return Polynomial.constant(np.broadcast_to(operand.reshape(-1), (size,))) if operand.size in (1, size) else None
    if not isinstance(operand, Features) or operand.shape != (size,) or not same_lead(operand, x):
        return None
    return operand.whole()


@dataclass(frozen=True)
class _PolynomialAlgebra:
    """Polynomials of the sources of ``reading``."""

    reading: Reading

    def linear(self, x: Polynomial, matrix: np.ndarray, bias: np.ndarray) -> Polynomial:
        source = self.reading.as_source(Features((), (x.width,), (x,)))
        return Polynomial(source.times(matrix.T)) + Polynomial.constant(bias)

    def apply(self, function: Function, x: Polynomial) -> Polynomial:
        clip, plain = function.clip, replace(function, clip=None)
        bounded = x if clip is None else Polynomial.activation(Function("Clip", -clip, clip), x)
        if function.name == "Affine":
            return bounded * function.alpha + function.beta
        if function.name == "ScaledTanh":
            return Polynomial.activation(Function("Tanh"), bounded * function.beta) * function.alpha
        return Polynomial.activation(plain, bounded)


SINGLE_STEPS: Mapping[str, OperatorReader] = dict.fromkeys(GATES, _read)
