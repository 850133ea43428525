"""How far the original itself is from float64, and moves when it rounds otherwise: no other order of sums need be closer.

    float64: 1.00    original: 1.02    result: 1.05, which is no further away than 16 times as far as the original

Asked only if the two models differ by more than the tolerance. A wide product of large numbers, a difference of equals or a long
recurrence moves further than most models do; if it moves so far that nothing can be compared, a note says so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ortscan.verification.closeness.compare_values import LEFT_OUT, Widening
from ortscan.verification.closeness.scales import own_scales
from ortscan.verification.closeness.tables import as_table

__all__ = ["Sensitivity"]

_FACTOR = 16.0
_OTHERS = 8
"""How many elements must share an index, or be as small, before it is no accident that none of them moves."""
_STRONGER = -8.0
"""The other way, so that a number at a threshold is pushed past it in one run or another."""
_AS_NOISE = 2.0
"""Times less that move, what 8 times stronger noise moves jumps, or is chaotic: it does not round."""
_FINER = 8.0
"""How much further noise moves a result than roundings do."""
_FAR = 4.0
"""Times that move, what turns out larger than the numbers themselves cannot be compared."""
_LEAP = 64.0
"""How much further stronger noise moves what turns at a threshold."""


@dataclass
class Sensitivity:
    """How sensitive one run of the original is to roundings.

    Attributes:
        exact: runs the original in float64; None if that fails.
        noisy: runs the original with so many roundings of noise inside, some times: see ``rounding_noise``.
        special: whether it was fed NaN or infinities.
        hit: the outputs that were judged more mildly, and whether elements were left out.
    """

    exact: Callable[[], Sequence[Any] | None]
    noisy: Callable[[float], Sequence[Sequence[Any]]]
    special: bool = False
    hit: dict[str, bool] = field(default_factory=dict)

    def widening(self, name: str, position: int, roundings: float = 1.0) -> Widening:
        """Return what says how much more each element of an output may differ by, with so many roundings of noise.

        The answer is infinite for what cannot be compared.
        """

        def widened(before: np.ndarray, most: float, place: tuple[int, ...]) -> np.ndarray:
            self.hit.setdefault(name, False)

            def moves(runs: Sequence[Sequence[Any] | None]) -> np.ndarray:
                values = [_at(values[position], place) for values in runs if values is not None]
                return _furthest(before, [value for value in values if np.shape(value) == before.shape])

            exact = self.exact()
            noise = moves(self.noisy(roundings))
            move = noise if exact is None else np.maximum(moves([exact]), noise / _FINER)
            leap = moves(self.noisy(_STRONGER * roundings))
            if before.dtype.kind in "biuOSU":
                far = np.maximum(move, leap) > 0
            else:
                far = np.maximum(_FACTOR * move, _FAR * leap) > _magnitudes(before) + most
                far |= (leap > np.maximum(_LEAP * move, most)) | ((noise > most) & (leap < _AS_NOISE * noise))
                if exact is not None:
                    far |= _overflowed(before, _at(exact[position], place))
            if far.any():
                self.hit[name] = True
            return np.where(far & np.isfinite(move), LEFT_OUT, np.where(far, np.inf, _FACTOR * move))

        return widened


def _furthest(before: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    """Return how far each element moves at most, in its row or column, or in elements that are no larger."""
    move: np.ndarray = np.maximum.reduce([np.zeros(before.shape), *(_move(before, np.asarray(other)) for other in others)])
    if before.dtype.kind in "biuOSU" or not move.any():
        return move
    order = np.argsort(np.abs(before), axis=None)
    few = min(_OTHERS, before.size // _OTHERS)
    no_larger = np.maximum.accumulate(move.reshape(-1)[order])
    no_larger[:few] = no_larger[few]
    pooled = np.empty(before.size)
    pooled[order] = no_larger
    return np.asarray(np.minimum(own_scales(move, _OTHERS), pooled.reshape(before.shape)))


def _overflowed(before: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return which elements are not finite, and are in float64: which of infinity and NaN they are depends on the order of sums."""
    return (
        np.asarray(~np.isfinite(before) & np.isfinite(exact)) if before.shape == np.shape(exact) else np.zeros(before.shape, bool)
    )


def _magnitudes(before: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return own_scales(np.abs(np.where(np.isfinite(before), before, 0).astype(np.float64)))


def _at(value: Any, place: tuple[int, ...]) -> Any:
    """Return the item at a place of a sequence or map; None where it has none."""
    for position in place:
        items = list(value.values()) if isinstance(value, Mapping) else value
        if not isinstance(items, list) or position >= len(items):
            return None
        value = items[position]
    return as_table(value)


def _move(before: np.ndarray, after: Any) -> np.ndarray:
    after = np.asarray(after)
    if after.shape != before.shape:
        return np.full(before.shape, np.inf)
    if before.dtype.kind in "biuOSU":
        return np.where(before != after, np.inf, 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        one, other = before.astype(np.float64), after.astype(np.float64)
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        return np.nan_to_num(np.where(same, 0.0, np.abs(one - other)), nan=np.inf, posinf=np.inf)
