"""The workspace, in words: states for the whole loop, temporaries for as long as they are read.

What depends on free sizes alike is in one region, for offsets do so too.
"""

from collections.abc import Sequence

from rewrites.native.body import Step
from rewrites.native.free_sizes import FreeSizes
from rewrites.native.places import Places
from rewrites.native.plan import Storage
from rewrites.native.views import Buffer, Home, View
from rewrites.native.walks import is_elementwise

__all__ = ["Place", "Workspace", "lay_out"]

Place = tuple[int, int]
"""A region and an offset in it."""

_ALIGNED = 16


class Workspace:
    """Places in memory, each a multiple of 16 words (or ``unit`` times that), taken and given back."""

    def __init__(self, unit: int = 1) -> None:
        self.size = 0
        self.unit = unit
        self.free: list[tuple[int, int]] = []

    def take(self, count: int) -> int:
        """Return the offset of room for ``count`` words: the smallest that is free and large enough, else new room."""
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
        """Give room back, joined with what is free beside it."""
        start, end = offset, offset + self._rounded(count)
        for other in [one for one in self.free if one[0] + one[1] == start or one[0] == end]:
            self.free.remove(other)
            start, end = min(start, other[0]), max(end, other[0] + other[1])
        self.free.append((start, end - start))

    def _rounded(self, count: int) -> int:
        return -(-max(count // self.unit, 1) // _ALIGNED) * _ALIGNED * self.unit


class _Regions:
    """A workspace for all that depends on free sizes alike: offsets in it do so too."""

    def __init__(self, free: FreeSizes) -> None:
        self.free = free
        self.parts: dict[int, Workspace] = {}

    def take(self, words: int) -> Place:
        part = self.free.part(words)
        offset = self.parts.setdefault(part, Workspace(part)).take(words)
        return list(self.parts).index(part), offset

    def give(self, place: Place, words: int) -> None:
        list(self.parts.values())[place[0]].give(place[1], words)


def lay_out(
    steps: Sequence[Step], places: Places, states: Sequence[int], free: FreeSizes
) -> tuple[list[Place], dict[Buffer, Place], list[int]]:
    """Return the region and offset of each state and temporary, and how large the regions are; ``states``: the words of each."""
    workspace = _Regions(free)
    kept: list[Place] = []
    for (storage, _), size in zip(places.states, states, strict=True):
        rows = 2 * size if storage == Storage.TWO_ROWS else size
        kept.append((0, 0) if storage == Storage.OUTPUT_ROWS else workspace.take(rows))
    last = {view.buffer: index for index, step in enumerate(steps) for view in (step.target, *step.given)}
    found: dict[Buffer, Place] = {}
    for index, step in enumerate(steps):
        read = dict.fromkeys(view.buffer for view in step.given)  # in order: plans are the same in every run
        ending = [buffer for buffer in read if last[buffer] == index and buffer in found]
        target = step.target.buffer
        if target.home == Home.COMPUTED and target not in places.of and target not in found:
            heir = next((buffer for buffer in ending if _takes_over(step, buffer)), None)
            if heir is None:
                found[target] = workspace.take(target.words)
            else:
                found[target] = found[heir]
                ending.remove(heir)
        for buffer in ending:
            workspace.give(found[buffer], buffer.words)
        if last[target] == index and target in found:
            workspace.give(found[target], target.words)
    return kept, found, [each.size for each in workspace.parts.values()]


def _takes_over(step: Step, buffer: Buffer) -> bool:
    """Return True if ``step`` can write its result over ``buffer`` element by element, because nothing reads that later."""
    own = step.target.buffer
    if not is_elementwise(step.op) or (buffer.size, buffer.dtype) != (own.size, own.dtype) or not step.target.is_whole:
        return False
    return all(_is_same(view, step.target) for view in step.given if view.buffer is buffer)


def _is_same(view: View, target: View) -> bool:
    return view.is_whole and view.shape == target.shape
