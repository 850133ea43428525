"""Emits one step of a cell by the equations of its operator.

All operators that it emits have float64 kernels in onnxruntime.

The value ``xw`` of a step is the input times W, plus all biases that can be added before the state is known. Its last axis
concatenates the gates in the order of the operator (RNN: i; GRU: z, r, h; LSTM: i, o, f, c).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.ops.rnn.functions import Function
from rewrites.ops.rnn.recurrent_node import RecurrentNode
from rewrites.ops.versions import split, where

__all__ = ["Weights", "activate", "clip", "constant_like", "write_step"]


@dataclass(frozen=True)
class Weights:
    """The weights that a step reads.

    Args:
        r: The recurrent weights, [hidden, gates * hidden]. If a GRU resets before the product, they are in two parts: those of z
            and r, and those of h.
        bias: The bias [hidden] that the reset gate of a GRU multiplies.
        peepholes: The weights of i, o and f, each [hidden].
    """

    r: tuple[ir.Value, ...]
    bias: ir.Value | None = None
    peepholes: tuple[ir.Value, ...] = ()


def write_step(
    b: Builder, view: RecurrentNode, functions: Sequence[Function], xw: ir.Value, states: Sequence[ir.Value], weights: Weights
) -> list[ir.Value]:
    """Emit one step, and return the next states. ``xw``: see the description of this module."""
    return _EQUATIONS[view.kind](_Cell(b, view, functions, weights), xw, states)


@dataclass(frozen=True)
class _Cell:
    """Emits parts of the equations of one step."""

    build: Builder
    view: RecurrentNode
    functions: Sequence[Function]
    weights: Weights

    def gate(self, gate_index: int, argument: ir.Value) -> ir.Value:
        """Emit the activation number ``gate_index`` of ``argument``, clipped if necessary."""
        return activate(self.build, self.functions[gate_index], clip(self.build, argument, self.view.clip))

    def add_peephole(self, gate_index: int, argument: ir.Value, cell: ir.Value) -> ir.Value:
        """Add ``cell`` times the peephole weight number ``gate_index`` to ``argument``, if there is one."""
        if not self.weights.peepholes:
            return argument
        return self.build.op("Add", argument, self.build.op("Mul", self.weights.peepholes[gate_index], cell))


def _rnn(cell: _Cell, xw: ir.Value, states: Sequence[ir.Value]) -> list[ir.Value]:
    return [cell.gate(0, cell.build.op("Add", xw, cell.build.op("MatMul", states[0], cell.weights.r[0])))]


def _gru(cell: _Cell, xw: ir.Value, states: Sequence[ir.Value]) -> list[ir.Value]:
    b, weights, hidden, h = cell.build, cell.weights, cell.view.hidden, states[0]
    zr_input, h_input = split(b, xw, -1, [2 * hidden, hidden], 2)
    if cell.view.linear_before_reset:
        rh, reset = split(b, b.op("MatMul", h, weights.r[0]), -1, [2 * hidden, hidden], 2)
    else:
        rh = b.op("MatMul", h, weights.r[0])
    z, r = split(b, b.op("Add", zr_input, rh), -1, [hidden, hidden], 2)
    z, r = cell.gate(0, z), cell.gate(0, r)
    if cell.view.linear_before_reset:
        reset = b.op("Mul", r, reset if weights.bias is None else b.op("Add", reset, weights.bias))
    else:
        reset = b.op("MatMul", b.op("Mul", r, h), weights.r[1])
    n = cell.gate(1, b.op("Add", h_input, reset))
    return [b.op("Add", n, b.op("Mul", z, b.op("Sub", h, n)))]


def _lstm(cell: _Cell, xw: ir.Value, states: Sequence[ir.Value]) -> list[ir.Value]:
    b, size, (h, c) = cell.build, cell.view.hidden, states
    i, o, f, g = split(b, b.op("Add", xw, b.op("MatMul", h, cell.weights.r[0])), -1, [size] * 4, 4)
    i, g = cell.gate(0, cell.add_peephole(0, i, c)), cell.gate(1, g)
    forget = b.op("Sub", constant_like(b, 1, i), i) if cell.view.input_forget else cell.gate(0, cell.add_peephole(2, f, c))
    next_c = b.op("Add", b.op("Mul", forget, c), b.op("Mul", i, g))
    return [b.op("Mul", cell.gate(0, cell.add_peephole(1, o, next_c)), activate(b, cell.functions[2], next_c)), next_c]


_EQUATIONS = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}


def activate(b: Builder, function: Function, x: ir.Value) -> ir.Value:
    """Emit ``function`` of ``x``."""
    return _WRITERS[function.name](b, function, x)


def clip(b: Builder, x: ir.Value, bound: float | None) -> ir.Value:
    """Emit ``x`` clipped to ``-bound``..``bound``. If ``bound`` is None, return ``x``."""
    return x if bound is None else b.op("Min", b.op("Max", x, constant_like(b, -bound, x)), constant_like(b, bound, x))


def constant_like(b: Builder, value: float, like: ir.Value) -> ir.Value:
    """Return a constant ``value`` with the element type of ``like``."""
    assert like.dtype is not None
    return b.const(np.array(value, like.dtype.numpy()))


def _affine(b: Builder, function: Function, x: ir.Value) -> ir.Value:
    return b.op("Add", b.op("Mul", x, constant_like(b, function.alpha, x)), constant_like(b, function.beta, x))


def _elu(b: Builder, function: Function, x: ir.Value) -> ir.Value:
    below = b.op("Sub", b.op("Exp", b.op("Min", x, constant_like(b, 0, x))), constant_like(b, 1, x))
    return where(b, b.op("Less", x, constant_like(b, 0, x)), b.op("Mul", below, constant_like(b, function.alpha, x)), x)


def _hard_sigmoid(b: Builder, function: Function, x: ir.Value) -> ir.Value:
    return b.op("Min", b.op("Max", _affine(b, function, x), constant_like(b, 0, x)), constant_like(b, 1, x))


def _leaky_relu(b: Builder, function: Function, x: ir.Value) -> ir.Value:
    return where(b, b.op("Less", x, constant_like(b, 0, x)), b.op("Mul", x, constant_like(b, function.alpha, x)), x)


def _scaled_tanh(b: Builder, function: Function, x: ir.Value) -> ir.Value:
    inner = b.op("Tanh", b.op("Mul", x, constant_like(b, function.beta, x)))
    return b.op("Mul", inner, constant_like(b, function.alpha, x))


def _softplus(b: Builder, _: Function, x: ir.Value) -> ir.Value:
    small = b.op("Exp", b.op("Neg", b.op("Abs", x)))
    return b.op("Add", b.op("Max", x, constant_like(b, 0, x)), b.op("Log", b.op("Add", small, constant_like(b, 1, x))))


def _softsign(b: Builder, _: Function, x: ir.Value) -> ir.Value:
    return b.op("Div", x, b.op("Add", b.op("Abs", x), constant_like(b, 1, x)))


def _thresholded_relu(b: Builder, function: Function, x: ir.Value) -> ir.Value:
    return where(b, b.op("Less", x, constant_like(b, function.alpha, x)), constant_like(b, 0, x), x)


_WRITERS: Mapping[str, Callable[[Builder, Function, ir.Value], ir.Value]] = {
    "Affine": _affine,
    "Elu": _elu,
    "HardSigmoid": _hard_sigmoid,
    "LeakyRelu": _leaky_relu,
    "Relu": lambda b, _, x: b.op("Max", x, constant_like(b, 0, x)),
    "ScaledTanh": _scaled_tanh,
    "Sigmoid": lambda b, _, x: b.op("Sigmoid", x),
    "Softplus": _softplus,
    "Softsign": _softsign,
    "Tanh": lambda b, _, x: b.op("Tanh", x),
    "ThresholdedRelu": _thresholded_relu,
}
