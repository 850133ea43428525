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

    def set_of(self, values: Iterable[ir.Value]) -> MeasuredSet:
        """Return the set of ``values``."""
        return self.union(MeasuredSet(1 << number, self._sizes[number]) for number in map(self._number_of, values))

    def union(self, sets: Iterable[MeasuredSet]) -> MeasuredSet:
        """Return the union of ``sets``. This takes time for each member that the largest set lacks."""
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

    def _number_of(self, value: ir.Value) -> int:
        """Return the bit number of ``value``. Measure the value at the first call."""
        number = self._numbers.setdefault(value, len(self._sizes))
        if number == len(self._sizes):
            self._sizes.append(self._measure(value))
        return number


def not_worth_moving(
    nodes: Sequence[ir.Node], always_needed: Set[ir.Value], stacks: Stacks, sizes: StepSizes
) -> dict[ir.Node, NotApplicable]:
    """Return reasons for the ``nodes`` that should stay in the loop.

    A node and the moving nodes that depend on it form a group. A group stays if the loop would read more than twice as many bytes
    of the group's results as the group reads from stacks. For example, a large outer product is cheaper to compute in each step
    than to write for all steps and to read back. But a node that multiplies few rows by weights always moves, because otherwise
    every step would read the weights.

    The groups are examined from the last node to the first. If a group stays, the producers of its inputs are examined again.

    Args:
        nodes: The nodes that can move before the loop, in order.
        always_needed: Values whose stacks are needed in any case. The nodes that compute these values never stay.
        stacks: The stacks of the loop.
        sizes: The sizes of the values of a step.
    """
    positions = {node: i for i, node in enumerate(nodes)}
    moved = set(nodes)
    sets = MeasuredSets(sizes.step_bytes)
    leaving: dict[ir.Node, MeasuredSet | None] = {}  # None: the node leaves in any case
    blocked: dict[ir.Node, NotApplicable] = {}
    pending = [-i for i in range(len(nodes))][::-1]
    queued = set(moved)
    while pending:
        node = nodes[-heapq.heappop(pending)]
        queued.discard(node)
        if node not in moved:
            continue
        users = {user: None for value in node.outputs for user, _ in value.uses()}
        users_results = [leaving[user] for user in users if user in moved]
        if None in users_results or any(value in always_needed for value in node.outputs) or has_few_rows(node, sizes):
            leaving[node] = None
            continue
        own_results = sets.set_of(value for value in node.outputs if any(user not in moved for user, _ in value.uses()))
        results = leaving[node] = sets.union([own_results, *(measured for measured in users_results if measured is not None)])
        if results.size <= 2 * _bytes_read({node: None}, stacks, sizes):
            continue
        group = _forward_slice(node, moved)
        read = _bytes_read(group, stacks, sizes)
        if not read or results.size <= 2 * read:
            continue
        values = [value for member in group for value in member.outputs]
        name = next(value.name for value in values if any(user not in moved for user, _ in value.uses()))
        detail = f"'{name}' and similar values take {results.size} bytes per step, and are computed from {read}"
        blocked |= dict.fromkeys(group, NotApplicable("COST-WIDER", detail, silent=True))
        moved -= group.keys()
        for producer in _backward_slice(group, positions, positions[node]):
            if producer in moved and producer not in queued:
                queued.add(producer)
                heapq.heappush(pending, -positions[producer])
    return blocked | _costlier_than_source(moved, always_needed, stacks, sizes)


def _bytes_read(group: dict[ir.Node, None], stacks: Stacks, sizes: StepSizes) -> int:
    """Return the bytes per step that the nodes of ``group`` read from stacks."""
    entering = {value: None for node in group for value in node.inputs if value is not None and value.producer() not in group}
    return sum(sizes.step_bytes(value) for value in entering if stacks.get(value).batched)


def _forward_slice(node: ir.Node, moved: set[ir.Node]) -> dict[ir.Node, None]:
    """Return ``node`` and the nodes of ``moved`` that depend on it."""
    group = {node: None}
    pending = [node]
    while pending:
        users = {user: None for value in pending.pop().outputs for user, _ in value.uses() if user in moved and user not in group}
        group.update(users)
        pending.extend(users)
    return group


def _backward_slice(group: Iterable[ir.Node], positions: dict[ir.Node, int], start: int) -> set[ir.Node]:
    """Return the nodes on which ``group`` depends. Only nodes at positions greater than ``start`` count."""
    nodes: set[ir.Node] = set()
    pending = list(group)
    while pending:
        producers = {value.producer() for value in pending.pop().inputs if value is not None}
        new = {node for node in producers if node is not None and positions.get(node, -1) > start and node not in nodes}
        nodes |= new
        pending.extend(new)
    return nodes


def _costlier_than_source(
    moved: set[ir.Node], always_needed: Set[ir.Value], stacks: Stacks, sizes: StepSizes
) -> dict[ir.Node, NotApplicable]:
    """Return reasons for nodes that replace one scan input of the loop by several costlier scan inputs.

    A group has all readers of one scan input, and the moving nodes that depend on them. If the group moves, the loop reads its
    results instead of the scan input. The group stays if it has at least two such results, and writing and reading them takes
    longer than reading the inputs of the group and running its nodes in each step.
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
        if len(results) < 2 or any(value in always_needed for value in values):
            continue
        carried = sum(transfer_ns(value, sizes) for value in results)
        entering = {value: None for node in group for value in node.inputs if value is not None and value.producer() not in group}
        read = sum(stack_read_ns(value, sizes) for value in entering if stacks.get(value).batched)
        if carried > read + saved_ns(group, weight_bytes(group, sizes), sizes):
            detail = f"{counted(len(results), 'value')} computed from '{source.name}' would be carried into the loop instead of it"
            blocked |= dict.fromkeys(group, NotApplicable("COST-WIDER", detail, silent=True))
    return blocked
