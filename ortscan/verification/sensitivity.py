"""How far the original itself moves when its inputs do by a rounding: no other order of sums need be closer to it.

Asked only where the two models differ by more than the tolerance. A wide product of large numbers, a difference of equals or a long
recurrence moves further than most models do; where it moves so far that nothing can be compared, that is said.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from ortscan.verification.scales import own_scales

__all__ = ["Sensitivity"]

_RUNS = 3
_ROUNDINGS = 2.0
_FACTOR = 8.0
_MOST = 30.0


@dataclass
class Sensitivity:
    """What one run of the original is sensitive to.

    Attributes:
        run: runs the original; None where it fails.
        feed: what it was run with.
        leaves_out: whether elements that cannot be compared are left out; not so for inputs made to meet a threshold exactly, but
            for the outputs of recurrent nodes.
        special: whether it was fed NaN or infinities.
        hit: the outputs that were judged more mildly, and whether elements were left out.
    """

    run: Callable[[Mapping[str, Any]], Sequence[Any] | None]
    feed: Mapping[str, Any]
    leaves_out: bool
    special: bool = False
    hit: dict[str, bool] = field(default_factory=dict)
    _moved: dict[tuple[str, float], list[Sequence[Any]]] = field(default_factory=dict)

    def widening(
        self, name: str, position: int, dtype: np.dtype[Any], roundings: float = 1.0
    ) -> Callable[[np.ndarray, float], np.ndarray]:
        """Return what says how much more each element of an output may differ by, for so many roundings of ``dtype``.

        It is called with the output and with what the output as a whole may differ by; the answer is infinite where nothing can be
        compared.
        """

        def widened(before: np.ndarray, most: float) -> np.ndarray:
            self.hit.setdefault(name, False)
            moves = [_move(before, values[position]) for values in self._runs(dtype, roundings)]
            if not moves:
                return np.zeros(before.shape)
            move = np.maximum.reduce(moves)
            if before.dtype.kind in "biuOSU":
                far = move > 0
            else:
                with np.errstate(invalid="ignore"):
                    move = np.broadcast_to(own_scales(move), before.shape)
                far = move > _MOST * most
            leaves_out = self.leaves_out or roundings > 1
            if leaves_out and far.any():
                self.hit[name] = True
            more = np.minimum(_FACTOR * move, _MOST * most)
            return np.where(far & leaves_out, np.inf, more)

        return widened

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
                return np.asarray(moved).astype(value.dtype)

        return {name: shake(value) for name, value in self.feed.items()}


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
