"""Finds what stands in the place of a loop in a rewritten model.

Values that have one name in both models, and were there before the loop, bound it from above; the loop's results, or where one is
no more, what was computed of it first of all that is still there, bound it from below.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.graph.walk import node_graphs
from rewrites.loops.captures import captured_values

__all__ = ["Places", "Region", "region_of"]

_MOST_NODES = 800
"""A region of more is not looked through to its end: it is too large to be drawn."""


@dataclass(frozen=True)
class Region:
    """``nodes``, in their order, give ``results``. ``is_whole``: whether these are all of them."""

    nodes: Sequence[ir.Node]
    results: Sequence[ir.Value]
    is_whole: bool = True


@dataclass(eq=False)
class Places:
    """The nodes of a graph by their position, and its values by name."""

    graph: ir.Graph
    position: Mapping[ir.Node, int] = field(init=False)
    values: Mapping[str, ir.Value] = field(init=False)

    def __post_init__(self) -> None:
        self.position = {node: number for number, node in enumerate(self.graph)}
        given = [*self.graph.inputs, *self.graph.initializers.values()]
        given += [value for node in self.graph for value in node.outputs]
        self.values = {value.name: value for value in given if value.name}

    def is_before(self, name: str | None, node: ir.Node) -> bool:
        """Whether the value called ``name`` is there before ``node``."""
        value = self.values.get(name or "")
        producer = value.producer() if value is not None else None
        return value is not None and (producer is None or self.position.get(producer, 0) < self.position[node])


def region_of(loop: ir.Node, before: Places, after: Places) -> Region | None:
    """Return what stands in the place of ``loop``, a node of the graph ``before``; None where none of what it gave is left."""
    results = _results(loop, after)
    found: dict[ir.Node, None] = {}
    open_values = list(results)
    while open_values and len(found) < _MOST_NODES:
        value = open_values.pop()
        producer = value.producer()
        if producer is None or producer in found or producer not in after.position:
            continue
        if value not in results and before.is_before(value.name, loop):
            continue
        found[producer] = None
        open_values += [taken for taken in producer.inputs if taken is not None]
        open_values += [taken for graph in node_graphs(producer) for taken in captured_values(graph)]
    if not results:
        return None
    return Region(sorted(found, key=after.position.__getitem__), results, not open_values)


def _results(loop: ir.Node, after: Places) -> list[ir.Value]:
    """Return the values of ``after`` that are the loop's, or the first computed of those that are gone."""
    found: dict[ir.Value, None] = {}
    seen: set[ir.Value] = set()
    ahead = list(loop.outputs)
    while ahead and len(seen) < _MOST_NODES:
        value = ahead.pop(0)
        if value in seen:
            continue
        seen.add(value)
        there = after.values.get(value.name or "")
        if there is not None:
            found[there] = None
        else:
            ahead += [given for node, _ in value.uses() for given in node.outputs if node.graph is loop.graph]
    return list(found)
