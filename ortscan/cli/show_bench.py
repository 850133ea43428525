"""The output of ``bench``: on stdout, and in the HTML page of ``--report``."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from ortscan.cli.page import Page
from ortscan.cli.streams import naming_stdout_in_errors, stdout_console
from ortscan.cli.writing import print_json
from ortscan.report.ratio import duration, gain, noise
from ortscan.report.terminal import safe, table
from rewrites.base.abilities import Costs

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench

__all__ = ["show_bench", "show_costs"]


@naming_stdout_in_errors()
def show_bench(args: argparse.Namespace, bench: "Bench") -> None:
    """Show a table of the models, a table of their times, and a table of their loops."""
    if args.report is not None:
        page = Page("bench", " and ".join(model.name for model in bench.models), bench.summary().splitlines())
        page.add_bench(bench)
        page.write(args)
    if args.json:
        print_json(bench=bench.to_dict())
        return
    console = stdout_console(args.no_color)
    console.print(safe(bench.setting), Text(), sep="\n")
    console.print(_models(bench), Text(), _times(bench), sep="\n")
    if any(model.loops for model in bench.models):
        console.print(Text(), _loops(bench), sep="\n")
    if bench.notes:
        console.print(Text(), *map(safe, bench.notes), sep="\n")


@naming_stdout_in_errors()
def show_costs(args: argparse.Namespace, costs: Costs) -> None:
    """Show the measured costs, the built-in costs, and the file that was written."""
    mine, built_in = asdict(costs), asdict(Costs())
    if args.json:
        print_json(costs=mine, built_in=built_in, written=args.calibrate)
        return
    right = ("measured", "built in", "ratio")
    shown = table("ns", *right, right_aligned=right, unbroken=("ns", *right))
    for name, cost in mine.items():
        shown.add_row(name, f"{cost:.3g}", f"{built_in[name]:.3g}", f"{cost / built_in[name]:.2f}")
    console = stdout_console(args.no_color)
    console.print(shown, Text(), safe(f"wrote {args.calibrate}: pass it to optimize with --costs, in Python with costs="), sep="\n")


def _models(bench: "Bench") -> RenderableType:
    shown = table("model", "file", "load", "peak memory", right_aligned=("file", "load", "peak memory"), unbroken=("file", "load"))
    for model in bench.models:
        shown.add_row(safe(model.name), *model.in_words)
    return shown


def _times(bench: "Bench") -> RenderableType:
    right = ("median", "best")
    shown = table("a run", *right, "relative to the first", right_aligned=right, unbroken=right)
    for result in bench.results:
        shown.add_row(safe(result.label))
        for number, (model, timing) in enumerate(zip(bench.models, result.timings, strict=True)):
            ratio = result.ratio(number)
            compared = f"{gain(ratio)} ({noise(ratio)})" if number else ""
            shown.add_row(safe(f"  {model.name}"), duration(timing.median), duration(timing.best), safe(compared))
    return shown


def _loops(bench: "Bench") -> RenderableType:
    title = f"loops at {bench.results[0].label}"
    shown = table(title, "kind", "model", "a run", "share", right_aligned=("a run", "share"), unbroken=("kind", "a run", "share"))
    for model in bench.models:
        for loop in model.loops:
            shown.add_row(safe(loop.name), safe(loop.op_type), safe(model.name), duration(loop.seconds), f"{loop.share:.0%}")
    return shown
