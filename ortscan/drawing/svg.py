"""Writes a picture as SVG, coloured by the style sheet of the page it is in."""

from collections.abc import Sequence
from itertools import pairwise

from ortscan.base.markup import safe
from ortscan.drawing.picture import Picture
from ortscan.drawing.placing import PlacedBox, PlacedNode, Way, place

__all__ = ["svg_of"]

_ROUND = 7.0


def svg_of(picture: Picture, label: str) -> tuple[str, float]:
    """Return an ``svg`` element, and its width; ``label`` says what it shows."""
    box = place(picture)
    size = f'width="{box.width:.0f}" height="{box.height:.0f}" viewBox="0 0 {box.width:.0f} {box.height:.0f}"'
    return f'<svg {size} role="img" aria-label="{safe(label)}">{_contents(box)}</svg>', box.width


def _contents(box: PlacedBox) -> str:
    title = f'<text class="box" x="8" y="12">{safe(box.title)}</text>' if box.title else ""
    ways = "".join(map(_way, box.ways))
    states = "".join(f'<path class="carried" d="{_corners(points)}"/>{_head(points[-1], "carried")}' for points in box.carried)
    return title + ways + states + "".join(map(_node, box.nodes))


def _node(node: PlacedNode) -> str:
    left, middle = node.x - node.width / 2, node.width / 2
    tip = f"<title>{safe(node.node.tip)}</title>" if node.node.tip else ""
    rounded = 13 if node.node.kind in ("input", "output", "state", "step", "constant") else 5
    rect = f'<rect width="{node.width:.0f}" height="{node.height:.0f}" rx="{rounded}"/>'
    line = (
        f'<text class="line" x="{middle:.0f}" y="{30 if not node.inner else 33}">{safe(node.node.line)}</text>'
        if node.node.line
        else ""
    )
    inner = "".join(
        f'<g transform="translate({box.x:.0f} {box.y:.0f})"><rect class="body" width="{box.width:.0f}" height="{box.height:.0f}" '
        f'rx="4"/>{_contents(box)}</g>'
        for box in node.inner
    )
    title_y = 18 if node.inner else 17
    text = f'<text x="{middle:.0f}" y="{title_y}">{safe(node.node.title)}</text>'
    return f'<g class="n {node.node.kind}" transform="translate({left:.1f} {node.y:.0f})">{tip}{rect}{text}{line}{inner}</g>'


def _way(way: Way) -> str:
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
    """Return a way along rectangular corners, each rounded."""
    path = [f"M{points[0][0]:.1f} {points[0][1]:.0f}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        start, end = _towards(corner, before), _towards(corner, after)
        path.append(f"L{start[0]:.1f} {start[1]:.1f}Q{corner[0]:.1f} {corner[1]:.1f} {end[0]:.1f} {end[1]:.1f}")
    return "".join([*path, f"L{points[-1][0]:.1f} {points[-1][1]:.0f}"])


def _towards(corner: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    far = max(abs(other[0] - corner[0]), abs(other[1] - corner[1]), 1e-9)
    part = min(_ROUND, far / 2) / far
    return corner[0] + (other[0] - corner[0]) * part, corner[1] + (other[1] - corner[1]) * part
