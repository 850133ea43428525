"""Which nodes and states of a body can be stacked next."""

import heapq
from collections.abc import Callable, Iterable, Sequence

import onnx_ir as ir

from rewrites.analysis.dependence import reads
from rewrites.loops import State

__all__ = ["Ready"]


class Ready:
    """What can be stacked next: nodes in order, and when there are none, the states whose next value is known.

    ``has``: whether a value is known already.
    """

    def __init__(self, nodes: Sequence[ir.Node], states: Sequence[State], has: Callable[[ir.Value], bool]) -> None:
        self._nodes, self._states = nodes, states
        self._missing: dict[int, int] = {}
        self._readers: dict[ir.Value, list[int]] = {}
        self._heap: list[int] = []
        self._delays: list[int] = []
        self._waiting: dict[ir.Value, list[int]] = {}
        for i, node in enumerate(self._nodes):
            missing = {value for value in reads(node) if not has(value)}
            self._missing[i] = len(missing)
            for value in missing:
                self._readers.setdefault(value, []).append(i)
            if not missing:
                self._heap.append(i)
        for i, state in enumerate(self._states):
            if has(state.next):
                self._delays.append(i)
            else:
                self._waiting.setdefault(state.next, []).append(i)

    def know(self, values: Iterable[ir.Value]) -> None:
        """Say that ``values`` have stacks now."""
        for value in values:
            self._delays.extend(self._waiting.pop(value, ()))
            for i in self._readers.pop(value, ()):
                self._missing[i] -= 1
                if not self._missing[i]:
                    heapq.heappush(self._heap, i)

    def next_node(self) -> ir.Node | None:
        """Return the first node of which all inputs are known, each node once."""
        return self._nodes[heapq.heappop(self._heap)] if self._heap else None

    def next_states(self) -> list[State]:
        """Return the states that are known since the last call, in order."""
        delays, self._delays = sorted(self._delays), []
        return [self._states[i] for i in delays]
