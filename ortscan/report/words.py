"""The phrases that text and HTML share."""

from collections import Counter

from rewrites.base.counted import counted
from rewrites.base.report import Fate, LoopReport, Report

__all__ = ["gone", "headline", "loop_line", "refused_node", "size"]

_RECURRENT = ("RNN", "LSTM", "GRU", "DynamicQuantizeLSTM")
_FATES: dict[Fate, str] = {
    "removed": "no loop left",
    "planned": "compiled where ortscan's library is registered",
    "reduced": "a smaller loop left",
    "rewritten": "another loop left",
    "kept": "as it was",
}


def headline(report: Report) -> str:
    """Say in one sentence what became of the loops, and in one more each what became of recurrent nodes."""
    changed = sum(1 for node in report.nodes if not node.reasons)
    left = len(report.nodes) - changed
    others = [f" {counted(changed, 'recurrent node')} made to run on onnxruntime."] if changed else []
    others += [f" {counted(left, 'recurrent node')} that onnxruntime does not run left."] if left else []
    taken = sum(1 for node in report.cells if node.fired)
    others += [f" {counted(taken, 'recurrent node')} computed by ortscan's library where it is registered."] if taken else []
    if not report.loops:
        return "The model has no Scan or Loop." + "".join(others)
    fates = Counter(loop.fate for loop in report.loops)
    parts = [f"{fates[fate]} {fate}" for fate in _FATES if fates[fate]]
    return f"{counted(len(report.loops), 'loop')}: {', '.join(parts)}.{''.join(others)}"


def gone(report: Report) -> str:
    """Return ``2 of 3 loops gone``."""
    removed = sum(loop.fate == "removed" for loop in report.loops)
    return f"{removed} of {counted(len(report.loops), 'loop')} gone" if report.loops else "no loops"


def refused_node(report: Report) -> str | None:
    """Say in one sentence which recurrent node onnxruntime still does not run, and why; None where there is none."""
    node = next((node for node in report.nodes if node.reasons), None)
    if node is None:
        return None
    return f"onnxruntime does not run {node.where}, and ortscan cannot change that: {node.reasons[0].detail}."


def loop_line(loop: LoopReport) -> str:
    """Say what ``loop`` was and what it is now."""
    steps = "unknown number of steps" if loop.steps is None else "1 step" if loop.steps == 1 else f"{loop.steps} steps"
    if loop.kind in _RECURRENT:
        return f"{loop.kind}, {steps}: {loop.fate} ({_FATES[loop.fate]})"
    nodes = counted(loop.nodes_before, "node")
    if loop.fate not in ("removed", "planned") and loop.nodes_after != loop.nodes_before:
        nodes += f", now {loop.nodes_after}"
    return f"{loop.kind}, {steps}, {nodes} in its body: {loop.fate} ({_FATES[loop.fate]})"


def size(count: int) -> str:
    """Return a number of bytes for people, in units of 1024."""
    value, units = float(count), ["B", "KiB", "MiB", "GiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{count} B" if units[0] == "B" else f"{value:.1f} {units[0]}"
