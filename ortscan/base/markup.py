"""Escape any text for HTML and SVG."""

from html import escape

from rewrites.base.plain_text import cut, plain

__all__ = ["name", "safe"]

_LONGEST, _LONGEST_NAME = 4000, 200


def safe(text: object) -> str:
    """Return ``text`` escaped for HTML and cut to a limited length.

    Unprintable characters and direction marks become escape sequences.
    """
    return escape(plain(cut(str(text), _LONGEST)))


def name(text: object) -> str:
    """Return a name as a ``<bdi>`` element.

    Right-to-left letters in the name then do not reorder the text around it.
    """
    return f"<bdi>{safe(cut(str(text), _LONGEST_NAME))}</bdi>"
