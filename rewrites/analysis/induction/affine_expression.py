"""Integers as affine expressions: a constant plus an integer multiple of each symbol, for every element of a small tensor.

A symbol is the step number, a dimension of a tensor (0 or more), or an integer computed elsewhere. The arithmetic has no overflow.
Constants near the limits of their type are therefore not followed, and neither are floats that do not hold every integer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx_ir as ir

__all__ = [
    "EXACT",
    "INTEGERS",
    "LARGEST",
    "SLOPE_IN_FLOATS",
    "STEP",
    "AffineExpression",
    "Dim",
    "Symbol",
    "at_least",
    "constants",
    "in_type",
    "joined",
    "surely_equal",
    "within",
]


STEP: Final = "step"
"""The symbol of the step number: 0, 1, 2, …"""


@dataclass(frozen=True)
class Dim:
    """A dimension, identified by ``key``: axis ``axis`` of ``value``."""

    key: object
    value: ir.Value = field(compare=False)
    axis: int = field(compare=False)


Symbol = Dim | ir.Value | str


@dataclass(frozen=True, eq=False)
class AffineExpression:
    """``const`` plus each symbol times its factors. The arrays hold Python integers and have the shape of the tensor.

    ``exact_to``: floats in the computation hold integers exactly up to this magnitude; None if there are no floats.
    """

    const: np.ndarray
    terms: Mapping[Symbol, np.ndarray]
    exact_to: int | None = None

    @classmethod
    def of(cls, array: np.ndarray | int, exact_to: int | None = None) -> "AffineExpression":
        """Return the expression of constants."""
        return cls(np.asarray(array).astype(object), {}, exact_to)

    @classmethod
    def symbol(cls, symbol: Symbol, shape: tuple[int, ...] = ()) -> "AffineExpression":
        """Return the expression of one symbol."""
        return cls(_filled(shape, 0), {symbol: _filled(shape, 1)})

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the tensor."""
        return tuple(self.const.shape)

    @property
    def number(self) -> int | None:
        """Return the only element if it is a constant, else None."""
        return int(self.const.reshape(-1)[0]) if not self.terms and self.const.size == 1 else None

    @property
    def numbers(self) -> np.ndarray | None:
        """Return the elements as int64 if all are constants, else None."""
        return self.const.astype(np.int64) if not self.terms else None

    def factor(self, symbol: Symbol) -> int:
        """Return the factor of ``symbol`` in an expression of one element."""
        array = self.terms.get(symbol)
        return 0 if array is None else int(array.reshape(-1)[0])

    def without(self, symbol: Symbol) -> "AffineExpression":
        """Return the expression without its term of ``symbol``."""
        return AffineExpression(self.const, {key: array for key, array in self.terms.items() if key != symbol}, self.exact_to)

    def substituted(self, values: Mapping[Symbol, "AffineExpression"]) -> "AffineExpression":
        """Replace symbols by the expressions ``values``, of one element each."""
        result = AffineExpression(self.const, {key: array for key, array in self.terms.items() if key not in values}, self.exact_to)
        for symbol, other in values.items():
            if symbol in self.terms:
                result = result + other.reshaped(()) * AffineExpression(self.terms[symbol], {})
        return result

    def moved(self, move: Callable[[np.ndarray], np.ndarray]) -> "AffineExpression":
        """Apply ``move``, a rearrangement of elements."""
        parts = {key: _array(move(array)) for key, array in self.terms.items()}
        return AffineExpression(_array(move(self.const)), _nonzero(parts), self.exact_to)

    def reshaped(self, shape: tuple[int, ...]) -> "AffineExpression":
        """Return the same elements in another shape."""
        return self.moved(lambda array: array.reshape(shape))

    def limited(self, exact_to: int | None) -> "AffineExpression":
        """Return the same expression with ``exact_to`` lowered to the argument."""
        return AffineExpression(self.const, self.terms, _least(self.exact_to, exact_to))

    def __add__(self, other: "AffineExpression") -> "AffineExpression":
        """Add elementwise, with broadcasting."""
        const = _array(self.const + other.const)
        parts = {}
        for key in {**self.terms, **other.terms}:
            mine, theirs = self.terms.get(key, _filled((), 0)), other.terms.get(key, _filled((), 0))
            parts[key] = _array(np.broadcast_to(_array(mine + theirs), const.shape))
        return AffineExpression(const, _nonzero(parts), _least(self.exact_to, other.exact_to))

    def __mul__(self, other: "AffineExpression") -> "AffineExpression":
        """Multiply elementwise, with broadcasting; one side must be constant."""
        if self.terms and other.terms:
            raise ValueError("the product of two symbols is not affine")
        varying, fixed = (other, self) if other.terms else (self, other)
        const = _array(varying.const * fixed.const)
        parts = {key: _array(np.broadcast_to(_array(array * fixed.const), const.shape)) for key, array in varying.terms.items()}
        return AffineExpression(const, _nonzero(parts), _least(self.exact_to, other.exact_to))

    def __neg__(self) -> "AffineExpression":
        """Change the sign."""
        return self * AffineExpression.of(-1)

    def __sub__(self, other: "AffineExpression") -> "AffineExpression":
        """Subtract elementwise, with broadcasting."""
        return self + -other


def joined(parts: list[AffineExpression], axis: int) -> AffineExpression:
    """Join expressions along ``axis``."""
    symbols = {key for part in parts for key in part.terms}
    terms = {key: _join([part.terms.get(key, _filled(part.shape, 0)) for part in parts], axis) for key in symbols}
    limit: int | None = None
    for part in parts:
        limit = _least(limit, part.exact_to)
    return AffineExpression(_join([part.const for part in parts], axis), _nonzero(terms), limit)


def _join(arrays: list[np.ndarray], axis: int) -> np.ndarray:
    return np.concatenate(arrays, axis)


def _nonzero(terms: dict[Symbol, np.ndarray]) -> dict[Symbol, np.ndarray]:
    return {key: array for key, array in terms.items() if np.any(array)}


def _filled(shape: tuple[int, ...], number: int) -> np.ndarray:
    return np.full(shape, number, dtype=object)


def _array(result: Any) -> np.ndarray:
    """Return an array; numpy turns arrays without axes into plain numbers."""
    return np.asarray(result, dtype=object)


def _least(left: int | None, right: int | None) -> int | None:
    limits = [limit for limit in (left, right) if limit is not None]
    return min(limits) if limits else None


def at_least(value: AffineExpression, least: int, steps: AffineExpression | None = None) -> bool:
    """Return True if every element is surely ``least`` or more in every step of a loop of ``steps`` steps (None: any number)."""
    rest = value.without(STEP)
    slopes = value.terms.get(STEP)
    known: dict[Symbol, int] = {}
    if steps is not None and steps.shape == () and len(steps.terms) == 1:
        (symbol,) = steps.terms
        if steps.factor(symbol) == 1:
            known[symbol] = 1 - int(steps.const.item())
    if slopes is not None:
        falling = np.minimum(slopes, 0)
        if np.any(falling):
            if steps is None:
                return False
            rest = rest + (steps.reshaped(()) - AffineExpression.of(1)) * AffineExpression.of(falling)
    low = rest.const - least
    for symbol, factors in rest.terms.items():
        floor = max(known.get(symbol, 0), 0) if isinstance(symbol, Dim) else known.get(symbol)
        if floor is None or np.any(factors < 0):
            return False
        low = low + factors * floor
    return bool(np.all(low >= 0))


def surely_equal(left: AffineExpression, right: AffineExpression) -> bool:
    """Return True if two expressions of the same shape are surely equal."""
    difference = left - right
    return not difference.terms and not np.any(difference.const)


LARGEST = 1 << 13
"""The most elements that are followed."""

EXACT = {ir.DataType.FLOAT16: 1 << 11, ir.DataType.FLOAT: 1 << 24, ir.DataType.DOUBLE: 1 << 53}
"""The magnitude up to which floats hold all integers."""

INTEGERS = {ir.DataType.INT32: 1 << 31, ir.DataType.INT64: 1 << 62}
"""The magnitude up to which constants of a type are followed."""

SLOPE_IN_FLOATS = 16
"""The largest change per step that is followed in floats."""


def constants(array: np.ndarray) -> AffineExpression | None:
    """Return the expression of a constant of integers, or of floats that are integers; None for others."""
    if array.size > LARGEST:
        return None
    if array.dtype.kind == "f" and array.dtype.itemsize >= 2:
        exact = EXACT.get(ir.DataType.from_numpy(array.dtype), 0)
        whole = np.isfinite(array).all() and (array == np.trunc(array)).all() and (abs(array) <= exact).all()
        return (
            AffineExpression(np.vectorize(int, otypes=[object])(array) if array.size else array.astype(object), {}, exact)
            if whole
            else None
        )
    return AffineExpression.of(array) if array.dtype in (np.int32, np.int64) else None


def in_type(expression: AffineExpression, dtype: ir.DataType | None) -> bool:
    """Return True if constants are far from the limits of their type. Floats leave room for some hundred thousand steps."""
    if dtype in EXACT:
        slopes = expression.terms.get(STEP, np.zeros((), object))
        return bool(np.all(abs(expression.const) <= EXACT[dtype] >> 2) and np.all(abs(slopes) <= SLOPE_IN_FLOATS))
    return dtype not in INTEGERS or bool(np.all(abs(expression.const) < INTEGERS[dtype]))


def within(steps: int, exact_to: int) -> bool:
    """Return True if floats that are exact up to ``exact_to`` hold every followed value for ``steps`` steps."""
    return SLOPE_IN_FLOATS * (steps + 1) <= exact_to - (exact_to >> 2)
