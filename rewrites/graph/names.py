"""Fresh names, unique in the whole model.

ORT refuses a body-local name that also exists in an outer scope (depending on node order), so uniqueness per graph is not enough.

Works round ORT-INNER-NAMES and ORT-NODE-NAMES.
"""

from collections import Counter
from collections.abc import Iterable

import onnx_ir as ir

from rewrites.graph.walk import inner_graphs

__all__ = ["Names"]


class Names:
    """All value and node names of a model, and a source of new ones."""

    def __init__(self, model: ir.Model) -> None:
        self._taken: Counter[str] = Counter()
        self._next: dict[str, int] = {}
        graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
        for top in graphs:
            for graph in [top, *inner_graphs(top)]:
                self._take(graph)

    def _take(self, graph: ir.Graph | ir.Function) -> None:
        values = {*graph.inputs, *(graph.initializers.values() if isinstance(graph, ir.Graph) else ())}
        self._taken.update(value.name or "" for value in values)
        for node in graph:
            self._taken[node.name or ""] += 1
            self._taken.update(value.name or "" for value in node.outputs)

    @property
    def taken(self) -> frozenset[str]:
        """All names that are, or were, taken."""
        return frozenset(self._taken)

    def reserve(self, names: Iterable[str]) -> None:
        """Let none of ``names`` be new: a value that is gone had it, and results are held against the original by name."""
        self._taken.update(dict.fromkeys(set(names) - self._taken.keys(), 1))

    def fresh(self, hint: str) -> str:
        """Return ``hint`` itself where it is free, else ``hint_N``; the name is taken from then on."""
        hint = hint or "value"
        name, count = hint, self._next.get(hint, 0)
        while name in self._taken:
            count += 1
            name = f"{hint}_{count}"
        self._next[hint] = count
        self._taken[name] += 1
        return name

    def unshared(self, name: str | None) -> str:
        """Return ``name`` where only one thing in the model has it (the one asked for), else a fresh name made from it."""
        return name if name and self._taken[name] <= 1 else self.fresh(name or "value")
