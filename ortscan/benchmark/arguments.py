"""The options of a benchmark, read."""

import itertools
import numbers
import operator
from collections.abc import Iterable, Mapping
from typing import Any

from rewrites.base.errors import OptionError
from rewrites.base.plain_text import shown

__all__ = ["check_effort", "given_sizes"]

_MOST = 1000
_MOST_ROUNDS = 1000
_MOST_SECONDS = 10**6


def given_sizes(sizes: Any) -> dict[str, list[int]]:
    """Return ``sizes``, such as ``{"T": [16, 64], "B": 1}``, as lists; raises OptionError where it is none such."""
    if sizes is None:
        return {}
    if not isinstance(sizes, Mapping):
        raise OptionError(f"sizes must be a dict such as {{'T': [16, 64]}}, not {shown(sizes)}.")
    return {str(name): _sizes(name, given) for name, given in sizes.items()}


def _sizes(name: Any, given: Any) -> list[int]:
    many = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
    try:
        found = [operator.index(size) for size in (itertools.islice(given, _MOST) if many else [given])]
    except TypeError:
        found = []
    if not found or min(found) < 0 or any(isinstance(size, bool) for size in (given if many else [given])):
        raise OptionError(f"sizes: that of {shown(name)} must be a number of 0 or more, or a list of such, not {shown(given)}.")
    return list(dict.fromkeys(found))


def check_effort(threads: Any, rounds: Any, seconds: Any) -> None:
    """Raise OptionError for numbers of threads, rounds or seconds that are none."""
    if not _is_within(threads, numbers.Integral, 0, _MOST):
        raise OptionError(f"threads must be a whole number of 0 to {_MOST}, not {shown(threads)}.")
    if not _is_within(rounds, numbers.Integral, 1, _MOST_ROUNDS):
        raise OptionError(f"rounds must be a whole number of 1 to {_MOST_ROUNDS}, not {shown(rounds)}.")
    if not _is_within(seconds, numbers.Real, 0, _MOST_SECONDS) or not seconds:
        raise OptionError(f"seconds must be a number above 0 and up to {_MOST_SECONDS}, not {shown(seconds)}.")


def _is_within(value: Any, kind: type, least: int, most: int) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and bool(least <= value <= most)  # type: ignore[operator]
