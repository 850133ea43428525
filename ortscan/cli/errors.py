"""Turns whatever a verb raises into one line on stderr and an exit code."""

import argparse
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence

from ortscan.cli.exit_codes import ExitCode
from ortscan.cli.limits import has_limits, run_within_limits
from ortscan.cli.several import run_verb
from ortscan.cli.streams import leaving_stdout_clean
from ortscan.errors import OrtscanWarning, RuntimeMissing, is_missing_runtime
from rewrites.base.errors import OptionError, OrtscanError, VerificationFailed
from rewrites.base.plain_text import one_line, sentence

__all__ = ["exit_code_of"]


def exit_code_of(parse: Callable[[], argparse.Namespace], argv: Sequence[str], limited: bool = True) -> int:
    """Run the verb that ``parse`` finds in ``argv``; no traceback leaves here unless ``-vv`` was given.

    ``limited``: whether it is to keep to its limits of time and memory.
    """
    verbose = 0
    try:
        with leaving_stdout_clean(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", OrtscanWarning)
            try:
                args = parse()
                verbose = getattr(args, "verbose", 0)
                if limited and has_limits(args):
                    return run_within_limits(args, argv)
                return run_verb(args, lambda one: exit_code_of(lambda: one, argv, limited=False))
            finally:
                _show(caught)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        return _fail("interrupted", ExitCode.INTERRUPTED)
    except BrokenPipeError:  # the reader of a pipe has left (`| head`)
        return ExitCode.ERROR
    except Exception as error:
        if _came_of_an_interrupt(error):
            return _fail("interrupted", ExitCode.INTERRUPTED)
        if verbose > 1:
            traceback.print_exc()
        return _fail(_sentence(error), _code(error))


def _came_of_an_interrupt(error: BaseException | None) -> bool:
    """Whether something in the way of an interrupt failed over it, as argparse does."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _code(error: Exception) -> ExitCode:
    if isinstance(error, OptionError):
        return ExitCode.USAGE
    return ExitCode.DIFFERENT if isinstance(error, VerificationFailed) else ExitCode.ERROR


def _sentence(error: Exception) -> str:
    if is_missing_runtime(error):
        return str(RuntimeMissing())
    if isinstance(error, OrtscanError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    if isinstance(error, MemoryError):
        return "out of memory"
    return f"internal error, please report it (-vv shows where): {type(error).__name__}: {error}"


def _show(caught: Sequence[warnings.WarningMessage]) -> None:
    for warning in caught:
        if issubclass(warning.category, OrtscanWarning):
            print(f"ortscan: warning: {sentence(one_line(warning.message))}", file=sys.stderr)


def _fail(text: str, code: ExitCode) -> int:
    print(f"ortscan: error: {sentence(one_line(text))}", file=sys.stderr)
    return code
