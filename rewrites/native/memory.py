"""Assigns memory to the results of steps.

    a = x + y; c[0:4] = a; c[4:8] = b     ->  c[0:4] = x + y; c[4:8] = b

New states and rows of outputs have their own memory. Intermediate results share a workspace, and keep their memory until their last
reader has run. If a new state or an output is the same buffer as an input, a constant, or another new state or output, it is copied
to its own memory. A copy is omitted if the step that computes its source can write directly to its target, as in the example.

The workspace has several regions, one for each product of free sizes, such as B or B * C. A buffer lies in the region of the
product by which its size is divisible. All offsets in the region are divisible by this product too.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from rewrites.native.body import Body, BodyStep
from rewrites.native.free_sizes import FreeSizes
from rewrites.native.operations import Op
from rewrites.native.plan import Storage, ValueKind
from rewrites.native.views import Buffer, Home, View
from rewrites.native.walks import is_elementwise, walk_of

__all__ = ["Place", "Places", "Workspace", "computed_in_parts", "lay_out", "place_results"]

Place = tuple[int, int]
"""The number of a region, and an offset in the region."""
_ALIGNED = 16


class Workspace:
    """A growing region of memory, which is allocated and freed in multiples of 16 * ``unit`` words."""

    def __init__(self, unit: int = 1) -> None:
        self.size = 0
        self.unit = unit
        self.free: list[tuple[int, int]] = []

    def take(self, count: int) -> int:
        """Allocate ``count`` words in the smallest free range that fits, or at the end. Return the offset."""
        room = self._rounded(count)
        fitting = [(size, offset) for offset, size in self.free if size >= room]
        if not fitting:
            self.size += room
            return self.size - room
        size, offset = min(fitting)
        self.free.remove((offset, size))
        if size > room:
            self.free.append((offset + room, size - room))
        return offset

    def give(self, offset: int, count: int) -> None:
        """Free ``count`` words at ``offset``, and merge them with adjacent free ranges."""
        start, end = offset, offset + self._rounded(count)
        for gap in [gap for gap in self.free if gap[0] + gap[1] == start or gap[0] == end]:
            self.free.remove(gap)
            start, end = min(start, gap[0]), max(end, gap[0] + gap[1])
        self.free.append((start, end - start))

    def _rounded(self, count: int) -> int:
        return -(-max(count // self.unit, 1) // _ALIGNED) * _ALIGNED * self.unit


class _Regions:
    """The regions of the workspace: one for each product of free sizes that divides the size of a buffer."""

    def __init__(self, free: FreeSizes) -> None:
        self.free = free
        self.parts: dict[int, Workspace] = {}

    def take(self, words: int) -> Place:
        part = self.free.part(words)
        offset = self.parts.setdefault(part, Workspace(part)).take(words)
        return list(self.parts).index(part), offset

    def give(self, place: Place, words: int) -> None:
        list(self.parts.values())[place[0]].give(place[1], words)


@dataclass
class Places:
    """The memory of the new states and of the rows of outputs.

    Args:
        of: Maps each buffer that holds a new state or a row of an output to a pair: the kind (state or output), and the index of
            this state or output.
        states: For each state, a pair: how it is stored, and the index of the output if it is stored in a row of an output.
        news: For each state, the buffer of the new state, or None if the state does not change.
    """

    of: dict[Buffer, tuple[ValueKind, int]] = field(default_factory=dict)
    states: list[tuple[Storage, int]] = field(default_factory=list)
    news: list[Buffer | None] = field(default_factory=list)


def lay_out(
    steps: Sequence[BodyStep], places: Places, states: Sequence[int], free: FreeSizes
) -> tuple[list[Place], dict[Buffer, Place], list[int]]:
    """Assign parts of the workspace to the states and to the temporary results of ``steps``.

    Args:
        states: The size of each state in words.

    Returns:
        The place of each state, the place of each temporary buffer, and the size of each region in words. A place is a pair: a
        region, and an offset in it.
    """
    workspace = _Regions(free)
    kept: list[Place] = []
    for (storage, _), size in zip(places.states, states, strict=True):
        rows = 2 * size if storage == Storage.TWO_ROWS else size
        kept.append((0, 0) if storage == Storage.OUTPUT_ROWS else workspace.take(rows))
    last = {view.buffer: index for index, step in enumerate(steps) for view in (step.target, *step.given)}
    located: dict[Buffer, Place] = {}
    for index, step in enumerate(steps):
        read = dict.fromkeys(view.buffer for view in step.given)  # in order, so that plans are the same in every run
        ending = [buffer for buffer in read if last[buffer] == index and buffer in located]
        target = step.target.buffer
        if target.home == Home.COMPUTED and target not in places.of and target not in located:
            heir = next((buffer for buffer in ending if _takes_over(step, buffer)), None)
            if heir is None:
                located[target] = workspace.take(target.words)
            else:
                located[target] = located[heir]
                ending.remove(heir)
        for buffer in ending:
            workspace.give(located[buffer], buffer.words)
        if last[target] == index and target in located:
            workspace.give(located[target], target.words)
    return kept, located, [each.size for each in workspace.parts.values()]


def _takes_over(step: BodyStep, buffer: Buffer) -> bool:
    """Return True if ``step`` can overwrite ``buffer``, which it reads, with its result."""
    own = step.target.buffer
    if not is_elementwise(step.op) or (buffer.size, buffer.dtype) != (own.size, own.dtype) or not step.target.is_whole:
        return False
    return all(_is_same(view, step.target) for view in step.given if view.buffer is buffer)


def _is_same(view: View, target: View) -> bool:
    return view.is_whole and view.shape == target.shape


def place_results(body: Body, finals: Sequence[View], stacked: Sequence[View]) -> Places:
    """Assign memory to each state and output, and add the necessary copies to the body."""
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


def computed_in_parts(steps: Sequence[BodyStep], places: Places) -> list[BodyStep]:
    """Let steps write their results directly to the targets of copies, if possible.

    Return the steps without the copies that are no longer needed.
    """
    count = Counter(source.buffer for step in steps for source in step.given)
    makers: dict[Buffer, list[BodyStep]] = {}
    for step in steps:
        makers.setdefault(step.target.buffer, []).append(step)
    kept = []
    for step in steps:
        source = step.sources[0]
        if step.op == Op.COPY and source is not None and _is_own(source, count, places):
            writers = makers.get(source.buffer, [])
            if len(writers) == 1 and _redirected(writers[0], source, step.target):
                makers[step.target.buffer] = [writers[0] if writer is step else writer for writer in makers[step.target.buffer]]
                continue
        kept.append(step)
    return kept


def _is_own(source: View, count: Counter[Buffer], places: Places) -> bool:
    return source.buffer.home == Home.COMPUTED and source.is_whole and count[source.buffer] == 1 and source.buffer not in places.of


def _redirected(maker: BodyStep, source: View, place: View) -> bool:
    """Change the step ``maker`` so that it writes its result directly to the target of a later copy.

    Return False and change nothing if this is impossible.

    Args:
        maker: The step that computes ``source``.
        source: The view that the copy reads.
        place: The view to which the copy writes.
    """
    shape = maker.target.shape
    if not maker.target.is_whole or [size for size in shape if size != 1] != [size for size in source.shape if size != 1]:
        return False
    strides = iter(stride for size, stride in zip(place.shape, place.strides, strict=True) if size != 1)
    target = View(place.buffer, shape, tuple(next(strides) if size != 1 else 0 for size in shape), place.offset)
    trial = BodyStep(maker.op, target, maker.sources, maker.immediates)
    inner = walk_of(trial).strides[0]
    if maker.op not in (Op.COPY, Op.CAST) and inner and inner[-1] != 1:
        return False
    maker.target = target
    return True
