"""Compare the values of two models for one output.

Integers, booleans and strings must be equal. NaN equals NaN, and an infinity equals itself. Other floats may differ by their
`Tolerances`.

The operator ZipMap turns an array into a sequence that has a map from keys to floats for each row. This sequence is compared as the
original array.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ortscan.ort.element_types import largest_number
from ortscan.verification.judge.tolerances import History, Tolerances, element_scales, is_float

__all__ = ["LEFT_OUT", "Gap", "Widening", "as_table", "compare_values", "is_table"]

Widening = Callable[[np.ndarray, float, tuple[int, ...]], np.ndarray]
"""A function that returns the additional tolerance of each element of an array (see ``sensitivity``). ``LEFT_OUT`` accepts any
finite number; infinity also accepts NaN and infinities. The arguments are the array, the tolerance for its largest number, and
its position if the output is a sequence."""
LEFT_OUT = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Gap:
    """The difference between two values.

    Attributes:
        absolute: the absolute error of the worst element.
        relative: ``absolute`` divided by ``scale``.
        allowed: the tolerance of the worst element.
        scale: the largest magnitude in the value of the original.
        elements: the number of elements.
        numbers: the number of elements that were compared and are not NaN.
        reason: how the values differ, or None if they are equal within the tolerances.
        index: the index of the worst element.
        before: the worst element of the original.
        after: the same element of the rewritten model.
        left_out: the number of elements that were not compared, because they are sensitive to rounding.
    """

    absolute: float = 0.0
    relative: float = 0.0
    allowed: float = 0.0
    scale: float = 0.0
    elements: int = 0
    numbers: int = 0
    reason: str | None = None
    index: tuple[int, ...] = ()
    before: Any = None
    after: Any = None
    left_out: int = 0


@dataclass(frozen=True)
class _Comparison:
    tolerances: Tolerances
    history: History
    widened: Widening | None
    special: bool
    position: tuple[int, ...] = ()

    def item(self, position: int) -> "_Comparison":
        return replace(self, history=self.history.item(position), position=(*self.position, position))

    def widening(self, before: np.ndarray, most: float) -> np.ndarray:
        return np.zeros(()) if self.widened is None else self.widened(before, most, self.position)


def compare_values(
    before: Any,
    after: Any,
    tolerances: Tolerances,
    history: History | None = None,
    widened: Widening | None = None,
    *,
    special: bool = False,
) -> Gap:
    """Compare two values of one output: arrays, sequences, maps, or the None of an empty optional.

    Args:
        before: the value of the original.
        after: the value of the rewritten model.
        tolerances: the tolerances for floats.
        history: the magnitudes of the output in earlier cases.
        widened: a function that returns additional tolerances for an array that exceeds its tolerance.
        special: True if NaN or infinities were fed. NaN and infinities then all count as equal, because the order of the terms of a
            sum determines whether its result is NaN or an infinity.
    """
    return _compare(before, after, _Comparison(tolerances, history or History(), widened, special))


def _compare(before: Any, after: Any, comparison: _Comparison) -> Gap:
    if before is None or after is None:
        return Gap() if before is after else _differing("is empty in only one of the models", before, after)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        if list(before) != list(after):
            return _differing("has other keys", list(before), list(after))
        return _compare_sequences(list(before.values()), list(after.values()), comparison)
    if isinstance(before, list) and isinstance(after, list):
        if is_table(before, after):
            return _compare_arrays(as_table(before), as_table(after), comparison)
        return _compare_sequences(before, after, comparison)
    if isinstance(before, list | Mapping) or isinstance(after, list | Mapping):
        return _differing("has another type", before, after)
    return _compare_arrays(np.asarray(before), np.asarray(after), comparison)


def _compare_sequences(before: Sequence[Any], after: Sequence[Any], comparison: _Comparison) -> Gap:
    if len(before) != len(after):
        return _differing(f"has {len(before)} items before and {len(after)} after", len(before), len(after))
    gaps = [_compare(b, a, comparison.item(position)) for position, (b, a) in enumerate(zip(before, after, strict=True))]
    if not gaps:
        return Gap()
    worst = max(range(len(gaps)), key=lambda i: (gaps[i].reason is not None, np.nan_to_num(gaps[i].absolute, nan=np.inf)))
    return replace(
        gaps[worst],
        scale=max(gap.scale for gap in gaps),
        elements=sum(gap.elements for gap in gaps),
        numbers=sum(gap.numbers for gap in gaps),
        index=(worst, *gaps[worst].index),
        left_out=sum(gap.left_out for gap in gaps),
    )


def _compare_arrays(before: np.ndarray, after: np.ndarray, comparison: _Comparison) -> Gap:
    if before.dtype.kind in "OSU" and after.dtype.kind in "OSU":
        before, after = before.astype(object), after.astype(object)
    if before.dtype != after.dtype:
        return _differing(f"is {before.dtype} before and {after.dtype} after", before.dtype.name, after.dtype.name)
    if before.shape != after.shape:
        return _differing(f"has shape {before.shape} before and {after.shape} after", before.shape, after.shape)
    if before.size == 0:
        return Gap()
    return (_compare_floats if is_float(before.dtype) else _compare_exactly)(before, after, comparison)


def _compare_exactly(before: np.ndarray, after: np.ndarray, comparison: _Comparison) -> Gap:
    unequal, left_out = np.asarray(before != after), 0
    if unequal.any():
        sensitive = np.broadcast_to(comparison.widening(before, 0.0) > 0, before.shape)
        unequal, left_out = unequal & ~sensitive, int(sensitive.sum())
    if not unequal.any():
        return Gap(elements=before.size, numbers=before.size - left_out, left_out=left_out)
    at = np.unravel_index(int(np.argmax(unequal)), before.shape)
    size, index = before.size, tuple(int(i) for i in at)
    old, new = before[index], after[index]
    absolute = float("nan")
    if before.dtype.kind in "iu":
        absolute = float(np.abs(before[unequal].astype(np.float64) - after[unequal].astype(np.float64)).max())
    reason = f"is {old!s} before and {new!s} after"
    return Gap(absolute, float("nan"), 0.0, 0.0, size, size, reason, index, old, new)


def _compare_floats(before: np.ndarray, after: np.ndarray, comparison: _Comparison) -> Gap:
    tolerances, history = comparison.tolerances, comparison.history
    with np.errstate(invalid="ignore", over="ignore"):
        wide, other = before.astype(np.float64), after.astype(np.float64)
        finite = np.isfinite(wide)
        magnitudes = np.abs(np.where(finite, wide, 0.0))
        scale = float(magnitudes.max(initial=0.0))
        history.learn(magnitudes)
        output_maximum = history.largest
        own = np.minimum(element_scales(magnitudes), scale * history.proportions(before.shape))
        allowed = tolerances.allowed(before.dtype, own, history.scales(before.shape), output_maximum)
        same = (wide == other) | (np.isnan(wide) & np.isnan(other))
        if comparison.special:
            same |= ~finite & ~np.isfinite(other)
        error = np.where(same, 0.0, np.abs(wide - other))
        error = np.where(finite & np.isfinite(other) | same, error, np.inf)
        if (error > allowed).any():
            most = tolerances.allowed(before.dtype, np.asarray(scale), np.asarray(output_maximum), output_maximum)
            rounded = tolerances.one_rounding(before.dtype) * min(1.0, output_maximum)
            allowed = np.maximum(allowed, rounded) + comparison.widening(before, float(most))
            may_overflow = magnitudes > math.sqrt(largest_number(before.dtype))
            allowed = np.where(may_overflow & ~np.isfinite(other), np.inf, allowed)
            error = np.where((allowed >= LEFT_OUT) & (error <= allowed), 0.0, error)
    allowed = np.broadcast_to(allowed, error.shape)
    sensitive = allowed >= LEFT_OUT
    over = error > allowed
    worst = int(np.argmax(np.where(over, error, -1.0) if over.any() else error))
    absolute, limit = float(error.reshape(-1)[worst]), float(allowed.reshape(-1)[worst])
    size, numbers = before.size, int(before.size - (np.isnan(wide) | sensitive).sum())
    relative = absolute / scale if scale else absolute
    if not over.any():
        return Gap(absolute, relative, limit, scale, size, numbers, left_out=int(sensitive.sum()))
    index = tuple(int(i) for i in np.unravel_index(worst, before.shape))
    old, new = before[index], after[index]
    reason = f"is {float(old):.8g} before and {float(new):.8g} after (error {absolute:.2g}, allowed {limit:.2g})"
    return Gap(absolute, relative, limit, scale, size, numbers, reason, index, old, new)


def _differing(reason: str, before: Any, after: Any) -> Gap:
    return Gap(absolute=float("nan"), relative=float("nan"), reason=reason, before=before, after=after)


def is_table(*sequences: Any) -> bool:
    """Return True if all ``sequences`` consist of the same number of maps from the same keys to floats."""
    if not all(isinstance(rows, list) and rows for rows in sequences) or len({len(rows) for rows in sequences}) > 1:
        return False
    maps = [item for rows in sequences for item in rows]
    if not all(isinstance(item, Mapping) and list(item) == list(maps[0]) for item in maps):
        return False
    return all(isinstance(number, float) for item in maps for number in item.values())


def as_table(value: Any) -> Any:
    """Return a sequence of maps of floats as an array with a row for each map.

    Return any other value unchanged.
    """
    return np.array([list(item.values()) for item in value], np.float64) if is_table(value) else value
