"""What is a path at all, before any file is looked for."""

import os
import stat
from typing import Any, TypeGuard

__all__ = ["is_path", "is_path_like", "is_pipe"]


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


def is_pipe(value: Any) -> TypeGuard[str | os.PathLike[str]]:
    """Whether ``value`` is the path of a pipe, which can be read only once."""
    try:
        return is_path(value) and stat.S_ISFIFO(os.stat(value).st_mode)
    except OSError:
        return False
