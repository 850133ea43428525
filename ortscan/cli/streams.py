"""Write results to stdout and progress to stderr, even if these streams are closed at the start."""

import errno
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rewrites.base.plain_text import one_line

__all__ = [
    "escape_unencodable_characters",
    "flushing_stdout",
    "naming_stdout_in_errors",
    "open_closed_streams",
    "show_progress",
    "stdout_console",
]

if TYPE_CHECKING:
    from rich.console import Console


_STDOUT = "standard output"
PIPE_WIDTH = 1 << 14
"""The width if stdout is not a terminal, because lines for programs must not be broken."""


def stdout_console(no_color: bool = False) -> "Console":
    """Return a console that writes to stdout.

    It writes colours only to a terminal, and only if ``no_color`` is False and the environment variable ``NO_COLOR`` is not set.
    """
    from rich.console import Console

    class StdoutConsole(Console):
        def on_broken_pipe(self) -> None:
            """Raise BrokenPipeError. The method of ``Console`` would exit with code 1."""
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    fixed = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return StdoutConsole(
        color_system=None if no_color or os.environ.get("NO_COLOR") else "auto",
        width=PIPE_WIDTH if fixed else None,
        markup=False,
        emoji=False,
        highlight=False,
    )


PATIENCE = 1.0


@contextmanager
def show_progress(what: str, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show ``what`` with a bar and a clock on stderr while the ``with`` block runs.

    Nothing is shown if ``quiet`` is True, if stderr is not a terminal, or if the block ends within a second.

    Yield a function that updates the bar. The block calls this function with the number of finished steps and the number of all
    steps.
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
    """If stdout or stderr is closed, replace it by the null device.

    This also opens the file descriptors 0 to 2. Otherwise the next file that is opened could get the descriptor of stdout, and a
    library that prints to stdout would write to that file.
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


def escape_unencodable_characters() -> None:
    """Let stdout and stderr write escape sequences for characters that their encoding lacks.

    Otherwise such characters would raise an error.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def naming_stdout_in_errors() -> Iterator[None]:
    """Run the ``with`` block, then flush stdout.

    If the block or the flush raises an OSError, raise a copy of the error that names stdout as the file.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, _STDOUT) from error


@contextmanager
def flushing_stdout() -> Iterator[None]:
    """Run the ``with`` block, then flush stdout.

    If the flush fails, drop the text that was not written, and raise the OSError. If the text were kept, Python would try to write
    the text again at exit, and fail again.
    """
    try:
        try:
            yield
        finally:
            with naming_stdout_in_errors():
                pass
    except OSError as error:
        if error.filename == _STDOUT:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
