"""Decide where the results of a body go: into states and the rows of outputs, and leave out copies that this makes needless.

    a = x + y; c[0:4] = a; c[4:8] = b     ->  c[0:4] = x + y; c[4:8] = b

A result is copied if its buffer belongs to something else. A copy of a whole result is left out if the step that computes it can
write to the target of the copy.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from rewrites.native.body import Body, Step
from rewrites.native.operations import Op
from rewrites.native.plan import Storage, ValueKind
from rewrites.native.views import Buffer, Home, View
from rewrites.native.walks import walk_of

__all__ = ["Places", "computed_in_parts", "place_results"]


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


def computed_in_parts(steps: Sequence[Step], places: Places) -> list[Step]:
    """Return the steps without the copies of results that are read by nothing else."""
    count = Counter(source.buffer for step in steps for source in step.given)
    makers: dict[Buffer, list[Step]] = {}
    for step in steps:
        makers.setdefault(step.target.buffer, []).append(step)
    kept = []
    for step in steps:
        source = step.sources[0]
        if step.op == Op.COPY and source is not None and _is_own(source, count, places):
            made = makers.get(source.buffer, [])
            if len(made) == 1 and _redirected(made[0], source, step.target):
                makers[step.target.buffer] = [made[0] if one is step else one for one in makers[step.target.buffer]]
                continue
        kept.append(step)
    return kept


def _is_own(source: View, count: Counter[Buffer], places: Places) -> bool:
    return source.buffer.home == Home.COMPUTED and source.is_whole and count[source.buffer] == 1 and source.buffer not in places.of


def _redirected(maker: Step, source: View, place: View) -> bool:
    """Let ``maker`` write to ``place`` where its walk allows it."""
    shape = maker.target.shape
    if not maker.target.is_whole or [size for size in shape if size != 1] != [size for size in source.shape if size != 1]:
        return False
    strides = iter(stride for size, stride in zip(place.shape, place.strides, strict=True) if size != 1)
    target = View(place.buffer, shape, tuple(next(strides) if size != 1 else 0 for size in shape), place.offset)
    trial = Step(maker.op, target, maker.sources, maker.immediates)
    inner = walk_of(trial).strides[0]
    if maker.op not in (Op.COPY, Op.CAST) and inner and inner[-1] != 1:
        return False
    maker.target = target
    return True
