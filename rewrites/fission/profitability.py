"""Which work is better left in the loop, since it would hand the recurrence much more than it reads."""

import heapq
from collections.abc import Iterable, Sequence, Set

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.cut.step_costs import carrying_ns, few_rows, reading_ns, staying_ns, weight_bytes
from rewrites.base.not_applicable import NotApplicable
from rewrites.base.plain_text import counted
from rewrites.fission.measured_sets import MeasuredSet, MeasuredSets
from rewrites.fission.stacks import Stacks

__all__ = ["not_worth_moving"]

_MOST_SOURCES = 32


def not_worth_moving(
    nodes: Sequence[ir.Node], bound: Set[ir.Value], stacks: Stacks, sizes: StepSizes
) -> dict[ir.Node, NotApplicable]:
    """Return those of ``nodes`` that, with all of them made from it, hand the recurrence much more than they read; and those.

    Such a value (an outer product, an Expand) is cheaper made in each step than written for all steps and read back. Products by
    weights still move where a step has few rows: all steps at once read the weights once. The last such node goes first, and then
    what is left is looked at again. What ``bound`` values are made from leaves anyway.
    """
    place = {node: i for i, node in enumerate(nodes)}
    moved = set(nodes)
    sets = MeasuredSets(sizes.step)
    leaving: dict[ir.Node, MeasuredSet | None] = {}  # None: stays moved, whatever it hands over
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
        if None in below or any(value in bound for value in node.outputs) or few_rows(node, sizes):
            leaving[node] = None
            continue
        own = sets.of(value for value in node.outputs if any(user not in moved for user, _ in value.uses()))
        given = leaving[node] = sets.union([own, *(one for one in below if one is not None)])
        if given.size <= 2 * _reads({node: None}, stacks, sizes):
            continue
        group = _made_from(node, moved)
        read = _reads(group, stacks, sizes)
        if not read or given.size <= 2 * read:
            continue
        values = [value for one in group for value in one.outputs]
        name = next(value.name for value in values if any(user not in moved for user, _ in value.uses()))
        detail = f"'{name}' and its like take {given.size} bytes a step, and are made from {read}"
        blocked |= dict.fromkeys(group, NotApplicable("COST-WIDER", detail, silent=True))
        moved -= group.keys()
        for maker in _made_of(group, place, place[node]):
            if maker in moved and maker not in queued:
                queued.add(maker)
                heapq.heappush(waiting, -place[maker])
    return blocked | _dearer_than_their_source(moved, bound, stacks, sizes)


def _dearer_than_their_source(
    moved: set[ir.Node], bound: Set[ir.Value], stacks: Stacks, sizes: StepSizes
) -> dict[ir.Node, NotApplicable]:
    """Return what is made of one value alone, where it is cheaper to hand the recurrence that value than all that is made of it."""
    blocked: dict[ir.Node, NotApplicable] = {}
    for source in stacks.sources()[:_MOST_SOURCES]:
        readers = [node for node, _ in source.uses()]
        if not readers or any(node not in moved or node in blocked for node in readers):
            continue
        group: dict[ir.Node, None] = {}
        for reader in readers:
            group |= _made_from(reader, moved)
        values = [value for node in group for value in node.outputs]
        given = [value for value in values if any(user not in moved for user, _ in value.uses())]
        if len(given) < 2 or any(value in bound for value in values):
            continue
        carried = sum(carrying_ns(value, sizes) for value in given)
        entering = {value: None for node in group for value in node.inputs if value is not None and value.producer() not in group}
        read = sum(reading_ns(value, sizes) for value in entering if stacks.get(value).batched)
        if carried > read + staying_ns(group, weight_bytes(group, sizes), sizes):
            detail = f"{counted(len(given), 'value')} made of '{source.name}' would be handed over instead of it"
            blocked |= dict.fromkeys(group, NotApplicable("COST-WIDER", detail, silent=True))
    return blocked


def _reads(group: dict[ir.Node, None], stacks: Stacks, sizes: StepSizes) -> int:
    """Return the bytes that ``group`` reads in each step."""
    entering = {value: None for node in group for value in node.inputs if value is not None and value.producer() not in group}
    return sum(sizes.step(value) for value in entering if stacks.get(value).batched)


def _made_from(node: ir.Node, moved: set[ir.Node]) -> dict[ir.Node, None]:
    """Return ``node`` and the nodes of ``moved`` that depend on it."""
    group = {node: None}
    waiting = [node]
    while waiting:
        users = {user: None for value in waiting.pop().outputs for user, _ in value.uses() if user in moved and user not in group}
        group.update(users)
        waiting.extend(users)
    return group


def _made_of(group: Iterable[ir.Node], place: dict[ir.Node, int], after: int) -> set[ir.Node]:
    """Return the nodes placed behind ``after`` that ``group`` is made from."""
    found: set[ir.Node] = set()
    waiting = list(group)
    while waiting:
        makers = {value.producer() for value in waiting.pop().inputs if value is not None}
        new = {maker for maker in makers if maker is not None and place.get(maker, -1) > after and maker not in found}
        found |= new
        waiting.extend(new)
    return found
