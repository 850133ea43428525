"""The folder of the cache and its default size."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from rewrites.base.errors import OptionError

__all__ = ["DEFAULT_SIZE", "cache_folder", "check_folder"]

DEFAULT_SIZE = 4 << 30
_VARIABLE = "ORTSCAN_CACHE_DIR"


def cache_folder(folder: str | None = None) -> Path | None:
    """Return the folder of the cache.

    This is ``folder`` if it is not None, otherwise the value of the environment variable ``ORTSCAN_CACHE_DIR`` if it is set,
    otherwise this user's usual cache folder. Return None if the user has no home folder. Raise OptionError if the named folder is
    not a path.
    """
    if folder is not None:
        return check_folder(folder, "the cache folder")
    named = os.environ.get(_VARIABLE)
    return check_folder(named, _VARIABLE) if named else _own_folder()


def check_folder(named: str, what: str) -> Path:
    """Return the absolute path of the folder ``named``. The folder need not exist.

    Raise OptionError if ``named`` is not a path. The message calls the folder ``what``.
    """
    if not named or "\0" in named:
        raise OptionError(f"{what} cannot be {named!r}: it is not a path.")
    try:
        os.fsencode(named)
        return Path(named).expanduser().absolute()
    except UnicodeEncodeError:
        raise OptionError(f"{what} cannot be {named!r}: the name contains characters that this system does not support.") from None
    except (RuntimeError, OSError) as error:  # no such user, or no working folder any more
        raise OptionError(f"{what} cannot be {named!r}: {getattr(error, 'strerror', None) or 'that user has no folder'}.") from None


def _own_folder() -> Path | None:
    home = _home()
    if sys.platform == "win32":
        local = _absolute(os.environ.get("LOCALAPPDATA")) or (home and home / "AppData" / "Local")
        return local and local / "ortscan" / "cache"
    if sys.platform == "darwin":
        return home and home / "Library" / "Caches" / "ortscan"
    caches = _absolute(os.environ.get("XDG_CACHE_HOME")) or (home and home / ".cache")
    return caches and caches / "ortscan"


def _home() -> Path | None:
    """Return the user's home folder, or None if the user has none, as in some containers."""
    if os.name == "posix" and (named := _absolute(os.environ.get("HOME"))):
        return named
    with suppress(RuntimeError):
        if os.name != "posix":
            return _absolute(str(Path.home()))
    with suppress(ImportError, KeyError):
        import pwd

        return _absolute(pwd.getpwuid(os.getuid()).pw_dir)
    return None


def _absolute(folder: str | None) -> Path | None:
    """Return ``folder`` as a path, or None if it is relative.

    The XDG base directory specification ignores relative paths.
    """
    return Path(folder) if folder and "\0" not in folder and os.path.isabs(folder) else None
