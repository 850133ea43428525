"""How a page looks, and what it does by itself: the files beside this one."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

__all__ = ["digest", "script", "style"]


def style() -> str:
    """Return the style sheet."""
    return _text("page.css")


def script() -> str:
    """Return the script."""
    return _text("page.js")


def digest() -> str:
    """Return by what a browser knows that the script is ours: it runs no other."""
    return b64encode(sha256(script().encode()).digest()).decode()


@cache
def _text(name: str) -> str:
    return files("ortscan.page").joinpath(name).read_text(encoding="utf-8")
