"""Comparing what two models computed for one output.

Integers, booleans and strings must be the same. NaN equals NaN, an infinity equals itself. Other floats may differ by

    atol + rtol * largest |before| of the output

which is what adding the same numbers in another order can cost, whatever the size of the single element. The defaults are
some roundings of the coarsest float type the original computes with (about a thousand of float32, ten of float16), and
``atol`` shrinks with outputs that never exceed 1 (down to one rounding of 1), so that an output of tiny numbers is not
waved through.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["Gap", "Tolerances", "compare_values"]

_DEFAULTS = {
    "float64": (1e-9, 1e-10),
    "float32": (1e-4, 1e-5),
    "float16": (1e-2, 4e-3),
    "bfloat16": (5e-2, 3e-2),
}
_COARSEST = (2.5e-1, 2.5e-1)


@dataclass(frozen=True)
class Tolerances:
    """The caller's tolerances; None stands for the default of the type of the output, or of ``computed`` if that is coarser."""

    rtol: float | None = None
    atol: float | None = None
    computed: np.dtype[Any] | None = None

    def allowed(self, dtype: np.dtype[Any], scale: float, largest: float) -> float:
        """What two values of ``dtype`` may differ by, for an output with ``scale`` in this case and ``largest`` in all so far."""
        if self.computed is not None:
            dtype = max(dtype, self.computed, key=_rounding)
        rtol, atol = _DEFAULTS.get(dtype.name, _COARSEST)
        rounding = _rounding(dtype)
        atol = max(rounding, atol * min(1.0, largest))
        return (atol if self.atol is None else self.atol) + (rtol if self.rtol is None else self.rtol) * scale


@dataclass(frozen=True)
class Gap:
    """How far two values are apart. ``elements`` were compared, ``numbers`` of them not NaN; ``scale`` is the largest |before|."""

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


def compare_values(before: Any, after: Any, tolerances: Tolerances, largest: float = 0.0) -> Gap:
    """Compare two values of one output: arrays, sequences, maps, or the None of an empty optional.

    ``largest`` is the largest magnitude this output had in earlier cases.
    """
    if before is None or after is None:
        if before is None and after is None:
            return Gap()
        return _unlike("is empty in one of the two", before, after)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return _compare_maps(before, after, tolerances, largest)
    if isinstance(before, list) and isinstance(after, list):
        return _compare_sequences(before, after, tolerances, largest)
    if isinstance(before, list | Mapping) or isinstance(after, list | Mapping):
        return _unlike("is of another kind", before, after)
    return _compare_arrays(np.asarray(before), np.asarray(after), tolerances, largest)


def _compare_maps(before: Mapping[Any, Any], after: Mapping[Any, Any], tolerances: Tolerances, largest: float) -> Gap:
    if list(before) != list(after):
        return _unlike("has other keys", list(before), list(after))
    return _compare_sequences(list(before.values()), list(after.values()), tolerances, largest)


def _compare_sequences(before: Sequence[Any], after: Sequence[Any], tolerances: Tolerances, largest: float) -> Gap:
    if len(before) != len(after):
        return _unlike(f"has {len(before)} items before and {len(after)} after", len(before), len(after))
    gaps = [compare_values(b, a, tolerances, largest) for b, a in zip(before, after, strict=True)]
    if not gaps:
        return Gap()
    worst = max(range(len(gaps)), key=lambda i: (gaps[i].reason is not None, np.nan_to_num(gaps[i].absolute, nan=np.inf)))
    gap = gaps[worst]
    return Gap(
        absolute=gap.absolute,
        relative=gap.relative,
        allowed=gap.allowed,
        scale=max(g.scale for g in gaps),
        elements=sum(g.elements for g in gaps),
        numbers=sum(g.numbers for g in gaps),
        reason=gap.reason,
        index=(worst, *gap.index),
        before=gap.before,
        after=gap.after,
    )


def _compare_arrays(before: np.ndarray, after: np.ndarray, tolerances: Tolerances, largest: float) -> Gap:
    if _is_text(before) and _is_text(after):
        before, after = before.astype(object), after.astype(object)
    if before.dtype != after.dtype:
        return _unlike(f"is {before.dtype} before and {after.dtype} after", before.dtype.name, after.dtype.name)
    if before.shape != after.shape:
        return _unlike(f"has shape {before.shape} before and {after.shape} after", before.shape, after.shape)
    if before.size == 0:
        return Gap()
    if _is_float(before.dtype):
        return _compare_floats(before, after, tolerances, largest)
    return _compare_exactly(before, after)


def _compare_exactly(before: np.ndarray, after: np.ndarray) -> Gap:
    unequal = before != after
    if not unequal.any():
        return Gap(elements=before.size, numbers=before.size)
    at = np.unravel_index(int(np.argmax(unequal)), before.shape)
    size, index = before.size, tuple(int(i) for i in at)
    one, other = before[index], after[index]
    absolute = float("nan")
    if before.dtype.kind in "iu":
        absolute = float(np.abs(before[unequal].astype(np.float64) - after[unequal].astype(np.float64)).max())
    reason = f"is {one!s} before and {other!s} after"
    return Gap(absolute, float("nan"), 0.0, 0.0, size, size, reason, index, one, other)


def _compare_floats(before: np.ndarray, after: np.ndarray, tolerances: Tolerances, largest: float) -> Gap:
    with np.errstate(invalid="ignore", over="ignore"):
        wide, other = before.astype(np.float64), after.astype(np.float64)
        finite = np.isfinite(wide)
        scale = float(np.abs(wide[finite]).max(initial=0.0))
        allowed = tolerances.allowed(before.dtype, scale, max(scale, largest))
        same = (wide == other) | (np.isnan(wide) & np.isnan(other))
        error = np.where(same, 0.0, np.abs(wide - other))
    error = np.where(finite & np.isfinite(other) | same, error, np.inf)
    worst = int(np.argmax(error))
    absolute = float(error.reshape(-1)[worst])
    size, numbers = before.size, int(before.size - np.isnan(wide).sum())
    relative = absolute / scale if scale else absolute
    if absolute <= allowed:
        return Gap(absolute, relative, allowed, scale, size, numbers)
    index = tuple(int(i) for i in np.unravel_index(worst, before.shape))
    one, two = before[index], after[index]
    reason = f"is {float(one):.8g} before and {float(two):.8g} after (error {absolute:.2g}, allowed {allowed:.2g})"
    return Gap(absolute, relative, allowed, scale, size, numbers, reason, index, one, two)


def _rounding(dtype: np.dtype[Any]) -> float:
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]


def _unlike(reason: str, before: Any, after: Any) -> Gap:
    return Gap(absolute=float("nan"), relative=float("nan"), reason=reason, before=before, after=after)


def _is_text(array: np.ndarray) -> bool:
    return array.dtype.kind in "OSU"


def _is_float(dtype: np.dtype[Any]) -> bool:
    """Whether dtype is a float, those of ml_dtypes (which numpy calls void) included."""
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)
