"""Write a picture as SVG.

The layout of inner boxes is computed first. The style sheet of the page defines the colours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ortscan.base.markup import safe
from ortscan.drawing.layers import lay_out
from ortscan.drawing.picture import Picture, PictureNode

__all__ = ["arrange", "svg_of"]

_LETTER, _SMALL, _PADDING = 7.4, 5.9, 20.0
_WIDE = 13.0
_LAYER_GAP, _HEAD, _MARGIN, _LANE = 30.0, 26.0, 14.0, 9.0


@dataclass(frozen=True)
class PlacedNode:
    """A node with its position and size.

    ``x`` and ``y`` are the middle of its upper edge. The positions of its boxes, ``inner``, are relative to its upper left corner.
    """

    node: PictureNode
    x: float
    y: float
    width: float
    height: float
    inner: Sequence["PlacedBox"] = ()


@dataclass(frozen=True)
class EdgePath:
    """The points of an edge.

    Straight lines join points with the same x. Curves join points with different x.
    """

    points: Sequence[tuple[float, float]]
    tip: str


@dataclass(frozen=True)
class PlacedBox:
    """A picture with its position and size.

    ``x`` and ``y`` are the upper left corner of the box, relative to the node that contains the box. ``carried`` has a line for
    each state, as a list of corners. The line joins the new state to the state of the next step.
    """

    x: float
    y: float
    width: float
    height: float
    title: str
    nodes: Sequence[PlacedNode]
    ways: Sequence[EdgePath]
    carried: Sequence[Sequence[tuple[float, float]]]


def arrange(picture: Picture, title: str = "", x: float = 0.0, y: float = 0.0) -> PlacedBox:
    """Return ``picture`` with the position and size of every node."""
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
    width = max([0.0, *(node.x + node.width / 2 for node in placed), *(c + _MARGIN for way in laid.bends for _, c in way)])
    ways = []
    for edge, way in zip(picture.edges, laid.bends, strict=True):
        source, target = placed[edge.source], placed[edge.target]
        start = (_anchor(source, edge.exit), source.y + source.height)
        ways.append(EdgePath([start, *_bends(way, tops, heights), (_anchor(target, edge.port), target.y)], edge.tip))
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


def _sized(node: PictureNode) -> PlacedNode:
    wide = sum(_WIDE if ord(letter) > 0x2E7F else _LETTER for letter in node.title)
    small = sum(_WIDE if ord(letter) > 0x2E7F else _SMALL for letter in node.line)
    own = max(wide, small) + _PADDING
    if not node.boxes:
        return PlacedNode(node, 0, 0, max(44.0, own), 40.0 if node.line else 26.0)
    inner, at, tallest = [], 10.0, 0.0
    head = _HEAD + (14.0 if node.line else 0.0)
    for box in node.boxes:
        placed = arrange(box.picture, box.title, at, head)
        inner.append(placed)
        at += placed.width + 10
        tallest = max(tallest, placed.height)
    return PlacedNode(node, 0, 0, max(own, at), head + tallest + 10, inner)


def _anchor(node: PlacedNode, port: int) -> float:
    """Return the horizontal position at which an edge meets ``node``.

    This is the x of the inner node with the index ``port`` in the first box of ``node``, or the x of ``node`` if it has no such
    inner node.
    """
    if port < 0 or not node.inner or port >= len(node.inner[0].nodes):
        return node.x
    return node.x - node.width / 2 + node.inner[0].x + node.inner[0].nodes[port].x


def _bends(way: Sequence[tuple[int, float]], tops: Sequence[float], heights: Sequence[float]) -> list[tuple[float, float]]:
    return [(x + _MARGIN, y) for layer, x in way for y in (tops[layer], tops[layer] + heights[layer])]


def _carried(source: PlacedNode, target: PlacedNode, right: float, bottom: float, top: float) -> list[tuple[float, float]]:
    start, end = source.x + min(8, source.width / 4), target.x + min(8, target.width / 4)
    return [(start, source.y + source.height), (start, bottom), (right, bottom), (right, top), (end, top), (end, target.y)]


_ROUND = 7.0


def svg_of(picture: Picture, label: str) -> tuple[str, float]:
    """Return an ``svg`` element and its width. ``label`` describes the picture to screen readers."""
    box = arrange(picture)
    size = f'width="{box.width:.0f}" height="{box.height:.0f}" viewBox="0 0 {box.width:.0f} {box.height:.0f}"'
    return f'<svg {size} role="img" aria-label="{safe(label)}">{_contents(box)}</svg>', box.width


def _contents(box: PlacedBox) -> str:
    title = f'<text class="box" x="8" y="12">{safe(box.title)}</text>' if box.title else ""
    ways = "".join(map(_edge_svg, box.ways))
    states = "".join(f'<path class="carried" d="{_corners(points)}"/>{_head(points[-1], "carried")}' for points in box.carried)
    return title + ways + states + "".join(map(_node, box.nodes))


def _node(node: PlacedNode) -> str:
    left, middle = node.x - node.width / 2, node.width / 2
    tip = f"<title>{safe(node.node.tip)}</title>" if node.node.tip else ""
    rounded = 13 if node.node.kind in ("input", "output", "state", "step", "constant") else 5
    rect = f'<rect width="{node.width:.0f}" height="{node.height:.0f}" rx="{rounded}"/>'
    line_y = 33 if node.inner else 30
    line = f'<text class="line" x="{middle:.0f}" y="{line_y}">{safe(node.node.line)}</text>' if node.node.line else ""
    inner = "".join(
        f'<g transform="translate({box.x:.0f} {box.y:.0f})"><rect class="body" width="{box.width:.0f}" height="{box.height:.0f}" '
        f'rx="4"/>{_contents(box)}</g>'
        for box in node.inner
    )
    title_y = 18 if node.inner else 17
    text = f'<text x="{middle:.0f}" y="{title_y}">{safe(node.node.title)}</text>'
    return f'<g class="n {node.node.kind}" transform="translate({left:.1f} {node.y:.0f})">{tip}{rect}{text}{line}{inner}</g>'


def _edge_svg(way: EdgePath) -> str:
    points = way.points
    path = [f"M{points[0][0]:.1f} {points[0][1]:.0f}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        if abs(x - to_x) < 0.5:
            path.append(f"V{to_y:.0f}")
        else:
            middle = (y + to_y) / 2
            path.append(f"C{x:.1f} {middle:.0f} {to_x:.1f} {middle:.0f} {to_x:.1f} {to_y:.0f}")
    tip = f"<title>{safe(way.tip)}</title>" if way.tip else ""
    return f'<path class="way" d="{"".join(path)}">{tip}</path>{_head(points[-1], "way")}'


def _head(point: tuple[float, float], kind: str) -> str:
    x, y = point
    return f'<path class="{kind} head" d="M{x - 3.5:.1f} {y - 6:.0f}L{x:.1f} {y:.0f}L{x + 3.5:.1f} {y - 6:.0f}Z"/>'


def _corners(points: Sequence[tuple[float, float]]) -> str:
    """Return a line with rounded corners."""
    path = [f"M{points[0][0]:.1f} {points[0][1]:.0f}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        start, end = _towards(corner, before), _towards(corner, after)
        path.append(f"L{start[0]:.1f} {start[1]:.1f}Q{corner[0]:.1f} {corner[1]:.1f} {end[0]:.1f} {end[1]:.1f}")
    return "".join([*path, f"L{points[-1][0]:.1f} {points[-1][1]:.0f}"])


def _towards(corner: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    far = max(abs(other[0] - corner[0]), abs(other[1] - corner[1]), 1e-9)
    part = min(_ROUND, far / 2) / far
    return corner[0] + (other[0] - corner[0]) * part, corner[1] + (other[1] - corner[1]) * part
