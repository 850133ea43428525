"""The contents that text, HTML and JSON reports share.

These are sentences on loops and migrations, and counts of operators. This module also converts a report to plain data and JSON.
"""

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from ortscan.report.codes import meaning
from rewrites.base.plain_text import counted
from rewrites.base.report import Fate, LoopReport, RewriteReport

if TYPE_CHECKING:
    from rewrites.migration import LiftedScan, Migration

__all__ = [
    "dump",
    "headline",
    "loop_line",
    "migration_headline",
    "node_sentences",
    "operator_changes",
    "refused_node",
    "report_dict",
    "scan_outcome",
    "size",
    "totals",
]


_RECURRENT = ("RNN", "LSTM", "GRU", "DynamicQuantizeLSTM")
_FATES: dict[Fate, str] = {
    "removed": "no loop left",
    "compiled": "runs in ortscan's library if it is registered",
    "reduced": "a smaller loop left",
    "rewritten": "another loop left",
    "kept": "as it was",
}
_FORMS = {
    "one row": "a Scan over the steps of its single row",
    "batched": "one Scan whose body handles all rows at once",
    "row by row": "a Scan over the rows that contains a Scan over the steps",
}


def headline(report: RewriteReport) -> str:
    """Return a sentence on what became of the loops, followed by the sentences on recurrent nodes."""
    fates = Counter(loop.fate for loop in report.loops)
    parts = [f"{fates[fate]} {fate}" for fate in _FATES if fates[fate]]
    loops = f"{counted(len(report.loops), 'loop')}: {', '.join(parts)}." if parts else "The model has no Scan or Loop."
    return " ".join([loops, *node_sentences(report)])


def node_sentences(report: RewriteReport) -> list[str]:
    """Return up to three sentences that count recurrent nodes.

    They count the rewritten nodes that onnxruntime now runs, the remaining nodes that onnxruntime does not run, and the nodes that
    ortscan's library computes. A sentence that would count no nodes is left out.
    """
    changed = sum(1 for node in report.nodes if not node.reasons)
    left = len(report.nodes) - changed
    compiled = sum(1 for node in report.cells if node.fired)
    sentences = [f"{counted(changed, 'recurrent node')} rewritten so that onnxruntime runs it."] if changed else []
    sentences += [f"{counted(left, 'recurrent node')} left that onnxruntime does not run."] if left else []
    return sentences + (
        [f"{counted(compiled, 'recurrent node')} computed by ortscan's library if it is registered."] if compiled else []
    )


def refused_node(report: RewriteReport) -> str | None:
    """Return a sentence on the first recurrent node that onnxruntime does not run.

    The sentence includes the reason why ortscan could not rewrite the node. Return None if onnxruntime runs all recurrent nodes.
    """
    node = next((node for node in report.nodes if node.reasons), None)
    if node is None:
        return None
    return f"onnxruntime does not run {node.where}, and ortscan cannot change that: {node.reasons[0].detail}."


def loop_line(loop: LoopReport) -> str:
    """Return one line on ``loop``: its operator, its number of steps, its number of nodes and its fate."""
    steps = "unknown number of steps" if loop.steps is None else "1 step" if loop.steps == 1 else f"{loop.steps} steps"
    if loop.kind in _RECURRENT:
        return f"{loop.kind}, {steps}: {loop.fate} ({_FATES[loop.fate]})"
    nodes = counted(loop.nodes_before, "node")
    if loop.fate == "rewritten" and not loop.nodes_after:
        return f"{loop.kind}, {steps}, {nodes} in its body: rewritten (a recurrent node left that the target does not run)"
    if loop.fate not in ("removed", "compiled") and loop.nodes_after != loop.nodes_before:
        nodes += f", now {loop.nodes_after}"
    return f"{loop.kind}, {steps}, {nodes} in its body: {loop.fate} ({_FATES[loop.fate]})"


def size(count: int) -> str:
    """Return a number of bytes as a text, such as ``512 B`` or ``1.5 KiB``. A KiB is 1024 bytes."""
    value, units = float(count), ["B", "KiB", "MiB", "GiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{count} B" if units[0] == "B" else f"{value:.1f} {units[0]}"


def migration_headline(migration: "Migration") -> str:
    """Return one line on a migration: both opsets, and the numbers of rewritten nodes and Scans."""
    if migration.source == migration.target:
        return f"The model is in opset {migration.source} already."
    rewritten = sum(conversion.count for conversion in migration.conversions if conversion.written)
    ir = f", IR {migration.ir_before} -> {migration.ir_after}" if migration.ir_before != migration.ir_after else ""
    done = [f"{counted(rewritten, 'node')} rewritten", f"{counted(len(migration.scans), 'opset-8 Scan')} lifted"]
    return f"opset {migration.source} -> {migration.target}{ir}: {', '.join(done)}."


def scan_outcome(scan: "LiftedScan") -> str:
    """Return a phrase on what a Scan of opset 8 became, with the reason if its rows run one by one."""
    lengths = ", with sequence lengths" if scan.lengths else ""
    if scan.reason is None:
        return f"{_FORMS[scan.form]}{lengths}"
    reason = ": ".join(filter(None, [meaning(scan.reason.code), scan.reason.detail]))
    return f"{_FORMS[scan.form]}{lengths}; {scan.reason.code}: {reason}"


def operator_changes(report: RewriteReport) -> list[tuple[str, int, int]]:
    """Return (operator, before, after) for each operator whose count changed, largest difference first."""
    before, after = report.operators_before, report.operators_after
    changes = [(name, before[name], after[name]) for name in {*before, *after} if before[name] != after[name]]
    return sorted(changes, key=lambda change: (-abs(change[2] - change[1]), change[0]))


def totals(report: RewriteReport) -> tuple[int, int]:
    """Return the number of all nodes before the rewrites, and the number after them."""
    return report.operators_before.total(), report.operators_after.total()


def report_dict(report: RewriteReport) -> dict[str, Any]:
    """Return ``report`` as plain data, which includes the counts of all operators before and after."""
    counts = {"operators_before": dict(report.operators_before), "operators_after": dict(report.operators_after)}
    return {**report.to_dict(), **counts, "changed": report.changed}


def dump(document: dict[str, Any]) -> str:
    """Return ``document`` as standard JSON.

    JSON has no infinity and NaN, so these numbers become the strings "inf", "-inf" and "nan".
    """
    return json.dumps(_standard(document), indent=2, allow_nan=False, default=str)


def _standard(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _standard(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_standard(item) for item in value]
    if hasattr(value, "tolist"):
        return _standard(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
