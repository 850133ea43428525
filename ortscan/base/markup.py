"""Text made fit for HTML and SVG, whatever is in it."""

from html import escape

from rewrites.base.plain_text import cut, plain

__all__ = ["name", "safe"]

_LONGEST, _LONGEST_NAME = 4000, 200


def safe(text: object) -> str:
    """Return ``text`` escaped, not too long, and with all that is unprintable, marks of direction too, as an escape."""
    return escape(plain(cut(str(text), _LONGEST)))


def name(text: object) -> str:
    """Return a name as an element of its own, whose letters order nothing around it."""
    return f"<bdi>{safe(cut(str(text), _LONGEST_NAME))}</bdi>"
