"""Random polynomials of activations, and their values at a point, computed directly by numpy."""

from collections.abc import Hashable, Mapping

import numpy as np

from rewrites.ops.rnn.functions import Function
from rewrites.recurrences.cells.features import Features
from rewrites.recurrences.cells.linear_map import LinearMap
from rewrites.recurrences.cells.polynomial import Activation, Polynomial

__all__ = ["SOURCES", "affine_at", "at", "features_at", "point", "random_affine", "random_polynomial"]

SOURCES: Mapping[Hashable, int] = {"x": 3, ("input", "h"): 2, ("scanned", "z", False): 1}

Point = Mapping[Hashable, np.ndarray]

_FUNCTIONS = {
    "Affine": lambda x, a, b: a * x + b,
    "Clip": lambda x, a, b: np.minimum(np.maximum(x, a), b),
    "Elu": lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))),
    "Exp": lambda x, a, b: np.exp(x),
    "HardSigmoid": lambda x, a, b: np.minimum(np.maximum(a * x + b, 0), 1),
    "LeakyRelu": lambda x, a, b: np.where(x >= 0, x, a * x),
    "Relu": lambda x, a, b: np.maximum(x, 0),
    "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
    "Sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)),
    "Softplus": lambda x, a, b: np.logaddexp(0, x),
    "Softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "Tanh": lambda x, a, b: np.tanh(x),
    "ThresholdedRelu": lambda x, a, b: np.where(x > a, x, 0),
}


def point(random: np.random.Generator, batch: int = 4) -> Point:
    """Numbers for every source; eighths, so that thresholds are met exactly now and then."""
    return {source: random.integers(-16, 17, (batch, width)) / 8 for source, width in SOURCES.items()}


def affine_at(affine: LinearMap, where: Point) -> np.ndarray:
    total = np.broadcast_to(affine.bias, (len(next(iter(where.values()))), affine.width)).copy()
    for source, matrix in affine.terms.items():
        for i, row in enumerate(matrix):
            total += where[source][:, i : i + 1] * row
    return total


def at(value: Polynomial | Activation | LinearMap, where: Point) -> np.ndarray:
    """Return the numbers of `value` for each row of the point."""
    if isinstance(value, LinearMap):
        return affine_at(value, where)
    if isinstance(value, Activation):
        x = at(value.of, where)
        function = value.function
        if function.clip is not None:
            x = np.minimum(np.maximum(x, -function.clip), function.clip)
        return _FUNCTIONS[function.name](x, function.alpha, function.beta)
    total = affine_at(value.affine, where)
    for product in value.products.values():
        part = np.broadcast_to(product.coefficient, total.shape)
        for atom in product.atoms:
            part = part * at(atom, where)
        total = total + part
    return total


def features_at(features: Features, where: Point) -> np.ndarray:
    """All runs side by side, in the features' shape after the batch."""
    return np.concatenate([at(run, where) for run in features.runs], axis=1).reshape(-1, *features.shape)


def random_affine(random: np.random.Generator, width: int) -> LinearMap:
    chosen = [source for source in SOURCES if random.random() < 0.5]
    terms = {source: random.integers(-1, 2, (SOURCES[source], width)) / 2 for source in chosen}
    bias = random.integers(-1, 2, width) * (random.random() < 0.5)
    return LinearMap(bias.astype(np.float64), {source: matrix for source, matrix in terms.items() if matrix.any()})


def random_polynomial(random: np.random.Generator, width: int, depth: int = 2) -> tuple[Polynomial, np.ndarray, Point]:
    """Return a polynomial built by random steps, the numbers that the same steps compute at a random point, and the point."""
    where = point(random)
    built, numbers = _grown(random, width, depth, where)
    return built, numbers, where


def _grown(random: np.random.Generator, width: int, depth: int, where: Point) -> tuple[Polynomial, np.ndarray]:
    step = random.choice(["sum", "product", "scaled", "taken", "activation", "affine"]) if depth else "affine"
    if step == "affine":
        affine = random_affine(random, width)
        return Polynomial(affine), affine_at(affine, where)
    if step == "taken":
        index = random.integers(0, width + 1, width)
        of, numbers = _grown(random, width + 1, depth - 1, where)
        return of.gather(index), numbers[:, index]
    one, numbers = _grown(random, width, depth - 1, where)
    if step == "scaled":
        factor = random.choice([-1.0, 0.0, 0.5, 2.0], width)
        return one * factor, numbers * factor
    if step == "activation":
        function = ACTIVATIONS[random.integers(len(ACTIVATIONS))]
        return Polynomial.activation(function, one), _FUNCTIONS[function.name](numbers, function.alpha, function.beta)
    other, more = _grown(random, width, depth - 1, where)
    return (one + other, numbers + more) if step == "sum" else (one * other, numbers * more)


ACTIVATIONS = [
    Function("Clip", -1.0, 1.0),
    Function("Clip", 0.0, 2.0),
    Function("Clip", -0.5, np.inf),
    Function("Clip", -np.inf, 0.5),
    Function("Elu", 0.5, 0.0),
    Function("HardSigmoid", 0.25, 0.5),
    Function("HardSigmoid", 1.0, 0.0),
    Function("LeakyRelu", 0.25, 0.0),
    Function("Relu", 0.0, 0.0),
    Function("Sigmoid", 0.0, 0.0),
    Function("Softplus", 0.0, 0.0),
    Function("Softsign", 0.0, 0.0),
    Function("Tanh", 0.0, 0.0),
    Function("ThresholdedRelu", 0.5, 0.0),
]
