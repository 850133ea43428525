"""Where the model of a session is optimised: a small one here, a large one in a process of its own."""

from collections.abc import Mapping
from typing import Any

from ortscan.session.fresh import fresh
from ortscan.session.place import Place
from ortscan.session.prepared import Prepared
from ortscan.session.source import Source

__all__ = ["made"]

_LARGE = 16 << 20
"""Bytes from which on the memory that optimising takes is worth the start of a process."""


def made(source: Source, options: Mapping[str, Any], place: Place | None) -> Prepared:
    """Optimise, as ``fresh`` says. Raises what it raises."""
    if source.size >= _LARGE:
        from ortscan.base import child_process
        from ortscan.session.apart import fresh_apart

        prepared = fresh_apart(source, options, place) if child_process.can_start() else None
        if prepared is not None:
            return prepared
    return fresh(source, options, place)
