"""Times and gains in words."""

from ortscan.benchmark.ratio import CONFIDENCE, Ratio

__all__ = ["duration", "gain", "gain_line", "noise", "times"]


def duration(seconds: float) -> str:
    """Return seconds for people: three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def times(factor: float) -> str:
    """Return ``3.1 x``, ``1.04 x``, ``120 x``."""
    return f"{factor:.2f} x" if factor < 1.2 else f"{_short(factor)} x"


def gain(ratio: Ratio) -> str:
    """Return ``3.1 x faster``, ``1.4 x slower``, or ``no measurable difference``."""
    if not ratio.is_measurable:
        return "no measurable difference"
    return f"{times(ratio.value)} faster" if ratio.is_faster else f"{times(1 / ratio.value)} slower"


def noise(ratio: Ratio) -> str:
    """Return between what the true ratio lies, as far as the rounds tell."""
    if ratio.is_slower:
        return f"{1 / ratio.high:.2f} to {1 / ratio.low:.2f}"
    said = f"{ratio.low:.2f} to {ratio.high:.2f}" if ratio.value < 10 else f"{_short(ratio.low)} to {_short(ratio.high)}"
    return said if ratio.confidence >= CONFIDENCE else f"{said} in {ratio.rounds} rounds, too few to tell"


def gain_line(ratio: Ratio, label: str, than: str) -> str:
    """Say how two models compare at the sizes in ``label``."""
    if not ratio.is_measurable:
        return f"is not measurably faster or slower than {than} ({label}: {noise(ratio)} times as fast)"
    word, factor = ("faster", ratio.value) if ratio.is_faster else ("slower", 1 / ratio.value)
    return f"is {times(factor)} {word} than {than} ({label}: {noise(ratio)})"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}"
