"""What is drawn, as plain data: nodes, some with boxes in them, and what goes from one to another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Box", "Drawings", "Edge", "Kind", "Picture", "PictureNode", "count"]

Kind = Literal["heavy", "move", "plain", "native", "input", "output", "state", "step", "constant", "loop", "more"]
"""How a node looks: operators by what they cost, values by where they come from, loops as boxes."""


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

    ``port``: the node in the first box of ``target`` that it leads to; ``exit``: the node in the first box of ``source`` that it
    starts from; -1 for none.
    """

    source: int
    target: int
    tip: str = ""
    port: int = -1
    exit: int = -1


@dataclass(frozen=True)
class Picture:
    """``carried``: pairs of node indices, a value of one step and the state of the next step that takes it."""

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
    """A loop as it was and the nodes that replace it; None if there is nothing to draw, for the reason in ``why``.

    ``runs_before``, ``runs_after``: how many operators run in one run of the model; None if the trip count is not known.
    """

    before: Picture | None = None
    after: Picture | None = None
    why: str = ""
    runs_before: int | None = None
    runs_after: int | None = None


def count(picture: Picture) -> int:
    """Count the nodes of a picture, those in boxes included."""
    return sum(1 + sum(count(box.picture) for box in node.boxes) for node in picture.nodes)
