"""The whole command: parsing, exit codes, errors as one line on stderr, and a subprocess for limits."""

import argparse
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence

from ortscan.base import child_process
from ortscan.cli import bench, cache, completion, explain, loop, migrate, native, optimize, verify
from ortscan.cli.actions import VersionAction
from ortscan.cli.invocation import ExitCode, has_limits, run_verb, run_within_limits
from ortscan.cli.parser import Parser, VerbParser
from ortscan.cli.streams import flushing_stdout
from ortscan.errors import OrtscanWarning, RuntimeMissing, is_missing_runtime
from ortscan.option_words import in_flags
from rewrites.base.errors import OptionError, OrtscanError, VerificationFailed
from rewrites.base.plain_text import one_line, sentence

__all__ = ["build_parser", "exit_code_of"]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line. Parsing a verb sets ``run``, the function that runs the verb."""
    parser = Parser(
        prog="ortscan",
        description="Take Scan and Loop out of ONNX models, and prove on onnxruntime that nothing changed.",
        epilog="exit codes: 0 success, 1 error, 2 wrong usage, 3 verification failed, 4 nothing changed under --strict, "
        "5 slower under --bench, 6 a loop is left under --fail-on-loops or --fail-on, 130 interrupted, "
        "141 the reader of the output is gone",
    )
    parser.add_argument("--version", action=VersionAction, help="show the versions of ortscan and of the packages it runs on")
    verbs: argparse._SubParsersAction[argparse.ArgumentParser] = parser.add_subparsers(
        title="verbs", metavar="VERB", required=True, parser_class=VerbParser
    )
    optimize.add(verbs)
    migrate.add(verbs)
    loop.add(verbs)
    explain.add(verbs)
    verify.add(verbs)
    bench.add(verbs)
    cache.add(verbs)
    native.add_compile(verbs)
    native.add_native(verbs)
    completion.add(verbs)
    return parser


def exit_code_of(parse: Callable[[], argparse.Namespace], argv: Sequence[str], limited: bool = True) -> int:
    """Run a command and return its exit code. Print the traceback of an error only under ``-vv``.

    Args:
        parse: a function that returns the parsed arguments of the command.
        argv: the arguments as text, for the subprocess.
        limited: True to run a command with a limit of time or memory in a subprocess.
    """
    args = argparse.Namespace()
    try:
        with flushing_stdout(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", OrtscanWarning)
            try:
                args = parse()
                if limited and has_limits(args):
                    return run_within_limits(args, argv)
                return run_verb(args, lambda each: exit_code_of(lambda: each, argv, limited=False))
            finally:
                _show(caught)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        return _fail("interrupted", ExitCode.INTERRUPTED)
    except BrokenPipeError:  # the reader of the pipe is gone (`| head`)
        return ExitCode.PIPE_CLOSED
    except Exception as error:
        if _is_caused_by_interrupt(error):
            return _fail("interrupted", ExitCode.INTERRUPTED)
        if getattr(args, "verbose", 0) > 1:
            traceback.print_exc()
        args.error = one_line(_sentence(error))
        return _fail(args.error, _code(error))


def _is_caused_by_interrupt(error: BaseException | None) -> bool:
    """Return True if ``error`` is a KeyboardInterrupt, or was raised in the handling of one.

    argparse, for example, may raise another error while it handles an interrupt.
    """
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
        return in_flags(str(error))
    if isinstance(error, ModuleNotFoundError) and error.name is not None and error.name.partition(".")[0] not in _OURS:
        package = error.name.partition(".")[0]
        return f"ortscan needs {error.name}, which is not installed: pip install {_PACKAGES.get(package, package)}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    if isinstance(error, MemoryError):
        return "out of memory"
    return f"internal error; please report it (-vv shows the traceback): {type(error).__name__}: {error}"


_OURS = ("ortscan", "rewrites")
_PACKAGES = {"onnx_ir": "onnx-ir", "google": "protobuf"}
"""The names of packages that differ from the names of their modules."""


def _show(caught: Sequence[warnings.WarningMessage]) -> None:
    for warning in caught:
        if issubclass(warning.category, OrtscanWarning):
            print(f"ortscan: warning: {sentence(one_line(in_flags(str(warning.message))))}", file=sys.stderr)


def _fail(text: str, code: ExitCode) -> int:
    print(f"ortscan: error: {sentence(one_line(text))}", file=sys.stderr)
    return code


def serve() -> int:
    """Run the command in the subprocess with limits, and return its exit code.

    The first argument of the subprocess is the memory limit in bytes, or 0 for none. The others are the arguments of the command.
    """
    memory, *argv = sys.argv[1:]
    if int(memory):
        import onnxruntime  # noqa: F401  # before the limit, so that its memory does not count

        import ortscan.api  # noqa: F401

        child_process.limit_memory(int(memory))
    return int(exit_code_of(lambda: build_parser().parse_args(argv), argv, limited=False))
