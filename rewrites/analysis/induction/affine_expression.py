"""Small integer tensors as affine expressions of symbols.

Each element is a constant plus an integer multiple of each symbol, as in ``[2 * step + 1, T - step]``. A symbol is the step number,
a dimension of a tensor, or an integer that is computed elsewhere. The arithmetic ignores that integers may overflow and floats may
round. Therefore results near the limits of their type, and sums of floats too large to represent every integer, count as unknown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx_ir as ir

__all__ = [
    "EXACT",
    "INTEGERS",
    "LARGEST",
    "LARGEST_SIZE",
    "SLOPE_IN_FLOATS",
    "STEP",
    "AffineExpression",
    "Dim",
    "Symbol",
    "at_least",
    "concatenated",
    "constant_expression",
    "counts_exactly",
    "fits_type",
    "surely_equal",
]


STEP: Final = "step"
"""The symbol of the step number: 0, 1, 2, …"""

LARGEST = 1 << 13
"""The largest number of elements of an expression."""

LARGEST_SIZE = 10**9
"""The largest size that a dimension is assumed to have. Exporters write such a number for the end of an axis."""

EXACT = {ir.DataType.FLOAT16: 1 << 11, ir.DataType.FLOAT: 1 << 24, ir.DataType.DOUBLE: 1 << 53}
"""For each floating-point type, the magnitude up to which it represents all integers."""

INTEGERS = {ir.DataType.INT32: 1 << 31, ir.DataType.INT64: 1 << 62}
"""For each integer type, the magnitude below which constants in calculations are known. Larger constants are unknown."""

SLOPE_IN_FLOATS = 16
"""The greatest change per step of a float that counts. Expressions with a greater change are unknown."""


@dataclass(frozen=True)
class Dim:
    """The dimension of ``value`` along ``axis``. Dimensions with the same ``key`` are equal."""

    key: object
    value: ir.Value = field(compare=False)
    axis: int = field(compare=False)


Symbol = Dim | ir.Value | str


@dataclass(frozen=True, eq=False)
class AffineExpression:
    """A tensor of integers: ``const`` plus, for each pair in ``terms``, a symbol times its factors.

    ``const`` and the factors of each symbol are arrays of Python integers with the shape of the tensor. If the tensor is computed
    with floats, ``exact_to`` is the magnitude up to which their types represent every integer. Otherwise, it is None.
    """

    const: np.ndarray
    terms: Mapping[Symbol, np.ndarray]
    exact_to: int | None = None

    @classmethod
    def of(cls, array: np.ndarray | int) -> "AffineExpression":
        """Return the expression of the constant ``array``."""
        return cls(np.asarray(array).astype(object), {})

    @classmethod
    def symbol(cls, symbol: Symbol, shape: tuple[int, ...] = ()) -> "AffineExpression":
        """Return the expression of a tensor of shape ``shape``, in which each element is ``symbol``."""
        return cls(np.full(shape, 0, object), {symbol: np.full(shape, 1, object)})

    @classmethod
    def dim(cls, value: ir.Value, axis: int) -> "AffineExpression":
        """Return the dimension along ``axis`` of ``value``, whose rank is known: a number or a symbol."""
        assert value.shape is not None
        dim = value.shape[axis]
        if isinstance(dim, int):
            return cls.of(dim)
        return cls.symbol(Dim(dim.value if dim.value is not None else (id(value), axis), value, axis))

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the tensor."""
        return tuple(self.const.shape)

    @property
    def number(self) -> int | None:
        """Return the value of the only element if it is constant, else None."""
        return int(self.const.item()) if not self.terms and self.const.size == 1 else None

    @property
    def numbers(self) -> np.ndarray | None:
        """Return the elements as an int64 array if all are constant, else None."""
        return self.const.astype(np.int64) if not self.terms else None

    @property
    def uniform(self) -> "AffineExpression | None":
        """Return the common value of all elements, as a scalar expression; None if the elements differ."""
        if not self.const.size:
            return None
        flat = self.reshaped((-1,))
        return flat.element(0) if surely_equal(flat, flat.element(0)) else None

    def element(self, index: int) -> "AffineExpression":
        """Return element ``index`` of a vector, as a scalar expression."""
        return self.rearranged(lambda array: array[index])

    def factor(self, symbol: Symbol) -> int:
        """Return the factor of ``symbol``, or 0 if it does not occur. The expression must have one element."""
        return int(self.terms[symbol].reshape(-1)[0]) if symbol in self.terms else 0

    def without(self, *symbols: Symbol) -> "AffineExpression":
        """Return the expression without the terms of ``symbols``."""
        return AffineExpression(self.const, {key: array for key, array in self.terms.items() if key not in symbols}, self.exact_to)

    def substituted(self, values: Mapping[Symbol, "AffineExpression"]) -> "AffineExpression":
        """Return the expression with each symbol in ``values`` replaced by its one-element expression."""
        result = self.without(*values)
        for symbol, other in values.items():
            if symbol in self.terms:
                result += other.reshaped(()) * AffineExpression(self.terms[symbol], {})
        return result

    def rearranged(self, rearrange: Callable[[np.ndarray], np.ndarray]) -> "AffineExpression":
        """Return the expression with its elements rearranged. ``rearrange`` rearranges a single array."""
        return _expression(rearrange(self.const), {key: rearrange(array) for key, array in self.terms.items()}, self.exact_to)

    def reshaped(self, shape: tuple[int, ...]) -> "AffineExpression":
        """Return the expression with the same elements in another shape."""
        return self.rearranged(lambda array: array.reshape(shape))

    def with_exact_limit(self, exact_to: int | None) -> "AffineExpression":
        """Return the expression with the smaller of its own limit and ``exact_to``. None means no limit."""
        return AffineExpression(self.const, self.terms, _min_limit(self.exact_to, exact_to))

    def __add__(self, other: "AffineExpression | int") -> "AffineExpression":
        """Add elementwise, with broadcasting."""
        right = _operand(other)
        const, zero = np.asarray(self.const + right.const), np.zeros((), object)
        sums = {key: self.terms.get(key, zero) + right.terms.get(key, zero) for key in {**self.terms, **right.terms}}
        terms = {key: np.broadcast_to(np.asarray(array, dtype=object), const.shape) for key, array in sums.items()}
        return _expression(const, terms, _min_limit(self.exact_to, right.exact_to))

    def __mul__(self, other: "AffineExpression | int") -> "AffineExpression":
        """Multiply elementwise, with broadcasting. Raise ValueError if both sides have symbols."""
        right = _operand(other)
        if self.terms and right.terms:
            raise ValueError("the product of two symbols is not affine")
        varying, fixed = (right, self) if right.terms else (self, right)
        const = np.asarray(varying.const * fixed.const)
        products = {key: np.asarray(array * fixed.const, dtype=object) for key, array in varying.terms.items()}
        terms = {key: np.broadcast_to(array, const.shape) for key, array in products.items()}
        return _expression(const, terms, _min_limit(self.exact_to, right.exact_to))

    def __neg__(self) -> "AffineExpression":
        """Change the sign."""
        return self * -1

    def __sub__(self, other: "AffineExpression | int") -> "AffineExpression":
        """Subtract elementwise, with broadcasting."""
        return self + -_operand(other)


def _operand(value: AffineExpression | int) -> AffineExpression:
    return value if isinstance(value, AffineExpression) else AffineExpression.of(value)


def _expression(const: Any, terms: Mapping[Symbol, Any], exact_to: int | None) -> AffineExpression:
    """Return an expression with ``const`` and with those of ``terms`` that are not 0."""
    arrays = {key: np.asarray(array, dtype=object) for key, array in terms.items() if np.any(array)}
    return AffineExpression(np.asarray(const, dtype=object), arrays, exact_to)


def _min_limit(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def concatenated(parts: Sequence[AffineExpression], axis: int) -> AffineExpression:
    """Concatenate the expressions along ``axis``."""
    symbols = {key for part in parts for key in part.terms}
    terms = {key: np.concatenate([part.terms.get(key, 0 * part.const) for part in parts], axis) for key in symbols}
    return _expression(np.concatenate([part.const for part in parts], axis), terms, _min_limit(*(part.exact_to for part in parts)))


def at_least(value: AffineExpression, minimum: int, steps: AffineExpression | None = None) -> bool:
    """Return True if all elements are known to be at least ``minimum`` in all steps of a loop.

    ``steps``: the trip count of the loop; None if it is unknown.
    """
    rest, slopes = value.without(STEP), value.terms.get(STEP)
    known: dict[Symbol, int] = {}
    if steps is not None and steps.shape == () and [steps.factor(symbol) for symbol in steps.terms] == [1]:
        known = dict.fromkeys(steps.terms, 1 - int(steps.const.item()))
    if slopes is not None and np.any(slopes < 0):
        if steps is None:
            return False
        rest += (steps.reshaped(()) - 1) * AffineExpression.of(np.minimum(slopes, 0))
    low = rest.const - minimum
    for symbol, factors in rest.terms.items():
        floor = max(known.get(symbol, 0), 0) if isinstance(symbol, Dim) else known.get(symbol)
        if floor is None or (np.any(factors < 0) and not isinstance(symbol, Dim)):
            return False
        low = low + np.maximum(factors, 0) * floor + np.minimum(factors, 0) * LARGEST_SIZE
    return bool(np.all(low >= 0))


def surely_equal(left: AffineExpression, right: AffineExpression | int) -> bool:
    """Return True if two expressions are known to be equal, element by element."""
    difference = left - right
    return not difference.terms and not np.any(difference.const)


def constant_expression(array: np.ndarray) -> AffineExpression | None:
    """Return the expression of a constant of integers, or of floats with integer values; else None."""
    if array.size > LARGEST:
        return None
    if array.dtype.kind == "f" and array.dtype.itemsize >= 2:
        exact = EXACT.get(ir.DataType.from_numpy(array.dtype))
        if exact is None or not ((array == np.trunc(array)) & (abs(array.astype(np.float64)) <= EXACT[ir.DataType.DOUBLE])).all():
            return None
        return AffineExpression(np.vectorize(int, otypes=[object])(array) if array.size else array.astype(object), {}, exact)
    return AffineExpression.of(array) if array.dtype in (np.int32, np.int64) else None


def fits_type(expression: AffineExpression, dtype: ir.DataType | None) -> bool:
    """Return True if all constants, and for floats all slopes, are well within the range of ``dtype``."""
    if dtype in EXACT:
        slopes = expression.terms.get(STEP, np.zeros((), object))
        return bool(np.all(abs(expression.const) <= EXACT[dtype] >> 2) and np.all(abs(slopes) <= SLOPE_IN_FLOATS))
    return dtype not in INTEGERS or bool(np.all(abs(expression.const) < INTEGERS[dtype]))


def counts_exactly(steps: int, exact_to: int) -> bool:
    """Return True if a float that is exact up to ``exact_to`` counts ``steps`` steps without rounding."""
    return SLOPE_IN_FLOATS * (steps + 1) <= exact_to - (exact_to >> 2)
