"""Numbers of things, and lists of names, as people say them."""

from collections.abc import Iterable

from rewrites.base.plain_text import quoted

__all__ = ["counted", "listed"]

_MOST_NAMES = 5


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Return ``1 loop``, ``2 loops``; ``nouns``: the plural of a noun that does not end in s then."""
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"


def listed(names: Iterable[object], most: int = _MOST_NAMES) -> str:
    """Return names in quotes with commas between, of many only the first: ``'a', 'b' and 7 more``."""
    every = [quoted(name) for name in names]
    more = len(every) - most
    return f"{', '.join(every[:most])} and {more} more" if more > 0 else ", ".join(every)
