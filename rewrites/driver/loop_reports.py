"""Creates the reports of loops, and completes them after the last rule.

A report has the path of the loop, its module in the exported program, its number of nodes before and after, and its fate.
``describe_loop`` describes in words what a loop computes.
"""

import ast
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from rewrites.base.plain_text import cut, plain
from rewrites.base.report import Fate, LoopReport, Reason, RewriteReport
from rewrites.graph.context import Context
from rewrites.graph.marks import OVER_ROWS, REPORT, UNROLLED_FROM
from rewrites.graph.walk import all_nodes
from rewrites.loops import Loop, is_loop, loops_in, view
from rewrites.loops.view import nodes_with_paths
from rewrites.recurrences.fallback import is_fallback_loop
from rewrites.recurrent_nodes.absent_nodes import is_a_recurrence, steps_of
from rewrites.registry import RULES

__all__ = [
    "close_reports",
    "describe_loop",
    "report_as_part_of",
    "report_new_loops",
    "report_recurrent_nodes",
    "report_remaining_nodes",
    "scope_of",
]


def report_new_loops(ctx: Context, report: RewriteReport) -> list[ir.Node]:
    """Create an entry for each loop of the model that has none, and add the entries to ``report``.

    Return all loops, inner loops first. Raise MalformedLoop if a loop without an entry is invalid.
    """
    loops, entries = loops_in(ctx.model.graph), set(map(id, report.loops))
    if any(id(REPORT.of(node)) not in entries for node in loops):
        for node, where in sorted(nodes_with_paths(ctx.model.graph), key=lambda pair: OVER_ROWS.on(pair[0])):
            if is_loop(node) and id(REPORT.of(node)) not in entries:
                loop = view(node, ctx.opset)
                entry = REPORT.put_new(node, _new_entry(loop, where))
                entry.steps = entry.steps if OVER_ROWS.on(node) else loop.steps
                report.loops.append(entry)
                entries.add(id(entry))
    return loops


def _new_entry(loop: Loop, where: str) -> LoopReport:
    size, kind = _node_count(loop.body), "Scan-8" if loop.batched else loop.kind
    return LoopReport(where, kind, loop.steps, size, size, scope=scope_of(loop.node))


def report_recurrent_nodes(ctx: Context) -> None:
    """Create a report for each recurrent node of the original model if the target runs no loops.

    Such a node may be one that the target does not run. The reports are not part of the model's report yet.
    """
    if ctx.options.target.loops:
        return
    for node, where in nodes_with_paths(ctx.model.graph):
        if is_a_recurrence(node):
            REPORT.put(node, LoopReport(where, node.op_type, steps_of(node), 1, 1))


def report_as_part_of(entry: LoopReport, graph: ir.Graph) -> None:
    """Let ``entry`` report all loops and recurrent nodes of ``graph`` that have no report yet.

    Call this function after a patch on the loop of ``entry``. What the patch created then counts as a part of this loop.
    """
    for node in all_nodes(graph):
        if is_loop(node) or is_a_recurrence(node):
            REPORT.put_new(node, entry)


def close_reports(ctx: Context, report: RewriteReport, loops: Sequence[ir.Node], unrolled: bool) -> None:
    """Set the fate, the number of remaining nodes and the description of each loop of ``report``.

    Reasons that contradict the fate are removed.

    Args:
        loops: all loops that the model has now.
        unrolled: True if a loop was unrolled, so that its nodes must be counted.
    """
    for every in report.loops:
        is_compiled = any(fired.made.instructions for fired in every.fired)
        every.fate, every.nodes_after = "compiled" if is_compiled else "removed", 0
    for step in all_nodes(ctx.model.graph) if unrolled else ():
        written = UNROLLED_FROM.of(step)
        if written is not None:
            written.unrolled_nodes += 1
    are_fallbacks: dict[int, bool] = {}
    for node in loops:
        entry = REPORT.of(node)
        if entry is not None:
            loop = view(node, ctx.opset)
            entry.nodes_after += _node_count(loop.body)
            entry.fate = _fate(entry, loop)
            are_fallbacks[id(entry)] = are_fallbacks.get(id(entry), True) and is_fallback_loop(loop, ctx)
    for entry in report.loops:
        entry.fallback = are_fallbacks.get(id(entry), False)
        entry.is_a = describe_loop(entry)
        _remove_contradictions(entry, ctx.options.target.loops)


def report_remaining_nodes(report: RewriteReport, remaining: Sequence[tuple[LoopReport, Sequence[Reason]]]) -> None:
    """Set the fate of the loops and nodes of which a recurrent node remains that the target does not run.

    Args:
        report: the report of the model.
        remaining: pairs of an entry and the reasons why a recurrent node of this entry remains.
    """
    known = {id(entry) for entry in report.loops}
    for entry, reasons in remaining:
        if id(entry) not in known:
            known.add(id(entry))
            report.loops.append(entry)
        elif entry.fate == "removed":
            entry.fate = "rewritten"
        entry.reasons += [reason for reason in reasons if reason not in entry.reasons]


def _fate(entry: LoopReport, loop: Loop) -> Fate:
    if entry.nodes_after < entry.nodes_before:
        return "reduced"
    is_lifted = entry.kind == "Scan-8" and not loop.batched
    return "rewritten" if entry.fired or is_lifted else "kept"


def _remove_contradictions(entry: LoopReport, runs_loops: bool) -> None:
    """Remove the reasons of ``entry`` that its fate, a more specific reason or the target contradicts.

    ``runs_loops``: True if the target runs loops. Otherwise it is no reason that a loop would be faster.
    """
    if entry.fate in ("removed", "compiled"):
        entry.reasons = []
        return
    if entry.fallback:
        rule = next((fired.rule for fired in reversed(entry.fired) if fired.rule in _ON_RECURRENCES), "engine")
        entry.reasons = [Reason(rule, "FALLBACK", f"an If runs the loop only for inputs or steps that {rule} does not cover")]
        return
    reasons = entry.reasons
    if any(reason.rule in _ON_RECURRENCES for reason in reasons):
        reasons = [reason for reason in reasons if reason.code != "RECURRENCE"]
    entry.reasons = [reason for reason in reasons if runs_loops or not reason.code.startswith("COST-")] or reasons


_ON_RECURRENCES = frozenset(rule.name for rule in RULES if rule.phase == "recurrence")
"""The rules that refuse a loop only if they recognise its recurrence."""


def _node_count(body: ir.Graph) -> int:
    return sum(1 for _ in all_nodes(body))


_NAMES, _CLASSES, _SPACE = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy", "namespace"
_LONGEST, _LONGEST_SHOWN = 10_000, 120


def scope_of(node: ir.Node) -> str:
    """Return the module of the exported program from which ``node`` comes.

    The text has the name and the class of the module, for example ``encoder.rnn (GRUCell)``. It is empty if the exporter recorded
    no module in the metadata of ``node``.
    """
    noted = node.metadata_props
    names, classes = _metadata_list(noted, _NAMES)[:-1], _metadata_list(noted, _CLASSES)[:-1]
    if not names and not classes:
        names, classes = _modules_of_namespace(noted.get(_SPACE, ""))
    module = next((name for name in reversed(names) if name), "")
    kind = classes[-1].rpartition(".")[2] if classes else ""
    return plain(cut(f"{module} ({kind})" if module and kind else module or kind, _LONGEST_SHOWN))


def _metadata_list(metadata: Mapping[str, str], key: str) -> list[str]:
    """Return the list of strings in the metadata entry ``key``, which is written as a Python list.

    Return an empty list if the entry is absent or invalid.
    """
    text = metadata.get(key, "")
    try:
        items = ast.literal_eval(text) if text and len(text) <= _LONGEST else []
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    return [str(item) for item in items] if isinstance(items, list) else []


def _modules_of_namespace(namespace: str) -> tuple[list[str], list[str]]:
    """Return two lists: the names and the classes of the modules in ``namespace``, outer modules first.

    For example, ``": Model/encoder.rnn: GRUCell/scan: torch.ops..."`` gives ``["", "encoder.rnn"]`` and ``["Model", "GRUCell"]``.
    The last part of the namespace is the operator itself, and is ignored.
    """
    parts = [part.partition(": ") for part in namespace[:_LONGEST].split("/")[:-1] if ": " in part]
    return [name for name, _, _ in parts], [kind for _, _, kind in parts]


_COMPUTES = {rule.name: rule.computes for rule in RULES if rule.computes}
_BY_CODE = (
    ("FAST-MATH", "distances between the rows of two matrices"),
    ("LOOP-CONDITION", "steps until a condition says that it is done"),
    ("LINEAR-DECAY", "linear recurrence s' = a * s + b, with an a of its own in each step"),
    ("COST-LINEAR", "linear recurrence s' = a * s + b"),
    ("LINEAR-", "linear recurrence s' = a * s + b"),
    ("SCAN-BLOCKS", "steps that do not need each other, several at once"),
    ("CELL-", "recurrent cell other than LSTM, GRU or RNN"),
    ("RECURRENCE", "recurrence"),
    ("NATIVE-", "recurrence"),
)
"""Pairs of a prefix of reason codes and a description of the loop. More specific prefixes come first."""
_RECURRENT = ("RNN", "LSTM", "GRU")


def describe_loop(entry: LoopReport) -> str:
    """Describe in words what the loop of ``entry`` computes, for example ``recurrence``.

    Return an empty text if unknown.
    """
    if entry.kind in _RECURRENT:
        return entry.kind
    codes = [reason.code for reason in entry.reasons]
    refused = [reason.is_a for reason in entry.reasons if reason.is_a]
    replaced = [fired.made.is_a for fired in entry.fired if fired.made.is_a]
    if not replaced and not refused:
        replaced = [_COMPUTES[fired.rule] for fired in entry.fired if fired.rule in _COMPUTES]
    if replaced or refused:
        described = " and ".join(dict.fromkeys(replaced or refused))
        return f"{described}, beside another recurrence" if replaced and "RECURRENCE" in codes else described
    for prefix, description in _BY_CODE:
        if any(code.startswith(prefix) for code in codes):
            return description
    is_map = entry.fate == "removed" and any(fired.rule == "loop-fission" for fired in entry.fired)
    return "steps that do not need each other" if is_map else ""
