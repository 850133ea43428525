"""Reading a graph for what it may tell: one that cannot be read is no obstacle."""

from collections.abc import Callable
from typing import TypeVar

from rewrites.base.errors import is_from_elsewhere

__all__ = ["if_readable"]

_Read = TypeVar("_Read")


def if_readable(read: Callable[[], _Read]) -> _Read | None:
    """Return what ``read`` does, or None where a library or a rule says that it cannot."""
    try:
        return read()
    except Exception as error:
        if is_from_elsewhere(error):
            raise
        return None
