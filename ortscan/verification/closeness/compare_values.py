"""Comparing what two models computed for one output.

Integers, booleans and strings must be the same. NaN equals NaN, an infinity equals itself. Other floats may differ by

    atol + rtol * largest |before| of the same row or column (see ``scales``)

which is what adding the same numbers in another order can cost, whatever the size of the single element. The defaults are
some roundings of the coarsest float type the output is computed with (about a thousand of float32, ten of float16), and
``atol`` shrinks with rows, columns and outputs that never exceed 1, so that tiny numbers are not waved through.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ortscan.ort.element_types import largest_number, rounding
from ortscan.verification.closeness.scales import History, own_scales
from ortscan.verification.closeness.tables import as_table, is_table

__all__ = ["LEFT_OUT", "Gap", "Tolerances", "Widening", "compare_values"]

_DEFAULTS = {
    "float64": (1e-9, 1e-10),
    "float32": (1e-4, 1e-5),
    "float16": (1e-2, 4e-3),
    "bfloat16": (5e-2, 3e-2),
}
_COARSEST = (2.5e-1, 2.5e-1)
_PART = 100.0
_TINY = 0.1

Widening = Callable[[np.ndarray, float, tuple[int, ...]], np.ndarray]
"""Takes an array, what it may differ by as a whole, and its position in an output that is a sequence; returns how much more each
element may differ by (see ``sensitivity``): ``LEFT_OUT`` if by any number, infinity if the other need not be a number."""
LEFT_OUT = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Tolerances:
    """The caller's tolerances; None stands for the default of the type of the output, or of ``computed`` if that is coarser.

    ``roundings``: how many roundings of 1 a single operator may be off by; the recurrent nodes have activations of their own.
    """

    rtol: float | None = None
    atol: float | None = None
    computed: np.dtype[Any] | None = None
    roundings: float = 1.0

    def coarsest(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the type whose roundings an output of ``dtype`` has."""
        kinds = [kind for kind in (dtype, self.computed) if kind is not None and _is_float(kind)]
        return max(kinds, key=rounding, default=dtype)

    def one_rounding(self, dtype: np.dtype[Any]) -> float:
        """Return what a single operator that gives ``dtype`` may be off by, such as an activation that gives up to 1."""
        return self.roundings * rounding(self.coarsest(dtype))

    def allowed(self, dtype: np.dtype[Any], scale: np.ndarray, largest: np.ndarray, over_all: float) -> np.ndarray:
        """Return what values of ``dtype`` may differ by.

        ``scale``: of each element in this case; ``largest``: in all so far; ``over_all``: of the whole output in all so far.
        """
        dtype = self.coarsest(dtype)
        rtol, atol = _DEFAULTS.get(dtype.name, _COARSEST)
        part = np.where(largest < over_all, np.minimum(1.0, _PART * largest), 1.0) if over_all > _TINY else 1.0
        least = np.maximum(self.one_rounding(dtype) * part, atol * np.minimum(1.0, largest))
        return np.asarray((least if self.atol is None else self.atol) + (rtol if self.rtol is None else self.rtol) * scale)


@dataclass(frozen=True)
class Gap:
    """How far two values are apart. ``elements`` there were, ``numbers`` of them not NaN; ``scale`` is the largest |before|.

    ``left_out``: how many were not compared, as they hang on the last digits.
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
class _Known:
    tolerances: Tolerances
    history: History
    widened: Widening | None
    special: bool
    place: tuple[int, ...] = ()

    def item(self, position: int) -> "_Known":
        return replace(self, history=self.history.item(position), place=(*self.place, position))

    def more(self, before: np.ndarray, most: float) -> np.ndarray:
        return np.zeros(()) if self.widened is None else self.widened(before, most, self.place)


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

    ``history`` holds the output of earlier cases. ``widened`` is called for arrays that differ by more than they may.
    ``special``: NaN and infinities were fed, so that all three count as one: which it is hangs on the order of sums.
    """
    return _compare(before, after, _Known(tolerances, history or History(), widened, special))


def _compare(before: Any, after: Any, known: _Known) -> Gap:
    if before is None or after is None:
        if before is None and after is None:
            return Gap()
        return _unlike("is empty in one of the two", before, after)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return _compare_maps(before, after, known)
    if isinstance(before, list) and isinstance(after, list):
        if is_table(before, after):
            return _compare_arrays(as_table(before), as_table(after), known)
        return _compare_sequences(before, after, known)
    if isinstance(before, list | Mapping) or isinstance(after, list | Mapping):
        return _unlike("is of another kind", before, after)
    return _compare_arrays(np.asarray(before), np.asarray(after), known)


def _compare_maps(before: Mapping[Any, Any], after: Mapping[Any, Any], known: _Known) -> Gap:
    if list(before) != list(after):
        return _unlike("has other keys", list(before), list(after))
    return _compare_sequences(list(before.values()), list(after.values()), known)


def _compare_sequences(before: Sequence[Any], after: Sequence[Any], known: _Known) -> Gap:
    if len(before) != len(after):
        return _unlike(f"has {len(before)} items before and {len(after)} after", len(before), len(after))
    gaps = [_compare(b, a, known.item(position)) for position, (b, a) in enumerate(zip(before, after, strict=True))]
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
        left_out=sum(g.left_out for g in gaps),
    )


def _compare_arrays(before: np.ndarray, after: np.ndarray, known: _Known) -> Gap:
    if _is_text(before) and _is_text(after):
        before, after = before.astype(object), after.astype(object)
    if before.dtype != after.dtype:
        return _unlike(f"is {before.dtype} before and {after.dtype} after", before.dtype.name, after.dtype.name)
    if before.shape != after.shape:
        return _unlike(f"has shape {before.shape} before and {after.shape} after", before.shape, after.shape)
    if before.size == 0:
        return Gap()
    if _is_float(before.dtype):
        return _compare_floats(before, after, known)
    return _compare_exactly(before, after, known)


def _compare_exactly(before: np.ndarray, after: np.ndarray, known: _Known) -> Gap:
    unequal, left_out = np.asarray(before != after), 0
    if unequal.any():
        hanging = np.broadcast_to(known.more(before, 0.0) > 0, before.shape)
        unequal, left_out = unequal & ~hanging, int(hanging.sum())
    if not unequal.any():
        return Gap(elements=before.size, numbers=before.size - left_out, left_out=left_out)
    at = np.unravel_index(int(np.argmax(unequal)), before.shape)
    size, index = before.size, tuple(int(i) for i in at)
    one, other = before[index], after[index]
    absolute = float("nan")
    if before.dtype.kind in "iu":
        absolute = float(np.abs(before[unequal].astype(np.float64) - after[unequal].astype(np.float64)).max())
    reason = f"is {one!s} before and {other!s} after"
    return Gap(absolute, float("nan"), 0.0, 0.0, size, size, reason, index, one, other)


def _compare_floats(before: np.ndarray, after: np.ndarray, known: _Known) -> Gap:
    with np.errstate(invalid="ignore", over="ignore"):
        wide, other = before.astype(np.float64), after.astype(np.float64)
        finite = np.isfinite(wide)
        magnitudes = np.abs(np.where(finite, wide, 0.0))
        scale = float(magnitudes.max(initial=0.0))
        known.history.learn(magnitudes)
        earlier = known.history.scales(before.shape)
        over_all = known.history.largest
        own = np.minimum(own_scales(magnitudes), scale * known.history.proportions(before.shape))
        allowed = known.tolerances.allowed(before.dtype, own, earlier, over_all)
        same = (wide == other) | (np.isnan(wide) & np.isnan(other))
        if known.special:
            same |= ~finite & ~np.isfinite(other)
        error = np.where(same, 0.0, np.abs(wide - other))
        error = np.where(finite & np.isfinite(other) | same, error, np.inf)
        if (error > allowed).any():
            most = known.tolerances.allowed(before.dtype, np.asarray(scale), np.asarray(over_all), over_all)
            rounded = known.tolerances.one_rounding(before.dtype) * min(1.0, over_all)
            allowed = np.maximum(allowed, rounded) + known.more(before, float(most))
            may_overflow = magnitudes > math.sqrt(largest_number(before.dtype))
            allowed = np.where(may_overflow & ~np.isfinite(other), np.inf, allowed)
            error = np.where((allowed >= LEFT_OUT) & (error <= allowed), 0.0, error)
    allowed = np.broadcast_to(allowed, error.shape)
    hanging = allowed >= LEFT_OUT
    over = error > allowed
    worst = int(np.argmax(np.where(over, error, -1.0) if over.any() else error))
    absolute, limit = float(error.reshape(-1)[worst]), float(allowed.reshape(-1)[worst])
    size, numbers = before.size, int(before.size - (np.isnan(wide) | hanging).sum())
    relative = absolute / scale if scale else absolute
    if not over.any():
        return Gap(absolute, relative, limit, scale, size, numbers, left_out=int(hanging.sum()))
    index = tuple(int(i) for i in np.unravel_index(worst, before.shape))
    one, two = before[index], after[index]
    reason = f"is {float(one):.8g} before and {float(two):.8g} after (error {absolute:.2g}, allowed {limit:.2g})"
    return Gap(absolute, relative, limit, scale, size, numbers, reason, index, one, two)


def _unlike(reason: str, before: Any, after: Any) -> Gap:
    return Gap(absolute=float("nan"), relative=float("nan"), reason=reason, before=before, after=after)


def _is_text(array: np.ndarray) -> bool:
    return array.dtype.kind in "OSU"


def _is_float(dtype: np.dtype[Any]) -> bool:
    """Whether dtype is a float, those of ml_dtypes (which numpy calls void) included."""
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)
