"""How far the original itself moves when its inputs do by a rounding, or what it computes: no other order of sums need be closer.

Asked only where the two models differ by more than the tolerance. A wide product of large numbers, a difference of equals or a long
recurrence moves further than most models do; where it moves so far that nothing can be compared, that is said.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from ortscan.verification.closeness.compare_values import Widening
from ortscan.verification.closeness.scales import own_scales
from ortscan.verification.closeness.tables import as_table

__all__ = ["Sensitivity"]

_RUNS = 3
_ROUNDINGS = 2.0
_FACTOR = 8.0
_MOST = 30.0
_FURTHER = 4.0
_MOVED = 8
"""How many elements must share an index before it is no accident that none of them moves."""
_STRONGER = -_FACTOR
"""The other way, so that a number at a threshold is pushed past it in one run or another."""
_LEAP = 8 * _FACTOR
"""How much further stronger noise moves what turns at a threshold."""


@dataclass
class Sensitivity:
    """What one run of the original is sensitive to.

    Attributes:
        run: runs the original; None where it fails.
        noisy: runs it on ``feed``, with so many roundings of noise inside, some times: see ``rounding_noise``.
        feed: what it was run with.
        leaves_out: whether elements are left out that cannot be compared once the inputs are shaken; not so for inputs made to meet
            a threshold exactly, but for the outputs of recurrent nodes. Noise inside leaves out in any case: it does not move what
            is computed without rounding.
        special: whether it was fed NaN or infinities.
        large: whether it was fed numbers of which sums and products overflow: what is not finite then, and is with smaller ones, is
            infinite or NaN by the order of sums, and is left out.
        hit: the outputs that were judged more mildly, and whether elements were left out.
    """

    run: Callable[[Mapping[str, Any]], Sequence[Any] | None]
    noisy: Callable[[float], Sequence[Sequence[Any]]]
    feed: Mapping[str, Any]
    leaves_out: bool
    special: bool = False
    large: bool = False
    hit: dict[str, bool] = field(default_factory=dict)
    _moved: dict[tuple[str, float], list[Sequence[Any]]] = field(default_factory=dict)
    _noisy: dict[float, Sequence[Sequence[Any]]] = field(default_factory=dict)
    _smaller: list[Sequence[Any] | None] = field(default_factory=list)

    def widening(self, name: str, position: int, dtype: np.dtype[Any], roundings: float = 1.0) -> Widening:
        """Return what says how much more each element of an output may differ by, for so many roundings of ``dtype``.

        The answer is infinite where nothing can be compared.
        """

        def widened(before: np.ndarray, most: float, place: tuple[int, ...], proportions: np.ndarray) -> np.ndarray:
            self.hit.setdefault(name, False)
            shaken = [_move(before, _at(values[position], place)) for values in self._runs(dtype, roundings)]
            noisy = self._noise(roundings, position, place, before)
            stronger = self._noise(_STRONGER * roundings, position, place, before)
            move, far = _largest(shaken, before, most, proportions)
            inside, far_inside = _largest(noisy, before, most, proportions)
            leap, far_away = _largest(stronger, before, most, proportions)
            far = far_inside | far_away & (leap > _LEAP * inside) | (far if self.leaves_out or roundings > 1 else np.False_)
            far = far | self._overflowed(position, place, before)
            if far.any():
                self.hit[name] = True
            more = np.minimum(_FACTOR * np.maximum(move, inside), _MOST * most)
            return np.where(far, np.inf, more)

        return widened

    def _overflowed(self, position: int, place: tuple[int, ...], before: np.ndarray) -> np.ndarray:
        """Return which elements are not finite, and are with small inputs."""
        is_finite = np.isfinite(before) if _is_float(before.dtype) else np.True_
        if not self.large or np.all(is_finite):
            return np.zeros(before.shape, bool)
        if not self._smaller:
            feed = {name: _small(value) for name, value in self.feed.items()}
            self._smaller.append(self.run(feed))
        values = self._smaller[0]
        small = None if values is None else np.asarray(_at(values[position], place))
        if small is None or small.shape != before.shape or small.dtype != before.dtype:
            return np.zeros(before.shape, bool)
        return np.asarray(~is_finite & np.isfinite(small))

    def _noise(self, roundings: float, position: int, place: tuple[int, ...], before: np.ndarray) -> list[np.ndarray]:
        """Return how far an array moves with noise inside, in the runs that leave its shape as it is."""
        if roundings not in self._noisy:
            self._noisy[roundings] = self.noisy(roundings)
        found = [_at(values[position], place) for values in self._noisy[roundings]]
        return [_move(before, value) for value in found if np.shape(value) == before.shape]

    def _runs(self, dtype: np.dtype[Any], roundings: float) -> list[Sequence[Any]]:
        key = (dtype.name, roundings)
        if key not in self._moved:
            feeds = (self._shaken(dtype, roundings, seed) for seed in range(_RUNS)) if _is_float(dtype) else ()
            self._moved[key] = [values for feed in feeds if (values := self.run(feed)) is not None]
        return self._moved[key]

    def _shaken(self, dtype: np.dtype[Any], roundings: float, seed: int) -> dict[str, Any]:
        random = np.random.default_rng(seed)
        amount = _ROUNDINGS * roundings * float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]

        def shake(value: Any) -> Any:
            if isinstance(value, list):
                return [shake(item) for item in value]
            if not isinstance(value, np.ndarray) or not _is_float(value.dtype):
                return value
            with np.errstate(over="ignore", invalid="ignore"):
                moved = value.astype(np.float64) * (1 + amount * random.uniform(-1, 1, value.shape))
                if roundings > 1:
                    moved += amount * random.uniform(-1, 1, value.shape)
                return np.asarray(moved).astype(value.dtype)

        return {name: shake(value) for name, value in self.feed.items()}


def _largest(
    moves: Sequence[np.ndarray], before: np.ndarray, most: float, proportions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far each element moves, and whether that is too far to be compared.

    It may move as far as its row or column did, but one that is small beside others not much further than it did itself.
    """
    move = np.maximum.reduce([np.zeros(before.shape), *moves])
    if before.dtype.kind in "biuOSU":
        return move, move > 0
    with np.errstate(invalid="ignore"):
        by_size = np.where(proportions > 0, proportions * move.max(initial=0.0), 0.0)
        move = np.minimum(own_scales(move, _MOVED), np.maximum(by_size, _FURTHER * move))
    return move, move > _MOST * most


def _small(value: Any) -> Any:
    """Return the same with small numbers, where it holds floats."""
    if isinstance(value, list):
        return [_small(item) for item in value]
    if not isinstance(value, np.ndarray) or not _is_float(value.dtype):
        return value
    largest = float(np.abs(value.astype(np.float64)).max(initial=1.0))
    return np.asarray(value.astype(np.float64) / largest).astype(value.dtype)


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


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)
