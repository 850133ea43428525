"""A picture as plain data: nodes, the boxes in them, and edges."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Box", "Drawings", "Edge", "Kind", "Picture", "PictureNode", "count"]

Kind = Literal["heavy", "move", "plain", "native", "input", "output", "state", "step", "constant", "loop", "more"]
"""The look of a node: operators by their cost, values by their origin, loops as boxes."""


@dataclass(frozen=True)
class PictureNode:
    """A node with its title, a small line below it and its tooltip.

    ``boxes``: the graphs in it, side by side. ``pin``: the end of its box that it stays at, if any.
    """

    kind: Kind
    title: str
    line: str = ""
    tip: str = ""
    boxes: Sequence["Box"] = ()
    pin: Literal["", "first", "last"] = ""


@dataclass(frozen=True)
class Edge:
    """An edge between two nodes of a picture, by their indices.

    ``port``: the node in the first box of ``target`` where it ends. ``exit``: the node in the first box of ``source`` where it
    starts. Both are -1 if the edge does not enter the box.
    """

    source: int
    target: int
    tip: str = ""
    port: int = -1
    exit: int = -1


@dataclass(frozen=True)
class Picture:
    """Nodes and edges. ``carried``: index pairs of a new state and the state of the next step."""

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
    """A loop before the rewrites and the nodes that replace it.

    Attributes:
        before: The loop; None if it is not drawn.
        after: Its replacement; None if it is not drawn.
        why: Why a picture is missing.
        runs_before: The number of operators that the loop runs; None if its trip count is not known.
        runs_after: The number of operators that the replacement runs; None likewise.
    """

    before: Picture | None = None
    after: Picture | None = None
    why: str = ""
    runs_before: int | None = None
    runs_after: int | None = None


def count(picture: Picture) -> int:
    """Count the nodes of a picture and of its boxes."""
    return sum(1 + sum(count(box.picture) for box in node.boxes) for node in picture.nodes)
