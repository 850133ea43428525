"""The minimum cut through a directed graph, by Edmonds and Karp: which of its vertices stay with the source.

The cut costs what the edges from the source's side to the sink's side carry. Shortest augmenting paths are filled until none is
left; the work is in their number times the size of the graph, and few values cross between the parts of a loop. What residual edges
reach from the source is then the least of all minimum cuts.
"""

from collections import deque
from collections.abc import Hashable

__all__ = ["FOREVER", "CutGraph"]

FOREVER = 1 << 60


class CutGraph:
    """A graph of ``SOURCE``, ``SINK`` and whatever ``edge`` names; an edge of cost ``FOREVER`` is never cut."""

    SOURCE, SINK = "source", "sink"

    def __init__(self) -> None:
        self._left: dict[Hashable, dict[Hashable, int]] = {self.SOURCE: {}, self.SINK: {}}

    def edge(self, start: Hashable, end: Hashable, cost: int) -> None:
        """Say that it costs ``cost`` to have ``start`` on the source's side and ``end`` on the sink's."""
        self._left.setdefault(end, {}).setdefault(start, 0)
        edges = self._left.setdefault(start, {})
        edges[end] = min(FOREVER, edges.get(end, 0) + cost)

    def with_source(self, most_paths: int) -> set[Hashable] | None:
        """Return the vertices on the source's side, as few as can be; None without a finite cut, or after ``most_paths`` paths."""
        for _ in range(most_paths):
            before = self._search()
            if self.SINK not in before:
                return set(before)
            path: list[tuple[Hashable, Hashable]] = []
            end: Hashable = self.SINK
            while end != self.SOURCE:
                path.append((before[end], end))
                end = before[end]
            amount = min(self._left[start][end] for start, end in path)
            if amount >= FOREVER:
                return None
            for start, end in path:
                if self._left[start][end] < FOREVER:
                    self._left[start][end] -= amount
                self._left[end][start] = min(FOREVER, self._left[end][start] + amount)
        return None

    def _search(self) -> dict[Hashable, Hashable]:
        """Return, by breadth-first search, each vertex that the source reaches with the one before it, up to the sink."""
        before: dict[Hashable, Hashable] = {self.SOURCE: self.SOURCE}
        waiting: deque[Hashable] = deque([self.SOURCE])
        while waiting and self.SINK not in before:
            start = waiting.popleft()
            for end, left in self._left[start].items():
                if left and end not in before:
                    before[end] = start
                    waiting.append(end)
        return before
