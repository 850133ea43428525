"""Whether the facts of an entry are such as the store writes: what can be read may have been written by anything."""

from collections.abc import Mapping
from typing import Any

__all__ = ["is_well_formed"]

_LARGEST = 1 << 48


def is_well_formed(facts: Mapping[str, Any]) -> bool:
    """Return whether what the store itself goes by is there, and of the types it should be."""
    size, structure, given = facts.get("bytes"), facts.get("structure"), facts.get("given")
    if not _is_size(size) or not isinstance(facts.get("checks"), str):
        return False
    if not (isinstance(structure, list) and len(structure) == 2 and isinstance(structure[0], str)):
        return False
    if not _are_sizes(structure[1], 2) or any(not start <= stop <= size for start, stop in structure[1]):
        return False
    return given is None or (isinstance(given, dict) and _is_size(given.get("bytes")) and _are_sizes(given.get("runs"), 3))


def _is_size(number: Any) -> bool:
    return type(number) is int and 0 <= number < _LARGEST


def _are_sizes(rows: Any, width: int) -> bool:
    """Return whether ``rows`` are lists of ``width`` numbers each."""
    return isinstance(rows, list) and all(isinstance(row, list) and len(row) == width and all(map(_is_size, row)) for row in rows)
