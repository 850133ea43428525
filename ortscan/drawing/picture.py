"""What is drawn, as plain data: nodes, some with boxes in them, and what goes from one to another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Box", "Drawings", "Edge", "Kind", "Node", "Picture", "count"]

Kind = Literal["heavy", "move", "plain", "native", "input", "output", "state", "step", "constant", "loop", "more"]
"""How a node looks: operators by what they cost, values by where they come from, loops as boxes."""


@dataclass(frozen=True)
class Node:
    """``title``: in large letters; ``line``: in small ones below; ``tip``: what is shown where one points at it.

    ``boxes``: the graphs within it, side by side. ``pin``: at which end of its box it is held, if at any.
    """

    kind: Kind
    title: str
    line: str = ""
    tip: str = ""
    boxes: Sequence["Box"] = ()
    pin: Literal["", "first", "last"] = ""


@dataclass(frozen=True)
class Edge:
    """From one node of a picture to another, by their places. ``port``: the place, in the first box of ``target``, it goes on at;
    ``exit``: that in the first box of ``source`` it comes from; -1 for none.
    """

    source: int
    target: int
    tip: str = ""
    port: int = -1
    exit: int = -1


@dataclass(frozen=True)
class Picture:
    """``carried``: pairs of places, what a step gives and what the next step takes in its place."""

    nodes: Sequence[Node] = ()
    edges: Sequence[Edge] = ()
    carried: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class Box:
    """A graph within a node."""

    title: str
    picture: Picture


@dataclass(frozen=True)
class Drawings:
    """A loop as it was, and what stands in its place; None where there is nothing to draw, for the reason in ``why``.

    ``runs_before``, ``runs_after``: how many operators run in one run of the model, None where the trip count is not known.
    """

    before: Picture | None = None
    after: Picture | None = None
    why: str = ""
    runs_before: int | None = None
    runs_after: int | None = None


def count(picture: Picture) -> int:
    """Count the nodes of a picture, those in boxes included."""
    return sum(1 + sum(count(box.picture) for box in node.boxes) for node in picture.nodes)
