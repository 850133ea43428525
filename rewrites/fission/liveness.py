"""Computes an upper bound of the bytes of all stacks that exist at the same time.

A stack exists from the node that computes it to the last body node that reads it. A body node may become several nodes for all
steps at once. While they run, their intermediate results count too, including those in nested loops. The result of a Reshape or a
similar node shares the memory of its source, so it takes no memory but keeps the source alive.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.dependence import reads
from rewrites.base.not_applicable import NotApplicable
from rewrites.batching import Operand
from rewrites.graph.marks import STACK_BYTES
from rewrites.graph.walk import node_graphs
from rewrites.loops import ScanView, State

__all__ = ["Liveness"]

_VIEWS = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


class Liveness:
    """Tracks the bytes of the stacks that exist ``now``, and the ``most`` bytes that existed at any time.

    Stacks that other splits of the same loop created before count too. The loop's own scan outputs do not count.
    """

    def __init__(self, loop: ScanView, sizes: StepSizes) -> None:
        self.now = self.most = STACK_BYTES.of(loop.node) or 0
        self.sizes = sizes
        self._costs: dict[ir.Value, int] = {}
        self._readers = Counter(value for node in loop.body for value in set(reads(node)))
        self._readers.update(state.next for state in loop.states)

    def copy(self) -> "Liveness":
        """Return an independent copy."""
        other = copy(self)
        other._costs, other._readers = dict(self._costs), Counter(self._readers)
        return other

    def refusal(self, stacks: Mapping[ir.Value, Operand], built: Sequence[ir.Node] = ()) -> NotApplicable | None:
        """Return a reason if ``stacks``, added to the existing stacks, exceed the memory budget, else None.

        ``built``: the nodes that compute ``stacks``.
        """
        needed, limit = self._needed(stacks, built), self.sizes.options.memory_budget
        if not needed or self.now + needed <= limit:
            return None
        name = next((value.name for value in stacks), "")
        held = f" beside the {self.now} that other stacks take" if self.now else ""
        return NotApplicable("MEMORY-BUDGET", f"'{name}' takes about {needed} bytes for all steps{held} (limit: {limit})")

    def hold(self, stacks: Mapping[ir.Value, Operand], built: Sequence[ir.Node] = ()) -> None:
        """Add ``stacks`` to the stacks that exist ``now``, and update ``most``.

        ``built``: the nodes that compute ``stacks``. Their intermediate results can raise ``most``, but do not exist afterwards.
        """
        self.most = max(self.most, self.now + self._needed(stacks, built))
        for value, operand in stacks.items():
            if self._readers[value]:
                self._costs[value] = self._cost(value, operand)
                self.now += self._costs[value]

    def read(self, node: ir.Node) -> None:
        """Release the stacks whose last reader is ``node``, a node of the body."""
        for value in set(reads(node)):
            self._readers[value] -= 1
            if not self._readers[value]:
                self.now -= self._costs.pop(value, 0)

    def forget(self, states: Iterable[State]) -> None:
        """Stop counting ``states`` as readers of their next values, because the loop keeps these states."""
        self._readers.subtract(state.next for state in states)

    def note_on(self, node: ir.Node) -> None:
        """Record ``most`` on ``node``, a loop that results from this split. Later splits count these bytes."""
        STACK_BYTES.put(node, self.most)

    def _needed(self, stacks: Mapping[ir.Value, Operand], built: Sequence[ir.Node]) -> int:
        results = {operand.value for operand in stacks.values()}
        return sum(self._cost(value, operand) for value, operand in stacks.items()) + self._working(built, results)

    def _cost(self, value: ir.Value, operand: Operand) -> int:
        if value in self.sizes.already_stacked:
            return 0
        return self.sizes.step_bytes(value) * (self.sizes.steps if operand.batched else 1)

    def _working(self, nodes: Sequence[ir.Node], apart: Iterable[ir.Value] = ()) -> int:
        """Return the most bytes that the results of ``nodes`` and their nested graphs take at a time.

        ``apart``: results that do not count.
        """
        viewed: dict[ir.Value, ir.Value] = {}
        for node in nodes:
            if node.op_type in _VIEWS and node.inputs[0] is not None:
                viewed[node.outputs[0]] = viewed.get(node.inputs[0], node.inputs[0])
        read = [{viewed.get(value, value) for value in reads(node)} for node in nodes]
        readers = Counter(value for values in read for value in values)
        costs = dict.fromkeys(apart, 0)
        now = most = 0
        for node, values in zip(nodes, read, strict=True):
            for value in node.outputs:
                now += costs.setdefault(value, 0 if value in viewed else self.sizes.outer_bytes(value))
            inner = (sum(map(self.sizes.outer_bytes, graph.inputs)) + self._working(list(graph)) for graph in node_graphs(node))
            most = max(most, now + max(inner, default=0))
            for value in values:
                readers[value] -= 1
                if not readers[value]:
                    now -= costs.pop(value, 0)
        return most
