"""Makes text for messages: printable and short names, counts, lists of names, and suggestions.

A name in a model may contain any characters, have many lines, or be a megabyte long.
"""

import difflib
import re
from collections.abc import Iterable

__all__ = ["counted", "cut", "did_you_mean", "listed", "near_names", "one_line", "plain", "quoted", "sentence", "shown"]


_LONGEST_NAME = 120
_LONGEST_WORD = 500
_LONGEST_SENTENCE = 3000
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")
_LONG_NAME = re.compile(rf"[^\s/\\]{{{_LONGEST_NAME + 1},}}")
"""Matches a name, or a part of a path, that is too long for a message."""


def plain(text: object) -> str:
    """Return ``text`` with unprintable characters written as escapes such as ``\\x1b``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


def one_line(text: object) -> str:
    """Return ``text`` as a single printable line. Each run of white space becomes one space."""
    return plain(" ".join(str(text).split()))


def cut(text: str, longest: int) -> str:
    """Return ``text``. If it has more than ``longest`` characters, replace its middle by dots."""
    return text if len(text) <= longest else f"{text[: longest * 2 // 3]}...{text[3 - (longest - longest * 2 // 3) :]}"


def quoted(name: object) -> str:
    """Return a name in single quotes. Escape unprintable characters, and shorten a long name."""
    return f"'{plain(cut(str(name), _LONGEST_NAME))}'"


def shown(value: object) -> str:
    """Return the ``repr`` of a caller's value as printable, short text.

    If ``repr`` fails, return a text such as ``a list`` with the name of the type.
    """
    try:
        return plain(cut(repr(value), _LONGEST_NAME))
    except Exception:  # __repr__ may be a caller's code; Python also refuses numbers of many digits
        return f"a {type(value).__name__}"


def sentence(text: object) -> str:
    """Return ``text`` as one printable, short line.

    Line ends and unprintable characters become escapes. Long names, long words and a long text are shortened.
    """
    short = _LONG_NAME.sub(lambda name: cut(name.group(), _LONGEST_NAME), cut(str(text), _LONGEST_SENTENCE * 10))
    short = _LONG_WORD.sub(lambda word: cut(word.group(), _LONGEST_WORD), short)
    return cut(plain(cut(short, _LONGEST_SENTENCE)), _LONGEST_SENTENCE)


_MOST_NAMES = 5


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Return a number with a noun, such as ``1 loop`` or ``2 loops``.

    ``nouns``: the plural, if it is not ``noun`` with an s.
    """
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"


def listed(names: Iterable[object], most: int = _MOST_NAMES) -> str:
    """Return the names in quotes, separated by commas.

    If there are more than ``most`` names, list only the first ones and count the others: ``'a', 'b' and 7 more``.
    """
    every = [quoted(name) for name in names]
    more = len(every) - most
    return f"{', '.join(every[:most])} and {more} more" if more > 0 else ", ".join(every)


_MOST_LOOKED_AT = 1000
_LONGEST = 200
_ALIKE = 0.6


def near_names(name: str, known: Iterable[str], most: int = 1, alike: float = _ALIKE) -> list[str]:
    """Return at most ``most`` names of ``known`` that are similar to ``name``, the most similar first.

    Case is ignored. ``alike``: the least similarity of a returned name, from 0 (any name) to 1 (only equal names).
    """
    short = [other for _, other in zip(range(_MOST_LOOKED_AT), known, strict=False) if len(other) <= _LONGEST]
    folded = {other.casefold(): other for other in reversed(short)}
    near = difflib.get_close_matches(name[:_LONGEST].casefold(), folded, n=most, cutoff=alike)
    return [folded[other] for other in near]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a text such as ``, perhaps 'batch' was meant`` if a known name is similar to ``name``.

    Otherwise, return an empty text.
    """
    near = near_names(name, known) if isinstance(name, str) else []
    return f", perhaps {quoted(near[0])} was meant" if near else ""
