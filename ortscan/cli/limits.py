"""Runs the whole command in a process of its own that is ended where it takes more time or memory than it may."""

import argparse
import contextlib
import signal
import subprocess
from collections.abc import Sequence

from ortscan.base import child_process
from ortscan.base.option_values import byte_size, seconds
from ortscan.cli.exit_codes import ExitCode
from rewrites.base.errors import LimitExceeded

__all__ = ["add_limits", "has_limits", "run_within_limits"]

_CHILD = "import sys; from ortscan.cli.limited_process import serve; sys.exit(serve())"
_GRACE = 5.0


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the two limits."""
    group = parser.add_argument_group("limits, for models that nobody vetted")
    group.add_argument("--time-limit", type=seconds, metavar="SECONDS", help="give up where all of it takes longer")
    group.add_argument("--memory-limit", type=byte_size, metavar="SIZE", help="give up where it takes more, such as 2G (Linux)")


def has_limits(args: argparse.Namespace) -> bool:
    """Whether one was given."""
    return getattr(args, "time_limit", None) is not None or getattr(args, "memory_limit", None) is not None


def run_within_limits(args: argparse.Namespace, argv: Sequence[str]) -> int:
    """Run the command ``argv`` within the limits of ``args``, and return its exit code. Raises LimitExceeded."""
    from ortscan.edge.limited import checked_limits

    time_limit, memory_limit = checked_limits(args.time_limit, args.memory_limit)
    pipes = {"close_fds": False}  # what the shell opened, such as <(…), is for whoever does the work
    process = child_process.start(_CHILD, str(memory_limit or 0), *argv, start_new_session=True, **pipes)
    try:
        code = process.wait(time_limit)
    except subprocess.TimeoutExpired:
        raise LimitExceeded(f"it took longer than the {time_limit:g} seconds of --time-limit.") from None
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(_GRACE)
        return ExitCode.INTERRUPTED
    finally:
        child_process.end(process)
    if code < 0:
        limit = "" if memory_limit is None else ", perhaps over --memory-limit"
        raise LimitExceeded(f"the process ended ({child_process.cause(process)}){limit}.")
    return code
