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
from rewrites.driver.applying import Applying, ask
from rewrites.driver.loop_reports import adopt_loops
from rewrites.graph.marks import REPORT
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import Loop, is_loop, loops_in, view
from rewrites.registry import LAST
from rewrites.rule import Patch, Rule

__all__ = ["LoopEngine", "Neighbours"]


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
            always._settle(node)
        return loops_in(self._ctx.model.graph)

    def sweep(self, loops: Sequence[ir.Node], progress: Callable[[int, int], None] | None = None) -> list[ir.Node]:
        """Apply the rules to each of ``loops`` that may have changed. Return all loops that the model has now."""
        neighbours = Neighbours(self._ctx.model.graph)
        for i, node in enumerate(loops):
            if self._is_to_be_asked(node):
                self._clock += 1
                group, fired = neighbours.group_of(node), len(self._applying.report.patches)
                self._settled.update(dict.fromkeys(self._settle(node), (self._clock, group)))
                if len(self._applying.report.patches) > fired:
                    self._changed[group] = self._clock
            if progress is not None:
                progress(i + 1, len(loops))
        return adopt_loops(self._ctx, self._applying.report)

    def ask_all_again(self) -> None:
        """Let the next sweep try the rules on all loops, even on loops near which nothing changed."""
        self._settled.clear()

    def give_up(self) -> None:
        """Add the reason RULE-LIMIT to the reports of the loops that changed last."""
        last = max(self._changed.values(), default=0)
        for entry in (REPORT.of(node) for node, (clock, _) in self._settled.items() if clock == last):
            if entry is not None:
                entry.reasons.append(Reason("engine", "RULE-LIMIT", "the rules still fire after the largest number of sweeps"))

    def spare(self) -> list[ir.Node]:
        """If the model changed, prevent crashes of its loops on empty sequences.

        In the original model, another node may have rejected an empty sequence before a loop could crash on it. If this node
        is gone, the loop can crash. So apply the rules ``LAST`` to all loops that need them, even if the caller did not choose
        these rules. Return all loops that the model has now.
        """
        graph = self._ctx.model.graph
        for rule in LAST if self._applying.report.patches or unread_nodes(graph) else ():
            for node in loops_in(graph):
                loop, entry = view(node, self._ctx.opset), REPORT.of(node)
                is_needed = rule not in self._rules and rule.needed is not None and rule.needed(loop)
                if entry is not None and is_needed and unsliceable_in_loop(loop, self._ctx.opset) is None:
                    outcome = ask(rule, loop, entry.where, self._ctx)
                    if isinstance(outcome, Patch) and not self._applying.is_over:
                        self._applying.apply(rule, entry, outcome)
        return loops_in(graph)

    def hand_over(self) -> None:
        """Apply the rules to each remaining loop, outer loops first.

        If a patch of an outer loop removes inner loops, the patch is also added to the reports of the inner loops.
        """
        left = deque(filter(is_loop, all_nodes(self._ctx.model.graph)) if self._rules else ())
        while left:
            node = left.popleft()
            entry, fired = REPORT.of(node), len(self._applying.report.patches)
            reasons = [] if entry is None else entry.reasons
            self._settle(node)
            if entry is not None and node.graph is not None:
                entry.reasons = reasons + entry.reasons
            if len(self._applying.report.patches) > fired:
                there = set(loops_in(self._ctx.model.graph))
                for inner in (loop for loop in left if loop not in there):
                    if (inner_entry := REPORT.of(inner)) is not None:
                        inner_entry.fired.append(self._applying.report.patches[-1])
                left = deque(loop for loop in left if loop in there)

    def _is_to_be_asked(self, node: ir.Node) -> bool:
        """Return True if no sweep visited ``node`` yet, or if a loop of its group changed since the visit."""
        settled, group = self._settled.get(node, (-1, None))
        return settled < 0 or self._changed.get(group, 0) > settled

    def _settle(self, node: ir.Node) -> list[ir.Node]:
        """Apply rules to the loop ``node``, then to the loops that replace it, until none applies.

        Return the remaining loops.
        """
        entry, settled = REPORT.of(node), list[ir.Node]()
        if entry is None or node.graph is None:
            return settled
        most = max(_PATCHES_PER_LOOP, entry.nodes_before)
        waiting, left = [node], most
        while waiting and left:
            current = waiting.pop()
            replaced = self._step(current, entry)
            if replaced is None:
                settled.append(current)
                continue
            for new in replaced:
                REPORT.put_new(new, entry)
            waiting.extend(reversed(replaced))
            left += most * max(0, len(replaced) - 1) - 1
        if not left:
            entry.reasons = [Reason("engine", "RULE-LIMIT", f"the rules still fire after {most} patches")]
        return settled + waiting

    def _step(self, node: ir.Node, entry: LoopReport) -> Sequence[ir.Node] | None:
        if self._applying.is_over or node.graph is None:
            return None
        entry.reasons = []
        ctx, opset = self._ctx, self._ctx.opset
        parts, loop = _parts(node), view(node, opset)
        refused = unsliceable_in_loop(loop, opset)
        rules = self._rules if refused is None else [rule for rule in self._rules if rule.use == "always" or rule.phase == "unroll"]
        if refused is not None and len(rules) < len(self._rules):
            entry.reasons = [Reason("element-types", refused.code, refused.detail)]
        for rule in rules:
            with ctx.vetoes.blaming(rule.name, entry.where):
                if _parts(node) != parts:
                    parts, loop = _parts(node), view(node, opset)
            outcome = ask(rule, loop, entry.where, ctx)
            if isinstance(outcome, NotApplicable):
                if not outcome.silent:
                    entry.reasons.append(Reason(rule.name, outcome.code, outcome.detail, outcome.is_a))
                continue
            entry.notes.extend(outcome.notes)
            return self._applying.apply(rule, entry, outcome)
        return None


def _parts(node: ir.Node) -> list[Any]:
    """Return all values, attributes and bodies from which a view of the loop ``node`` is built.

    While this list stays equal, the view stays valid.
    """
    values: list[Any] = [*node.inputs, *node.outputs, *node.attributes.data.values()]
    for body in node_graphs(node):
        values += [body, *body.inputs[:], *body.outputs[:]]
    return values


class Neighbours:
    """Divides the loops of a model into groups.

    A change to a loop does not affect the loops of other groups. A group has the loops of one connected component of the main
    graph, including loops nested in it. Two nodes are connected if they share a value that is not an initializer.
    """

    def __init__(self, graph: ir.Graph) -> None:
        self._leader: dict[object, object] = {}
        self._around: dict[ir.Node, ir.Node] = {}
        for node in graph:
            for value in (*reads(node), *node.outputs):
                if value.const_value is None or value.is_graph_input():
                    self._join(node, value)
            inner = [part for nested in node_graphs(node) for part in all_nodes(nested)]
            self._around.update((loop, node) for loop in (node, *inner) if is_loop(loop))

    def group_of(self, loop: ir.Node) -> object:
        """Return the key of the group of ``loop``, which the graph must have had when this object was created."""
        return self._find(self._around[loop])

    def _find(self, item: object) -> object:
        root = item
        while (above := self._leader.setdefault(root, root)) is not root:
            root = above
        while item is not root:
            self._leader[item], item = root, self._leader[item]
        return root

    def _join(self, item: object, other: object) -> None:
        self._leader[self._find(item)] = self._find(other)
