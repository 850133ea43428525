"""Polynomials of activations and affine maps: the normal form of everything a recurrent cell computes elementwise.

    value = affine + sum over products of coefficient * atom * atom * ...

An atom is an activation of such a polynomial, or an affine map that is multiplied by another atom. Coefficients are numbers for
each feature. ``n + z * (h - n)`` and ``(1 - z) * n + z * h`` come out alike.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rewrites.base.lazy import lazy
from rewrites.ops.rnn.functions import Function
from rewrites.recurrences.cells.activation_forms import as_one_activation, normal_form
from rewrites.recurrences.cells.linear_map import Affine, digest

__all__ = ["Activation", "Atom", "Polynomial", "Product", "TooComplex"]

_MOST_PRODUCTS = 24
_HIGHEST_DEGREE = 5


class TooComplex(Exception):
    """The value is no polynomial of a size that any family of cells has."""


@dataclass(frozen=True, eq=False)
class Activation:
    """``name`` as the recurrent operators spell it (or ``Exp``, or ``Clip``), applied to each feature of ``of``.

    ``clip``: the argument is first brought between ``-clip`` and ``clip``.
    """

    name: str
    alpha: float
    beta: float
    of: "Polynomial"
    clip: float | None = None

    @lazy
    def key(self) -> Hashable:
        """Equal for equal activations."""
        return digest(self.name, self.alpha, self.beta, self.clip, self.of.key)

    @property
    def function(self) -> Function:
        """What is applied, whatever to."""
        return Function(self.name, self.alpha, self.beta, self.clip)

    @property
    def alone(self) -> "Polynomial":
        """The activation as a polynomial of its own."""
        return Polynomial.of_atom(self)

    def taken(self, index: np.ndarray) -> "Activation":
        """Return the features at ``index``."""
        return replace(self, of=self.of.taken(index))


Atom = Activation | Affine


@dataclass(frozen=True, eq=False)
class Product:
    """``coefficient`` of shape [width], times all ``atoms``, in the order of their keys."""

    coefficient: np.ndarray
    atoms: tuple[Atom, ...]

    @lazy
    def key(self) -> Hashable:
        """Equal for products of the same atoms."""
        return digest(*(atom.key for atom in self.atoms))

    @property
    def is_plain(self) -> bool:
        """Whether the coefficient is 1 in all features."""
        return bool((self.coefficient == 1).all())


@dataclass(frozen=True, eq=False)
class Polynomial:
    """``affine`` plus ``products``, no two of which have the same atoms."""

    affine: Affine
    products: Mapping[Hashable, Product] = field(default_factory=dict)

    @classmethod
    def constant(cls, numbers: np.ndarray) -> "Polynomial":
        """Loop-invariant."""
        return cls(Affine(numbers.astype(np.float64)))

    @classmethod
    def activation(cls, name: str, of: "Polynomial", alpha: float = 0.0, beta: float = 0.0) -> "Polynomial":
        """Apply an activation, which is brought to its normal form."""
        return cls.of_atom(normal_form(Activation(name, alpha, beta, of)))

    @classmethod
    def of_atom(cls, atom: Activation) -> "Polynomial":
        """Return an activation as it is."""
        width = atom.of.width
        return _sum(Affine(np.zeros(width)), [Product(np.ones(width), (atom,))])

    @property
    def width(self) -> int:
        """The number of features."""
        return self.affine.width

    @property
    def is_affine(self) -> bool:
        """Whether there are no products."""
        return not self.products

    @property
    def is_constant(self) -> bool:
        """Whether it is loop-invariant."""
        return not self.products and self.affine.is_constant

    @lazy
    def key(self) -> Hashable:
        """Equal for equal polynomials."""
        parts = sorted((str(product.key), (product.coefficient + 0.0).tobytes()) for product in self.products.values())
        return digest(self.affine.key, *(part for pair in parts for part in pair))

    @property
    def single(self) -> Activation | None:
        """The activation that this is, and nothing else; or None."""
        if len(self.products) != 1 or not self.affine.is_zero:
            return None
        (product,) = self.products.values()
        atom = product.atoms[0]
        return atom if len(product.atoms) == 1 and product.is_plain and isinstance(atom, Activation) else None

    def plus(self, other: "Polynomial") -> "Polynomial":
        """Add."""
        return _sum(self.affine.plus(other.affine), [*self.products.values(), *other.products.values()])

    def scaled(self, factor: np.ndarray | float) -> "Polynomial":
        """Multiply each feature by a number."""
        numbers = np.broadcast_to(np.asarray(factor, dtype=np.float64), (self.width,))
        products = [Product(product.coefficient * numbers, product.atoms) for product in self.products.values()]
        return _sum(self.affine.scaled(numbers), products)

    def taken(self, index: np.ndarray) -> "Polynomial":
        """Return the features at ``index``."""
        products = []
        for product in self.products.values():
            products.append(Product(product.coefficient[index], _ordered(atom.taken(index) for atom in product.atoms)))
        return _sum(self.affine.taken(index), products)

    def times(self, other: "Polynomial") -> "Polynomial":
        """Multiply feature by feature; raises TooComplex where too much comes of it."""
        if self.is_constant:
            return other.scaled(self.affine.bias)
        if other.is_constant:
            return self.scaled(other.affine.bias)
        affine, products = Affine(np.zeros(self.width)), list[Product]()
        for one in _parts(self):
            for factor in _parts(other):
                atoms = _ordered([*one.atoms, *factor.atoms])
                coefficient = one.coefficient * factor.coefficient
                if len(atoms) > _HIGHEST_DEGREE:
                    raise TooComplex
                if not atoms:
                    affine = affine.plus(Affine(coefficient))
                elif len(atoms) == 1 and isinstance(atoms[0], Affine):
                    affine = affine.plus(atoms[0].scaled(coefficient))
                else:
                    products.append(Product(coefficient, atoms))
        return _sum(affine, products)


def _parts(polynomial: Polynomial) -> list[Product]:
    """Return the summands as products: the constant, the varying affine part, and the products."""
    affine = polynomial.affine
    parts = list(polynomial.products.values())
    if affine.terms:
        sign = _sign(affine)
        parts.append(Product(sign, (affine.scaled(sign),)))
    elif affine.bias.any():
        parts.append(Product(affine.bias, ()))
    return parts


def _sign(affine: Affine) -> np.ndarray:
    """Return the sign of each feature's first weight, so that an affine map and its negative are the same atom."""
    weights = np.concatenate([affine.terms[source] for source in sorted(affine.terms, key=repr)])
    first = weights[(weights != 0).argmax(axis=0), np.arange(affine.width)]
    return np.where(first < 0, -1.0, 1.0)


def _ordered(atoms: Iterable[Atom]) -> tuple[Atom, ...]:
    return tuple(sorted(atoms, key=lambda atom: str(atom.key)))


def _sum(affine: Affine, products: Iterable[Product]) -> Polynomial:
    collected: dict[Hashable, Product] = {}
    for product in products:
        known = collected.get(product.key)
        coefficient = product.coefficient if known is None else known.coefficient + product.coefficient
        collected[product.key] = Product(coefficient, product.atoms)
    kept = {key: product for key, product in collected.items() if product.coefficient.any()}
    if len(kept) > _MOST_PRODUCTS:
        raise TooComplex
    return as_one_activation(affine, kept) or Polynomial(affine, kept)
