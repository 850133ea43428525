"""Orders the steps so that each old state is read before it is overwritten.

If there is no such order, the old and the new state get separate memory (two rows).
"""

import heapq
from collections.abc import Sequence

from rewrites.native.body import BodyStep
from rewrites.native.memory import Places
from rewrites.native.operations import Op
from rewrites.native.plan import Storage
from rewrites.native.views import Buffer, Home, View
from rewrites.native.walks import is_elementwise

__all__ = ["scheduled"]


def scheduled(steps: Sequence[BodyStep], places: Places) -> list[BodyStep]:
    """Return the steps in an executable order. Record in ``places`` how each state is stored."""
    after = _needs(steps)
    wanted: dict[int, dict[int, set[int]]] = {}
    for state, buffer in enumerate(places.news):
        if buffer is not None and places.states[state][0] == Storage.IN_PLACE:
            before = _readers_before(steps, state, buffer)
            if before is None:
                places.states[state] = (Storage.TWO_ROWS, 0)
            else:
                wanted[state] = before
    together = _with(after, *wanted.values())
    if _order(together) is None:
        together = after
        for state, before in wanted.items():
            trial = _with(together, before)
            if _order(trial) is None:
                places.states[state] = (Storage.TWO_ROWS, 0)
            else:
                together = trial
    order = _order(together)
    assert order is not None
    return [steps[index] for index in order]


def _with(needs: Sequence[set[int]], *more: dict[int, set[int]]) -> list[set[int]]:
    both = list(needs)
    for each in more:
        for index, others in each.items():
            both[index] = both[index] | others
    return both


def _needs(steps: Sequence[BodyStep]) -> list[set[int]]:
    """Return, for each step, the steps that must run before it.

    A step needs the steps that write its operands. A SCATTER also needs the earlier writers of the buffer that it changes.
    """
    writers: dict[Buffer, list[int]] = {}
    for index, step in enumerate(steps):
        writers.setdefault(step.target.buffer, []).append(index)
    needs = [{writer for source in step.given for writer in writers.get(source.buffer, ())} for step in steps]
    for index, step in enumerate(steps):
        if step.op == Op.SCATTER:
            needs[index] |= {writer for writer in writers[step.target.buffer] if writer < index}
    return needs


def _readers_before(steps: Sequence[BodyStep], state: int, buffer: Buffer) -> dict[int, set[int]] | None:
    """Return, for each step that writes a new state to ``buffer``, the readers that must run before it.

    These are the readers of the old state, because the new state will overwrite it. Return None if this is impossible: a step reads
    the old state and writes the new state, but reads elements at other positions than those that it writes.
    """
    writing = {index for index, step in enumerate(steps) if step.target.buffer is buffer}
    reading = {index for index, step in enumerate(steps) if any(_is_old(view, state) for view in step.given)}
    for index in writing & reading:
        step = steps[index]
        if not is_elementwise(step.op) or not all(_same_place(view, step.target) for view in step.given if _is_old(view, state)):
            return None
    return {index: reading - {index} for index in writing}


def _is_old(view: View, state: int) -> bool:
    return view.buffer.home == Home.OLD and view.buffer.index == state


def _same_place(view: View, target: View) -> bool:
    pairs = zip(view.shape, view.strides, target.strides, strict=True)
    return view.offset == target.offset and all(size == 1 or one == other for size, one, other in pairs)


def _order(needs: Sequence[set[int]]) -> list[int] | None:
    """Return an order in which each step follows the steps in ``needs``; None if there is no such order.

    The steps keep their current order as far as possible.
    """
    left = [len(each) for each in needs]
    readers: list[list[int]] = [[] for _ in needs]
    for index, each in enumerate(needs):
        for need in each:
            readers[need].append(index)
    ready = [index for index, count in enumerate(left) if not count]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for reader in readers[index]:
            left[reader] -= 1
            if not left[reader]:
                heapq.heappush(ready, reader)
    return order if len(order) == len(needs) else None
