"""What would run where: of what a target has in general, and of each loop of a report."""

from collections.abc import Iterable

from ortscan.targets import Target
from rewrites.base.report import LoopReport, Report

__all__ = ["note_where_loops_run", "target_line"]

_UNSAID = frozenset({"cpu", "onnx"})
_CONTROL_FLOW = ("Scan", "Loop", "If")
_RECURRENT = ("RNN", "LSTM", "GRU")


def target_line(target: Target) -> str:
    """Say in one sentence what ``target`` runs of what loops are and may become."""
    has = [op for op in (*_CONTROL_FLOW, *_RECURRENT) if op in target.control_flow or op in target.recurrent]
    lacks = [op for op in (*_CONTROL_FLOW, *_RECURRENT) if op not in has]
    parts = [f"runs {_listed(has, 'and')}" if has else "", f"has no {_listed(lacks, 'or')}" if lacks else ""]
    ceiling = f"opset {target.newest_opset} and IR version {target.newest_ir_version} at most"
    return f"{target.name} {', and '.join(filter(None, parts))}; {ceiling}"


def note_where_loops_run(report: Report, target: Target) -> None:
    """Note at each loop of ``report`` where what it has become runs; nothing where all there is runs on the CPU."""
    for loop in report.loops if target.name not in _UNSAID else ():
        branch = any(fired.made.under_if for fired in loop.fired) and report.operators_after["If"] > 0
        loop.runs = _where(loop, target, branch)


def _where(loop: LoopReport, target: Target, branch: bool) -> str:
    parts = []
    if loop.unrolled_nodes:
        parts.append(f"unrolled into {loop.unrolled_nodes} nodes")
    made = [fired.made.native for fired in loop.fired if fired.made.native]
    if made and not loop.unrolled_nodes:
        parts.append(f"native {' and '.join(dict.fromkeys(made))}")
    if loop.fate != "removed":
        parts.append("a loop" if loop.kind in _CONTROL_FLOW else f"native {loop.kind}")
    what = " and ".join(parts) or "plain operators, for all steps at once"
    on_cpu = any(fired.made.on_cpu for fired in loop.fired)
    unknown = (
        branch or (on_cpu and not isinstance(loop.steps, int)) or any(reason.code == "UNROLL-UNKNOWN" for reason in loop.reasons)
    )
    advice = "; not so once its number of steps is fixed (--fix-shape)" if unknown else ""
    if on_cpu or (loop.fate != "removed" and not target.loops):
        return f"{what}, which {target.name} refuses: it falls back to onnxruntime's CPU{advice}"
    if branch and "If" not in target.control_flow:
        return f"{what}, in a branch, which {target.name} refuses: it falls back to onnxruntime's CPU{advice}"
    return f"{what}, on {target.name}"


def _listed(words: Iterable[str], last: str) -> str:
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end
