"""What is a path at all, before any file is looked for."""

import os
from typing import Any, TypeGuard

__all__ = ["is_path", "is_path_like"]


def is_path(value: Any) -> TypeGuard[str | os.PathLike[str]]:
    """Whether ``value`` may name a file: text of at least a character, none of them null, that a file system can hold."""
    if not is_path_like(value):
        return False
    text = os.fspath(value)
    try:
        return isinstance(text, str) and bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeError:
        return False


def is_path_like(value: Any) -> TypeGuard[str | os.PathLike[str]]:
    """Whether ``value`` is text, or an object that stands for some."""
    if not isinstance(value, str | os.PathLike):
        return False
    try:
        return isinstance(os.fspath(value), str | bytes)
    except TypeError:
        return False
