"""``optimize --reproducer DIR``: where a result differs, a folder that shows it to somebody else."""

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ortscan.base.release import __version__
from rewrites.base.errors import ModelFileError, OptionError

if TYPE_CHECKING:
    from ortscan.modelio import LoadedModel
    from ortscan.verification.result import Verification

__all__ = ["add_reproducer", "check_reproducer", "write_reproducer"]


def add_reproducer(group: argparse._ArgumentGroup) -> None:
    """Add the option."""
    group.add_argument(
        "--reproducer",
        metavar="DIR",
        help="where the result differs, write a new folder with both models, the inputs that show it, and what was found",
    )


def check_reproducer(args: argparse.Namespace) -> None:
    """Raise OptionError where the folder is there already, with something in it."""
    if args.reproducer is None:
        return
    folder = Path(args.reproducer)
    if not args.reproducer or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise OptionError(f"--reproducer {args.reproducer} is there already; name a new folder, or an empty one.")
    if not folder.resolve().parent.is_dir():
        raise ModelFileError(f"{folder.resolve().parent} is no folder, so --reproducer cannot be made in it.")


def write_reproducer(args: argparse.Namespace, result: "LoadedModel", verification: "Verification", said: str) -> str:
    """Write the folder, and say so in a phrase; nothing where none is asked for."""
    if args.reproducer is None:
        return ""
    import numpy as np

    from ortscan.cli.writing import original
    from ortscan.modelio import load, save

    folder = Path(args.reproducer)
    try:
        folder.mkdir(exist_ok=True)
        save(load(original(args)), folder / "original.onnx")
        save(result, folder / "result.onnx")
        arrays = {f"in:{name}": value for name, value in (verification.witness or {}).items() if isinstance(value, np.ndarray)}
        if arrays and all(value.dtype != object for value in arrays.values()):
            np.savez(folder / "inputs.npz", **arrays)  # type: ignore[arg-type]
        (folder / "README.txt").write_text(_text(args, verification, said, (folder / "inputs.npz").exists()), encoding="utf-8")
    except OSError as error:
        raise ModelFileError(f"{error.filename or folder}: {error.strerror}.") from None
    return f"; {folder} shows it"


def _text(args: argparse.Namespace, verification: "Verification", said: str, has_inputs: bool) -> str:
    import onnx
    import onnxruntime

    inputs = " --inputs inputs.npz" if has_inputs else ""
    lines = [
        said,
        "",
        f"ortscan {__version__}, onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}, Python {sys.version.split()[0]}",
        f"made by: ortscan {shlex.join(args.argv)}",
        f"to see it: ortscan verify original.onnx result.onnx{inputs}",
        "",
        verification.summary(),
        "",
    ]
    return "\n".join(lines)
