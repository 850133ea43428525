"""Draw the loops of a report, and the nodes that replace each loop in the rewritten model.

The replacement of a loop is a region of the graph. It begins at values that precede the loop and have the same name in both
models. It ends at the loop's results. If a result no longer exists, the region ends at the first existing values that are
computed from it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from ortscan.drawing.contents import MOST_NODES, Steps, operator_counts, picture_of
from ortscan.drawing.picture import Drawings, Picture, count
from ortscan.modelio import AnyModel, inline_functions_with_loops, load
from rewrites.base.errors import MalformedLoop
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import is_loop, view
from rewrites.loops.view import captured_values, nodes_with_paths
from rewrites.native.operator_names import DOMAIN

__all__ = ["drawings_of", "old_scans"]

_SCAN_8 = 8
_MOST_LOOPS, _MOST_DRAWN = 100, 8000
"""The most loops, and the most nodes, on one page. Browsers become slow on larger pages."""
_MOST_NODES = 800
"""The search for a region stops at this number of nodes. A larger region is not drawn."""


@dataclass(frozen=True)
class Region:
    """A region of a graph: ``nodes``, in their order, compute ``results``.

    ``is_whole`` is False if nodes are missing.
    """

    nodes: Sequence[ir.Node]
    results: Sequence[ir.Value]
    is_whole: bool = True


@dataclass(eq=False)
class NamedGraph:
    """A graph with the position of each of its nodes, and with its values by name."""

    graph: ir.Graph
    position: Mapping[ir.Node, int] = field(init=False)
    values: Mapping[str, ir.Value] = field(init=False)

    def __post_init__(self) -> None:
        self.position = {node: number for number, node in enumerate(self.graph)}
        values = [*self.graph.inputs, *self.graph.initializers.values()]
        values += [value for node in self.graph for value in node.outputs]
        self.values = {value.name: value for value in values if value.name}

    def is_before(self, name: str | None, node: ir.Node) -> bool:
        """Return True if the value called ``name`` precedes ``node``."""
        value = self.values.get(name or "")
        producer = value.producer() if value is not None else None
        return value is not None and (producer is None or self.position.get(producer, 0) < self.position[node])


def region_of(loop: ir.Node, before: NamedGraph, after: NamedGraph) -> Region | None:
    """Return the region of ``after`` that replaces ``loop``, a node of ``before``.

    Return None if ``after`` has neither a result of the loop nor a value that is computed from one.
    """
    results = _results(loop, after)
    if not results:
        return None
    members: dict[ir.Node, None] = {}
    open_values = list(results)
    while open_values and len(members) < _MOST_NODES:
        value = open_values.pop()
        producer = value.producer()
        if producer is None or producer in members or producer not in after.position:
            continue
        if value not in results and before.is_before(value.name, loop):
            continue
        members[producer] = None
        open_values += [value for value in producer.inputs if value is not None]
        open_values += [value for graph in node_graphs(producer) for value in captured_values(graph)]
    return Region(sorted(members, key=after.position.__getitem__), results, not open_values)


def _results(loop: ir.Node, after: NamedGraph) -> list[ir.Value]:
    """Return the loop's results in ``after``.

    If a result no longer exists, return the first values that are computed from it instead.
    """
    results: dict[ir.Value, None] = {}
    visited: set[ir.Value] = set()
    ahead = list(loop.outputs)
    while ahead and len(visited) < _MOST_NODES:
        value = ahead.pop(0)
        if value in visited:
            continue
        visited.add(value)
        same = after.values.get(value.name or "")
        if same is not None:
            results[same] = None
        else:
            ahead += [output for node, _ in value.uses() for output in node.outputs if node.graph is loop.graph]
    return list(results)


def drawings_of(loops: Mapping[str, int | str | None], model: AnyModel, after: ir.Model) -> Mapping[str, Drawings]:
    """Return drawings of loops by their paths.

    Args:
        loops: the trip counts of the loops by their paths. None is an unknown trip count.
        model: the original model.
        after: the rewritten model.
    """
    before = load(model).model
    inline_functions_with_loops(before, except_domain=DOMAIN)
    nodes = {where: node for node, where in nodes_with_paths(before.graph) if where in loops}
    steps = {node: loops[where] for where, node in nodes.items() if loops[where] is not None}
    old, new = NamedGraph(before.graph), NamedGraph(after.graph)
    drawn: dict[str, Drawings] = {}
    room = _MOST_DRAWN
    for where in loops:
        node = nodes.get(where)
        if node is None:
            drawn[where] = Drawings(why="not drawn: another change added this loop to the model")
        elif len(drawn) >= _MOST_LOOPS or room <= 0:
            drawn[where] = Drawings(why="not drawn: the page already has the most drawings that it may have")
        else:
            drawn[where] = loop = _drawn(node, old, new, (_opset(before), _opset(after)), steps)
            room -= sum(count(picture) for picture in (loop.before, loop.after) if picture is not None)
    return drawn


def old_scans(model: AnyModel) -> dict[str, int | str | None]:
    """Return a dict from the path of each opset-8 Scan to its trip count, which is None (unknown)."""
    before = load(model).model
    paths = nodes_with_paths(before.graph) if _opset(before) == _SCAN_8 else ()
    return {where: None for node, where in paths if is_loop(node) and node.op_type == "Scan"}


def _opset(model: ir.Model) -> int:
    return model.opset_imports.get("", 1)


def _drawn(node: ir.Node, old: NamedGraph, new: NamedGraph, opsets: tuple[int, int], steps: Steps) -> Drawings:
    used = [value for value in node.outputs if value.uses() or value.is_graph_output()]
    before = picture_of([node], used, opsets[0], steps)
    if node not in old.position:
        return Drawings(before, why="its replacement is part of the drawing of the loop around it")
    region = region_of(node, old, new)
    runs = _runs([node], opsets[0], steps)
    if region is None:
        return Drawings(before, why="nothing replaces it, because its results are not used", runs_before=runs)
    runs_after = _runs(region.nodes, opsets[1], {}) if region.is_whole else None
    return Drawings(before, _of_region(region, opsets[1]), "", runs, runs_after)


def _of_region(region: Region, opset: int) -> Picture:
    if not region.is_whole or sum(1 for node in region.nodes for _ in _with_inner(node)) > MOST_NODES:
        return operator_counts(inner for node in region.nodes for inner in _with_inner(node))
    return picture_of(region.nodes, region.results, opset)


def _with_inner(node: ir.Node) -> Iterable[ir.Node]:
    yield node
    for graph in node_graphs(node):
        yield from all_nodes(graph)


def _runs(nodes: Iterable[ir.Node], opset: int, steps: Steps) -> int | None:
    """Count the operators that run.

    Operators of a body count once a step. Return None if the count depends on the inputs.
    """
    total = 0
    for node in nodes:
        if node.op_type == "Constant":
            continue
        graphs, times = node_graphs(node), 1
        if (graphs and not is_loop(node)) or node.domain == DOMAIN:
            return None
        if graphs:
            try:
                known = steps.get(node, view(node, opset).steps)
            except MalformedLoop:
                return None
            if not isinstance(known, int):
                return None
            times = known
        inner = [_runs(graph, opset, steps) for graph in graphs]
        if any(each is None for each in inner):
            return None
        total += 1 + times * sum(each or 0 for each in inner)
    return total
