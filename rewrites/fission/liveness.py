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
    """Tracks the bytes of stacks: those that exist now (``current``), and the maximum so far (``peak``).

    Stacks from earlier splits of the same loop count too. The loop's own scan outputs do not count.
    """

    def __init__(self, loop: ScanView, sizes: StepSizes) -> None:
        self.current = self.peak = STACK_BYTES.of(loop.node) or 0
        self.sizes = sizes
        self._sizes_by_value: dict[ir.Value, int] = {}
        self._readers = Counter(value for node in loop.body for value in set(reads(node)))
        self._readers.update(state.next for state in loop.states)

    def copy(self) -> "Liveness":
        """Return an independent copy."""
        other = copy(self)
        other._sizes_by_value, other._readers = dict(self._sizes_by_value), Counter(self._readers)
        return other

    def refusal(self, stacks: Mapping[ir.Value, Operand], producers: Sequence[ir.Node] = ()) -> NotApplicable | None:
        """Return a reason if ``stacks``, added to the current stacks, exceed the memory budget, else None.

        ``producers``: the nodes that compute ``stacks``.
        """
        needed, limit = self._bytes_needed(stacks, producers), self.sizes.options.memory_budget
        if not needed or self.current + needed <= limit:
            return None
        name = next((value.name for value in stacks), "")
        existing = f" beside the {self.current} that other stacks take" if self.current else ""
        return NotApplicable("MEMORY-BUDGET", f"'{name}' takes about {needed} bytes for all steps{existing} (limit: {limit})")

    def add(self, stacks: Mapping[ir.Value, Operand], producers: Sequence[ir.Node] = ()) -> None:
        """Add ``stacks`` to the current stacks.

        ``producers``: the nodes that compute ``stacks``. Their intermediate results can raise ``peak``, but do not stay in memory.
        """
        self.peak = max(self.peak, self.current + self._bytes_needed(stacks, producers))
        for value, operand in stacks.items():
            if self._readers[value]:
                self._sizes_by_value[value] = self._bytes_of(value, operand)
                self.current += self._sizes_by_value[value]

    def release_after(self, node: ir.Node) -> None:
        """Release the stacks that no body node after ``node`` reads."""
        for value in set(reads(node)):
            self._readers[value] -= 1
            if not self._readers[value]:
                self.current -= self._sizes_by_value.pop(value, 0)

    def ignore_states(self, states: Iterable[State]) -> None:
        """Stop counting ``states`` as readers of their next values, because the loop keeps these states."""
        self._readers.subtract(state.next for state in states)

    def record_on(self, node: ir.Node) -> None:
        """Record ``peak`` on the loop ``node``, so that later splits of this loop count these bytes."""
        STACK_BYTES.put(node, self.peak)

    def _bytes_needed(self, stacks: Mapping[ir.Value, Operand], producers: Sequence[ir.Node]) -> int:
        """Return the bytes of ``stacks`` and of the intermediate results of ``producers``."""
        results = {operand.value for operand in stacks.values()}
        return sum(self._bytes_of(value, operand) for value, operand in stacks.items()) + self._peak_bytes(producers, results)

    def _bytes_of(self, value: ir.Value, operand: Operand) -> int:
        """Return the bytes of ``operand``, the stack of ``value``. A scan output of the loop counts 0."""
        if value in self.sizes.already_stacked:
            return 0
        return self.sizes.step_bytes(value) * (self.sizes.steps if operand.batched else 1)

    def _peak_bytes(self, nodes: Sequence[ir.Node], uncounted: Iterable[ir.Value] = ()) -> int:
        """Return the most bytes that results of ``nodes`` and their nested graphs take at the same time.

        ``uncounted``: results that do not count.
        """
        viewed: dict[ir.Value, ir.Value] = {}
        for node in nodes:
            if node.op_type in _VIEWS and node.inputs[0] is not None:
                viewed[node.outputs[0]] = viewed.get(node.inputs[0], node.inputs[0])
        read_by_node = [{viewed.get(value, value) for value in reads(node)} for node in nodes]
        readers = Counter(value for values in read_by_node for value in values)
        costs = dict.fromkeys(uncounted, 0)
        current = peak = 0
        for node, values in zip(nodes, read_by_node, strict=True):
            for value in node.outputs:
                current += costs.setdefault(value, 0 if value in viewed else self.sizes.outer_bytes(value))
            inner = (sum(map(self.sizes.outer_bytes, graph.inputs)) + self._peak_bytes(list(graph)) for graph in node_graphs(node))
            peak = max(peak, current + max(inner, default=0))
            for value in values:
                readers[value] -= 1
                if not readers[value]:
                    current -= costs.pop(value, 0)
        return peak
