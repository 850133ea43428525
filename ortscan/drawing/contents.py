"""Turn nodes of a graph into a picture: a kind and a short name for each node, a box for each loop."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from ortscan.drawing.picture import Box, Edge, Kind, Picture, PictureNode
from rewrites.base.errors import MalformedLoop
from rewrites.base.plain_text import cut
from rewrites.graph.walk import all_nodes, node_graphs
from rewrites.loops import is_loop, view
from rewrites.loops.view import Loop, captured_values
from rewrites.native.operator_names import DOMAIN

__all__ = ["MOST_NODES", "Steps", "operator_counts", "picture_of"]

_LONGEST, _LONGEST_NAME, _LONGEST_TIP, _LONGEST_DIM = 22, 66, 300, 6
_TIMES = "\N{MULTIPLICATION SIGN}"
_HEAVY = {
    *("MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "MatMulInteger", "QLinearMatMul", "QLinearConv", "ConvInteger"),
    *("Attention", "MultiHeadAttention", "LinearAttention", "FusedMatMul", "MatMulNBits", "DynamicQuantizeMatMul", "CumSum"),
}
_NATIVE = {"LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"}
_MOVE = {
    *("Reshape", "Transpose", "Slice", "Split", "Concat", "Gather", "GatherElements", "GatherND", "Squeeze", "Unsqueeze", "Expand"),
    *("Identity", "Shape", "Cast", "CastLike", "Pad", "Tile", "Flatten", "ConstantOfShape", "Size", "Range", "ReverseSequence"),
    *("ScatterND", "ScatterElements", "SplitToSequence", "ConcatFromSequence", "SequenceAt", "SequenceInsert", "SequenceEmpty"),
}


def _kind_of(node: ir.Node) -> Kind:
    """Return the kind of an operator, which decides its colour."""
    if node.op_type in _NATIVE or node.domain == DOMAIN:
        return "native"
    if node.op_type in _HEAVY:
        return "heavy"
    return "move" if node.op_type in _MOVE else "plain"


def _is_constant(value: ir.Value) -> bool:
    """Return True for an initializer or the result of a Constant, which are not drawn."""
    producer = value.producer()
    return value.is_initializer() or (producer is not None and producer.op_type == "Constant" and producer.domain == "")


def _constants(node: ir.Node) -> str:
    """Return a text with the shapes of the constant inputs that have more than one element."""
    values = [value for value in node.inputs if value is not None and _is_constant(value)]
    shapes = [_shape(value) for value in values if value.shape is not None and any(dim != 1 for dim in value.shape)]
    return " ".join(shapes) if len(shapes) <= 2 else f"{' '.join(shapes[:2])} …"


def _shape(value: ir.Value) -> str:
    """Return the sizes of a value in one word, or an empty string if all sizes are unknown."""
    if value.shape is None or len(value.shape) == 0:
        return ""
    dims = [str(dim) if isinstance(dim, int) else _dim(dim.value) for dim in value.shape.dims]
    return cut(_TIMES.join(dims), _LONGEST) if any(dim != "?" for dim in dims) else ""


def _full_name(value: ir.Value) -> str:
    """Return the name and shape of a value, for a tooltip."""
    return f"{cut(value.name or '', _LONGEST_NAME)} {_shape(value)}".strip()


def _short(name: str | None) -> str:
    """Return the part of ``name`` after the last slash.

    If this part is too long, replace its middle by an ellipsis.
    """
    last = (name or "").rstrip("/").rpartition("/")[2]
    return last if len(last) <= _LONGEST else f"{last[: _LONGEST - 9]}…{last[-8:]}"


def _tip(node: ir.Node) -> str:
    """Return the tooltip of a node."""
    outputs = ", ".join(map(_full_name, list(node.outputs)[:4]))
    named = f" {cut(node.name, _LONGEST_NAME)}" if node.name else ""
    domain = f"{cut(node.domain, _LONGEST_NAME)}::" if node.domain else ""
    return cut(f"{domain}{cut(node.op_type, _LONGEST_NAME)}{named} → {outputs}", _LONGEST_TIP)


def _dim(name: str | None) -> str:
    return (name if len(name) <= _LONGEST_DIM else f"{name[: _LONGEST_DIM - 1]}…") if name else "?"


Steps = Mapping[ir.Node, int | str | None]

MOST_NODES = 400
"""The most nodes of a picture. For a larger graph, only the operators are counted."""
_MOST_OPERATORS = 12


def picture_of(nodes: Iterable[ir.Node], results: Iterable[ir.Value], opset: int, steps: Steps | None = None) -> Picture:
    """Return the picture of ``nodes`` with their inputs and results.

    Args:
        nodes: nodes of a single graph, in their order.
        results: the outputs to draw.
        opset: the opset of the model.
        steps: the trip counts of loops whose nodes have no constant trip count.
    """
    drawing = _Drawing(opset, steps or {})
    drawing.add_nodes(nodes)
    for value in results:
        drawing.add_end(value, PictureNode("output", _short(value.name), _shape(value), _full_name(value)))
    return drawing.picture()


def operator_counts(nodes: Iterable[ir.Node]) -> Picture:
    """Return a picture with only the counts of the operators, for a graph that is too large to draw."""
    counted = Counter(cut(node.op_type, _LONGEST) for node in nodes)
    most = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = [PictureNode("more", f"{name}: {number}") for name, number in most[:_MOST_OPERATORS]]
    rest = sum(number for _, number in most[_MOST_OPERATORS:])
    return Picture([*shown, *([PictureNode("more", f"{rest} others")] if rest else [])])


@dataclass
class _Node:
    """A drawn node with its operands and outputs.

    The box of a drawn loop has nodes for the inputs and outputs of the body. An edge from an operand of the loop ends at such a
    node, and an edge from an output of the loop starts at one. The index of that node in the box is called the port. The port is -1
    if the edge ends or starts at the loop's own node.

    Attributes:
        node: the drawn node.
        operands: the operands, each with its port.
        leaving: the ports of the outputs.
    """

    node: PictureNode
    operands: Sequence[tuple[ir.Value, int]]
    leaving: dict[ir.Value, int] = field(default_factory=dict)


class _Drawing:
    def __init__(self, opset: int, steps: Steps) -> None:
        self._opset, self._steps = opset, steps
        self._nodes: list[PictureNode] = []
        self._edges: list[Edge] = []
        self._carried: list[tuple[int, int]] = []
        self._sources: dict[ir.Value, tuple[int, int]] = {}

    def picture(self) -> Picture:
        return Picture(self._nodes, self._edges, self._carried)

    def add_nodes(self, nodes: Iterable[ir.Node]) -> None:
        for node in nodes:
            if node.op_type == "Constant" and node.domain == "":
                continue
            drawn = self._loop(node) if is_loop(node) else self._node(node)
            for value, _ in drawn.operands:
                if value not in self._sources and not _is_constant(value):
                    self._add_start(value, PictureNode("input", _short(value.name), _shape(value), _full_name(value)))
            for value, port in drawn.operands:
                self._add_edge(value, port)
            for value in node.outputs:
                self._sources[value] = (len(self._nodes), drawn.leaving.get(value, -1))
            self._nodes.append(drawn.node)

    def add_end(self, value: ir.Value, node: PictureNode) -> int:
        self._add_edge(value, -1)
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _add_edge(self, value: ir.Value, port: int) -> None:
        """Add an edge from the node that computes ``value`` to the node that is added next.

        If the node that computes ``value`` is not drawn, add nothing. ``port``: the index of the node, drawn inside the next node,
        at which the edge ends; -1 if the edge ends at the next node itself.
        """
        if value in self._sources:
            source, leaves = self._sources[value]
            self._edges.append(Edge(source, len(self._nodes), _full_name(value), port, leaves))

    def _add_start(self, value: ir.Value, node: PictureNode) -> int:
        self._sources[value] = (len(self._nodes), -1)
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _node(self, node: ir.Node) -> _Node:
        graphs, operands = node_graphs(node), _operands(node)
        inner = sum(1 for graph in graphs for _ in all_nodes(graph))
        if not graphs or inner > MOST_NODES:
            line = f"{inner} nodes inside" if graphs else _constants(node)
            return _Node(PictureNode(_kind_of(node), cut(node.op_type, _LONGEST), line, _tip(node)), operands)
        names = [attribute.name for attribute in node.attributes.values() if attribute.type == ir.AttributeType.GRAPH]
        if len(names) != len(graphs):
            names = [""] * len(graphs)
        boxes = [
            Box(name.removesuffix("_branch"), picture_of(graph, graph.outputs, self._opset, self._steps))
            for name, graph in zip(names, graphs, strict=True)
        ]
        return _Node(PictureNode("loop", cut(node.op_type, _LONGEST), "", _tip(node), boxes), operands)

    def _loop(self, node: ir.Node) -> _Node:
        try:
            loop = view(node, self._opset)
        except MalformedLoop:
            return _Node(PictureNode("loop", cut(node.op_type, _LONGEST), "malformed", _tip(node)), _operands(node))
        known = self._steps.get(node, loop.steps)
        steps = "? steps" if known is None else "1 step" if known == 1 else f"{_short(str(known))} steps"
        size = sum(1 for _ in all_nodes(loop.body))
        title = f"{node.op_type} · {steps}"
        if size > MOST_NODES:
            box = Box("", operator_counts(all_nodes(loop.body)))
            return _Node(PictureNode("loop", title, f"{size} nodes in its body", _tip(node), [box]), _operands(node))
        body = _Drawing(self._opset, self._steps)
        starts, ends = body.fill(loop)
        entering = [(state.initial, starts[state.inner]) for state in loop.states]
        entering += [(scan.outer, starts[scan.inner]) for scan in loop.scan_inputs]
        leaving = {state.final: ends[state.next] for state in loop.states if state.final is not None}
        leaving |= {scan.outer: ends[scan.inner] for scan in loop.scan_outputs if scan.outer is not None}
        entered = {value for value, _ in entering}
        others = [(value, port) for value, port in _operands(node) if value not in entered]
        return _Node(PictureNode("loop", title, "", _tip(node), [Box("", body.picture())]), entering + others, leaving)

    def fill(self, loop: Loop) -> tuple[dict[ir.Value, int], dict[ir.Value, int]]:
        """Draw the body of ``loop``.

        Return two dicts. They have the index of the drawn node for each input of the body, and for each output.
        """
        kinds: dict[ir.Value, tuple[Kind, str]] = {}
        kinds.update((state.inner, ("state", "a state: from the previous step")) for state in loop.states)
        kinds.update((scan.inner, ("step", "the slice of one step")) for scan in loop.scan_inputs)
        starts: dict[ir.Value, int] = {}
        for value in loop.body.inputs:
            kind, tip = kinds.get(value, ("input", "an input of this step"))
            starts[value] = self._add_start(value, PictureNode(kind, _short(value.name), _shape(value), tip, pin="first"))
        self.add_nodes(loop.body)
        following = {state.next for state in loop.states}
        ends: dict[ir.Value, int] = {}
        for value in dict.fromkeys(loop.body.outputs):
            looks: tuple[Kind, str] = (
                ("state", "a state: for the next step") if value in following else ("output", "of each step, stacked")
            )
            ends[value] = self.add_end(value, PictureNode(looks[0], _short(value.name), _shape(value), looks[1], pin="last"))
        self._carried = [(ends[state.next], starts[state.inner]) for state in loop.states]
        return starts, ends


def _operands(node: ir.Node) -> list[tuple[ir.Value, int]]:
    """Return the inputs of a node and the values that its graphs capture, without constants."""
    captured = [value for graph in node_graphs(node) for value in captured_values(graph)]
    inputs = [value for value in node.inputs if value is not None]
    return [(value, -1) for value in dict.fromkeys([*inputs, *captured]) if not _is_constant(value)]
