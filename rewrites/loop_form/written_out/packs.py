"""Packs: nodes that do the same, one for each step, found by what they read and by what reads them.

    r0 = Gather(x, 0); a0 = Mul(r0, w); b0 = Add(a0, s);  r1 = Gather(x, 1); a1 = Mul(r1, w); b1 = Add(a1, b0)
    ->    [Mul, Mul], then [Add, Add]

As in the vectorisation of straight-line code (Larsen and Amarasinghe, "Exploiting superword level parallelism", 2000): it begins
with the rows of a tensor and grows along users and producers. Whether what a pack reads fits is for ``operands.py`` to say.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic
from rewrites.analysis.value_numbering import attribute_key
from rewrites.graph.walk import node_graphs
from rewrites.loop_form.written_out.rows import Row, rows_of

__all__ = ["Column", "Pack", "Packs", "grow"]


@dataclass(eq=False)
class Column:
    """The values that one name has in all steps; ``pack`` makes them (None: they are rows of a tensor, from ``first`` on)."""

    values: tuple[ir.Value, ...]
    pack: "Pack | None" = None
    first: Row | None = None


@dataclass(eq=False)
class Pack:
    """One node of each step; ``results``: a column for each of their outputs."""

    nodes: tuple[ir.Node, ...]
    results: list[Column] = field(default_factory=list)

    def operands(self) -> Iterable[tuple[ir.Value | None, ...]]:
        """Yield what the nodes read at each of their inputs."""
        return zip(*(node.inputs for node in self.nodes), strict=True)


@dataclass
class Packs:
    """What was found. ``places``: the column, and the step in it, of each value that is in one."""

    steps: int
    packs: list[Pack] = field(default_factory=list)
    member: dict[ir.Node, Pack] = field(default_factory=dict)
    places: dict[ir.Value, tuple[Column, int]] = field(default_factory=dict)

    def add_column(self, column: Column) -> None:
        """Note where its values are; one that is in a column already keeps that place."""
        for step, value in enumerate(column.values):
            self.places.setdefault(value, (column, step))

    def add(self, nodes: tuple[ir.Node, ...]) -> Pack:
        """Make a pack of ``nodes``."""
        pack = Pack(nodes)
        pack.results = [Column(values, pack) for values in zip(*(node.outputs for node in nodes), strict=True)]
        for column in pack.results:
            self.add_column(column)
        self.member.update(dict.fromkeys(nodes, pack))
        self.packs.append(pack)
        return pack


def grow(seeds: Sequence[Column], rows: Mapping[ir.Value, Row], order: Mapping[ir.Node, int], keys: "Keys") -> Packs:
    """Return the packs that ``seeds`` lead to. ``order``: the place of each node; ``rows``: values that need no pack."""
    found = Packs(len(seeds[0].values))
    waiting = deque(seeds)
    for column in seeds:
        found.add_column(column)
    behind = deque[tuple[ir.Value | None, ...]]()
    while waiting or behind:
        if waiting:
            made = _users(waiting.popleft(), found, order, keys)
        else:
            made = _producers(behind.popleft(), found, rows, keys)
        for pack in made:
            waiting.extend(pack.results)
            behind.extend(pack.operands())
    return found


class Keys:
    """What only nodes that do the same share; None for a node that is in no pack."""

    def __init__(self, order: Mapping[ir.Node, int]) -> None:
        self._known: dict[ir.Node, Hashable] = {}
        self._order = order

    def of(self, node: ir.Node) -> Hashable:
        """Return it."""
        if node not in self._known:
            self._known[node] = self._key(node)
        return self._known[node]

    def _key(self, node: ir.Node) -> Hashable:
        if node not in self._order or node_graphs(node) or not is_deterministic(node):
            return None
        attributes = frozenset((name, attribute_key(attribute)) for name, attribute in node.attributes.items())
        given = tuple(value is not None for value in node.inputs)
        return (node.domain, node.op_type, node.overload, attributes, given, len(node.outputs))


def _users(column: Column, found: Packs, order: Mapping[ir.Node, int], keys: Keys) -> list[Pack]:
    """Make packs of nodes that read the column's values at the same input, as many of them in each step, in their order."""
    by_key = dict[Hashable, dict[int, list[ir.Node]]]()
    for step, value in enumerate(column.values):
        for node, index in value.uses():
            key = keys.of(node)
            if key is not None and node not in found.member:
                by_key.setdefault((key, index), {}).setdefault(step, []).append(node)
    made = []
    for users in by_key.values():
        for nodes in _one_of_each(users, found.steps, order):
            if len(set(nodes)) == len(nodes) and not any(node in found.member for node in nodes):
                made.append(found.add(nodes))
    return made


def _one_of_each(users: Mapping[int, list[ir.Node]], steps: int, order: Mapping[ir.Node, int]) -> Sequence[tuple[ir.Node, ...]]:
    """Return the users of each step in their order, side by side; where those do not fit only such as read the same weights."""
    found = _side_by_side(users, steps, order)
    if found and all(map(_has_weights_of_a_loop, found)):
        return found
    by_weights = dict[Hashable, dict[int, list[ir.Node]]]()
    for step, of_step in users.items():
        for node in of_step:
            by_weights.setdefault(_weights(node), {}).setdefault(step, []).append(node)
    return [nodes for part in by_weights.values() for nodes in _side_by_side(part, steps, order)]


def _side_by_side(users: Mapping[int, list[ir.Node]], steps: int, order: Mapping[ir.Node, int]) -> Sequence[tuple[ir.Node, ...]]:
    if len(users) < steps or len(set(map(len, users.values()))) > 1:
        return []
    return list(zip(*(sorted(users[step], key=order.__getitem__) for step in range(steps)), strict=True))


def _weights(node: ir.Node) -> tuple[ir.Value | None, ...]:
    return tuple(value if value is not None and value.is_initializer() else None for value in node.inputs)


def _has_weights_of_a_loop(nodes: tuple[ir.Node, ...]) -> bool:
    """Whether the nodes read the same weights, each its own, or only the first or the last any: one begins with a constant."""
    for values in zip(*map(_weights, nodes), strict=True):
        different = set(values)
        begins = different - {None} <= {values[0]} and values.count(values[0]) == 1
        ends = different - {None} <= {values[-1]} and values.count(values[-1]) == 1
        own = None not in different and len(different) == len(values)
        if len(different) > 1 and not (begins or ends or own):
            return False
    return True


def _producers(values: tuple[ir.Value | None, ...], found: Packs, rows: Mapping[ir.Value, Row], keys: Keys) -> list[Pack]:
    """Make a pack of the nodes that give ``values``, unless they are known, or one of the step before or after."""
    given = [value for value in values if value is not None]
    if len(given) < len(values) or rows_of(given, rows) is not None:
        return []
    nodes = [None if value in found.places else value.producer() for value in given]
    made = [node for node in nodes if node is not None]
    if len(set(made)) < len(values) or any(node in found.member for node in made):
        return []
    first = keys.of(made[0])
    alike = first is not None and all(keys.of(node) == first for node in made[1:])
    same = {list(node.outputs).index(value) for node, value in zip(made, given, strict=True)}
    return [found.add(tuple(made))] if alike and len(same) == 1 else []
