"""How option values are spelled: sizes in bytes, shapes, lists of names."""

import argparse
import json
import math
import re
from typing import Any

__all__ = [
    "byte_size",
    "dim",
    "dims_by_name",
    "frozen",
    "input_value",
    "name_list",
    "seconds",
    "seed",
    "shape",
    "shapes_by_name",
    "sizes",
    "steps",
    "tolerance",
]

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def byte_size(text: str) -> int:
    """Read ``1048576``, ``256M``, ``1.5G`` or ``1GiB``; units are powers of 1024."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", text.strip().upper())
    size = float(match[1]) * _UNITS[match[2]] if match is not None else math.inf
    if size == math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size such as 256M or 1G")
    return int(size)


def shape(text: str) -> tuple[str, tuple[int | None, ...]]:
    """Read ``x:64,1,128``, ``x:[64,1,128]`` or ``x:64,?,128``; the name ends at the last colon, so ``x:0:64,1`` is for ``x:0``."""
    name, colon, dims = text.rpartition(":")
    inner = re.fullmatch(r"\s*(\[)?\s*((?:\d+|\?)(?:\s*,\s*(?:\d+|\?))*)?\s*(?(1)\])\s*", dims)
    if not colon or not name or inner is None or not (inner[1] or inner[2]):
        raise argparse.ArgumentTypeError(f"'{text}' is not a shape such as x:64,1,128 or x:64,?,128")
    parts = inner[2].split(",") if inner[2] else []
    return name, tuple(None if each.strip() == "?" else int(each) for each in parts)


def dim(text: str) -> tuple[str, int]:
    """Read ``T=64``; the name ends at the last sign."""
    name, equals, size = text.rpartition("=")
    if not equals or not name or re.fullmatch(r"\s*[0-9]{1,30}\s*", size) is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not the size of a dimension such as T=64")
    return name, int(size)


def dims_by_name(dims: list[tuple[str, int]] | None) -> dict[str, int] | None:
    """Gather the repeated option; of two sizes for one dimension the last counts."""
    return dict(dims) if dims else None


def shapes_by_name(shapes: list[tuple[str, tuple[int | None, ...]]] | None) -> dict[str, tuple[int | None, ...]] | None:
    """Gather the repeated option; of two shapes for one input the last counts."""
    return dict(shapes) if shapes else None


def input_value(text: str) -> tuple[str, Any]:
    """Read ``sr=16000``, ``on=true``, ``gain=0.5``, ``lengths=[3,5]`` or ``mode=fast``; the name ends at the first ``=``."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"'{text}' is not the value of an input such as sr=16000")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def frozen(text: str) -> bool | list[str]:
    """Read ``all`` or ``a,b``."""
    return True if text == "all" else name_list(text)


def sizes(text: str) -> tuple[str, list[int]]:
    """Read ``T=16,64``; the name ends at the last sign."""
    name, equals, numbers = text.rpartition("=")
    if not equals or not name or re.fullmatch(r"\s*\d+(\s*,\s*\d+)*\s*", numbers) is None:
        raise argparse.ArgumentTypeError(f"'{text}' does not name sizes as T=16,64 does")
    return name, [int(size) for size in numbers.split(",")]


def name_list(text: str) -> list[str]:
    """Read ``a,b``."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of names such as a,b")
    return names


def seconds(text: str) -> float:
    """Read a number of seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds above 0")
    return value


def seed(text: str) -> int:
    """Read a whole number that is zero or more."""
    if re.fullmatch(r"[0-9]+", text.strip()) is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not a seed: a whole number of 0 or more")
    return int(text)


def steps(text: str) -> int:
    """Read a number of steps."""
    if re.fullmatch(r"[0-9]+", text.strip()) is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of steps: a whole number of 0 or more")
    return int(text)


def tolerance(text: str) -> float:
    """Read a number that is zero or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"'{text}' is not a tolerance such as 1e-4")
    return value
