"""Orders the steps so that each old state is read before it is overwritten.

If there is no such order, the old and the new state get separate memory (two rows).
"""

import heapq
from collections.abc import Sequence

from rewrites.native.body import BodyStep
from rewrites.native.memory import ResultMemory
from rewrites.native.operations import Op
from rewrites.native.plan import Storage
from rewrites.native.views import Buffer, Origin, View
from rewrites.native.walks import is_elementwise

__all__ = ["schedule_steps"]


def schedule_steps(steps: Sequence[BodyStep], memory: ResultMemory) -> list[BodyStep]:
    """Return the steps in an order in which they can run.

    Set ``memory.storages`` to how each state is stored.
    """
    required = _required_steps(steps)
    in_place_requirements: dict[int, dict[int, set[int]]] = {}
    for state, buffer in enumerate(memory.new_states):
        if buffer is not None and memory.storages[state][0] == Storage.IN_PLACE:
            readers_first = _readers_of_old_state(steps, state, buffer)
            if readers_first is None:
                memory.storages[state] = (Storage.TWO_ROWS, 0)
            else:
                in_place_requirements[state] = readers_first
    combined = _with_requirements(required, *in_place_requirements.values())
    if _topological_order(combined) is None:
        combined = required
        for state, readers_first in in_place_requirements.items():
            trial = _with_requirements(combined, readers_first)
            if _topological_order(trial) is None:
                memory.storages[state] = (Storage.TWO_ROWS, 0)
            else:
                combined = trial
    order = _topological_order(combined)
    assert order is not None
    return [steps[index] for index in order]


def _with_requirements(required: Sequence[set[int]], *additions: dict[int, set[int]]) -> list[set[int]]:
    combined = list(required)
    for addition in additions:
        for index, steps in addition.items():
            combined[index] = combined[index] | steps
    return combined


def _required_steps(steps: Sequence[BodyStep]) -> list[set[int]]:
    """Return, for each step, the steps that must run before it.

    A step needs the steps that write its operands. A SCATTER also needs the earlier writers of the buffer that it changes.
    """
    writers: dict[Buffer, list[int]] = {}
    for index, step in enumerate(steps):
        writers.setdefault(step.target.buffer, []).append(index)
    needs = [{writer for source in step.operands for writer in writers.get(source.buffer, ())} for step in steps]
    for index, step in enumerate(steps):
        if step.op == Op.SCATTER:
            needs[index] |= {writer for writer in writers[step.target.buffer] if writer < index}
    return needs


def _readers_of_old_state(steps: Sequence[BodyStep], state: int, buffer: Buffer) -> dict[int, set[int]] | None:
    """Find the steps that must run before the new state overwrites the old state: its readers.

    Return None if the new state cannot overwrite the old state, because one step reads the old state and writes the new state at
    different positions.

    Args:
        state: The index of the state.
        buffer: The buffer of the new state.

    Returns:
        A dictionary that maps the index of each writer to the indices of the other steps that read the old state.
    """
    writing = {index for index, step in enumerate(steps) if step.target.buffer is buffer}
    reading = {index for index, step in enumerate(steps) if any(_reads_old_state(view, state) for view in step.operands)}
    for index in writing & reading:
        step = steps[index]
        if not is_elementwise(step.op) or not all(
            _has_same_addresses(view, step.target) for view in step.operands if _reads_old_state(view, state)
        ):
            return None
    return {index: reading - {index} for index in writing}


def _reads_old_state(view: View, state: int) -> bool:
    return view.buffer.origin == Origin.OLD and view.buffer.index == state


def _has_same_addresses(view: View, target: View) -> bool:
    pairs = zip(view.shape, view.strides, target.strides, strict=True)
    return view.offset == target.offset and all(size == 1 or one == other for size, one, other in pairs)


def _topological_order(required: Sequence[set[int]]) -> list[int] | None:
    """Return an order in which each step follows the steps that it requires.

    Return None if there is no such order. The steps keep their current order as far as possible. ``required``: for each step, the
    indices of the steps that it requires.
    """
    missing = [len(each) for each in required]
    readers: list[list[int]] = [[] for _ in required]
    for index, each in enumerate(required):
        for requirement in each:
            readers[requirement].append(index)
    ready = [index for index, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for reader in readers[index]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, reader)
    return order if len(order) == len(required) else None
