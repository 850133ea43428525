"""Where the results of a body go: into states and the rows of outputs, by a copy where they are nobody's own."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rewrites.native.body import Body
from rewrites.native.operations import Op
from rewrites.native.plan import Storage, ValueKind
from rewrites.native.views import Buffer, Home, View

__all__ = ["Places", "place_results"]


@dataclass
class Places:
    """``of``: buffers that are a new state or a row of an output. ``states``: how each is kept, and the output it is a row of.

    ``news``: the buffer of each new state; None where nothing is written, since the state stays.
    """

    of: dict[Buffer, tuple[ValueKind, int]] = field(default_factory=dict)
    states: list[tuple[Storage, int]] = field(default_factory=list)
    news: list[Buffer | None] = field(default_factory=list)


def place_results(body: Body, finals: Sequence[View], stacked: Sequence[View]) -> Places:
    """Return the place of each result; adds the copies that it takes to the body."""
    places = Places()
    for index, view in enumerate(stacked):
        _place(body, view, (ValueKind.STACKED, index), places)
    for index, view in enumerate(finals):
        kind, output = places.of.get(view.buffer, (None, 0))
        if view.buffer.home == Home.OLD and view.buffer.index == index and view.is_whole:
            places.states.append((Storage.IN_PLACE, 0))
            places.news.append(None)
        elif kind == ValueKind.STACKED and view.is_whole:
            places.states.append((Storage.OUTPUT_ROWS, output))
            places.news.append(view.buffer)
        else:
            places.states.append((Storage.IN_PLACE, 0))
            places.news.append(_place(body, view, (ValueKind.NEW, index), places))
    return places


def _place(body: Body, view: View, place: tuple[ValueKind, int], places: Places) -> Buffer:
    if view.buffer.home != Home.COMPUTED or view.buffer in places.of or not view.is_whole:
        view = body.emit(Op.COPY, body.fresh(view.shape, view), view)
    places.of[view.buffer] = place
    return view.buffer
