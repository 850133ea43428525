"""How option values are spelled: sizes in bytes, shapes, lists of names."""

import argparse
import math
import re

__all__ = ["byte_size", "name_list", "seconds", "seed", "shape", "shapes_by_name", "steps", "tolerance"]

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def byte_size(text: str) -> int:
    """Read ``1048576``, ``256M``, ``1.5G`` or ``1GiB``; units are powers of 1024."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", text.strip().upper())
    size = float(match[1]) * _UNITS[match[2]] if match is not None else math.inf
    if size == math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size such as 256M or 1G")
    return int(size)


def shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Read ``x:64,1,128`` or ``x:[64,1,128]``; the name ends at the last colon, so ``x:0:64,1`` is for ``x:0``."""
    name, colon, dims = text.rpartition(":")
    inner = re.fullmatch(r"\s*(\[)?\s*(\d+(?:\s*,\s*\d+)*)?\s*(?(1)\])\s*", dims)
    if not colon or not name or inner is None or not (inner[1] or inner[2]):
        raise argparse.ArgumentTypeError(f"'{text}' is not a shape such as x:64,1,128")
    return name, tuple(int(dim) for dim in inner[2].split(",")) if inner[2] else ()


def shapes_by_name(shapes: list[tuple[str, tuple[int, ...]]] | None) -> dict[str, tuple[int, ...]] | None:
    """Gather the repeated option; of two shapes for one input the last counts."""
    return dict(shapes) if shapes else None


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
