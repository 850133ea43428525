"""Measure how sensitive the outputs of the original are to roundings.

Two distances are measured:

* the distance between the original's outputs and the outputs of the same model in float64
* the distance by which the original's outputs move if noise is added to roundings

The outputs of the rewritten model may differ from those of the original by a multiple of these distances:

    float64: 1.00    original: 1.02    rewritten: 1.05    the difference 0.03 is allowed, because it is at most 16 times 0.02

A smaller difference cannot be expected, because a rewrite may add numbers in another order. The distances are only measured if the
two models differ by more than the tolerance. Wide products of large numbers, differences of almost equal numbers, and long
recurrences have the largest errors. If the errors of an output are so large that the output cannot be compared, a note says so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ortscan.verification.judge.compare_values import LEFT_OUT, Widening, as_table
from ortscan.verification.judge.tolerances import element_scales

__all__ = ["Sensitivity"]

_FACTOR = 16.0
_OTHERS = 8
"""If none of this many elements with a common index, or of similar size, moves, this is not by chance."""
_STRONGER = -8.0
"""The factor of stronger noise with the other sign. With it, a number near a threshold passes the threshold in some run."""
_AS_NOISE = 2.0
"""If stronger noise does not move an element further by at least this factor, the element jumps or is chaotic."""
_FINER = 8.0
"""The factor by which noise moves a result further than roundings do."""
_FAR = 4.0
"""If stronger noise moves an element by more than this fraction (1 / 4) of its scale, the element cannot be compared."""
_LEAP = 64.0
"""If stronger noise moves an element further by more than this factor, the element jumps at a threshold."""


@dataclass
class Sensitivity:
    """How sensitive the outputs of the original are to roundings in one case.

    Attributes:
        exact: a function that runs the original in float64 and returns its outputs, or None if that fails.
        noisy: a function that runs the original several times with noise, and returns the outputs of each run. Its argument is
            the magnitude of the noise in roundings (see ``rounding_noise``).
        special: True if NaN or infinities were fed.
        widened_outputs: the outputs that got a wider tolerance, by name. The value is True if some elements of the output cannot be
            compared.
    """

    exact: Callable[[], Sequence[Any] | None]
    noisy: Callable[[float], Sequence[Sequence[Any]]]
    special: bool = False
    widened_outputs: dict[str, bool] = field(default_factory=dict)

    def widening(self, name: str, position: int, roundings: float = 1.0) -> Widening:
        """Return a function that computes additional tolerances for the elements of an output.

        Elements that are too sensitive to be compared get a tolerance that accepts any number.

        Args:
            name: the name of the output.
            position: the position of the output.
            roundings: the magnitude of the noise for the measurement, in roundings.
        """

        def widened(before: np.ndarray, most: float, path: tuple[int, ...]) -> np.ndarray:
            self.widened_outputs.setdefault(name, False)

            def moves(runs: Sequence[Sequence[Any] | None]) -> np.ndarray:
                values = [_at(values[position], path) for values in runs if values is not None]
                return _movement_bounds(before, [value for value in values if np.shape(value) == before.shape])

            exact = self.exact()
            noise = moves(self.noisy(roundings))
            move = noise if exact is None else np.maximum(moves([exact]), noise / _FINER)
            leap = moves(self.noisy(_STRONGER * roundings))
            if before.dtype.kind in "biuOSU":
                far = np.maximum(move, leap) > 0
            else:
                finite = np.isfinite(before)
                with np.errstate(invalid="ignore"):
                    magnitudes = element_scales(np.abs(np.where(finite, before, 0).astype(np.float64)))
                far = np.maximum(_FACTOR * move, _FAR * leap) > magnitudes + most
                far |= (leap > np.maximum(_LEAP * move, most)) | ((noise > most) & (leap < _AS_NOISE * noise))
                if exact is not None and np.shape(wide := _at(exact[position], path)) == before.shape:
                    far |= ~finite & np.isfinite(wide)  # the overflow depends on the order of sums
            if far.any():
                self.widened_outputs[name] = True
            return np.where(far & np.isfinite(move), LEFT_OUT, np.where(far, np.inf, _FACTOR * move))

        return widened

    def changes_shape(self, before: np.ndarray, position: int, roundings: float = 1.0) -> bool:
        """Return True if the original returns another shape for an output in float64, or with noise.

        This happens if rounding decides after which step a loop stops, and the output has an element for each step.

        Args:
            before: the output of the original.
            position: the position of the output.
            roundings: the magnitude of the noise, in roundings.
        """
        runs = [self.exact(), *self.noisy(roundings), *self.noisy(_STRONGER * roundings)]
        return any(np.shape(values[position]) != before.shape for values in runs if values is not None)


def _movement_bounds(before: np.ndarray, other_runs: Sequence[np.ndarray]) -> np.ndarray:
    """Return how far each element of ``before`` may move, estimated from its values in ``other_runs``.

    ``other_runs`` has the value of the same output in each other run. A single element may have moved little by chance, so the
    bound of an element also depends on other elements. The bound is the smaller of two numbers: the largest movement in the same
    row or column, and the largest movement of the elements whose magnitude is not larger.
    """
    move: np.ndarray = np.maximum.reduce([np.zeros(before.shape), *(_move(before, np.asarray(other)) for other in other_runs)])
    if before.dtype.kind in "biuOSU" or not move.any():
        return move
    order = np.argsort(np.abs(before), axis=None)
    few = min(_OTHERS, before.size // _OTHERS)
    no_larger = np.maximum.accumulate(move.reshape(-1)[order])
    no_larger[:few] = no_larger[few]
    pooled = np.empty(before.size)
    pooled[order] = no_larger
    return np.asarray(np.minimum(element_scales(move, _OTHERS), pooled.reshape(before.shape)))


def _move(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    if before.dtype.kind in "biuOSU":
        return np.where(before != after, np.inf, 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        old, new = before.astype(np.float64), after.astype(np.float64)
        same = (old == new) | (np.isnan(old) & np.isnan(new))
        return np.nan_to_num(np.where(same, 0.0, np.abs(old - new)), nan=np.inf, posinf=np.inf)


def _at(value: Any, path: tuple[int, ...]) -> Any:
    """Return an item in nested sequences and maps, or None if there is no such item.

    ``path`` has the position at each level, from the outside.
    """
    for position in path:
        items = list(value.values()) if isinstance(value, Mapping) else value
        if not isinstance(items, list) or position >= len(items):
            return None
        value = items[position]
    return as_table(value)
