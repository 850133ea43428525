"""Says what is going on once a step takes longer than a second: on stderr, and only where someone watches."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ortscan.report.plain import one_line

__all__ = ["working"]

PATIENCE = 1.0


@contextmanager
def working(what: str, quiet: bool = False) -> Iterator[None]:
    """Show ``what`` with a running clock while the block runs; the line is gone afterwards."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn("line"), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    if not progress.console.is_interactive:
        yield
        return
    progress.add_task(one_line(what), total=None)
    timer = threading.Timer(PATIENCE, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
