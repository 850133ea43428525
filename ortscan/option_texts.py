"""Read the values of options from the texts of the command line and of session entries.

The readers for the command line raise ArgumentTypeError.
"""

import argparse
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from ortscan.base.costs_file import read_costs

__all__ = [
    "PAIRS",
    "by_name",
    "read_byte_size",
    "read_costs_option",
    "read_count",
    "read_dim",
    "read_dims",
    "read_flag",
    "read_freeze",
    "read_freeze_entry",
    "read_input_value",
    "read_name_list",
    "read_opset",
    "read_seconds",
    "read_shape",
    "read_shapes",
    "read_sizes",
    "read_tolerance",
    "read_values",
    "read_verification",
]

_T = TypeVar("_T")
_TRUE, _FALSE = ("1", "true", "on", "yes"), ("0", "false", "off", "no")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def read_byte_size(text: str) -> int:
    """Return the number of bytes in a text such as ``1048576``, ``256M``, ``1.5G`` or ``1GiB``.

    Units are powers of 1024.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", text.strip().upper())
    size = float(match[1]) * _UNITS[match[2]] if match is not None else math.inf
    if size == math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size such as 256M or 1G")
    return int(size)


def read_shape(text: str) -> tuple[str, tuple[int | None, ...]]:
    """Read ``x:64,?,128`` or ``x:[64,?,128]`` as ``("x", (64, None, 128))``.

    The name ends at the last colon, so ``x:0:64,1`` is a shape of ``x:0``.
    """
    name, colon, dims = text.rpartition(":")
    inner = re.fullmatch(r"\s*(\[)?\s*((?:\d+|\?)(?:\s*,\s*(?:\d+|\?))*)?\s*(?(1)\])\s*", dims)
    if not colon or not name or inner is None or not (inner[1] or inner[2]):
        raise argparse.ArgumentTypeError(f"'{text}' is not a shape such as x:64,1,128 or x:64,?,128")
    parts = inner[2].split(",") if inner[2] else []
    return name, tuple(None if each.strip() == "?" else int(each) for each in parts)


def read_dim(text: str) -> tuple[str, int]:
    """Read ``T=64`` as ``("T", 64)``. The name ends at the last equals sign."""
    name, equals, size = text.rpartition("=")
    if not equals or not name or re.fullmatch(r"\s*[0-9]{1,30}\s*", size) is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not the size of a dimension such as T=64")
    return name, int(size)


def by_name(pairs: Sequence[tuple[str, _T]] | None) -> dict[str, _T] | None:
    """Return the (name, value) pairs of a repeated option as a dict, or None if there are no pairs.

    If a name is repeated, its last value is used.
    """
    return dict(pairs) if pairs else None


def read_input_value(text: str) -> tuple[str, Any]:
    """Read ``sr=16000`` as ``("sr", 16000)``. The name ends at the first equals sign.

    A value is read as JSON, as in ``on=true``, ``gain=0.5`` or ``lengths=[3,5]``. If it is not JSON, as in ``mode=fast``, it is
    text.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"'{text}' is not the value of an input such as sr=16000")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def read_freeze(text: str) -> bool | list[str]:
    """Read ``all`` as True, or ``a,b`` as ``["a", "b"]``."""
    return True if text == "all" else read_name_list(text)


def read_sizes(text: str) -> tuple[str, list[int]]:
    """Read ``T=16,64`` as ``("T", [16, 64])``. The name ends at the last equals sign."""
    name, equals, numbers = text.rpartition("=")
    if not equals or not name or re.fullmatch(r"\s*\d+(\s*,\s*\d+)*\s*", numbers) is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of sizes such as T=16,64")
    return name, [int(size) for size in numbers.split(",")]


def read_name_list(text: str) -> list[str]:
    """Read ``a,b`` as ``["a", "b"]``."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of names such as a,b")
    return names


def read_seconds(text: str) -> float:
    """Read a number of seconds above 0."""
    if (value := _number(text)) > 0:
        return value
    raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds above 0")


def read_tolerance(text: str) -> float:
    """Read a number that is zero or more."""
    if (value := _number(text)) >= 0:
        return value
    raise argparse.ArgumentTypeError(f"'{text}' is not a tolerance such as 1e-4")


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return -1.0
    return value if math.isfinite(value) else -1.0


def read_count(text: str) -> int:
    """Read a whole number of 0 or more."""
    if re.fullmatch(r"[0-9]+", text.strip()) is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 0 or more")
    return int(text)


def read_flag(text: str) -> bool:
    """Read ``1``, ``true``, ``on`` or ``yes`` as True, and ``0``, ``false``, ``off`` or ``no`` as False."""
    if text.lower() not in _TRUE + _FALSE:
        raise ValueError(f"'{text}' is not 1 or 0")
    return text.lower() in _TRUE


def read_costs_option(text: str) -> dict[str, float]:
    """Return the costs in the file at the path ``text``.

    A session gets the numbers instead of the path, because the name of its cache entry depends on the numbers.
    """
    return asdict(read_costs(text))


def read_shapes(text: str) -> dict[str, tuple[int | None, ...]]:
    """Read ``x:64,1;y:2`` as ``{"x": (64, 1), "y": (2,)}``."""
    return _entries(read_shape, text)


def read_dims(text: str) -> dict[str, int]:
    """Read ``T=64;B=1`` as ``{"T": 64, "B": 1}``."""
    return _entries(read_dim, text)


def read_values(text: str) -> dict[str, Any]:
    """Read ``sr=16000;mode=1``, or the JSON object ``{"sr": 16000, "mode": 1}``, as a dict."""
    if text.startswith("{"):
        loaded = json.loads(text)
        assert isinstance(loaded, dict)
        return loaded
    return _entries(read_input_value, text)


def _entries(read: Callable[[str], tuple[str, _T]], text: str) -> dict[str, _T]:
    return dict(read(part) for part in text.split(";") if part.strip())


def read_freeze_entry(text: str) -> bool | list[str]:
    """Read ``1`` or ``all`` as True, ``0`` as False, or ``a,b`` as ``["a", "b"]``."""
    return read_flag(text) if text.lower() in _TRUE + _FALSE else read_freeze(text)


def read_opset(text: str) -> int | str:
    """Return ``18`` as a number, and a word such as ``auto`` unchanged."""
    return int(text) if text.isdecimal() else text


def read_verification(text: str) -> bool | str:
    """Return ``quick`` or ``full`` unchanged, ``1`` as True, and ``0`` as False."""
    if text in ("quick", "full"):
        return text
    try:
        return read_flag(text)
    except ValueError:
        raise ValueError(f"'{text}' is not quick, full, 1 or 0") from None


PAIRS = (read_shape, read_dim, read_input_value)
"""The readers of options that may be repeated, each time with a name and a value."""
