"""What the process returns to the shell."""

from enum import IntEnum

__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """The exit codes of every verb."""

    OK = 0
    ERROR = 1
    USAGE = 2
    DIFFERENT = 3
    UNCHANGED = 4
    SLOWER = 5
    INTERRUPTED = 130
