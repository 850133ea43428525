"""A picture as plain data: nodes, the boxes in them, and edges."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Box", "Drawings", "Edge", "Kind", "Picture", "PictureNode", "count"]

Kind = Literal["heavy", "move", "plain", "native", "input", "output", "state", "step", "constant", "loop", "more"]
"""The appearance of a node. It shows the cost of an operator, the origin of a value, or that the node is a loop."""


@dataclass(frozen=True)
class PictureNode:
    """A node with its title, a small line below it and its tooltip.

    ``boxes`` are the graphs inside it, side by side. ``pin`` keeps the node in the first or the last layer of its box.
    """

    kind: Kind
    title: str
    line: str = ""
    tip: str = ""
    boxes: Sequence["Box"] = ()
    pin: Literal["", "first", "last"] = ""


@dataclass(frozen=True)
class Edge:
    """An edge from the node with index ``source`` to the node with index ``target``.

    An edge may start or end at a node inside a box. If ``exit`` is not -1, the edge starts at the node with this index in the first
    box of ``source``. If ``port`` is not -1, it ends at the node with this index in the first box of ``target``.
    """

    source: int
    target: int
    tip: str = ""
    port: int = -1
    exit: int = -1


@dataclass(frozen=True)
class Picture:
    """Nodes and edges.

    ``carried`` has pairs of node indices: a new state, and the state of the next step that receives it.
    """

    nodes: Sequence[PictureNode] = ()
    edges: Sequence[Edge] = ()
    carried: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class Box:
    """A graph within a node."""

    title: str
    picture: Picture


@dataclass(frozen=True)
class Drawings:
    """A loop before the rewrites, and the nodes that replace it.

    Attributes:
        before: the picture of the loop, or None.
        after: the picture of the nodes that replace the loop, or None.
        why: the reason why a picture is missing.
        runs_before: the number of operators that the loop runs; None if its trip count is unknown.
        runs_after: the number of operators that the replacement runs; None if it is unknown.
    """

    before: Picture | None = None
    after: Picture | None = None
    why: str = ""
    runs_before: int | None = None
    runs_after: int | None = None


def count(picture: Picture) -> int:
    """Count the nodes of a picture and of its boxes."""
    return sum(1 + sum(count(box.picture) for box in node.boxes) for node in picture.nodes)
