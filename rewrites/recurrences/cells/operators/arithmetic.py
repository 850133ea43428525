"""Add, Sub, Mul, Neg, Sum, and the divisions that are products or sigmoids in disguise."""

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from rewrites.recurrences.cells.features import Features
from rewrites.recurrences.cells.operators.sides import both_sides, same_lead
from rewrites.recurrences.cells.polynomial import Activation, Polynomial, TooComplex
from rewrites.recurrences.cells.reading import Meaning, Reading

__all__ = ["ARITHMETIC"]

_Combine = Callable[[Polynomial, Polynomial], Polynomial]


def _binary(combine: _Combine) -> Callable[[Reading, ir.Node], Sequence[Meaning] | None]:
    def read(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
        sides = both_sides(reading, node)
        return None if sides is None else [sides[0].combined(sides[1], combine)]

    return read


def _divided(one: Polynomial, other: Polynomial) -> Polynomial:
    """``a / (1 + exp(b))`` is ``a * sigmoid(-b)``; a division by numbers is a product."""
    if other.is_constant and other.affine.bias.all():
        return one.scaled(1.0 / other.affine.bias)
    exponent = _one_plus_exp(other)
    if exponent is None:
        raise TooComplex
    return one.times(Polynomial.activation("Sigmoid", exponent.scaled(-1.0)))


def _one_plus_exp(polynomial: Polynomial) -> Polynomial | None:
    if not polynomial.affine.is_constant or not (polynomial.affine.bias == 1).all() or len(polynomial.products) != 1:
        return None
    (product,) = polynomial.products.values()
    atom = product.atoms[0]
    if len(product.atoms) != 1 or not product.is_plain or not isinstance(atom, Activation) or atom.name != "Exp":
        return None
    return atom.of


def _neg(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    x = reading.features(node.inputs[0])
    return None if x is None else [x.mapped(lambda run: run.scaled(-1.0))]


def _reciprocal(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    x = reading.features(node.inputs[0])
    return None if x is None else [x.mapped(lambda run: _divided(Polynomial.constant(np.ones(run.width)), run))]


def _sum(reading: Reading, node: ir.Node) -> Sequence[Meaning] | None:
    found = [reading.features(value) for value in node.inputs]
    known = [features for features in found if features is not None]
    first = known[0] if known else None
    if first is None or len(known) != len(found):
        return None
    if any(features.shape != first.shape or features.lead != first.lead or not same_lead(features, first) for features in known):
        return None
    total: Features = first
    for features in known[1:]:
        total = total.combined(features, Polynomial.plus)
    return [total]


ARITHMETIC: dict[str, Callable[[Reading, ir.Node], Sequence[Meaning] | None]] = {
    "Add": _binary(Polynomial.plus),
    "Div": _binary(_divided),
    "Mul": _binary(Polynomial.times),
    "Neg": _neg,
    "Reciprocal": _reciprocal,
    "Sub": _binary(lambda one, other: one.plus(other.scaled(-1.0))),
    "Sum": _sum,
}
