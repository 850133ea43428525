"""The streams of the process: results on stdout, progress on stderr, in whatever state both were at the start."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rewrites.base.plain_text import one_line

__all__ = ["leaving_stdout_clean", "open_closed_streams", "printing", "stdout_console", "tolerate_odd_names", "working"]

if TYPE_CHECKING:
    from rich.console import Console


_STDOUT = "standard output"
PIPE_WIDTH = 1 << 14
"""The width if stdout is no terminal: lines for programs are not broken."""


def stdout_console(no_color: bool = False) -> "Console":
    """Return a console on stdout: no control codes in a pipe, nor on request (``no_color``, or ``NO_COLOR`` in the environment)."""
    from rich.console import Console

    fixed = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(
        color_system=None if no_color or os.environ.get("NO_COLOR") else "auto",
        width=PIPE_WIDTH if fixed else None,
        markup=False,
        emoji=False,
        highlight=False,
    )


PATIENCE = 1.0


@contextmanager
def working(what: str, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show ``what`` with a bar and a clock on stderr, if that is a terminal and the block runs longer than a second.

    The block gets a function to call with the steps that are done and their total.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(20), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    if not progress.console.is_interactive:
        yield lambda done, total: None
        return
    task = progress.add_task(one_line(what), total=None)
    timer = threading.Timer(PATIENCE, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda done, total: progress.update(task, completed=done, total=total)
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


def open_closed_streams() -> None:
    """Replace closed streams by the null device.

    Their descriptors are filled too: otherwise the next opened file would get one, and what libraries print would end up in it.
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
    """Print on stdout and flush it; an OSError that is raised there names it."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, _STDOUT) from error


@contextmanager
def leaving_stdout_clean() -> Iterator[None]:
    """Run the block, then flush stdout; what cannot be printed is dropped, because it would fail again at exit."""
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
