"""Time a result of ``optimize``, find the change that makes it wrong or slow, and write a reproducer."""

import argparse
import shlex
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ortscan.base import __version__
from ortscan.base.messages import quietly
from ortscan.cli.options import checking, rewriting
from ortscan.cli.streams import show_progress
from ortscan.cli.writing import model_to_compare
from rewrites.base.errors import ModelFileError, OptionError

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench
    from ortscan.modelio import LoadedModel
    from ortscan.verification.result import Verification
    from rewrites.base.report import RewriteReport

__all__ = [
    "add_bench",
    "add_reproducer",
    "measure_result",
    "check_bench",
    "check_reproducer",
    "name_culprit",
    "name_slowing_change",
    "without_differences",
    "write_reproducer",
]

_TARGETS = ("cpu", "onnx")
_SECONDS, _SECONDS_A_CHANGE = 5.0, 2.0


@quietly
def name_culprit(args: argparse.Namespace) -> str:
    """Find the change that makes the result differ from the original.

    Return a sentence that names the change.
    """
    from ortscan.pipeline.on_difference import first_difference_sentence
    from ortscan.pipeline.rewriting import Rewriting

    with show_progress("looking for the change that makes the difference", args.quiet):
        return first_difference_sentence(
            Rewriting(args.source, **rewriting(args)), None, lambda result: _compared(args, result), "--skip {}"
        )


@quietly
def without_differences(args: argparse.Namespace) -> "tuple[LoadedModel, RewriteReport]":
    """Rewrite the model without the changes that make the outputs differ.

    Return the new model and its report.
    """
    from ortscan.pipeline.on_difference import without_differences
    from ortscan.pipeline.rewriting import Rewriting

    with show_progress("looking for the changes that make a difference", args.quiet):
        outcome = without_differences(Rewriting(args.source, **rewriting(args)), lambda result: _compared(args, result))
    return outcome.loaded, outcome.report


def _compared(args: argparse.Namespace, result: "LoadedModel") -> "Verification":
    from ortscan import api

    return api.verify(model_to_compare(args), result, **checking(args))


def add_reproducer(group: argparse._ArgumentGroup) -> None:
    """Add the option --reproducer."""
    group.add_argument(
        "--reproducer",
        metavar="DIR",
        help="if the result differs, write a new folder with both models, inputs that show the difference, and a description",
    )


def check_reproducer(args: argparse.Namespace) -> None:
    """Raise OptionError if the folder of --reproducer exists and is not empty."""
    if args.reproducer is None:
        return
    folder = Path(args.reproducer)
    if not args.reproducer or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise OptionError(f"--reproducer {args.reproducer} exists and is not empty; name a new or an empty folder.")
    if not folder.resolve().parent.is_dir():
        raise ModelFileError(f"{folder.resolve().parent} is not a folder, so --reproducer cannot create a folder in it.")


def write_reproducer(args: argparse.Namespace, result: "LoadedModel", verification: "Verification", description: str) -> str:
    """Write the folder of --reproducer and return a phrase that names it, or "" without the option."""
    if args.reproducer is None:
        return ""
    import numpy as np

    from ortscan.modelio import load, save

    folder = Path(args.reproducer)
    try:
        folder.mkdir(exist_ok=True)
        save(load(model_to_compare(args)), folder / "original.onnx")
        save(result, folder / "result.onnx")
        arrays = {f"in:{name}": value for name, value in (verification.witness or {}).items() if isinstance(value, np.ndarray)}
        if arrays and all(value.dtype != object for value in arrays.values()):
            np.savez(folder / "inputs.npz", **arrays)  # type: ignore[arg-type]
        (folder / "README.txt").write_text(
            _text(args, verification, description, (folder / "inputs.npz").exists()), encoding="utf-8"
        )
    except OSError as error:
        raise ModelFileError(f"{error.filename or folder}: {error.strerror}.") from None
    return f"; {folder} shows it"


def _text(args: argparse.Namespace, verification: "Verification", description: str, has_inputs: bool) -> str:
    import onnx
    import onnxruntime

    inputs = " --inputs inputs.npz" if has_inputs else ""
    lines = [
        description,
        "",
        f"ortscan {__version__}, onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}, Python {sys.version.split()[0]}",
        f"created by: ortscan {shlex.join(args.argv)}",
        f"to reproduce: ortscan verify original.onnx result.onnx{inputs}",
        "",
        verification.summary(),
        "",
    ]
    return "\n".join(lines)


def add_bench(parser: argparse.ArgumentParser) -> None:
    """Add the options --bench and --force."""
    group = parser.add_argument_group("benchmark")
    group.add_argument(
        "--bench",
        action="store_true",
        help="time both models; if the result is measurably slower, write nothing and exit with 5",
    )
    group.add_argument("--force", action="store_true", help="with --bench: write the result even if it is slower")


def check_bench(args: argparse.Namespace) -> None:
    """Raise OptionError if --bench or --force does not fit the other options."""
    if args.force and not args.bench:
        raise OptionError("--force needs --bench: without it, a result that computes the same is always written.")
    if args.bench and args.target not in _TARGETS:
        raise OptionError(f"--bench times models on the CPU, but --target is {args.target}.")


@quietly
def measure_result(
    args: argparse.Namespace, loaded: "LoadedModel", report: "RewriteReport", verification: "Verification | None"
) -> "Bench | None":
    """Time the original model and the result ``loaded``, and return the measurements.

    Return None if there is nothing to time. Without --bench, the measurement is brief, and only results that were found equal are
    timed.
    """
    from ortscan.benchmark.brief import time_result
    from ortscan.benchmark.measure import StillRunning
    from ortscan.pipeline.rewriting import Rewriting

    if not report.changed or (not args.bench if verification is None else not verification.ok):
        return None
    has_page = args.report is not None
    with show_progress("timing both models on onnxruntime", args.quiet):
        if args.bench:
            return _measured(args, loaded, _SECONDS, profile=has_page)
        original = Rewriting(args.source, **rewriting(args))
        with suppress(StillRunning):
            return time_result(report, original.model, loaded, original.sizes, args.inputs, profile=has_page, level=args.level)
    return None


@quietly
def name_slowing_change(args: argparse.Namespace) -> str:
    """Find the change that makes the result slower than the original.

    Return a sentence that names the change.
    """
    from ortscan.pipeline.on_difference import slower_patch_sentence
    from ortscan.pipeline.rewriting import Rewriting

    def is_slower(result: "LoadedModel") -> bool:
        return _measured(args, result, _SECONDS_A_CHANGE).is_slower

    with show_progress("looking for the change that makes it slower", args.quiet):
        return slower_patch_sentence(Rewriting(args.source, **rewriting(args)), is_slower, args.stop_after)


def _measured(args: argparse.Namespace, loaded: "LoadedModel", seconds: float, *, profile: bool = False) -> "Bench":
    from ortscan.benchmark.brief import models_to_time
    from ortscan.benchmark.measure import measure
    from ortscan.pipeline.rewriting import Rewriting

    original = Rewriting(args.source, **rewriting(args))
    with ExitStack() as stack:
        models = models_to_time(original.model, loaded, stack)
        return measure(models, shapes=original.sizes, inputs=args.inputs, seconds=seconds, profile=profile)
