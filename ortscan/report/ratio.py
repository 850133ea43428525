"""The speed of one model relative to another, with a confidence interval, as numbers and in words.

Each round creates new sessions, because the memory addresses of a session change its times by a few per cent. The reported speed is
the quotient of the median times of both models over all rounds. So it fits the times that are printed beside it.

The ends of the confidence interval are the k-th smallest and the k-th largest of n ratios. For any distribution, the true median
lies between these ends with the probability 1 - 2 * P(fewer than k heads in n coin flips). Outliers hardly change the interval. If
the quotient of the medians lies outside, the interval is extended to it.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

__all__ = [
    "CONFIDENCE",
    "LEAST_DIFFERENCE",
    "LEAST_ROUNDS",
    "Ratio",
    "Speedup",
    "duration",
    "gain",
    "gain_line",
    "noise",
    "ratio_of",
]

CONFIDENCE = 0.95
"""The probability that the true median lies in the interval, if there are enough rounds."""
LEAST_ROUNDS = 6
"""The fewest rounds for this confidence. With fewer rounds, even the interval from the smallest to the largest ratio has less."""
LEAST_DIFFERENCE = 1.03
"""A smaller difference never counts as measurable, because another process or machine may not show it."""
_FEWEST_ROUNDS, _CLEAR_DIFFERENCE = 2, 1.25
"""With too few rounds for this confidence, a difference is measurable only if each of at least two rounds shows this factor. New
sessions change times by a few per cent, so noise does not reach it.
"""


_ALIKE = 1.2
"""If the interval is wider than this factor, a model does not count as equally fast."""


@dataclass(frozen=True)
class Ratio:
    """The speed of one model relative to another. A ratio above 1 means faster.

    Attributes:
        value: the quotient of the median times; the median of the ratios of all rounds if only these are known.
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
    def is_sure(self) -> bool:
        """True if there are enough rounds for the confidence of 95 %."""
        return self.confidence >= CONFIDENCE

    @property
    def is_faster(self) -> bool:
        """True if the rounds show that the model is faster."""
        if not self.is_sure:
            return self.rounds >= _FEWEST_ROUNDS and self.low >= _CLEAR_DIFFERENCE
        return self.low > 1 and self.value >= LEAST_DIFFERENCE

    @property
    def is_slower(self) -> bool:
        """True if the rounds show that the model is slower."""
        if not self.is_sure:
            return self.rounds >= _FEWEST_ROUNDS and self.high <= 1 / _CLEAR_DIFFERENCE
        return self.high < 1 and self.value <= 1 / LEAST_DIFFERENCE

    @property
    def is_measurable(self) -> bool:
        """True if the difference exceeds the noise."""
        return self.is_faster or self.is_slower

    @property
    def is_settled(self) -> bool:
        """True if the rounds show a difference, or that there is none."""
        return self.is_measurable or self.high <= _ALIKE * self.low


def ratio_of(rounds: Sequence[float], value: float | None = None) -> Ratio:
    """Return the speed and its confidence interval.

    Args:
        rounds: the ratio of each round.
        value: the quotient of the median times. By default it is the median of ``rounds``.
    """
    ratios = sorted(rounds)
    k = max((k for k in range(1, (len(ratios) + 1) // 2 + 1) if _confidence(len(ratios), k) >= CONFIDENCE), default=1)
    value = statistics.median(ratios) if value is None else value
    return Ratio(value, min(value, ratios[k - 1]), max(value, ratios[-k]), len(ratios), _confidence(len(ratios), k))


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
    low, high = (1 / ratio.high, 1 / ratio.low) if ratio.is_slower else (ratio.low, ratio.high)
    interval = f"{low:.2f} to {high:.2f}" if ratio.value < 10 else f"{_short(low)} to {_short(high)}"
    return interval if ratio.is_sure or ratio.is_measurable else f"{interval} in {ratio.rounds} rounds, too few to tell"


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


@dataclass(frozen=True)
class Speedup:
    """How much faster a model became.

    Attributes:
        before, after: the median seconds of a run of the original and of the result.
        ratio: the speed of the result relative to the original. Its value is ``before / after``.
        sizes: the sizes of free dimensions in these runs, by name.
        label: these sizes as a text such as ``T=64, B=1``.
    """

    before: float
    after: float
    ratio: Ratio
    sizes: Mapping[str, int]
    label: str

    def after_same_start(self, earlier: "Speedup") -> "Speedup":
        """Return this speed with the time of the result of ``earlier`` as the time of the original.

        Then both texts name the same time.
        Both must have measured this model at the same sizes. Otherwise return this object.
        """
        if self.sizes != earlier.sizes:
            return self
        return replace(self, before=earlier.after, after=earlier.after / self.ratio.value)

    @property
    def times(self) -> str:
        """Both times in words: ``24.7 µs instead of 114 µs``."""
        return f"{duration(self.after)} instead of {duration(self.before)}"

    def __str__(self) -> str:
        """Return ``4.6 x faster (24.7 µs instead of 114 µs, T=64)``, or ``as fast as before (114 µs, T=64)``.

        If the rounds differ too much to tell, return ``no measurable difference (0.80 to 1.30 x, T=64)``.
        """
        if self.ratio.is_measurable:
            return f"{gain(self.ratio)} ({self.times}, {self.label})"
        if not self.ratio.is_settled:
            return f"{gain(self.ratio)} ({self.ratio.low:.2f} to {self.ratio.high:.2f} x, {self.label})"
        return f"as fast as before ({duration(self.after)}, {self.label})"

    def with_library(self, without: "Speedup") -> str:
        """Return the speed with ortscan's library and without it.

        An example is ``5.2 x faster if ortscan's library is registered (24.7 µs instead of 128 µs, T=64), 1.02 x if not``.
        """
        gained, times = str(self).split(" (", 1)
        return f"{gained} if ortscan's library is registered ({times}, {_factor_text(without.ratio.value)} if not"
