"""Which file the location of external data names: told here for everybody who reads, links, copies or digests it.

It is what onnxruntime reads too: a regular file below the model's own folder (as given, or where a symbolic link to the model
leads), named by a relative path. Refused beside that is a path that leaves the folder and comes back, and a null character, at
which onnxruntime stops reading the name.
"""

import errno
import os
import stat
from collections.abc import Sequence

from rewrites.base.plain_text import quoted

__all__ = ["OutOfReach", "folders_of", "is_below", "leads_out", "open_regular", "real_path"]

_READING = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class OutOfReach(Exception):
    """Why external data cannot be read; the text completes "external data of X ..."."""


def folders_of(path: str) -> list[str]:
    """Return the folders that the data of the model at ``path`` may be in: the one looked in comes first."""
    return list(dict.fromkeys([os.path.dirname(os.path.abspath(path)), os.path.dirname(os.path.realpath(path))]))


def real_path(location: str, folders: Sequence[str]) -> str:
    """Return the path, without links, of the file that ``location`` names in the first of ``folders``; there may be none.

    Raises:
        OutOfReach: it is in none of the folders, or is something else than a regular file.
    """
    if _is_no_relative_path(location):
        raise OutOfReach(f"has the location {quoted(location)}, which is not a relative path")
    path = os.path.join(folders[0], location)
    try:
        real = os.path.realpath(path)
        if _leaves(os.path.normpath(location)) or not any(is_below(real, os.path.realpath(folder)) for folder in folders):
            raise OutOfReach(f"is {quoted(path)}, which leaves the model's folder")
        mode = os.stat(real).st_mode
    except FileNotFoundError:
        return real
    except OSError as error:
        raise OutOfReach(f"is in {quoted(path)}, which cannot be read: {error.strerror}") from None
    except ValueError:  # a lone surrogate, for which this system has no name
        raise OutOfReach(f"has the location {quoted(location)}, which no file of this system can have") from None
    if not stat.S_ISREG(mode):
        raise OutOfReach(f"is in {quoted(path)}, which cannot be read: not a regular file")
    return real


def leads_out(location: str) -> bool:
    """Whether ``location`` names nothing in the model's folder, wherever that is."""
    return _is_no_relative_path(location) or _leaves(os.path.normpath(location))


def _is_no_relative_path(location: str) -> bool:
    return not isinstance(location, str) or not location or "\0" in location or os.path.isabs(location)


def open_regular(real: str) -> int:
    """Return a descriptor of the file at a path without links, to be read. Raises OSError, also where it is no regular file."""
    file = os.open(real, _READING)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
    except BaseException:
        os.close(file)
        raise
    return file


def _leaves(normal: str) -> bool:
    return normal == os.pardir or normal.startswith(os.pardir + os.sep)


def is_below(real: str, folder: str) -> bool:
    """Whether a path is that of ``folder`` or of something in it; both without links."""
    return real == folder or real.startswith(os.path.join(folder, ""))
