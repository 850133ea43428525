"""Run a command on one model, on each model of a folder, or on a stream.

A command with limits runs in a subprocess.

optimize IN_DIR OUT_DIR    ->    each IN_DIR/**/X.onnx to OUT_DIR/**/X.onnx
optimize - -               ->    a model from standard input to standard output, where nothing else is printed
"""

import argparse
import contextlib
import io
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from enum import IntEnum
from pathlib import Path

from ortscan.base import __version__, child_process
from ortscan.base.temporary import TemporaryFolder
from ortscan.cli.files import output_of
from ortscan.cli.streams import naming_stdout_in_errors
from ortscan.option_texts import read_byte_size, read_seconds
from rewrites.base.errors import LimitExceeded, ModelFileError, OptionError, OrtscanError
from rewrites.base.plain_text import counted

__all__ = ["ExitCode", "add_limits", "has_limits", "run_verb", "run_within_limits"]

_CHILD = "import sys; from ortscan.cli.command import serve; sys.exit(serve())"
_GRACE = 5.0


class ExitCode(IntEnum):
    """The exit codes of every verb."""

    OK = 0
    ERROR = 1
    USAGE = 2
    DIFFERENT = 3
    UNCHANGED = 4
    SLOWER = 5
    LOOPS_LEFT = 6
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options --time-limit and --memory-limit."""
    group = parser.add_argument_group("limits, for untrusted models")
    group.add_argument("--time-limit", type=read_seconds, metavar="SECONDS", help="stop if the command takes longer")
    group.add_argument(
        "--memory-limit", type=read_byte_size, metavar="SIZE", help="stop if it takes more memory, such as 2G (Linux only)"
    )


def has_limits(args: argparse.Namespace) -> bool:
    """Return True if the command has a limit."""
    return getattr(args, "time_limit", None) is not None or getattr(args, "memory_limit", None) is not None


def run_within_limits(args: argparse.Namespace, argv: Sequence[str]) -> int:
    """Run the command ``argv`` in a subprocess and return its exit code.

    Raise LimitExceeded if the command exceeds its limits.
    """
    from ortscan.edge.limited import checked_limits

    time_limit, memory_limit = checked_limits(args.time_limit, args.memory_limit)
    pipes = {"close_fds": False}  # the subprocess reads what the shell opened, such as <(…)
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
        limit = "" if memory_limit is None else ", perhaps because it exceeded --memory-limit"
        raise LimitExceeded(f"the process crashed ({child_process.cause(process)}){limit}.")
    return code


_STREAM = "-"
_READ = ("model", "subject", "before", "after")
_FOR_ONE = ("report", "reproducer", "inputs")


def run_verb(args: argparse.Namespace, run_each: Callable[[argparse.Namespace], int]) -> int:
    """Run the verb and return its exit code. For a folder, call ``run_each`` for each model in the folder.

    ``run_each`` runs the verb on one model. It returns an exit code and never raises. If it fails, it sets ``error``, the message,
    in its arguments.
    """
    if folder := next((getattr(args, name) for name in _READ if _is_folder(args, name)), None):
        if not getattr(args, "takes_folders", True):
            raise OptionError(f"{folder} is a folder, but this command reads one model.")
        return _on_each(args, run_each)
    args.names = {}
    with ExitStack() as stack, _naming_streams(args.names):
        read = [name for name in _READ if getattr(args, name, None) == _STREAM]
        if len(read) > 1:
            raise OptionError("only one model can come from standard input.")
        for name in read:
            path = stack.enter_context(TemporaryFolder()) / "stdin.onnx"
            if not path.write_bytes(sys.stdin.buffer.read()):
                raise ModelFileError("standard input is empty.")
            args.names[str(path)] = "standard input"
            setattr(args, name, str(path))
        if not hasattr(args, "output_option") or _STREAM not in (args.output, args.output_option):
            return int(args.run(args))
        return _to_stdout(args, stack.enter_context(TemporaryFolder()))


@contextlib.contextmanager
def _naming_streams(names: Mapping[str, str]) -> Iterator[None]:
    """Run the ``with`` block. Its errors name the stream instead of a temporary copy.

    ``names`` has the name of the stream by the path of its copy.
    """
    try:
        yield
    except (OrtscanError, OSError) as error:
        for path, name in names.items():
            error.args = tuple(arg.replace(path, name) if isinstance(arg, str) else arg for arg in error.args)
            if isinstance(error, OSError) and str(error.filename) == path:
                error.filename = name
        raise


def _to_stdout(args: argparse.Namespace, folder: Path) -> int:
    if output_of(args) is None:
        return int(args.run(args))
    path = folder / "stdout.onnx"
    args.names[str(path)] = "standard output"
    args.output, args.output_option, args.quiet = str(path), None, True
    with redirect_stdout(sys.stderr):
        code = int(args.run(args))
    if not path.exists():
        return code
    if len(list(folder.iterdir())) > 1:
        raise ModelFileError("the result has its weights in a separate file, so it cannot be written to standard output.")
    with naming_stdout_in_errors():
        sys.stdout.buffer.write(path.read_bytes())
    return code


def _on_each(args: argparse.Namespace, run_each: Callable[[argparse.Namespace], int]) -> int:
    for name in _FOR_ONE:
        if getattr(args, name, None) is not None:
            raise OptionError(f"--{name} works with one model, not with a folder.")
    codes, texts, is_silent = list[int](), list[str](), getattr(args, "quiet", False) or args.json
    for number, each in enumerate(list(_each(args))):
        if not is_silent:
            with naming_stdout_in_errors():
                print(*([""] if number else []), f"{each.name_shown}:", sep="\n")
        with redirect_stdout(io.StringIO()) if args.json else contextlib.nullcontext() as text:
            codes.append(run_each(each))
        if codes[-1] in (ExitCode.INTERRUPTED, ExitCode.PIPE_CLOSED):
            return codes[-1]
        if text is not None:
            texts.append(text.getvalue().strip() or _failure(each))
    with naming_stdout_in_errors():
        if args.json:
            print("[", ",\n".join(texts), "]", sep="\n")
        elif not is_silent:
            print("", _total(codes), sep="\n")
    return max(codes)


def _failure(args: argparse.Namespace) -> str:
    """Return the JSON object of a model of a folder that failed before the verb printed its own."""
    from ortscan.report.words import dump

    model = next(getattr(args, name) for name in _READ if hasattr(args, name))
    return dump({"ortscan": __version__, "input": model, "error": args.error})


def _total(codes: Sequence[int]) -> str:
    """Return a line that counts the models of a folder by their exit codes."""
    counts = sorted(Counter(codes).items())
    return f"{counted(len(codes), 'model')}: {', '.join(f'{count} {_OUTCOMES[ExitCode(code)]}' for code, count in counts)}"


_OUTCOMES = {
    ExitCode.OK: "done",
    ExitCode.ERROR: "failed",
    ExitCode.USAGE: "without a fitting option",
    ExitCode.DIFFERENT: "not equal",
    ExitCode.UNCHANGED: "unchanged",
    ExitCode.SLOWER: "slower",
    ExitCode.LOOPS_LEFT: "with a loop left",
}


def _each(args: argparse.Namespace) -> Iterator[argparse.Namespace]:
    """Yield the arguments for each model of the folder.

    Raise ModelFileError if the folder contains no model.
    """
    (name, *others) = [each for each in _READ if hasattr(args, each)]
    folder, to = Path(getattr(args, name)), output_of(args) if hasattr(args, "output_option") else None
    if to == _STREAM:
        raise OptionError(f"{folder} is a folder, so the output must be a folder too, not standard output.")
    for other in (*(getattr(args, each) for each in others), *([] if to is None or not Path(to).exists() else [to])):
        if not (folder.is_dir() and Path(other).is_dir()):
            raise ModelFileError(f"{folder} and {other} must both be folders, or both be files.")
    if to is not None and Path(to).suffix == ".onnx" and not Path(to).exists():
        raise ModelFileError(f"{folder} is a folder, so the output must be a folder too, not {to}.")
    files = sorted(folder.rglob("*.onnx"))
    if not files:
        raise ModelFileError(f"{folder} contains no .onnx file.")
    for file in files:
        inner = file.relative_to(folder)
        own = {name: str(file), "name_shown": str(inner), **{each: str(Path(getattr(args, each)) / inner) for each in others}}
        if to is not None:
            (Path(to) / inner).parent.mkdir(parents=True, exist_ok=True)
            own["output"] = str(Path(to) / inner)
        yield argparse.Namespace(**{**vars(args), **({} if to is None else {"output_option": None}), **own})


def _is_folder(args: argparse.Namespace, name: str) -> bool:
    path = getattr(args, name, None)
    try:
        return isinstance(path, str) and bool(path) and Path(path).is_dir()
    except (OSError, ValueError):  # not a path, which the verb reports
        return False
