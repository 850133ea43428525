"""Gives each node of a picture its place and size, inner boxes first."""

from collections.abc import Sequence
from dataclasses import dataclass

from ortscan.drawing.layers import lay_out
from ortscan.drawing.picture import Box, Node, Picture

__all__ = ["PlacedBox", "PlacedNode", "Way", "place"]

_LETTER, _SMALL, _PADDING = 7.4, 5.9, 20.0
_WIDE = 13.0
_LAYER_GAP, _HEAD, _MARGIN, _LANE = 30.0, 26.0, 14.0, 9.0


@dataclass(frozen=True)
class PlacedNode:
    """A node, the middle of its top, its size, and what is in it, from its own left upper corner on."""

    node: Node
    x: float
    y: float
    width: float
    height: float
    inner: Sequence["PlacedBox"] = ()


@dataclass(frozen=True)
class Way:
    """An edge: the points it goes through; a pair of points of one x is a straight part."""

    points: Sequence[tuple[float, float]]
    tip: str


@dataclass(frozen=True)
class PlacedBox:
    """A picture with places. ``x``, ``y``: its left upper corner in the node it is in. ``carried``: ways of states, as corners."""

    x: float
    y: float
    width: float
    height: float
    title: str
    nodes: Sequence[PlacedNode]
    ways: Sequence[Way]
    carried: Sequence[Sequence[tuple[float, float]]]


def place(picture: Picture, title: str = "", x: float = 0.0, y: float = 0.0) -> PlacedBox:
    """Place the nodes of ``picture``."""
    sized = [_sized(node) for node in picture.nodes]
    edges = [(edge.source, edge.target) for edge in picture.edges]
    ends = [[number for number, node in enumerate(picture.nodes) if node.pin == pin] for pin in ("first", "last")]
    if not edges:
        return _in_rows(sized, title, x, y)
    laid = lay_out([node.width for node in sized], edges, *ends)
    heights = [0.0] * (max(laid.layer) + 1)
    for node, layer in zip(sized, laid.layer, strict=True):
        heights[layer] = max(heights[layer], node.height)
    lanes = len(picture.carried) * _LANE
    tops, at = [], _MARGIN + (lanes + 8 if lanes else 0)
    for height in heights:
        tops.append(at)
        at += height + _LAYER_GAP
    placed = [
        PlacedNode(node.node, centre + _MARGIN, tops[layer], node.width, node.height, node.inner)
        for node, centre, layer in zip(sized, laid.centre, laid.layer, strict=True)
    ]
    width = max([0.0, *(node.x + node.width / 2 for node in placed), *(c + _MARGIN for way in laid.ways for _, c in way)])
    ways = [
        Way([_exit(placed[edge.source], edge.exit), *_bends(way, tops, heights), _entry(placed, picture, number)], edge.tip)
        for number, (edge, way) in enumerate(zip(picture.edges, laid.ways, strict=True))
    ]
    bottom = at - _LAYER_GAP
    carried = [
        _carried(placed[source], placed[target], width + 12 + lane * _LANE, bottom + 10 + lane * _LANE, _MARGIN + lane * _LANE)
        for lane, (source, target) in enumerate(picture.carried)
    ]
    return PlacedBox(x, y, width + lanes + _MARGIN, bottom + lanes + _MARGIN, title, placed, ways, carried)


def _in_rows(sized: Sequence[PlacedNode], title: str, x: float, y: float) -> PlacedBox:
    """Place nodes with no edges in rows of three."""
    column = max((node.width for node in sized), default=0.0) + 12
    placed, at = [], _MARGIN
    for start in range(0, len(sized), 3):
        row = sized[start : start + 3]
        for number, node in enumerate(row):
            placed.append(PlacedNode(node.node, _MARGIN + column * (number + 0.5), at, node.width, node.height, node.inner))
        at += max(node.height for node in row) + 12
    return PlacedBox(x, y, _MARGIN * 2 + column * min(3, len(sized)), at + _MARGIN - 12, title, placed, [], [])


def _sized(node: Node) -> PlacedNode:
    wide = sum(_WIDE if ord(letter) > 0x2E7F else _LETTER for letter in node.title)
    small = sum(_WIDE if ord(letter) > 0x2E7F else _SMALL for letter in node.line)
    own = max(wide, small) + _PADDING
    if not node.boxes:
        return PlacedNode(node, 0, 0, max(44.0, own), 40.0 if node.line else 26.0)
    inner, at, tallest = [], 10.0, 0.0
    head = _HEAD + (14.0 if node.line else 0.0)
    for box in node.boxes:
        placed = _placed_box(box, at, head)
        inner.append(placed)
        at += placed.width + 10
        tallest = max(tallest, placed.height)
    return PlacedNode(node, 0, 0, max(own, at), head + tallest + 10, inner)


def _placed_box(box: Box, x: float, y: float) -> PlacedBox:
    return place(box.picture, box.title, x, y)


def _inner(node: PlacedNode, port: int) -> float | None:
    """Return the x of the middle of a node in the first box of ``node``."""
    if port < 0 or not node.inner or port >= len(node.inner[0].nodes):
        return None
    return node.x - node.width / 2 + node.inner[0].x + node.inner[0].nodes[port].x


def _exit(node: PlacedNode, port: int) -> tuple[float, float]:
    x = _inner(node, port)
    return (node.x if x is None else x, node.y + node.height)


def _entry(placed: Sequence[PlacedNode], picture: Picture, number: int) -> tuple[float, float]:
    edge = picture.edges[number]
    node = placed[edge.target]
    x = _inner(node, edge.port)
    if x is None:
        x = node.x
    return (x, node.y)


def _bends(way: Sequence[tuple[int, float]], tops: Sequence[float], heights: Sequence[float]) -> list[tuple[float, float]]:
    return [(x + _MARGIN, y) for layer, x in way for y in (tops[layer], tops[layer] + heights[layer])]


def _carried(source: PlacedNode, target: PlacedNode, right: float, bottom: float, top: float) -> list[tuple[float, float]]:
    start, end = source.x + min(8, source.width / 4), target.x + min(8, target.width / 4)
    return [(start, source.y + source.height), (start, bottom), (right, bottom), (right, top), (end, top), (end, target.y)]
