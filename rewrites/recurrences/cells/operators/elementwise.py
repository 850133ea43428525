"""Read activations and arithmetic, including activations that are computed by several operators.

    Max(x, 0)    ->  Relu(x)                  Clip(x, a, b)       ->  Clip, which may become Relu or HardSigmoid later
    x / number   ->  x * (1 / number)         a / (1 + exp(b))    ->  a * Sigmoid(-b)

Operands may be transposed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

import numpy as np
import onnx_ir as ir

from rewrites.graph.values import const_scalar, rank_of
from rewrites.ops.rnn.functions import PARAMETERS, Function
from rewrites.ops.versions import clip_bounds
from rewrites.recurrences.cells.features import Features, same_lead, with_constant, with_same_shape
from rewrites.recurrences.cells.polynomial import Polynomial, TooComplex
from rewrites.recurrences.cells.reading import AbstractValue, OperatorReader, Reading, Transposed

__all__ = ["ELEMENTWISE"]


def _mapped(apply: Callable[[Polynomial], Polynomial], reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    x = reading.features(node.inputs[0])
    return None if x is None else [x.mapped(apply)]


def _activation(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    defaults = PARAMETERS.get(node.op_type, (None, None))
    parameters = zip(("alpha", "beta"), defaults, strict=True)
    alpha, beta = (0.0 if default is None else node.attributes.get_float(name, default) for name, default in parameters)
    return _mapped(partial(Polynomial.activation, Function(node.op_type, alpha, beta)), reading, node)


def _bounded(low: float, high: float, features: Features) -> Sequence[AbstractValue]:
    return [features.mapped(partial(Polynomial.activation, Function("Clip", low, high)))]


def _extremum(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    """Read ``Max(x, low)`` and ``Min(x, high)`` as a Clip with one bound."""
    if len(node.inputs) != 2:
        return None
    for x, bound in (node.inputs, reversed(node.inputs)):
        features, number = reading.features(x), const_scalar(bound)
        if features is None or number is None or math.isnan(number) or bound is None:
            continue
        if (rank_of(bound) or 0) <= features.lead + len(features.shape):
            low, high = (float(number), math.inf) if node.op_type == "Max" else (-math.inf, float(number))
            return _bounded(low, high, features)
    return None


def _clip(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    low, high = (_number(bound) for bound in clip_bounds(node, reading.opset))
    features = reading.features(node.inputs[0])
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    return _bounded(low, high, features) if features is not None and low < high else None


def _number(bound: object) -> float | None:
    """Return a bound of Clip as a number: NaN if it is unknown, None if the Clip does not have it."""
    if isinstance(bound, ir.Value):
        number = const_scalar(bound)
        return math.nan if number is None else float(number)
    return None if not isinstance(bound, int | float) or abs(bound) > 1e38 else float(bound)


def _binary(
    combine: Callable[[Polynomial, Polynomial], Polynomial], reading: Reading, node: ir.Node
) -> Sequence[AbstractValue] | None:
    first, second = (reading.abstract(value) for value in node.inputs)
    sides: tuple[Features, Features] | None = None
    if isinstance(first, Features) and isinstance(second, Features):
        sides = with_same_shape(first, second)
    elif isinstance(first, Features) and isinstance(second, np.ndarray):
        sides = with_constant(first, second)
    elif isinstance(first, np.ndarray) and isinstance(second, Features):
        swapped = with_constant(second, first)
        sides = None if swapped is None else (swapped[1], swapped[0])
    return None if sides is None else [sides[0].combined(sides[1], combine)]


def _divide(dividend: Polynomial, divisor: Polynomial) -> Polynomial:
    """Read ``a / (1 + exp(b))`` as ``a * sigmoid(-b)``, and a division by constants as a product."""
    if divisor.is_constant and divisor.affine.bias.all():
        return dividend * (1.0 / divisor.affine.bias)
    product = divisor.monomial
    exponential = None if product is None or not product.is_plain else product.activation
    if exponential is None or exponential.name != "Exp" or not (divisor.affine.bias == 1).all():
        raise TooComplex
    return dividend * Polynomial.activation(Function("Sigmoid"), -exponential.of)


def _reciprocal(divisor: Polynomial) -> Polynomial:
    return _divide(Polynomial.constant(np.ones(divisor.width)), divisor)


def _sum(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
    summands = [reading.features(value) for value in node.inputs]
    known = [features for features in summands if features is not None]
    first = known[0] if known else None
    if first is None or len(known) != len(summands):
        return None
    if any(features.shape != first.shape or features.lead != first.lead or not same_lead(features, first) for features in known):
        return None
    return [reduce(lambda total, features: total.combined(features, Polynomial.__add__), known)]


def _also_transposed(read: OperatorReader) -> OperatorReader:
    """Return a function like ``read`` that can also read nodes whose operands are transposed."""

    def read_either(reading: Reading, node: ir.Node) -> Sequence[AbstractValue] | None:
        upright: dict[ir.Value, AbstractValue] = {}
        operands = {value: reading.abstract(value) for value in node.inputs if value is not None}
        if not any(isinstance(operand, Transposed) for operand in operands.values()):
            return read(reading, node)
        for value, operand in operands.items():
            if isinstance(operand, Transposed):
                upright[value] = operand.features
            elif isinstance(operand, np.ndarray) and (operand.ndim == 2 or operand.size == 1):
                upright[value] = operand.T
            else:
                return None
        with reading.overriding(upright):
            results = read(reading, node)
        if results is None:
            return None
        return [Transposed(result) if isinstance(result, Features) and result.is_matrix else None for result in results]

    return read_either


_ACTIVATIONS = ["Elu", "Exp", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh", "ThresholdedRelu"]
_READERS: Mapping[str, OperatorReader] = {
    **dict.fromkeys(_ACTIVATIONS, _activation),
    "Add": partial(_binary, Polynomial.__add__),
    "Clip": _clip,
    "Div": partial(_binary, _divide),
    "Max": _extremum,
    "Min": _extremum,
    "Mul": partial(_binary, Polynomial.__mul__),
    "Neg": partial(_mapped, Polynomial.__neg__),
    "Reciprocal": partial(_mapped, _reciprocal),
    "Sub": partial(_binary, Polynomial.__sub__),
    "Sum": _sum,
}

ELEMENTWISE: Mapping[str, OperatorReader] = {name: _also_transposed(read) for name, read in _READERS.items()}
