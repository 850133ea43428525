"""Creates fresh names, which are unique in the model.

Names must be unique in the whole model, not only in each graph. If a body and an outer graph use the same name, onnxruntime refuses
the model for some orders of the nodes.

Works around ORT-INNER-NAMES and ORT-NODE-NAMES.
"""

from collections import Counter
from collections.abc import Iterable

import onnx_ir as ir

from rewrites.graph.walk import inner_graphs

__all__ = ["Names"]


class Names:
    """Knows the names of all values and nodes of a model, and creates new ones."""

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
        """Return all names that are or were in use."""
        return frozenset(self._taken)

    def reserve(self, names: Iterable[str]) -> None:
        """Reserve ``names``, the names of removed values, so that no new value gets one of them.

        Values of the original and the rewritten model are compared by name. A new value with a reserved name would be compared with
        the removed value.
        """
        self._taken.update(dict.fromkeys(set(names) - self._taken.keys(), 1))

    def fresh(self, hint: str) -> str:
        """Return ``hint`` if the name is free, else ``hint_N``. The returned name is in use from now on."""
        hint = hint or "value"
        name, count = hint, self._next.get(hint, 0)
        while name in self._taken:
            count += 1
            name = f"{hint}_{count}"
        self._next[hint] = count
        self._taken[name] += 1
        return name

    def unshared(self, name: str | None) -> str:
        """Return ``name`` if only one value or node has it, else a fresh name derived from it."""
        return name if name and self._taken[name] <= 1 else self.fresh(name or "value")
