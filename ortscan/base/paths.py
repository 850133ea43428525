"""Recognise paths, and find files of external data in the same way as onnxruntime.

The location of external data must be a relative path to a regular file below the model's folder. If the model's path is a link, the
file may be below the folder of the link or the folder of its target. A path that leaves the model's folder is rejected even if it
comes back, as ``../model/data`` does. A null character is rejected, because onnxruntime would ignore the rest of the name.
"""

import errno
import os
import stat
from collections.abc import Sequence
from typing import Any, TypeGuard

from rewrites.base.plain_text import quoted

__all__ = [
    "UnreadableData",
    "data_file_path",
    "folders_of",
    "is_below",
    "is_path",
    "is_path_like",
    "is_pipe",
    "leads_out",
    "open_regular",
]

_READING = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def is_path(value: Any) -> TypeGuard[str | os.PathLike[str]]:
    """Return True if ``value`` may be the name of a file.

    Such a name is not empty, contains no null character, and can be encoded for the file system.
    """
    if not is_path_like(value):
        return False
    text = os.fspath(value)
    try:
        return isinstance(text, str) and bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeError:
        return False


def is_path_like(value: Any) -> TypeGuard[str | os.PathLike[str]]:
    """Return True if ``value`` is text or a path object."""
    if not isinstance(value, str | os.PathLike):
        return False
    try:
        return isinstance(os.fspath(value), str | bytes)
    except TypeError:
        return False


def is_pipe(value: Any) -> TypeGuard[str | os.PathLike[str]]:
    """Return True if ``value`` is the path of a pipe, which can be read only once."""
    try:
        return is_path(value) and stat.S_ISFIFO(os.stat(value).st_mode)
    except OSError:
        return False


class UnreadableData(Exception):
    """External data cannot be read.

    The message continues a sentence that begins with "the external data of X".
    """


def folders_of(path: str) -> list[str]:
    """Return the folders that may hold the external data of the model at ``path``.

    These are the folder of ``path`` and, if ``path`` is a link into another folder, the folder of its target.
    """
    return list(dict.fromkeys([os.path.dirname(os.path.abspath(path)), os.path.dirname(os.path.realpath(path))]))


def data_file_path(location: str, folders: Sequence[str]) -> str:
    """Return the path of the file at ``location`` in ``folders[0]``, with all links resolved.

    The file need not exist.

    Args:
        location: the location of external data, relative to ``folders[0]``.
        folders: the result of ``folders_of``.

    Raises:
        UnreadableData: ``location`` is not a relative path or leaves ``folders[0]``. Or the file, after all links are resolved, is
            outside all ``folders`` or is not a regular file.
    """
    if _is_no_relative_path(location):
        raise UnreadableData(f"has the location {quoted(location)}, which is not a relative path")
    path = os.path.join(folders[0], location)
    try:
        real = os.path.realpath(path)
        if _leaves(os.path.normpath(location)) or not any(is_below(real, os.path.realpath(folder)) for folder in folders):
            raise UnreadableData(f"is {quoted(path)}, which leaves the model's folder")
        mode = os.stat(real).st_mode
    except FileNotFoundError:
        return real
    except OSError as error:
        raise UnreadableData(f"is in {quoted(path)}, which cannot be read: {error.strerror}") from None
    except ValueError:  # a lone surrogate, for which this system has no name
        raise UnreadableData(f"has the location {quoted(location)}, which no file of this system can have") from None
    if not stat.S_ISREG(mode):
        raise UnreadableData(f"is in {quoted(path)}, which cannot be read: not a regular file")
    return real


def leads_out(location: str) -> bool:
    """Return True if ``location`` is not a relative path, or leads out of the model's folder.

    Only the text is checked. Links are not followed.
    """
    return _is_no_relative_path(location) or _leaves(os.path.normpath(location))


def _is_no_relative_path(location: str) -> bool:
    return not isinstance(location, str) or not location or "\0" in location or os.path.isabs(location)


def _leaves(normal: str) -> bool:
    return normal == os.pardir or normal.startswith(os.pardir + os.sep)


def open_regular(real: str) -> int:
    """Open the file at a path without links, and return its descriptor.

    Raise OSError unless the path leads to a readable regular file.
    """
    file = os.open(real, _READING)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
    except BaseException:
        os.close(file)
        raise
    return file


def is_below(real: str, folder: str) -> bool:
    """Return True if the path ``real`` is ``folder`` or inside it. Neither path may contain links."""
    return real == folder or real.startswith(os.path.join(folder, ""))
