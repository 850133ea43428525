"""Says what is going on once a step takes longer than a second: on stderr, and only where someone watches."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rewrites.base.plain_text import one_line

__all__ = ["working"]

PATIENCE = 1.0


@contextmanager
def working(what: str, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show ``what`` with a bar and a clock while the block runs; the line is gone afterwards.

    The block is given a function to call with how much is done, and how much there is in all.
    """
    if quiet or not sys.stderr.isatty():
        yield _unseen
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(20), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    if not progress.console.is_interactive:
        yield _unseen
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


def _unseen(done: int, total: int) -> None:
    pass
