"""Writes an activation of a recurrent operator as plain operators that onnxruntime has for float64 too."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.ops.rnn.functions import Function
from rewrites.ops.versions import where

__all__ = ["activate", "clipped", "number"]


def activate(b: Builder, function: Function, x: ir.Value) -> ir.Value:
    """Return ``function`` of ``x``."""
    return _WRITERS[function.name](b, function, x)


def clipped(b: Builder, x: ir.Value, bound: float | None) -> ir.Value:
    """Return ``x`` brought into ``-bound`` to ``bound``; itself where there is no bound."""
    return x if bound is None else b.op("Min", b.op("Max", x, number(b, -bound, x)), number(b, bound, x))


def number(b: Builder, given: float, like: ir.Value) -> ir.Value:
    """Return a constant of the type of ``like``."""
    assert like.dtype is not None
    return b.const(np.array(given, like.dtype.numpy()))


def _affine(b: Builder, function: Function, x: ir.Value) -> ir.Value:
    return b.op("Add", b.op("Mul", x, number(b, function.alpha, x)), number(b, function.beta, x))


def _elu(b: Builder, function: Function, x: ir.Value) -> ir.Value:
    below = b.op("Sub", b.op("Exp", b.op("Min", x, number(b, 0, x))), number(b, 1, x))
    return where(b, b.op("Less", x, number(b, 0, x)), b.op("Mul", below, number(b, function.alpha, x)), x)


def _hard_sigmoid(b: Builder, function: Function, x: ir.Value) -> ir.Value:
    return b.op("Min", b.op("Max", _affine(b, function, x), number(b, 0, x)), number(b, 1, x))


def _leaky_relu(b: Builder, function: Function, x: ir.Value) -> ir.Value:
    return where(b, b.op("Less", x, number(b, 0, x)), b.op("Mul", x, number(b, function.alpha, x)), x)


def _scaled_tanh(b: Builder, function: Function, x: ir.Value) -> ir.Value:
    inner = b.op("Tanh", b.op("Mul", x, number(b, function.beta, x)))
    return b.op("Mul", inner, number(b, function.alpha, x))


def _softplus(b: Builder, _: Function, x: ir.Value) -> ir.Value:
    small = b.op("Exp", b.op("Neg", b.op("Abs", x)))
    return b.op("Add", b.op("Max", x, number(b, 0, x)), b.op("Log", b.op("Add", small, number(b, 1, x))))


def _softsign(b: Builder, _: Function, x: ir.Value) -> ir.Value:
    return b.op("Div", x, b.op("Add", b.op("Abs", x), number(b, 1, x)))


def _thresholded_relu(b: Builder, function: Function, x: ir.Value) -> ir.Value:
    return where(b, b.op("Less", x, number(b, function.alpha, x)), number(b, 0, x), x)


_WRITERS: Mapping[str, Callable[[Builder, Function, ir.Value], ir.Value]] = {
    "Affine": _affine,
    "Elu": _elu,
    "HardSigmoid": _hard_sigmoid,
    "LeakyRelu": _leaky_relu,
    "Relu": lambda b, _, x: b.op("Max", x, number(b, 0, x)),
    "ScaledTanh": _scaled_tanh,
    "Sigmoid": lambda b, _, x: b.op("Sigmoid", x),
    "Softplus": _softplus,
    "Softsign": _softsign,
    "Tanh": lambda b, _, x: b.op("Tanh", x),
    "ThresholdedRelu": _thresholded_relu,
}
