"""What ``bench`` puts on stdout."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from ortscan.benchmark.ratio import duration, gain, noise
from ortscan.cli.console import stdout_console
from ortscan.cli.page import Page
from ortscan.cli.streams import printing
from ortscan.cli.written import print_json
from ortscan.report.terminal import safe, table
from rewrites.base.costs import Costs

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench

__all__ = ["show_bench", "show_costs"]


@printing()
def show_bench(args: argparse.Namespace, bench: "Bench") -> None:
    """Show a table of the models, one of their times, and one of their loops."""
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


@printing()
def show_costs(args: argparse.Namespace, costs: Costs) -> None:
    """Show what was measured beside what is built in, and where it went."""
    mine, built_in = asdict(costs), asdict(Costs())
    if args.json:
        print_json(costs=mine, built_in=built_in, written=args.calibrate)
        return
    right = ("measured", "built in", "ratio")
    shown = table("ns", *right, right=right, whole=("ns", *right))
    for name, cost in mine.items():
        shown.add_row(name, f"{cost:.3g}", f"{built_in[name]:.3g}", f"{cost / built_in[name]:.2f}")
    console = stdout_console(args.no_color)
    console.print(shown, Text(), safe(f"wrote {args.calibrate}: give it to optimize as --costs, in Python as costs="), sep="\n")


def _models(bench: "Bench") -> RenderableType:
    shown = table("model", "file", "load", "peak memory", right=("file", "load", "peak memory"), whole=("file", "load"))
    for model in bench.models:
        shown.add_row(safe(model.name), *model.in_words)
    return shown


def _times(bench: "Bench") -> RenderableType:
    right = ("median", "best")
    shown = table("a run", *right, "beside the first", right=right, whole=right)
    for result in bench.results:
        shown.add_row(safe(result.label))
        for place, (model, timing) in enumerate(zip(bench.models, result.timings, strict=True)):
            ratio = result.ratio(place)
            compared = f"{gain(ratio)} ({noise(ratio)})" if place else ""
            shown.add_row(safe(f"  {model.name}"), duration(timing.median), duration(timing.best), safe(compared))
    return shown


def _loops(bench: "Bench") -> RenderableType:
    title = f"loops at {bench.results[0].label}"
    shown = table(title, "kind", "model", "a run", "share", right=("a run", "share"), whole=("kind", "a run", "share"))
    for model in bench.models:
        for loop in model.loops:
            shown.add_row(safe(loop.name), safe(loop.op_type), safe(model.name), duration(loop.seconds), f"{loop.share:.0%}")
    return shown
