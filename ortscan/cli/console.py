"""Where text goes: stdout for results, plain unless it is a terminal."""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["stdout_console"]

PIPE_WIDTH = 1 << 14
"""Columns of what is no terminal: nothing is broken there, for programs to read."""


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
