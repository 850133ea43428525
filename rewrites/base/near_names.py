"""Names that are spelled much like one that there is not: what its writer may have meant."""

import difflib
from collections.abc import Iterable

from rewrites.base.plain_text import quoted

__all__ = ["did_you_mean", "near_names"]

_MOST_LOOKED_AT = 1000
_LONGEST = 200
_ALIKE = 0.6


def near_names(name: str, known: Iterable[str], most: int = 1, alike: float = _ALIKE) -> list[str]:
    """Return the ``known`` names spelled most like ``name``, the likest first; in capitals or not is all the same."""
    short = [other for _, other in zip(range(_MOST_LOOKED_AT), known, strict=False) if len(other) <= _LONGEST]
    folded = {other.casefold(): other for other in reversed(short)}
    near = difflib.get_close_matches(name[:_LONGEST].casefold(), folded, n=most, cutoff=alike)
    return [folded[other] for other in near]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ``, perhaps 'batch' was meant`` where a known name is spelled much like ``name``, else nothing."""
    near = near_names(name, known) if isinstance(name, str) else []
    return f", perhaps {quoted(near[0])} was meant" if near else ""
