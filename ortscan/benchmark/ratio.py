"""How many times as long one thing takes as another, and how far rounds agree on that.

A round has sessions of its own, since where a session's memory lies makes a few per cent, as much as many a rewrite. Of the rounds'
ratios the median counts. Whatever their distribution, the true median lies between the k-th least and the k-th largest of n with a
probability of 1 - 2 * P(less than k heads of n coins): no bell curve is assumed, and no outlier has a weight.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["CONFIDENCE", "LEAST_DIFFERENCE", "LEAST_ROUNDS", "Ratio", "ratio_of"]

CONFIDENCE = 0.95
"""How sure it is that the true median lies in the interval, where there are rounds enough."""
LEAST_ROUNDS = 6
"""Of fewer rounds not even the least and the largest are that sure."""
LEAST_DIFFERENCE = 1.03
"""Less is never said to be measurable: another process, or another machine, need not have it."""


@dataclass(frozen=True)
class Ratio:
    """``value``: the median over ``rounds``; ``low``, ``high``: where the true one lies, with ``confidence``. Above 1 is faster."""

    value: float
    low: float
    high: float
    rounds: int
    confidence: float

    @property
    def is_faster(self) -> bool:
        """Whether the rounds agree that it is faster than 1."""
        return self._is_sure and self.low > 1 and self.value >= LEAST_DIFFERENCE

    @property
    def is_slower(self) -> bool:
        """Whether the rounds agree that it is slower than 1."""
        return self._is_sure and self.high < 1 and self.value <= 1 / LEAST_DIFFERENCE

    @property
    def is_measurable(self) -> bool:
        """Whether there is a difference beyond the noise."""
        return self.is_faster or self.is_slower

    @property
    def _is_sure(self) -> bool:
        return self.confidence >= CONFIDENCE


def ratio_of(rounds: Sequence[float]) -> Ratio:
    """Return what ``rounds`` tell, each with a ratio of its own."""
    ratios = sorted(rounds)
    k = max((k for k in range(1, (len(ratios) + 1) // 2 + 1) if _confidence(len(ratios), k) >= CONFIDENCE), default=1)
    return Ratio(statistics.median(ratios), ratios[k - 1], ratios[-k], len(ratios), _confidence(len(ratios), k))


def _confidence(rounds: int, k: int) -> float:
    return 1 - 2 * sum(math.comb(rounds, heads) for heads in range(k)) / float(2**rounds)
