"""Verbs on what is not one file: a folder of models, one after the other; ``-``, standard input and output.

optimize IN_DIR OUT_DIR    ->    each IN_DIR/**/X.onnx to OUT_DIR/**/X.onnx
optimize - -               ->    a model from standard input to standard output, and nothing else there
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stdout
from pathlib import Path

from ortscan.base.temporary import TemporaryFolder
from ortscan.cli.exit_codes import ExitCode
from ortscan.cli.output import output_of
from ortscan.cli.streams import printing
from rewrites.base.errors import ModelFileError, OptionError

__all__ = ["run_verb"]

_STREAM = "-"
_READ = ("model", "subject", "before", "after")
_FOR_ONE = ("report", "reproducer", "inputs")


def run_verb(args: argparse.Namespace, one: Callable[[argparse.Namespace], int]) -> int:
    """Run the verb; ``one`` runs it on one file of many and returns its exit code, whatever it raises."""
    if any(_is_folder(args, name) for name in _READ):
        return _on_each(args, one)
    with ExitStack() as stack:
        read = [name for name in _READ if getattr(args, name, None) == _STREAM]
        if len(read) > 1:
            raise OptionError("only one model can come from standard input.")
        for name in read:
            path = stack.enter_context(TemporaryFolder()) / "stdin.onnx"
            if not path.write_bytes(sys.stdin.buffer.read()):
                raise ModelFileError("standard input is empty.")
            setattr(args, name, str(path))
        if not hasattr(args, "output_option") or _STREAM not in (args.output, args.output_option):
            return int(args.run(args))
        return _to_stdout(args, stack.enter_context(TemporaryFolder()))


def _to_stdout(args: argparse.Namespace, folder: Path) -> int:
    if output_of(args) is None:
        return int(args.run(args))
    path = folder / "stdout.onnx"
    args.output, args.output_option, args.quiet = str(path), None, True
    with redirect_stdout(sys.stderr):
        code = int(args.run(args))
    if not path.exists():
        return code
    if len(list(folder.iterdir())) > 1:
        raise ModelFileError("the weights of the result are in another file, which cannot go to standard output.")
    with printing():
        sys.stdout.buffer.write(path.read_bytes())
    return code


def _on_each(args: argparse.Namespace, one: Callable[[argparse.Namespace], int]) -> int:
    for name in _FOR_ONE:
        if getattr(args, name, None) is not None:
            raise OptionError(f"--{name} is for one model, not for a folder.")
    code = 0
    for each in list(_each(args)):
        if not (getattr(args, "quiet", False) or args.json):
            with printing():
                print(f"{each.name_shown}:")
        found = one(each)
        if found == ExitCode.INTERRUPTED:
            return found
        code = max(code, found)
    return code


def _each(args: argparse.Namespace) -> Iterator[argparse.Namespace]:
    """Return the arguments for each model of the folder, once it is known that there are some."""
    (name, *others) = [each for each in _READ if hasattr(args, each)]
    folder, to = Path(getattr(args, name)), output_of(args) if hasattr(args, "output_option") else None
    for other in (*(getattr(args, each) for each in others), *([] if to is None or not Path(to).exists() else [to])):
        if not (folder.is_dir() and Path(other).is_dir()):
            raise ModelFileError(f"of {folder} and {other} one is a folder, and the other none.")
    if to is not None and Path(to).suffix == ".onnx" and not Path(to).exists():
        raise ModelFileError(f"{folder} is a folder, and {to} is named as a model is: give a folder to write to.")
    files = sorted(folder.rglob("*.onnx"))
    if not files:
        raise ModelFileError(f"{folder} holds no .onnx file.")
    for file in files:
        inner = file.relative_to(folder)
        given = {name: str(file), "name_shown": str(inner), **{each: str(Path(getattr(args, each)) / inner) for each in others}}
        if to is not None:
            (Path(to) / inner).parent.mkdir(parents=True, exist_ok=True)
            given["output"] = str(Path(to) / inner)
        yield argparse.Namespace(**{**vars(args), **({} if to is None else {"output_option": None}), **given})


def _is_folder(args: argparse.Namespace, name: str) -> bool:
    given = getattr(args, name, None)
    try:
        return isinstance(given, str) and bool(given) and Path(given).is_dir()
    except (OSError, ValueError):  # it is no path, which the verb says
        return False
