"""Outputs that onnxruntime computes otherwise once the original is written a little differently, though that changes no number.

    before: 1.5    the same with noise inside, of size zero and of some roundings: 3.0 each time

Noise inside then tells nothing of roundings, and of what the original computes nobody can say which of the two is meant.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ortscan.verification.closeness.compare_values import Gap, Tolerances, compare_values

__all__ = ["disowned_outputs"]


def disowned_outputs(
    outputs: Sequence[str],
    gaps: Mapping[str, Gap],
    before: Sequence[Any],
    noisy: Callable[[], Sequence[Sequence[Any]]],
    tolerances: Mapping[str, Tolerances],
) -> set[str]:
    """Return the outputs of which nothing could be compared, and which all runs with noise have alike, but otherwise.

    ``noisy`` gives these runs, the first without noise.
    """
    hanging = {name for name, gap in gaps.items() if gap.reason is None and gap.left_out and not gap.numbers}
    runs = noisy() if hanging else []

    def differ(name: str, one: Any, other: Any) -> bool:
        return compare_values(one, other, tolerances[name]).reason is not None

    found = enumerate(zip(outputs, before, strict=True)) if runs else ()
    return {
        name
        for place, (name, old) in found
        if name in hanging
        and differ(name, old, runs[0][place])
        and not any(differ(name, runs[0][place], values[place]) for values in runs[1:])
    }
