"""Write notes on a rewritten model.

The metadata of the model counts its calls to Python. The report says which loops remain because of defaults of inputs, and where
each loop runs.
"""

import json
from collections.abc import Iterable

import onnx_ir as ir

from ortscan.base import __version__
from ortscan.modelio import LoadedModel, listed_defaults
from ortscan.targets import Target
from rewrites.base.plain_text import quoted
from rewrites.base.report import KernelGap, LoopReport, Reason, RewriteReport
from rewrites.graph.marks import REPORT
from rewrites.graph.walk import node_graphs
from rewrites.loops import captured_values, loops_in
from rewrites.python_ops.names import DOMAIN, METADATA, OPERATOR, VERSION

__all__ = ["note_python_ops", "note_replaceable_defaults", "note_where_loops_run", "target_line"]

_MOST_SENTENCES = 20
_MOST_SHOWN = 5
_RUN_EVERYTHING = frozenset({"cpu", "onnx"})
_CONTROL_FLOW = ("Scan", "Loop", "If")
_RECURRENT = ("RNN", "LSTM", "GRU")


def note_python_ops(loaded: LoadedModel, report: RewriteReport) -> list[str]:
    """Return a sentence on each node for which onnxruntime has no kernel.

    If the model calls Python for such nodes, record the calls in the metadata of the model. Only the first ``_MOST_SENTENCES``
    nodes have a sentence of their own. A last sentence says how many other nodes there are.
    """
    calls = sum(gap.fate == "python" for gap in report.kernel_gaps)
    if calls:
        facts = {"domain": DOMAIN, "operator": OPERATOR, "version": VERSION, "calls": calls, "ortscan": __version__}
        loaded.interface = loaded.interface.with_metadata(METADATA, json.dumps(facts, sort_keys=True))
    sentences = [_sentence(gap) for gap in report.kernel_gaps]
    if len(sentences) <= _MOST_SENTENCES:
        return sentences
    return [*sentences[:_MOST_SENTENCES], f"and {len(sentences) - _MOST_SENTENCES} more nodes without a kernel"]


def _sentence(gap: KernelGap) -> str:
    start = f"{gap.where} has no kernel in onnxruntime"
    if gap.fate == "kept":
        return f"{start}, and cannot be called in Python: {gap.code}: {gap.detail}"
    return f"{start}; {gap.detail}" if gap.fate == "wider" else f"{start} and is called in Python: {gap.detail}"


def note_replaceable_defaults(model: ir.Model, report: RewriteReport) -> None:
    """Add a reason to each remaining loop that reads the default of an input.

    Such a default is no constant, because the caller of a run may feed another value.
    """
    defaults = set(listed_defaults(model))
    for node in loops_in(model.graph) if defaults else ():
        read = [value for value in node.inputs if value is not None]
        for body in node_graphs(node):
            read += captured_values(body)
        entry, names = REPORT.of(node), [value.name or "" for value in dict.fromkeys(read) if value in defaults]
        if entry is not None and names:
            more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
            shown = ", ".join(map(quoted, names[:_MOST_SHOWN])) + more
            detail = f"reads {shown}; each run may replace these values, because they are listed as inputs"
            entry.reasons.append(Reason("freeze", "DEFAULT-INPUT", detail))


def target_line(target: Target) -> str:
    """Return a sentence on what ``target`` runs.

    It lists which of Scan, Loop, If, RNN, LSTM and GRU the target runs, and gives its newest opset and IR version.
    """
    has = [op for op in (*_CONTROL_FLOW, *_RECURRENT) if op in target.control_flow or op in target.recurrent]
    lacks = [op for op in (*_CONTROL_FLOW, *_RECURRENT) if op not in has]
    parts = [f"runs {_listed(has, 'and')}" if has else "", f"has no {_listed(lacks, 'or')}" if lacks else ""]
    ceiling = f"opset {target.newest_opset} and IR version {target.newest_ir_version} at most"
    return f"{target.name} {', and '.join(filter(None, parts))}; {ceiling}"


def note_where_loops_run(report: RewriteReport, target: Target) -> None:
    """Note for each loop what it became, and whether the result runs on the target or on the CPU.

    Nothing is noted for a target that runs every operator.
    """
    for loop in report.loops if target.name not in _RUN_EVERYTHING else ():
        branch = any(fired.made.under_if for fired in loop.fired) and report.operators_after["If"] > 0
        loop.runs = _where(loop, target, branch)


def _where(loop: LoopReport, target: Target, branch: bool) -> str:
    parts = []
    if loop.unrolled_nodes:
        parts.append(f"unrolled into {loop.unrolled_nodes} nodes")
    native = [fired.made.native for fired in loop.fired if fired.made.native]
    if native and not loop.unrolled_nodes:
        parts.append(f"native {' and '.join(dict.fromkeys(native))}")
    if loop.fate != "removed" and (loop.nodes_after or not native):
        parts.append(f"native {loop.kind}" if loop.kind in _RECURRENT else "a loop")
    what = " and ".join(parts) or "plain operators, for all steps at once"
    on_cpu = any(fired.made.on_cpu for fired in loop.fired)
    if on_cpu or (loop.fate != "removed" and not target.loops):
        return f"{what}, which {target.name} does not run: it falls back to onnxruntime's CPU"
    if branch and "If" not in target.control_flow:
        return f"{what}, in a branch, which {target.name} does not run: it falls back to onnxruntime's CPU"
    return f"{what}, on {target.name}"


def _listed(words: Iterable[str], last: str) -> str:
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end
