"""``ortscan bench A [B ...]``: measure what models cost on onnxruntime, side by side."""

import argparse
from pathlib import Path

from ortscan.cli.files import check_npz, check_readable, check_report, check_writable
from ortscan.cli.invocation import ExitCode, add_limits
from ortscan.cli.options import add_display, add_options, add_report
from ortscan.cli.streams import show_progress
from ortscan.option_texts import by_name, read_count, read_seconds, read_sizes
from rewrites.base.errors import OptionError

__all__ = ["add", "run"]


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the parser of the verb ``bench`` to ``verbs``."""
    parser = verbs.add_parser(
        "bench",
        help="measure models side by side: time, loading, memory, loops",
        description="Measure the run time, load time and memory of models on onnxruntime's CPU, side by side. A single model is "
        "compared with its optimised version. Each round opens new sessions of all models and runs them alternately. A "
        "difference is reported only if the rounds agree on it.",
    )
    parser.add_argument("models", metavar="A", nargs="*", help="the models; each is compared with the first")
    parser.add_argument(
        "--calibrate",
        metavar="FILE",
        help="instead of models, measure the costs of loops and operators on this machine, and write a file for optimize --costs",
    )
    add_report(parser)
    group = parser.add_argument_group("inputs")
    add_options(group, "shapes", "dims")
    group.add_argument(
        "--size",
        type=read_sizes,
        action="append",
        metavar="T=16,64",
        help="sizes of the free dimension or trip count T to measure at; may be repeated for other names: all combinations",
    )
    group.add_argument("--inputs", metavar="DATA", help="measure with these inputs (arrays by input name) instead of random ones")
    group = parser.add_argument_group("effort")
    group.add_argument(
        "--threads",
        type=read_count,
        default=1,
        metavar="N",
        help="threads within an operator; 0 lets onnxruntime choose (default 1)",
    )
    group.add_argument(
        "--rounds", type=read_count, default=9, metavar="N", help="the number of rounds, at least 6 to recognise noise (default 9)"
    )
    group.add_argument("--seconds", type=read_seconds, default=10.0, metavar="X", help="the approximate total time (default 10)")
    add_display(parser)
    add_limits(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run ``ortscan bench`` with parsed arguments. Return the exit code."""
    if args.calibrate is not None:
        return _calibrate(args)
    if not args.models:
        raise OptionError("bench needs a model, or --calibrate FILE.")
    for model in args.models:
        check_readable(model)
    if args.inputs is not None:
        check_npz(args.inputs)
    check_report(args.report, *args.models, args.inputs)

    from ortscan.benching import bench
    from ortscan.cli.show_bench import show_bench

    with show_progress(f"timing {', '.join(args.models)}") as step:
        outcome = bench(
            *args.models,
            shapes=by_name(args.shape),
            sizes={**{name: [size] for name, size in args.dim or ()}, **dict(args.size or ())},
            inputs=args.inputs,
            threads=args.threads,
            rounds=args.rounds,
            seconds=args.seconds,
            progress=step,
        )
    show_bench(args, outcome)
    return ExitCode.OK


def _calibrate(args: argparse.Namespace) -> int:
    if args.models:
        raise OptionError("--calibrate measures this machine, not models.")
    check_writable(args.calibrate)

    import onnxruntime

    from ortscan.base.costs_file import costs_text
    from ortscan.benchmark.calibrating import calibrated
    from ortscan.cli.show_bench import show_costs

    with show_progress("measuring this machine"):
        costs = calibrated(args.seconds)
    Path(args.calibrate).write_text(costs_text(costs, onnxruntime.__version__), encoding="utf-8")
    show_costs(args, costs)
    return ExitCode.OK
