"""What the elements of an affine expression are at least, over all steps of a loop.

Dimensions are 0 or more; inside a step, the loop has at least one.
"""

import numpy as np

from rewrites.analysis.induction.affine_expression import STEP, Affine, Dim, Symbol

__all__ = ["at_least", "surely_equal"]


def at_least(value: Affine, least: int, steps: Affine | None = None) -> bool:
    """Whether every element is provably ``least`` or more, in a step of a loop of ``steps`` steps (None: of any number)."""
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
            rest = rest + (steps.reshaped(()) - Affine.of(1)) * Affine.of(falling)
    low = rest.const - least
    for symbol, factors in rest.terms.items():
        floor = max(known.get(symbol, 0), 0) if isinstance(symbol, Dim) else known.get(symbol)
        if floor is None or np.any(factors < 0):
            return False
        low = low + factors * floor
    return bool(np.all(low >= 0))


def surely_equal(one: Affine, other: Affine) -> bool:
    """Whether two expressions of the same shape are the same."""
    difference = one - other
    return not difference.terms and not np.any(difference.const)
