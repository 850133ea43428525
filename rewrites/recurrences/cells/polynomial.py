"""Represent the values of a recurrent cell as polynomials, in a normal form.

    value = affine + sum over products of coefficient * atom * atom * ...

An atom is an activation of another polynomial, or a linear map that is multiplied by another atom. A coefficient has one number for
each feature. For example, ``n + z * (h - n)`` and ``(1 - z) * n + z * h`` have the same normal form.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rewrites.base.lazy import lazy
from rewrites.ops.rnn.functions import Function
from rewrites.recurrences.cells.activation_forms import ActivationForm, merge_clips, normal_form, scaled_and_shifted
from rewrites.recurrences.cells.linear_map import LinearMap, digest

__all__ = ["Activation", "Atom", "Monomial", "Polynomial", "TooComplex", "uniform"]

_MOST_PRODUCTS = 24
_HIGHEST_DEGREE = 5
_NEVER_CLIPPED = frozenset({"Clip", "Exp", "Relu", "Softplus"})


class TooComplex(Exception):
    """Raised for a value that is no polynomial, or has more products or atoms than any supported cell."""


@dataclass(frozen=True, eq=False)
class Activation:
    """``function(of)``. The function is an activation of a recurrent operator, ``Exp`` or ``Clip``."""

    function: Function
    of: "Polynomial"

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.name

    @lazy
    def key(self) -> Hashable:
        """A key that is equal for equal activations."""
        return digest(self.name, self.function.alpha, self.function.beta, self.function.clip, self.of.key)

    @property
    def alone(self) -> "Polynomial":
        """A polynomial that is only this activation."""
        return _sum(LinearMap(np.zeros(self.of.width)), [Monomial(np.ones(self.of.width), (self,))])

    def gather(self, index: np.ndarray) -> "Activation":
        """Return the features at ``index``."""
        return replace(self, of=self.of.gather(index))

    def rewritten(self, form: ActivationForm) -> "Activation":
        """Return the activation whose function and argument are those in ``form``, with ``of`` as x."""
        argument = self.of if form.factor == 1.0 else self.of * form.factor
        return Activation(form.function, argument if form.added is None else argument + form.added)


Atom = Activation | LinearMap


@dataclass(frozen=True, eq=False)
class Monomial:
    """The product of ``coefficient``, of shape [width], and all ``atoms``, which are sorted by their keys."""

    coefficient: np.ndarray
    atoms: tuple[Atom, ...]

    @lazy
    def key(self) -> Hashable:
        """A key that is equal for products of the same atoms."""
        return digest(*(atom.key for atom in self.atoms))

    @property
    def is_plain(self) -> bool:
        """True if the coefficient is 1 in all features."""
        return bool((self.coefficient == 1).all())

    @property
    def activation(self) -> Activation | None:
        """The activation that is the only atom, or None."""
        return self.atoms[0] if len(self.atoms) == 1 and isinstance(self.atoms[0], Activation) else None


@dataclass(frozen=True, eq=False)
class Polynomial:
    """``affine`` plus ``products`` of different atoms. Supports ``+``, ``-`` and ``*``, also with numbers."""

    affine: LinearMap
    products: Mapping[Hashable, Monomial] = field(default_factory=dict)
    __array_ufunc__ = None

    @classmethod
    def constant(cls, numbers: np.ndarray) -> "Polynomial":
        """Return the loop-invariant polynomial whose features are ``numbers``, of shape [width]."""
        return cls(LinearMap(numbers.astype(np.float64)))

    @classmethod
    def activation(cls, function: Function, of: "Polynomial") -> "Polynomial":
        """Return ``function(of)`` in the normal form of ``activation_forms``. ``function`` has no clip."""
        inner = of.single
        clip = None if inner is None else merge_clips(function, inner.function)
        if inner is not None and clip is not None:
            function, of = clip, inner.of
        atom = Activation(function, of)
        if function.name not in _NEVER_CLIPPED and function != Function("HardSigmoid", 1.0):
            atom = _with_clip(atom)
        return atom.rewritten(normal_form(atom.function)).alone

    @property
    def width(self) -> int:
        """The number of features."""
        return self.affine.width

    @property
    def is_affine(self) -> bool:
        """True if there are no products."""
        return not self.products

    @property
    def is_constant(self) -> bool:
        """True if the polynomial is loop-invariant."""
        return not self.products and self.affine.is_constant

    @lazy
    def key(self) -> Hashable:
        """A key that is equal for equal polynomials."""
        parts = sorted((str(product.key), (product.coefficient + 0.0).tobytes()) for product in self.products.values())
        return digest(self.affine.key, *(part for pair in parts for part in pair))

    @property
    def monomial(self) -> Monomial | None:
        """The product, if there is exactly one and the affine part is loop-invariant; otherwise None."""
        return next(iter(self.products.values())) if len(self.products) == 1 and self.affine.is_constant else None

    @property
    def single(self) -> Activation | None:
        """The activation, if the polynomial is one activation and nothing else; otherwise None."""
        product = self.monomial
        return product.activation if product is not None and self.affine.is_zero and product.is_plain else None

    def __add__(self, other: "Polynomial | float") -> "Polynomial":
        """Return the sum. A number is added to each feature."""
        if not isinstance(other, Polynomial):
            other = Polynomial.constant(np.full(self.width, other))
        return _sum(self.affine.plus(other.affine), [*self.products.values(), *other.products.values()])

    def __neg__(self) -> "Polynomial":
        return self * -1.0

    def __sub__(self, other: "Polynomial") -> "Polynomial":
        return self + -other

    def __rsub__(self, number: float) -> "Polynomial":
        return -self + number

    def __mul__(self, other: "Polynomial | np.ndarray | float") -> "Polynomial":
        """Return the product, feature by feature. Raise TooComplex if it has too many products or atoms."""
        if not isinstance(other, Polynomial):
            return self._scaled(np.broadcast_to(np.asarray(other, dtype=np.float64), (self.width,)))
        if self.is_constant:
            return other._scaled(self.affine.bias)
        if other.is_constant:
            return self._scaled(other.affine.bias)
        affine, products = LinearMap(np.zeros(self.width)), list[Monomial]()
        for left in _parts(self):
            for right in _parts(other):
                atoms = _ordered([*left.atoms, *right.atoms])
                coefficient = left.coefficient * right.coefficient
                if len(atoms) > _HIGHEST_DEGREE:
                    raise TooComplex
                if not atoms:
                    affine = affine.plus(LinearMap(coefficient))
                elif len(atoms) == 1 and isinstance(atoms[0], LinearMap):
                    affine = affine.plus(atoms[0].scaled(coefficient))
                else:
                    products.append(Monomial(coefficient, atoms))
        return _sum(affine, products)

    def _scaled(self, factor: np.ndarray) -> "Polynomial":
        products = [Monomial(product.coefficient * factor, product.atoms) for product in self.products.values()]
        return _sum(self.affine.scaled(factor), products)

    def gather(self, index: np.ndarray) -> "Polynomial":
        """Return the features at ``index``."""
        products = []
        for product in self.products.values():
            products.append(Monomial(product.coefficient[index], _ordered(atom.gather(index) for atom in product.atoms)))
        return _sum(self.affine.gather(index), products)


def uniform(numbers: np.ndarray) -> float | None:
    """Return the number to which all ``numbers`` are equal, or None if they differ."""
    return float(numbers[0]) if len(numbers) and (numbers == numbers[0]).all() else None


def _with_clip(atom: Activation) -> Activation:
    """Turn a symmetric Clip of the argument, such as Clip(x, -3, 3), into the ``clip`` of the function."""
    product = atom.of.monomial
    if product is None or not atom.of.affine.is_zero:
        return atom
    inner, factor = product.activation, uniform(product.coefficient)
    if inner is None or inner.name != "Clip" or factor is None or inner.function.alpha != -inner.function.beta:
        return atom
    return Activation(replace(atom.function, clip=abs(factor) * inner.function.beta), inner.of * factor)


def _parts(polynomial: Polynomial) -> list[Monomial]:
    """Return all summands as monomials: the products, and the affine part as one more monomial."""
    affine = polynomial.affine
    parts = list(polynomial.products.values())
    if affine.terms:
        sign = _sign(affine)
        parts.append(Monomial(sign, (affine.scaled(sign),)))
    elif affine.bias.any():
        parts.append(Monomial(affine.bias, ()))
    return parts


def _sign(affine: LinearMap) -> np.ndarray:
    """Return a sign s of each feature, such that s * ``affine`` is the same for a map and its negative."""
    weights = np.concatenate([affine.terms[source] for source in sorted(affine.terms, key=repr)])
    first = weights[(weights != 0).argmax(axis=0), np.arange(affine.width)]
    return np.where(first < 0, -1.0, 1.0)


def _ordered(atoms: Iterable[Atom]) -> tuple[Atom, ...]:
    return tuple(sorted(atoms, key=lambda atom: str(atom.key)))


def _sum(affine: LinearMap, products: Iterable[Monomial]) -> Polynomial:
    """Return the sum of ``affine`` and ``products``, as a single activation if it equals one."""
    collected: dict[Hashable, Monomial] = {}
    for product in products:
        known = collected.get(product.key)
        coefficient = product.coefficient if known is None else known.coefficient + product.coefficient
        collected[product.key] = Monomial(coefficient, product.atoms)
    kept = {key: product for key, product in collected.items() if product.coefficient.any()}
    if len(kept) > _MOST_PRODUCTS:
        raise TooComplex
    polynomial = Polynomial(affine, kept)
    only = polynomial.monomial
    atom = None if only is None else only.activation
    factor, added = None if only is None else uniform(only.coefficient), uniform(affine.bias)
    form = None if atom is None or factor is None or added is None else scaled_and_shifted(atom.function, factor, added)
    return polynomial if atom is None or form is None else atom.rewritten(form).alone
