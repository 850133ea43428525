"""Checks what a caller passed as shapes, seed and tolerances; every refusal names the option."""

import itertools
import math
import numbers
import operator
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rewrites.base.errors import OptionError
from rewrites.base.plain_text import shown

__all__ = ["check_comparison", "check_limits", "given_shapes"]

_SMALLEST = sys.float_info.min
_MOST_SHAPES, _MOST_AXES = 100_000, 1000
_MOST_BITS = 1000


def given_shapes(shapes: Any, option: str = "shapes") -> dict[str, Sequence[int | None]]:
    """Return ``shapes`` as a dict of lists, {} for None; whether they fit the model is not looked at. ``option``: their name.

    Raises:
        OptionError: it is no dict of input name to sizes.
    """
    if shapes is None:
        return {}
    if not isinstance(shapes, Mapping):
        raise OptionError(f"{option} must be a dict such as {{'x': [64, 1, 128]}}, not {type(shapes).__name__}.")
    found: dict[str, Sequence[int | None]] = {
        name: _sizes(name, dims, option) for name, dims in itertools.islice(shapes.items(), _MOST_SHAPES)
    }
    if len(found) == _MOST_SHAPES:
        raise OptionError(f"{option} has {_MOST_SHAPES} shapes or more.")
    return found


def _sizes(name: Any, dims: Any, option: str) -> list[int | None]:
    try:
        dims = dims if isinstance(dims, str | bytes | Mapping) else list(itertools.islice(dims, _MOST_AXES))
        if not isinstance(dims, list) or len(dims) == _MOST_AXES or any(isinstance(size, bool) for size in dims):
            raise TypeError
        sizes = [None if size is None else operator.index(size) for size in dims]
        if any(size is not None and size.bit_length() > _MOST_BITS for size in sizes):
            raise TypeError
        return sizes
    except TypeError:
        raise OptionError(f"{option}: the shape of '{name}' must be a list of whole numbers, not {shown(dims)}.") from None


def check_comparison(seed: Any, rtol: Any, atol: Any, providers: Any) -> None:
    """Raise OptionError for a seed that is no whole number of 0 or more, or a tolerance that is no finite number of 0 or more."""
    if not isinstance(seed, numbers.Integral) or seed < 0:
        raise OptionError(f"seed must be a whole number of 0 or more, not {shown(seed)}.")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is None:
            continue
        if not isinstance(value, numbers.Real) or isinstance(value, bool) or not _is_within(value, 0):
            raise OptionError(f"{name} must be a number of 0 or more, not {shown(value)}.")
    if isinstance(providers, str):
        raise OptionError("providers is a list of names, not one string.")


def _is_within(value: Any, least: float) -> bool:
    try:
        return least <= float(value) < math.inf
    except OverflowError:
        return False


def check_limits(level: Any, time_limit: Any, memory_limit: Any) -> None:
    """Raise OptionError for a level that there is not, or a limit that is no positive number."""
    if not isinstance(level, str) or level not in ("full", "quick"):
        raise OptionError(f"level must be 'full' or 'quick', not {shown(level)}.")
    for name, value, kind in (("time_limit", time_limit, numbers.Real), ("memory_limit", memory_limit, numbers.Integral)):
        if value is None:
            continue
        if not isinstance(value, kind) or isinstance(value, bool) or not _is_within(value, _SMALLEST):
            what = "a number of seconds above 0" if name == "time_limit" else "a whole number of bytes above 0"
            raise OptionError(f"{name} must be {what}, not {shown(value)}.")
