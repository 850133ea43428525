"""Powers of a constant decay, in a form in which they do to infinite states what the loop does to them.

A power that underflows to 0 would make NaN of an infinite state, which stays infinite in the loop. So a power is a product of
factors none of which is 0, unless the decay is 0: what is finite goes to 0 under them as it does in the loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Decay"]

_LEAST_EXPONENTS = {4: -125, 8: -1020}
"""Of the normal numbers of so many bytes, as powers of 2."""
_MOST_FACTORS = 3
"""The product of so many of the least normal numbers brings the largest number to 0."""


@dataclass(frozen=True)
class Decay:
    """``numbers``: what a state is multiplied by in one step, in float64, none larger than 1; they broadcast to its shape.

    ``dtype``: of the states. ``form``: "Add" or "Sub" where a state has 0 times itself added or taken off before it decays, so that
    what is infinite is NaN from there on, and with "Sub" no zero is negative.
    """

    numbers: np.ndarray
    dtype: np.dtype
    form: str = ""

    def power(self, exponent: int) -> list[np.ndarray]:
        """Return the factors of the decay over ``exponent`` steps."""
        return self._factors(np.array(exponent))

    def powers(self, exponents: Sequence[int]) -> list[np.ndarray]:
        """Return the factors of the decays over so many steps each, along a new axis 0."""
        return self._factors(np.array(exponents).reshape(-1, *[1] * self.numbers.ndim))

    def _factors(self, exponents: np.ndarray) -> list[np.ndarray]:
        least = _LEAST_EXPONENTS[self.dtype.itemsize]
        magnitude = np.where(self.numbers == 0, 1, np.abs(self.numbers))
        bits = np.maximum(np.log2(magnitude) * exponents, _MOST_FACTORS * least)
        count = max(1, int(np.ceil((bits / least).max(initial=0))))
        sign = np.where((self.numbers < 0) & (exponents % 2 == 1), -1.0, 1.0) * (self.numbers != 0)
        plain = bits >= least
        first = np.where(plain, magnitude ** np.where(plain, exponents, 1), np.exp2(bits / count)) * sign
        rest = np.where(plain, 1.0, np.exp2(bits / count))
        return [np.array(factor, self.dtype) for factor in (first, *[rest] * (count - 1))]
