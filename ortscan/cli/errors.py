"""Turns whatever a verb raises into one line on stderr and an exit code."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable

from ortscan.cli.exit_codes import ExitCode
from ortscan.report.plain import one_line
from rewrites.errors import OptionError, OrtscanError, VerificationFailed

__all__ = ["guarded", "tolerate_odd_names"]


def guarded(verb: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Run ``verb``; no traceback leaves here unless ``-vv`` was given."""
    try:
        code = verb(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _fail("interrupted", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader of a pipe has left (`| head`); the interpreter must not trip over the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.ERROR
    except Exception as error:
        if getattr(args, "verbose", 0) > 1:
            traceback.print_exc()
        return _fail(_sentence(error), _code(error))


def tolerate_odd_names() -> None:
    """Make names that the terminal's encoding lacks print as escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _code(error: Exception) -> ExitCode:
    if isinstance(error, OptionError):
        return ExitCode.USAGE
    return ExitCode.DIFFERENT if isinstance(error, VerificationFailed) else ExitCode.ERROR


def _sentence(error: Exception) -> str:
    if isinstance(error, OrtscanError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    if isinstance(error, MemoryError):
        return "out of memory"
    return f"internal error, please report it (-vv shows where): {type(error).__name__}: {error}"


def _fail(sentence: str, code: ExitCode) -> int:
    print(f"ortscan: error: {one_line(sentence)}", file=sys.stderr)
    return code
