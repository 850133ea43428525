"""What ``optimize --bench`` adds: the time of the result beside the original's, and which change makes it slower, if one does."""

import argparse
from typing import TYPE_CHECKING

from ortscan.base.quiet import quietly
from ortscan.cli.options import checking, rewriting
from ortscan.cli.progress import working
from ortscan.cli.writing import original
from rewrites.base.errors import OptionError

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench
    from ortscan.modelio import LoadedModel

__all__ = ["add_bench", "benched", "check_bench", "slowing_change"]

_TARGETS = ("cpu", "onnx")
_SECONDS, _SECONDS_A_CHANGE = 5.0, 2.0


def add_bench(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    group = parser.add_argument_group("benchmark")
    group.add_argument(
        "--bench",
        action="store_true",
        help="time both models; where the result is measurably slower, write nothing and exit with 5",
    )
    group.add_argument("--force", action="store_true", help="with --bench: write the result although it is slower")


def check_bench(args: argparse.Namespace) -> None:
    """Raise OptionError where the options ask for what cannot be."""
    if args.force and not args.bench:
        raise OptionError("--force is for --bench: nothing else keeps a result that computes the same from being written.")
    if args.bench and args.target not in _TARGETS:
        raise OptionError(f"--bench times models on the CPU, and --target is {args.target}.")


def benched(args: argparse.Namespace, loaded: "LoadedModel") -> "Bench":
    """Time the model of the verb and ``loaded``."""
    with working("timing both models on onnxruntime", args.quiet):
        return _measured(args, loaded, _SECONDS, profile=args.report is not None)


@quietly
def slowing_change(args: argparse.Namespace) -> str:
    """Say which change makes the result slower than the original."""
    from ortscan.pipeline.on_slower import named_slower
    from ortscan.pipeline.rewriting import Rewriting

    def is_slower(result: "LoadedModel") -> bool:
        return _measured(args, result, _SECONDS_A_CHANGE).is_slower

    with working("looking for the change that makes it slower", args.quiet):
        return named_slower(Rewriting(args.given, **rewriting(args)), is_slower, args.stop_after)


@quietly
def _measured(args: argparse.Namespace, loaded: "LoadedModel", seconds: float, *, profile: bool = False) -> "Bench":
    from ortscan.benchmark.measure import measure

    chosen = checking(args)
    models = {"the original": original(args), "the result": loaded}
    sizes = {name: [size] for name, size in (chosen["dims"] or {}).items()}
    return measure(models, shapes=chosen["shapes"], sizes=sizes, inputs=chosen["inputs"], seconds=seconds, profile=profile)
