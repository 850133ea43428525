"""Assigns memory to the results of steps.

    a = x + y; c[0:4] = a; c[4:8] = b     ->  c[0:4] = x + y; c[4:8] = b

New states and rows of outputs have their own memory. Intermediate results share a workspace: each keeps its memory until its last
reader has run. If a new state or an output shares its buffer with an input, a constant, or another new state or output, a step
copies it to its own memory. The copy is omitted if the step that computes its source can write directly to its target, as in the
example.

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
from rewrites.native.views import Buffer, Origin, View
from rewrites.native.walks import is_elementwise, plan_walk

__all__ = ["Place", "ResultMemory", "Workspace", "allocate_workspace", "assign_result_memory", "write_to_copy_targets"]

Place = tuple[int, int]
"""The number of a region, and an offset in the region."""
_ALIGNED = 16


class Workspace:
    """A growing region of memory, which is allocated and freed in multiples of 16 * ``unit`` words."""

    def __init__(self, unit: int = 1) -> None:
        self.size = 0
        self.unit = unit
        self.free: list[tuple[int, int]] = []

    def allocate(self, count: int) -> int:
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

    def release(self, offset: int, count: int) -> None:
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
        self.regions: dict[tuple[int, tuple[Buffer, int] | None], Workspace] = {}

    def allocate(self, words: int, owner: tuple[Buffer, int] | None = None) -> Place:
        """Allocate ``words`` words in the region for this size, or in a region of ``owner``."""
        unit = self.free.sample_factor(words)
        offset = self.regions.setdefault((unit, owner), Workspace(unit)).allocate(words)
        return list(self.regions).index((unit, owner)), offset

    def release(self, place: Place, words: int) -> None:
        list(self.regions.values())[place[0]].release(place[1], words)


@dataclass
class ResultMemory:
    """The memory of the new states and of the rows of outputs.

    Args:
        results: Maps each buffer that holds a new state or a row of an output to a pair: the kind (state or output), and the index
            of this state or output.
        storages: For each state, a pair: how it is stored, and the index of the output if it is stored in a row of an output.
        new_states: For each state, the buffer of the new state, or None if the state does not change.
    """

    results: dict[Buffer, tuple[ValueKind, int]] = field(default_factory=dict)
    storages: list[tuple[Storage, int]] = field(default_factory=list)
    new_states: list[Buffer | None] = field(default_factory=list)


def allocate_workspace(
    steps: Sequence[BodyStep], memory: ResultMemory, state_sizes: Sequence[int], free: FreeSizes
) -> tuple[list[Place], dict[Buffer, Place], list[int]]:
    """Assign parts of the workspace to the states and to the temporary results of ``steps``.

    Args:
        state_sizes: The size of each state in words.

    Returns:
        A triple: the place of each state, the place of each temporary buffer, and the size of each region in words.
    """
    workspace = _Regions(free)
    state_places: list[Place] = []
    for (storage, _), size, new_state in zip(memory.storages, state_sizes, memory.new_states, strict=True):
        if new_state is not None and storage in (Storage.GROWS, Storage.GROWS_IN_TWO):
            state_places.append(workspace.allocate(new_state.words, (new_state, 0)))
            if storage == Storage.GROWS_IN_TWO:
                workspace.allocate(new_state.words, (new_state, 1))
            continue
        rows = 2 * size if storage == Storage.TWO_ROWS else size
        state_places.append((0, 0) if storage == Storage.OUTPUT_ROWS else workspace.allocate(rows))
    last_use = {view.buffer: index for index, step in enumerate(steps) for view in (step.target, *step.operands)}
    temporary_places: dict[Buffer, Place] = {}
    for index, step in enumerate(steps):
        read = dict.fromkeys(view.buffer for view in step.operands)  # in order, so that plans are the same in every run
        last_read_here = [buffer for buffer in read if last_use[buffer] == index and buffer in temporary_places]
        target = step.target.buffer
        if target.origin == Origin.COMPUTED and target not in memory.results and target not in temporary_places:
            reused = next((buffer for buffer in last_read_here if _can_overwrite(step, buffer)), None)
            if reused is None:
                temporary_places[target] = workspace.allocate(target.words)
            else:
                temporary_places[target] = temporary_places[reused]
                last_read_here.remove(reused)
        for buffer in last_read_here:
            workspace.release(temporary_places[buffer], buffer.words)
        if last_use[target] == index and target in temporary_places:
            workspace.release(temporary_places[target], target.words)
    return state_places, temporary_places, [each.size for each in workspace.regions.values()]


def _can_overwrite(step: BodyStep, buffer: Buffer) -> bool:
    """Return True if ``step`` can overwrite ``buffer``, one of its operands, with its result."""
    target_buffer = step.target.buffer
    if (
        not is_elementwise(step.op)
        or (buffer.size, buffer.dtype) != (target_buffer.size, target_buffer.dtype)
        or not step.target.is_whole
    ):
        return False
    return all(_is_whole_in_shape(view, step.target) for view in step.operands if view.buffer is buffer)


def _is_whole_in_shape(view: View, target: View) -> bool:
    return view.is_whole and view.shape == target.shape


def assign_result_memory(body: Body, finals: Sequence[View], stacked: Sequence[View]) -> ResultMemory:
    """Assign memory to each state and output, and add the necessary copies to ``body``.

    ``finals`` and ``stacked``: the views of the new states, and of the rows of the outputs.
    """
    memory = ResultMemory()
    for index, view in enumerate(stacked):
        _assign_memory(body, view, (ValueKind.STACKED, index), memory)
    growing = {state.index: state for state in body.growing.values()}
    for index, view in enumerate(finals):
        kind, output = memory.results.get(view.buffer, (None, 0))
        if index in growing:
            state = growing[index]
            usable = view.buffer.origin == Origin.COMPUTED and view.buffer not in memory.results and state.is_like(view)
            new_state = view if usable else body.emit(Op.COPY, state.new, view)
            memory.results[new_state.buffer] = (ValueKind.NEW, index)
            memory.storages.append((Storage.GROWS if state.in_place else Storage.GROWS_IN_TWO, 0))
            memory.new_states.append(new_state.buffer)
        elif view.buffer.origin == Origin.OLD and view.buffer.index == index and view.is_whole:
            memory.storages.append((Storage.IN_PLACE, 0))
            memory.new_states.append(None)
        elif kind == ValueKind.STACKED and view.is_whole:
            memory.storages.append((Storage.OUTPUT_ROWS, output))
            memory.new_states.append(view.buffer)
        else:
            memory.storages.append((Storage.IN_PLACE, 0))
            memory.new_states.append(_assign_memory(body, view, (ValueKind.NEW, index), memory))
    return memory


def _assign_memory(body: Body, view: View, owner: tuple[ValueKind, int], memory: ResultMemory) -> Buffer:
    if view.buffer.origin != Origin.COMPUTED or view.buffer in memory.results or not view.is_whole:
        view = body.emit(Op.COPY, body.new_buffer(view.shape, view), view)
    memory.results[view.buffer] = owner
    return view.buffer


def write_to_copy_targets(steps: Sequence[BodyStep], memory: ResultMemory) -> list[BodyStep]:
    """Let steps write their results directly to the targets of copies, if possible.

    Return the steps without the copies that are no longer needed.
    """
    read_counts = Counter(source.buffer for step in steps for source in step.operands)
    producers: dict[Buffer, list[BodyStep]] = {}
    for step in steps:
        producers.setdefault(step.target.buffer, []).append(step)
    kept = []
    for step in steps:
        source = step.sources[0]
        if step.op == Op.COPY and source is not None and _is_single_use_temporary(source, read_counts, memory):
            writers = producers.get(source.buffer, [])
            if len(writers) == 1 and _redirect(writers[0], source, step.target):
                producers[step.target.buffer] = [
                    writers[0] if writer is step else writer for writer in producers[step.target.buffer]
                ]
                continue
        kept.append(step)
    return kept


def _is_single_use_temporary(source: View, read_counts: Counter[Buffer], memory: ResultMemory) -> bool:
    return (
        source.buffer.origin == Origin.COMPUTED
        and source.is_whole
        and read_counts[source.buffer] == 1
        and source.buffer not in memory.results
    )


def _redirect(producer: BodyStep, source: View, copy_target: View) -> bool:
    """Change the step ``producer`` so that it writes its result directly to the target of a later copy.

    Return False and change nothing if this is impossible.

    Args:
        producer: The step that computes ``source``.
        source: The view that the copy reads.
        copy_target: The view to which the copy writes.
    """
    shape = producer.target.shape
    if not producer.target.is_whole or [size for size in shape if size != 1] != [size for size in source.shape if size != 1]:
        return False
    strides = iter(stride for size, stride in zip(copy_target.shape, copy_target.strides, strict=True) if size != 1)
    target = View(copy_target.buffer, shape, tuple(next(strides) if size != 1 else 0 for size in shape), copy_target.offset)
    trial = BodyStep(producer.op, target, producer.sources, producer.immediates)
    inner = plan_walk(trial).strides[0]
    if producer.op not in (Op.COPY, Op.CAST) and inner and inner[-1] != 1:
        return False
    producer.target = target
    return True
