"""Applies rules to loops until none applies.

The engine visits all loops again and again (a sweep is one visit of each loop), but skips a loop if nothing near it has changed
since the last visit. Each patch makes a loop smaller or simpler, so the sweeps end. If two rules keep undoing each other on a loop,
the engine stops and reports ``RULE-LIMIT`` for this loop.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from rewrites.analysis.dependence import reads, unread_nodes
from rewrites.analysis.unsliced_types import unsliceable_in_loop
from rewrites.base.not_applicable import NotApplicable
from rewrites.base.report import LoopReport, Reason
from rewrites.driver.applying import Applying, try_rule
from rewrites.driver.loop_reports import report_as_part_of, report_new_loops
from rewrites.graph.marks import REPORT
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import Loop, is_loop, loops_in, view
from rewrites.registry import LAST
from rewrites.rule import Patch, Rule

__all__ = ["LoopEngine", "LoopGroups"]


_PATCHES_PER_LOOP = 200


class LoopEngine:
    """Applies ``rules`` to loops, in the given order, and tracks on which loops to try them again."""

    def __init__(self, applying: Applying, rules: Sequence[Rule[Loop]]) -> None:
        self._applying, self._rules = applying, list(rules)
        self._ctx = applying.ctx
        self._settled: dict[ir.Node, tuple[int, object]] = {}
        self._changed: dict[object, int] = {}
        self._clock = 0

    def repair(self, loops: Sequence[ir.Node]) -> list[ir.Node]:
        """Apply only the rules with ``use == "always"`` to ``loops``. Return all loops that the model has now.

        These rules repair loops for which onnxruntime would compute wrong results.
        """
        always = LoopEngine(self._applying, [rule for rule in self._rules if rule.use == "always"])
        for node in loops:
            always._apply_to_loop(node)
        return loops_in(self._ctx.model.graph)

    def sweep(self, loops: Sequence[ir.Node], progress: Callable[[int, int], None] | None = None) -> list[ir.Node]:
        """Apply the rules to each of ``loops`` that may have changed. Return all loops that the model has now."""
        groups = LoopGroups(self._ctx.model.graph)
        for i, node in enumerate(loops):
            if self._needs_visit(node):
                self._clock += 1
                group, fired = groups.group_of(node), len(self._applying.report.patches)
                self._settled.update(dict.fromkeys(self._apply_to_loop(node), (self._clock, group)))
                if len(self._applying.report.patches) > fired:
                    self._changed[group] = self._clock
            if progress is not None:
                progress(i + 1, len(loops))
        return report_new_loops(self._ctx, self._applying.report)

    def revisit_all(self) -> None:
        """Let the next sweep visit all loops, even loops near which nothing has changed."""
        self._settled.clear()

    def report_limit(self) -> None:
        """Add the reason RULE-LIMIT to the reports of the loops that changed last."""
        last = max(self._changed.values(), default=0)
        for entry in (REPORT.of(node) for node, (clock, _) in self._settled.items() if clock == last):
            if entry is not None:
                entry.reasons.append(Reason("engine", "RULE-LIMIT", "the rules still fire after the largest number of sweeps"))

    def prevent_new_crashes(self) -> list[ir.Node]:
        """Protect loops that may crash on an empty sequence because a rule removed the node that rejected it.

        If the model changed, apply the rules ``LAST`` to all loops that need them, even if the caller did not choose these rules.
        Return all loops that the model has now.
        """
        graph = self._ctx.model.graph
        for rule in LAST if self._applying.report.patches or unread_nodes(graph) else ():
            for node in loops_in(graph):
                loop, entry = view(node, self._ctx.opset), REPORT.of(node)
                is_needed = rule not in self._rules and rule.crash_prone is not None and rule.crash_prone(loop)
                if entry is not None and is_needed and unsliceable_in_loop(loop, self._ctx.opset) is None:
                    outcome = try_rule(rule, loop, entry.where, self._ctx)
                    if isinstance(outcome, Patch) and not self._applying.is_over:
                        self._applying.apply(rule, entry, outcome)
        return loops_in(graph)

    def apply_outer_first(self) -> None:
        """Apply the rules to each loop of the model, outer loops first.

        If a patch removes loops nested in its loop, add the patch to the reports of the nested loops as well.
        """
        pending = deque(filter(is_loop, all_nodes(self._ctx.model.graph)) if self._rules else ())
        while pending:
            node = pending.popleft()
            entry, fired = REPORT.of(node), len(self._applying.report.patches)
            reasons = [] if entry is None else entry.reasons
            self._apply_to_loop(node)
            if entry is not None and node.graph is not None:
                entry.reasons = reasons + entry.reasons
            if len(self._applying.report.patches) > fired:
                remaining = set(loops_in(self._ctx.model.graph))
                for inner in (loop for loop in pending if loop not in remaining):
                    if (inner_entry := REPORT.of(inner)) is not None:
                        inner_entry.fired.append(self._applying.report.patches[-1])
                pending = deque(loop for loop in pending if loop in remaining)

    def _needs_visit(self, node: ir.Node) -> bool:
        """Return True if no sweep has visited the loop ``node``, or if its group has changed since then.

        A group has changed if one of its loops has changed.
        """
        settled, group = self._settled.get(node, (-1, None))
        return settled < 0 or self._changed.get(group, 0) > settled

    def _apply_to_loop(self, node: ir.Node) -> list[ir.Node]:
        """Apply the rules to the loop ``node`` and to the loops that replace it, until no rule applies.

        Return the loops that remain in place of ``node``.
        """
        entry, settled = REPORT.of(node), list[ir.Node]()
        if entry is None or node.graph is None:
            return settled
        limit = max(_PATCHES_PER_LOOP, entry.nodes_before)
        pending, patches_left = [node], limit
        while pending and patches_left:
            current = pending.pop()
            replaced = self._apply_first_rule(current, entry)
            if replaced is None:
                settled.append(current)
                continue
            for new in replaced:
                REPORT.put_new(new, entry)
            pending.extend(reversed(replaced))
            patches_left += limit * max(0, len(replaced) - 1) - 1
        if not patches_left:
            entry.reasons = [Reason("engine", "RULE-LIMIT", f"the rules still fire after {limit} patches")]
        return settled + pending

    def _apply_first_rule(self, node: ir.Node, entry: LoopReport) -> Sequence[ir.Node] | None:
        if self._applying.is_over or node.graph is None:
            return None
        entry.reasons = []
        ctx, opset = self._ctx, self._ctx.opset
        sources, loop = _view_sources(node), view(node, opset)
        refused = unsliceable_in_loop(loop, opset)
        rules = self._rules if refused is None else [rule for rule in self._rules if rule.use == "always" or rule.phase == "unroll"]
        if refused is not None and len(rules) < len(self._rules):
            entry.reasons = [Reason("element-types", refused.code, refused.detail)]
        for rule in rules:
            with ctx.vetoes.blaming(rule.name, entry.where):
                if _view_sources(node) != sources:
                    sources, loop = _view_sources(node), view(node, opset)
            outcome = try_rule(rule, loop, entry.where, ctx)
            if isinstance(outcome, NotApplicable):
                if not outcome.silent:
                    entry.reasons.append(Reason(rule.name, outcome.code, outcome.detail, outcome.is_a))
                continue
            entry.notes.extend(outcome.notes)
            replaced = self._applying.apply(rule, entry, outcome)
            if rule.phase == "recurrence":
                report_as_part_of(entry, ctx.model.graph)
            return replaced
        return None


def _view_sources(node: ir.Node) -> list[Any]:
    """Return the parts of the model from which ``view`` builds its result for the loop ``node``.

    They are values, attributes and bodies. A result of ``view`` is valid as long as this list does not change.
    """
    values: list[Any] = [*node.inputs, *node.outputs, *node.attributes.data.values()]
    for body in node_graphs(node):
        values += [body, *body.inputs[:], *body.outputs[:]]
    return values


class LoopGroups:
    """Divides loops into groups, so that a change to a loop affects no loop of another group.

    A group consists of the loops in one connected component of the main graph, nested loops included. Two nodes of the main graph
    are connected if they share a value that is not an initializer.
    """

    def __init__(self, graph: ir.Graph) -> None:
        self._parents: dict[object, object] = {}
        self._outermost: dict[ir.Node, ir.Node] = {}
        for node in graph:
            for value in (*reads(node), *node.outputs):
                if value.const_value is None or value.is_graph_input():
                    self._join(node, value)
            inner = [part for nested in node_graphs(node) for part in all_nodes(nested)]
            self._outermost.update((loop, node) for loop in (node, *inner) if is_loop(loop))

    def group_of(self, loop: ir.Node) -> object:
        """Return the key of the group of ``loop``, a loop that the graph had when this object was created."""
        return self._find(self._outermost[loop])

    def _find(self, item: object) -> object:
        root = item
        while (above := self._parents.setdefault(root, root)) is not root:
            root = above
        while item is not root:
            self._parents[item], item = root, self._parents[item]
        return root

    def _join(self, item: object, other: object) -> None:
        self._parents[self._find(item)] = self._find(other)
