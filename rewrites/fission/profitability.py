"""Finds work that should stay in the loop because its results are much larger than its inputs."""

import heapq
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.cut.step_costs import has_few_rows, saved_ns, stack_read_ns, transfer_ns, weight_bytes
from rewrites.base.not_applicable import NotApplicable
from rewrites.base.plain_text import counted
from rewrites.fission.stacks import Stacks

__all__ = ["EMPTY", "MeasuredSet", "MeasuredSets", "not_worth_moving"]

_MOST_SOURCES = 32


@dataclass(frozen=True)
class MeasuredSet:
    """A set of values. ``members`` has a bit for each value, and ``size`` is the sum of their sizes."""

    members: int
    size: int


EMPTY = MeasuredSet(0, 0)


class MeasuredSets:
    """Builds sets of values with their total size. ``measure`` returns the size of a value.

    The sets are bit masks, so that unions are cheap. A long body needs thousands of sets.
    """

    def __init__(self, measure: Callable[[ir.Value], int]) -> None:
        self._measure = measure
        self._numbers: dict[ir.Value, int] = {}
        self._sizes: list[int] = []

    def of(self, values: Iterable[ir.Value]) -> MeasuredSet:
        """Return the set of ``values``."""
        return self.union(MeasuredSet(1 << number, self._sizes[number]) for number in map(self._number, values))

    def union(self, sets: Iterable[MeasuredSet]) -> MeasuredSet:
        """Return the union of ``sets``. The time is proportional to the members that the largest set lacks."""
        first, *rest = sorted(sets, key=lambda measured: measured.size, reverse=True) or [EMPTY]
        members, size = first.members, first.size
        for measured in rest:
            new = measured.members & ~members
            members |= new
            while new:
                lowest = new & -new
                size += self._sizes[lowest.bit_length() - 1]
                new ^= lowest
        return MeasuredSet(members, size)

    def _number(self, value: ir.Value) -> int:
        number = self._numbers.setdefault(value, len(self._sizes))
        if number == len(self._sizes):
            self._sizes.append(self._measure(value))
        return number


def not_worth_moving(
    nodes: Sequence[ir.Node], bound: Set[ir.Value], stacks: Stacks, sizes: StepSizes
) -> dict[ir.Node, NotApplicable]:
    """Return the ``nodes`` that should stay in the loop, with reasons.

    A node and the moving nodes that depend on it stay together if the loop would read more than twice as many bytes of their
    results as these nodes read from stacks. A large result, such as an outer product, is cheaper to compute in each step than to
    write for all steps and read back. But a node that multiplies few rows by weights always leaves, because the loop would read
    the weights in every step.

    The search goes from the last node to the first. If nodes stay, the nodes that compute their inputs are examined again.

    Args:
        nodes: The nodes that can move before the loop, in order.
        bound: Values whose stacks are needed in any case. The nodes that compute them never stay.
        stacks: The stacks of the loop.
        sizes: The sizes of the values of a step.
    """
    position = {node: i for i, node in enumerate(nodes)}
    moved = set(nodes)
    sets = MeasuredSets(sizes.step_bytes)
    leaving: dict[ir.Node, MeasuredSet | None] = {}  # None: the node leaves in any case
    blocked: dict[ir.Node, NotApplicable] = {}
    waiting = [-i for i in range(len(nodes))][::-1]
    queued = set(moved)
    while waiting:
        node = nodes[-heapq.heappop(waiting)]
        queued.discard(node)
        if node not in moved:
            continue
        users = {user: None for value in node.outputs for user, _ in value.uses()}
        below = [leaving[user] for user in users if user in moved]
        if None in below or any(value in bound for value in node.outputs) or has_few_rows(node, sizes):
            leaving[node] = None
            continue
        own = sets.of(value for value in node.outputs if any(user not in moved for user, _ in value.uses()))
        results = leaving[node] = sets.union([own, *(measured for measured in below if measured is not None)])
        if results.size <= 2 * _reads({node: None}, stacks, sizes):
            continue
        group = _forward_slice(node, moved)
        read = _reads(group, stacks, sizes)
        if not read or results.size <= 2 * read:
            continue
        values = [value for member in group for value in member.outputs]
        name = next(value.name for value in values if any(user not in moved for user, _ in value.uses()))
        detail = f"'{name}' and similar values take {results.size} bytes per step, and are computed from {read}"
        blocked |= dict.fromkeys(group, NotApplicable("COST-WIDER", detail, silent=True))
        moved -= group.keys()
        for producer in _backward_slice(group, position, position[node]):
            if producer in moved and producer not in queued:
                queued.add(producer)
                heapq.heappush(waiting, -position[producer])
    return blocked | _dearer_than_their_source(moved, bound, stacks, sizes)


def _reads(group: dict[ir.Node, None], stacks: Stacks, sizes: StepSizes) -> int:
    """Return the bytes per step that ``group`` reads from stacks."""
    entering = {value: None for node in group for value in node.inputs if value is not None and value.producer() not in group}
    return sum(sizes.step_bytes(value) for value in entering if stacks.get(value).batched)


def _forward_slice(node: ir.Node, moved: set[ir.Node]) -> dict[ir.Node, None]:
    """Return ``node`` and the nodes of ``moved`` that depend on it."""
    group = {node: None}
    waiting = [node]
    while waiting:
        users = {user: None for value in waiting.pop().outputs for user, _ in value.uses() if user in moved and user not in group}
        group.update(users)
        waiting.extend(users)
    return group


def _backward_slice(group: Iterable[ir.Node], position: dict[ir.Node, int], after: int) -> set[ir.Node]:
    """Return the nodes on which ``group`` depends and whose position is greater than ``after``."""
    nodes: set[ir.Node] = set()
    waiting = list(group)
    while waiting:
        producers = {value.producer() for value in waiting.pop().inputs if value is not None}
        new = {node for node in producers if node is not None and position.get(node, -1) > after and node not in nodes}
        nodes |= new
        waiting.extend(new)
    return nodes


def _dearer_than_their_source(
    moved: set[ir.Node], bound: Set[ir.Value], stacks: Stacks, sizes: StepSizes
) -> dict[ir.Node, NotApplicable]:
    """Return nodes that should stay in the loop, because carrying their results into it costs more time.

    These nodes are the readers of one scan input and the moving nodes that depend on them. If they move, the loop reads at least
    two of their results instead of the scan input. They stay if carrying these results takes longer than reading the inputs of the
    nodes and running the nodes in each step.
    """
    blocked: dict[ir.Node, NotApplicable] = {}
    for source in stacks.sources()[:_MOST_SOURCES]:
        readers = [node for node, _ in source.uses()]
        if not readers or any(node not in moved or node in blocked for node in readers):
            continue
        group: dict[ir.Node, None] = {}
        for reader in readers:
            group |= _forward_slice(reader, moved)
        values = [value for node in group for value in node.outputs]
        results = [value for value in values if any(user not in moved for user, _ in value.uses())]
        if len(results) < 2 or any(value in bound for value in values):
            continue
        carried = sum(transfer_ns(value, sizes) for value in results)
        entering = {value: None for node in group for value in node.inputs if value is not None and value.producer() not in group}
        read = sum(stack_read_ns(value, sizes) for value in entering if stacks.get(value).batched)
        if carried > read + saved_ns(group, weight_bytes(group, sizes), sizes):
            detail = f"{counted(len(results), 'value')} computed from '{source.name}' would be carried into the loop instead of it"
            blocked |= dict.fromkeys(group, NotApplicable("COST-WIDER", detail, silent=True))
    return blocked
