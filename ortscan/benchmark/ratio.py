"""The speed of one model relative to another, with a confidence interval, as numbers and in words.

Each round creates new sessions, because the memory addresses of a session change its times by a few per cent. The reported speed is
the median of the ratios of all rounds.

The ends of the confidence interval are the k-th smallest and the k-th largest of n ratios. For any distribution, the true median
lies between these ends with the probability 1 - 2 * P(fewer than k heads in n coin flips). Outliers hardly change the interval.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["CONFIDENCE", "LEAST_DIFFERENCE", "LEAST_ROUNDS", "Ratio", "duration", "gain", "gain_line", "noise", "ratio_of"]

CONFIDENCE = 0.95
"""The probability that the true median lies in the interval, if there are enough rounds."""
LEAST_ROUNDS = 6
"""The fewest rounds for this confidence. With fewer rounds, even the interval from the smallest to the largest ratio has less."""
LEAST_DIFFERENCE = 1.03
"""A smaller difference never counts as measurable, because another process or machine may not show it."""


@dataclass(frozen=True)
class Ratio:
    """The speed of one model relative to another. A ratio above 1 means faster.

    Attributes:
        value: the median of the ratios of all rounds.
        low, high: the ends of the confidence interval.
        rounds: the number of rounds.
        confidence: the probability that the interval contains the true median.
    """

    value: float
    low: float
    high: float
    rounds: int
    confidence: float

    @property
    def is_faster(self) -> bool:
        """True if the confidence interval shows that the model is faster."""
        return self._excludes_one and self.low > 1 and self.value >= LEAST_DIFFERENCE

    @property
    def is_slower(self) -> bool:
        """True if the confidence interval shows that the model is slower."""
        return self._excludes_one and self.high < 1 and self.value <= 1 / LEAST_DIFFERENCE

    @property
    def is_measurable(self) -> bool:
        """True if the difference exceeds the noise."""
        return self.is_faster or self.is_slower

    @property
    def _excludes_one(self) -> bool:
        return self.confidence >= CONFIDENCE


def ratio_of(rounds: Sequence[float]) -> Ratio:
    """Return the median and the confidence interval of the ratios in ``rounds``."""
    ratios = sorted(rounds)
    k = max((k for k in range(1, (len(ratios) + 1) // 2 + 1) if _confidence(len(ratios), k) >= CONFIDENCE), default=1)
    return Ratio(statistics.median(ratios), ratios[k - 1], ratios[-k], len(ratios), _confidence(len(ratios), k))


def _confidence(rounds: int, k: int) -> float:
    return 1 - 2 * sum(math.comb(rounds, heads) for heads in range(k)) / float(2**rounds)


def duration(seconds: float) -> str:
    """Return a number of seconds as a text such as ``1.25 s``, ``12.5 ms`` or ``125 µs``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _factor_text(factor: float) -> str:
    """Return ``factor`` as text such as ``3.1 x``, ``1.04 x`` or ``120 x``."""
    return f"{factor:.2f} x" if factor < 1.2 else f"{_short(factor)} x"


def gain(ratio: Ratio) -> str:
    """Return ``3.1 x faster``, ``1.4 x slower``, or ``no measurable difference``."""
    if not ratio.is_measurable:
        return "no measurable difference"
    return f"{_factor_text(ratio.value)} faster" if ratio.is_faster else f"{_factor_text(1 / ratio.value)} slower"


def noise(ratio: Ratio) -> str:
    """Return the confidence interval as a text such as ``2.90 to 3.30``.

    For a slower model, this is the interval of the factor by which the model is slower.
    """
    if ratio.is_slower:
        return f"{1 / ratio.high:.2f} to {1 / ratio.low:.2f}"
    interval = f"{ratio.low:.2f} to {ratio.high:.2f}" if ratio.value < 10 else f"{_short(ratio.low)} to {_short(ratio.high)}"
    return interval if ratio.confidence >= CONFIDENCE else f"{interval} in {ratio.rounds} rounds, too few to tell"


def gain_line(ratio: Ratio, label: str, than: str) -> str:
    """Return a text such as ``is 3.1 x faster than a.onnx (T=64: 2.90 to 3.30)``.

    ``label`` has the sizes, and ``than`` is the name of the other model.
    """
    if not ratio.is_measurable:
        return f"is not measurably faster or slower than {than} ({label}: {noise(ratio)} times as fast)"
    return f"is {gain(ratio)} than {than} ({label}: {noise(ratio)})"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}"
