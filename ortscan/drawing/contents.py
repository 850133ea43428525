"""Makes the picture of some nodes of a graph, with the bodies of loops as boxes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from ortscan.drawing.looks import constants, full_name, is_constant, kind_of, operator, shape, short, tip
from ortscan.drawing.picture import Box, Edge, Kind, Node, Picture
from rewrites.base.errors import MalformedLoop
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import is_loop, view
from rewrites.loops.captures import captured_values
from rewrites.loops.view import Loop

__all__ = ["MOST_NODES", "Steps", "operator_counts", "picture_of"]

Steps = Mapping[ir.Node, int | str | None]

MOST_NODES = 400
"""Of more nodes one sees nothing: how many there are of each operator is said instead."""
_MOST_OPERATORS = 12


def picture_of(nodes: Iterable[ir.Node], results: Iterable[ir.Value], opset: int, steps: Steps | None = None) -> Picture:
    """Return the picture of ``nodes``, of one graph and in their order, with the values they take and the ``results`` they give.

    ``steps``: trip counts that are known of loops, beside those that they tell themselves.
    """
    drawing = _Drawing(opset, steps or {})
    drawing.add_nodes(nodes)
    for value in results:
        drawing.add_end(value, Node("output", short(value.name), shape(value), full_name(value)))
    return drawing.picture()


def operator_counts(nodes: Iterable[ir.Node]) -> Picture:
    """Return how many there are of each operator, for what is too large to be drawn."""
    counted: dict[str, int] = {}
    for node in nodes:
        counted[operator(node)] = counted.get(operator(node), 0) + 1
    most = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = [Node("more", f"{name}: {number}") for name, number in most[:_MOST_OPERATORS]]
    rest = sum(number for _, number in most[_MOST_OPERATORS:])
    return Picture([*shown, *([Node("more", f"{rest} others")] if rest else [])])


@dataclass
class _Node:
    """A node; what it takes, each with its place in the first box; what of its outputs leaves which place of that box."""

    node: Node
    taken: Sequence[tuple[ir.Value, int]]
    leaving: dict[ir.Value, int] = field(default_factory=dict)


class _Drawing:
    def __init__(self, opset: int, steps: Steps) -> None:
        self._opset, self._steps = opset, steps
        self._nodes: list[Node] = []
        self._edges: list[Edge] = []
        self._carried: list[tuple[int, int]] = []
        self._places: dict[ir.Value, tuple[int, int]] = {}

    def picture(self) -> Picture:
        return Picture(self._nodes, self._edges, self._carried)

    def add_nodes(self, nodes: Iterable[ir.Node]) -> None:
        for node in nodes:
            if node.op_type == "Constant" and node.domain == "":
                continue
            made = self._loop(node) if is_loop(node) else self._node(node)
            for value, _ in made.taken:
                if value not in self._places and not is_constant(value):
                    self._add_start(value, Node("input", short(value.name), shape(value), full_name(value)))
            for value, port in made.taken:
                if value in self._places:
                    source, leaves = self._places[value]
                    self._edges.append(Edge(source, len(self._nodes), full_name(value), port, leaves))
            for value in node.outputs:
                self._places[value] = (len(self._nodes), made.leaving.get(value, -1))
            self._nodes.append(made.node)

    def add_end(self, value: ir.Value, node: Node) -> int:
        if value in self._places:
            source, leaves = self._places[value]
            self._edges.append(Edge(source, len(self._nodes), full_name(value), -1, leaves))
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _add_start(self, value: ir.Value, node: Node) -> int:
        self._places[value] = (len(self._nodes), -1)
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _node(self, node: ir.Node) -> _Node:
        graphs, taken = node_graphs(node), _taken(node)
        inner = sum(1 for graph in graphs for _ in all_nodes(graph))
        if not graphs or inner > MOST_NODES:
            line = f"{inner} nodes inside" if graphs else constants(node)
            return _Node(Node(kind_of(node), operator(node), line, tip(node)), taken)
        names = [attribute.name for attribute in node.attributes.values() if attribute.type == ir.AttributeType.GRAPH]
        if len(names) != len(graphs):
            names = [""] * len(graphs)
        boxes = [
            Box(name.removesuffix("_branch"), picture_of(graph, graph.outputs, self._opset, self._steps))
            for name, graph in zip(names, graphs, strict=True)
        ]
        return _Node(Node("loop", operator(node), "", tip(node), boxes), taken)

    def _loop(self, node: ir.Node) -> _Node:
        try:
            loop = view(node, self._opset)
        except MalformedLoop:
            return _Node(Node("loop", operator(node), "malformed", tip(node)), _taken(node))
        known = self._steps.get(node, loop.steps)
        steps = "? steps" if known is None else "1 step" if known == 1 else f"{short(str(known))} steps"
        size = sum(1 for _ in all_nodes(loop.body))
        title = f"{node.op_type} · {steps}"
        if size > MOST_NODES:
            box = Box("", operator_counts(all_nodes(loop.body)))
            return _Node(Node("loop", title, f"{size} nodes in its body", tip(node), [box]), _taken(node))
        body = _Drawing(self._opset, self._steps)
        starts, ends = body.fill(loop)
        entering = [(state.initial, starts[state.inner]) for state in loop.states]
        entering += [(scan.outer, starts[scan.inner]) for scan in loop.scan_inputs]
        leaving = {state.final: ends[state.next] for state in loop.states if state.final is not None}
        leaving |= {scan.outer: ends[scan.inner] for scan in loop.scan_outputs if scan.outer is not None}
        entered = {value for value, _ in entering}
        others = [(value, port) for value, port in _taken(node) if value not in entered]
        return _Node(Node("loop", title, "", tip(node), [Box("", body.picture())]), entering + others, leaving)

    def fill(self, loop: Loop) -> tuple[dict[ir.Value, int], dict[ir.Value, int]]:
        """Draw the body of ``loop``; return the places of what it takes, and of what it gives."""
        kinds: dict[ir.Value, tuple[Kind, str]] = {}
        kinds.update((state.inner, ("state", "a state: what the step before gave")) for state in loop.states)
        kinds.update((scan.inner, ("step", "the slice of one step")) for scan in loop.scan_inputs)
        starts: dict[ir.Value, int] = {}
        for value in loop.body.inputs:
            kind, said = kinds.get(value, ("input", "of this step"))
            starts[value] = self._add_start(value, Node(kind, short(value.name), shape(value), said, pin="first"))
        self.add_nodes(loop.body)
        following = {state.next for state in loop.states}
        ends: dict[ir.Value, int] = {}
        for value in dict.fromkeys(loop.body.outputs):
            looks: tuple[Kind, str] = (
                ("state", "what the next step takes") if value in following else ("output", "of each step, stacked")
            )
            ends[value] = self.add_end(value, Node(looks[0], short(value.name), shape(value), looks[1], pin="last"))
        self._carried = [(ends[state.next], starts[state.inner]) for state in loop.states]
        return starts, ends


def _taken(node: ir.Node) -> list[tuple[ir.Value, int]]:
    """Return what a node takes, what its graphs read from around it included, constants left out."""
    captured = [value for graph in node_graphs(node) for value in captured_values(graph)]
    given = [value for value in node.inputs if value is not None]
    return [(value, -1) for value in dict.fromkeys([*given, *captured]) if not is_constant(value)]
