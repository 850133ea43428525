"""The three streams of the process, in whatever state it was started with."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["leaving_stdout_clean", "open_closed_streams", "printing", "tolerate_odd_names"]

_STDOUT = "standard output"


def open_closed_streams() -> None:
    """Let what is said on a stream that was closed go nowhere.

    Its descriptor is taken too: the next file to be opened would get it, and what libraries print would end up in that file.
    """
    if sys.stdout is not None and sys.stderr is not None:
        return
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def tolerate_odd_names() -> None:
    """Make names that the terminal's encoding lacks print as escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def printing() -> Iterator[None]:
    """Print on stdout, all of it; an OSError that is raised there names it."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, _STDOUT) from error


@contextmanager
def leaving_stdout_clean() -> Iterator[None]:
    """Run the block, then print what is left; what cannot be printed goes nowhere: the interpreter would trip over it at exit."""
    try:
        try:
            yield
        finally:
            with printing():
                pass
    except OSError as error:
        if error.filename == _STDOUT:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
