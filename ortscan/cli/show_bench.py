"""What ``bench`` puts on stdout."""

import argparse
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from ortscan.benchmark.words import duration, gain, noise
from ortscan.cli.console import stdout_console
from ortscan.cli.page import Page
from ortscan.cli.streams import printing
from ortscan.cli.written import print_json
from ortscan.report.tables import safe, table
from ortscan.report.words import size
from rewrites.base.counted import counted

if TYPE_CHECKING:
    from ortscan.benchmark.result import Bench

__all__ = ["show_bench"]


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
    threads = counted(bench.threads, "thread") if bench.threads else "threads as onnxruntime chooses"
    console.print(safe(f"onnxruntime {bench.runtime} on the CPU, {threads}, {counted(bench.rounds, 'round')}"), Text(), sep="\n")
    console.print(_models(bench), Text(), _times(bench), sep="\n")
    if any(model.loops for model in bench.models):
        console.print(Text(), _loops(bench), sep="\n")
    if bench.notes:
        console.print(Text(), *map(safe, bench.notes), sep="\n")


def _models(bench: "Bench") -> RenderableType:
    shown = table("model", "file", "load", "peak memory", right=("file", "load", "peak memory"), whole=("file", "load"))
    for model in bench.models:
        peak = "?" if model.peak_bytes is None else size(model.peak_bytes)
        shown.add_row(safe(model.name), size(model.file_bytes), duration(model.load_seconds), peak)
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
