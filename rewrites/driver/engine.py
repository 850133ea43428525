"""Applies the rules to every loop until none fires.

Each patch makes a loop smaller or plainer, so a fixpoint exists; the bounds only turn a defect into an error instead of a hang.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from rewrites.analysis.absent_nodes import absent_nodes
from rewrites.analysis.unread_nodes import unread_nodes
from rewrites.analysis.unsliced_types import unsliced
from rewrites.base.errors import InvariantBroken
from rewrites.base.not_applicable import NotApplicable
from rewrites.base.report import Fate, Fired, LoopReport, NodeReport, Reason, Report
from rewrites.base.vetoes import RuleFailed, Veto
from rewrites.driver.asking import ask
from rewrites.driver.invariants import check_invariants
from rewrites.driver.join import join_directions
from rewrites.driver.lower import lower_nodes
from rewrites.driver.unshielded import Shielded
from rewrites.edits.rule import Patch, Rule
from rewrites.graph.context import Context
from rewrites.graph.loop_entries import written_out_of
from rewrites.graph.marks import REPORT
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import is_loop, loops_inside_out, view
from rewrites.loops.checks import label
from rewrites.rules.registry import LAST

__all__ = ["count_operators", "rewrite"]

_PATCHES_PER_LOOP = 200
_SWEEPS = 100
_LESSONS = 3


def rewrite(
    ctx: Context,
    rules: Sequence[Rule[Any]],
    *,
    stop_after: int | None = None,
    debug: bool = False,
    progress: Callable[[int, int], None] | None = None,
    learn: Callable[[Context], bool] | None = None,
) -> Report:
    """Apply ``rules`` to all loops of the model in place, inner loops first, and report.

    ``stop_after``: apply that many patches and no more. ``debug``: check the invariants after each patch.
    ``progress``: called with the number of loops settled and the number in all. ``learn``: called where no rule fires any more,
    after those that did; where it has found out more, the rules go on. Raises MalformedLoop before anything is changed.
    """
    ctx.rules = rules
    report = Report(operators_before=count_operators(ctx.model.graph), opset=ctx.opset)
    driver = _Driver(ctx, rules, report, stop_after, debug)
    shielded = Shielded.of(ctx.model.graph)
    report.nodes = lower_nodes(ctx, rules, driver.change_node)
    loops = driver.repair(driver.register())
    learned = lessons = 0
    for sweep in range(_SWEEPS):
        fired = len(report.patches)
        for i, node in enumerate(loops):
            driver.settle(node)
            if progress is not None and sweep == 0:
                progress(i + 1, len(loops))
        loops = driver.adopt()
        if len(report.patches) == fired and not driver.write_out_nodes():
            lessons = lessons + 1 if fired == learned else 1
            if learn is None or not fired or driver.left == 0 or lessons > _LESSONS or not learn(ctx):
                break
            learned = fired
        loops = driver.adopt()
    else:
        raise InvariantBroken(f"the rules still fire after {_SWEEPS} sweeps over the model")
    loops = driver.spare()
    driver.conclude(loops)
    report.nodes += shielded.guard(ctx, driver.change_node)
    report.pairs = join_directions(ctx, rules, driver.change_node)
    report.operators_after = count_operators(ctx.model.graph)
    return report


def count_operators(graph: ir.Graph) -> Counter[str]:
    """Count the nodes of each operator, those in bodies included."""
    return Counter(node.op_type if not node.domain else f"{node.domain}.{node.op_type}" for node in all_nodes(graph))


class _Driver:
    def __init__(self, ctx: Context, rules: Sequence[Rule[Any]], report: Report, stop_after: int | None, debug: bool) -> None:
        self.ctx, self.report, self.debug = ctx, report, debug
        self.rules = [rule for rule in rules if rule.subject == "loop"]
        self.absent = [rule for rule in rules if rule.subject == "absent node"]
        self.left = stop_after
        self.refused: list[LoopReport] = []
        self.unrolled = False

    def change_node(self, rule: Rule[Any], entry: NodeReport, patch: Patch) -> Sequence[ir.Node] | None:
        """Make a change to a recurrent node, where changes are still to be made, and give what is to be looked at next."""
        return None if self.left == 0 else self._apply(rule, entry, patch)

    def register(self) -> list[ir.Node]:
        """Read every loop once, so that a malformed one is refused before anything changes, and open its report."""
        loops = loops_inside_out(self.ctx.model.graph)
        self._enter(_with_paths(self.ctx.model.graph, "main"))
        return loops

    def adopt(self) -> list[ir.Node]:
        """Give all loops there are; those that no loop of the report became get reports of their own."""
        loops = loops_inside_out(self.ctx.model.graph)
        if any(not REPORT.on(node) for node in loops):
            paths = _with_paths(self.ctx.model.graph, "main")
            self._enter([(node, where) for node, where in paths if not REPORT.on(node)])
        return loops

    def _enter(self, loops: Sequence[tuple[ir.Node, str]]) -> None:
        for node, where in loops:
            loop = view(node, self.ctx.opset)
            kind = "Scan-8" if loop.batched else loop.kind
            size = _size(loop.body)
            entry = LoopReport(where, kind, loop.steps, size, size)
            REPORT.put(node, entry)
            self.report.loops.append(entry)

    def write_out_nodes(self) -> int:
        """Let recurrent nodes that the target does not run be loops to write out; gives how many were made so."""
        if not self.absent or self.ctx.options.unroll.steps == 0:
            return 0
        before, self.refused = len(self.report.patches), []
        for absent in absent_nodes(self.ctx):
            entry = LoopReport(absent.where, absent.node.op_type, absent.steps, 1, 1)
            (rule,) = self.absent
            outcome = ask(rule, absent, entry.where, self.ctx)
            if isinstance(outcome, NotApplicable):
                entry.reasons.append(Reason(rule.name, outcome.code, outcome.detail))
                self.refused.append(entry)
            elif self.left != 0:
                self._apply(rule, entry, outcome)
                self.report.loops.append(entry)
                for node in loops_inside_out(self.ctx.model.graph):
                    REPORT.put_new(node, entry)
        return len(self.report.patches) - before

    def repair(self, loops: Sequence[ir.Node]) -> list[ir.Node]:
        """Apply the rules without which onnxruntime computes garbage to all loops before any other rule looks at one."""
        chosen, self.rules = self.rules, [rule for rule in self.rules if rule.use == "always"]
        for node in loops:
            self.settle(node)
        self.rules = chosen
        return loops_inside_out(self.ctx.model.graph)

    def spare(self) -> list[ir.Node]:
        """Apply the rules without which onnxruntime may end the process to the loops that are left of a model that was changed.

        What refused an empty sequence before it came there may be gone, or go because nobody reads it, whichever rules the caller
        chose.
        """
        graph = self.ctx.model.graph
        for rule in LAST if self.report.patches or unread_nodes(graph) else ():
            for node in loops_inside_out(graph):
                loop = view(node, self.ctx.opset)
                entry = REPORT.of(node)
                is_needed = rule not in self.rules and rule.needed is not None and rule.needed(loop)
                if entry is not None and is_needed and unsliced(loop, self.ctx.opset) is None:
                    outcome = ask(rule, loop, entry.where, self.ctx)
                    if isinstance(outcome, Patch) and self.left != 0:
                        self._apply(rule, entry, outcome)
        return loops_inside_out(self.ctx.model.graph)

    def settle(self, node: ir.Node) -> None:
        """Apply rules to ``node`` and what takes its place until none fires."""
        entry = REPORT.of(node)
        if entry is None or node.graph is None:
            return
        most = max(_PATCHES_PER_LOOP, entry.nodes_before)
        waiting, left = [node], most
        while waiting:
            replaced = self._step(waiting.pop(), entry)
            if replaced is None:
                continue
            for new in replaced:
                REPORT.put_new(new, entry)
            waiting.extend(reversed(replaced))
            left += most * max(0, len(replaced) - 1) - 1
            if not left:
                made, why = self.ctx.vetoes.made, f"the rules still fire after {most} patches on the loop {entry.where}"
                raise RuleFailed(why, Veto(made[-1][0], entry.where, len(made) - 1, why))

    def _step(self, node: ir.Node, entry: LoopReport) -> Sequence[ir.Node] | None:
        if self.left == 0 or node.graph is None:
            return None
        entry.reasons = []
        parts, loop = _parts(node), view(node, self.ctx.opset)
        refused = unsliced(loop, self.ctx.opset)
        rules = self.rules if refused is None else [rule for rule in self.rules if rule.use == "always" or rule.phase == "unroll"]
        if refused is not None and len(rules) < len(self.rules):
            entry.reasons = [Reason("element-types", refused.code, refused.detail)]
        for rule in rules:
            with self.ctx.vetoes.blaming(rule.name, entry.where):
                if _parts(node) != parts:
                    parts, loop = _parts(node), view(node, self.ctx.opset)
                outcome = self.ctx.vetoes.on(rule.name, entry.where) or rule.check(loop, self.ctx)
            if isinstance(outcome, NotApplicable):
                if not outcome.silent:
                    entry.reasons.append(Reason(rule.name, outcome.code, outcome.detail))
                continue
            entry.notes.extend(outcome.notes)
            return self._apply(rule, entry, outcome)
        return None

    def _apply(self, rule: Rule[Any], entry: LoopReport | NodeReport, patch: Patch) -> Sequence[ir.Node]:
        with self.ctx.vetoes.blaming(rule.name, entry.where):
            replaced = patch.edit()
        fired = Fired(len(self.report.patches) + 1, rule.name, entry.where, patch.what, patch.made)
        self.report.patches.append(fired)
        entry.fired.append(fired)
        self.ctx.vetoes.made.append((rule.name, entry.where))
        self.unrolled |= rule.phase == "unroll"
        if self.left is not None:
            self.left -= 1
        if self.debug and rule.use != "always":
            check_invariants(self.ctx.model, f"patch {fired.number} ({fired.rule} on {fired.loop})")
        return replaced

    def conclude(self, loops: Sequence[ir.Node]) -> None:
        """Close the reports: what is left of each loop."""
        for every in self.report.loops:
            every.fate, every.nodes_after = "removed", 0
        for step in all_nodes(self.ctx.model.graph) if self.unrolled else ():
            written = written_out_of(step)
            if written is not None:
                written.unrolled_nodes += 1
        for node in loops:
            entry = REPORT.of(node)
            if entry is not None:
                entry.nodes_after += _size(view(node, self.ctx.opset).body)
                entry.fate = _fate(entry)
        self.report.loops += self.refused
        for gone in self.report.loops:
            if gone.fate == "removed":
                gone.reasons = []


def _parts(node: ir.Node) -> list[object]:
    """Return what a view of a loop is made of: while it is the same, so is the view."""
    values: list[object] = [*node.inputs, *node.outputs, *node.attributes.data.values()]
    for body in node_graphs(node):
        values += [body, *body.inputs[:], *body.outputs[:]]
    return values


def _fate(entry: LoopReport) -> Fate:
    if entry.nodes_after < entry.nodes_before:
        return "reduced"
    return "rewritten" if entry.fired else "kept"


def _with_paths(graph: ir.Graph, path: str) -> list[tuple[ir.Node, str]]:
    found: list[tuple[ir.Node, str]] = []
    for node in graph:
        if not is_loop(node) and not node_graphs(node):
            continue
        here = f"{path}/{node.op_type} {label(node)}"
        for inner in node_graphs(node):
            found.extend(_with_paths(inner, here))
        if is_loop(node):
            found.append((node, here))
    return found


def _size(body: ir.Graph) -> int:
    return sum(1 for _ in all_nodes(body))
