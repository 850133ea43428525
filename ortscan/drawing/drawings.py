"""Draws the loops of a report, as they were and what stands in their place."""

from collections.abc import Iterable, Mapping

import onnx_ir as ir

from ortscan.drawing.contents import MOST_NODES, Steps, operator_counts, picture_of
from ortscan.drawing.picture import Drawings, Picture, count
from ortscan.drawing.regions import Places, Region, region_of
from ortscan.modelio import AnyModel, inline_functions_with_loops, load
from rewrites.base.errors import MalformedLoop
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import is_loop, view
from rewrites.loops.paths import with_paths
from rewrites.native.functions import DOMAIN

__all__ = ["drawings_of", "old_scans"]

_SCAN_8 = 8
_MOST_LOOPS, _MOST_DRAWN = 100, 8000
"""Of one page: a browser shows so much at once."""


def drawings_of(loops: Mapping[str, int | str | None], given: AnyModel, after: ir.Model) -> Mapping[str, Drawings]:
    """Return drawings of ``loops``, the paths to them with their trip counts, as far as they are known, by these paths.

    ``given``: the model before; ``after``: what it has become.
    """
    before = load(given).model
    inline_functions_with_loops(before, stay=DOMAIN)
    nodes = {where: node for node, where in with_paths(before.graph) if where in loops}
    steps = {node: loops[where] for where, node in nodes.items() if loops[where] is not None}
    old, new = Places(before.graph), Places(after.graph)
    drawn: dict[str, Drawings] = {}
    room = _MOST_DRAWN
    for where in loops:
        node = nodes.get(where)
        if node is None:
            drawn[where] = Drawings(why="the model has it only since another change, so there is no drawing of it")
        elif len(drawn) >= _MOST_LOOPS or room <= 0:
            drawn[where] = Drawings(why="not drawn: a page has room for no more")
        else:
            drawn[where] = made = _drawn(node, old, new, (_opset(before), _opset(after)), steps)
            room -= sum(count(picture) for picture in (made.before, made.after) if picture is not None)
    return drawn


def old_scans(given: AnyModel) -> dict[str, int | str | None]:
    """Return the paths to the Scans of a model that are of opset 8, with no trip counts."""
    model = load(given).model
    paths = with_paths(model.graph) if _opset(model) == _SCAN_8 else ()
    return {where: None for node, where in paths if is_loop(node) and node.op_type == "Scan"}


def _opset(model: ir.Model) -> int:
    return model.opset_imports.get("", 1)


def _drawn(node: ir.Node, old: Places, new: Places, opsets: tuple[int, int], steps: Steps) -> Drawings:
    used = [value for value in node.outputs if value.uses() or value.is_graph_output()]
    before = picture_of([node], used, opsets[0], steps)
    if node not in old.position:
        return Drawings(before, why="it is in the body of another, which is drawn with what it has become")
    region = region_of(node, old, new)
    runs = _runs([node], opsets[0], steps)
    if region is None:
        return Drawings(before, why="nothing stands in its place: nothing uses what it gave", runs_before=runs)
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
    """Count the operators that run, a body's once a step; None where that depends on what the model is given."""
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
