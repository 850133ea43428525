"""Text from models and libraries made fit for a message: a name may hold anything, be a megabyte long, and run over many lines."""

import re

__all__ = ["cut", "one_line", "plain", "quoted", "sentence", "shown"]

_LONGEST_NAME = 120
_LONGEST_WORD = 500
_LONGEST_SENTENCE = 3000
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")
_LONG_NAME = re.compile(rf"[^\s/\\]{{{_LONGEST_NAME + 1},}}")
"""A name, or a part of a path."""


def plain(text: object) -> str:
    """Return ``text`` with everything unprintable written as an escape such as ``\\x1b``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


def one_line(text: object) -> str:
    """Return ``text`` on a single line, printable: any white space becomes one space."""
    return plain(" ".join(str(text).split()))


def cut(text: str, longest: int) -> str:
    """Return ``text`` without its middle where it is longer than ``longest``."""
    return text if len(text) <= longest else f"{text[: longest * 2 // 3]}...{text[3 - (longest - longest * 2 // 3) :]}"


def quoted(name: object) -> str:
    """Return a name in single quotes, printable and of bounded length."""
    return f"'{plain(cut(str(name), _LONGEST_NAME))}'"


def shown(value: object) -> str:
    """Return what a caller gave as Python writes it, printable and short; what cannot be written is named by its type."""
    try:
        return plain(cut(repr(value), _LONGEST_NAME))
    except Exception:  # a repr is anybody's code; of numbers of many digits there is none
        return f"a {type(value).__name__}"


def sentence(text: object) -> str:
    """Return ``text`` as a message shows it: line ends and all unprintable escaped, long names and words without their middle."""
    short = _LONG_NAME.sub(lambda name: cut(name.group(), _LONGEST_NAME), cut(str(text), _LONGEST_SENTENCE * 10))
    short = _LONG_WORD.sub(lambda word: cut(word.group(), _LONGEST_WORD), short)
    return cut(plain(cut(short, _LONGEST_SENTENCE)), _LONGEST_SENTENCE)
