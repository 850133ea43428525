"""Opens and closes the reports of loops: each loop of a model has one, and so has what becomes of it."""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.base.report import Fate, LoopReport, Report
from rewrites.driver.scopes import scope_of
from rewrites.graph.context import Context
from rewrites.graph.marks import REPORT, unrolled_from
from rewrites.graph.walk import all_nodes
from rewrites.loops import is_loop, loops_inside_out, view
from rewrites.loops.paths import with_paths

__all__ = ["adopt_loops", "close_reports"]


def adopt_loops(ctx: Context, report: Report) -> list[ir.Node]:
    """Return all loops, inner ones first; those that no loop of ``report`` became get reports of their own.

    Raises MalformedLoop where a new one is malformed.
    """
    loops = loops_inside_out(ctx.model.graph)
    if not all(map(REPORT.on, loops)):
        for node, where in with_paths(ctx.model.graph):
            if is_loop(node) and not REPORT.on(node):
                loop = view(node, ctx.opset)
                size = _size(loop.body)
                entry = LoopReport(where, "Scan-8" if loop.batched else loop.kind, loop.steps, size, size, scope=scope_of(node))
                REPORT.put(node, entry)
                report.loops.append(entry)
    return loops


def close_reports(ctx: Context, report: Report, loops: Sequence[ir.Node], unrolled: bool) -> None:
    """Say of each loop of ``report`` what is left of it, ``loops`` being all there are."""
    for every in report.loops:
        planned = any(fired.made.planned for fired in every.fired)
        every.fate, every.nodes_after = "planned" if planned else "removed", 0
    for step in all_nodes(ctx.model.graph) if unrolled else ():
        written = unrolled_from(step)
        if written is not None:
            written.unrolled_nodes += 1
    for node in loops:
        entry = REPORT.of(node)
        if entry is not None:
            entry.nodes_after += _size(view(node, ctx.opset).body)
            entry.fate = _fate(entry)


def _fate(entry: LoopReport) -> Fate:
    if entry.nodes_after < entry.nodes_before:
        return "reduced"
    return "rewritten" if entry.fired else "kept"


def _size(body: ir.Graph) -> int:
    return sum(1 for _ in all_nodes(body))
