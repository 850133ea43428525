"""Packs: similar nodes, one for each step, and their operands in all steps.

    r0 = Gather(x, 0); a0 = Mul(r0, w); b0 = Add(a0, s);  r1 = Gather(x, 1); a1 = Mul(r1, w); b1 = Add(a1, b0)
    ->    [Mul, Mul], then [Add, Add]

The search starts at the rows of a tensor and follows users and producers, like the vectorisation of straight-line code
(Larsen and Amarasinghe, "Exploiting superword level parallelism", 2000).
"""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic
from rewrites.analysis.value_numbering import attribute_key
from rewrites.graph.values import const_array, shape_dims
from rewrites.graph.walk import node_graphs
from rewrites.loop_form.written_out.rows import Rows, WrittenRow, rows_of

__all__ = ["Column", "Constants", "Operand", "Pack", "Packs", "PriorStep", "SameStep", "Shared", "grow", "operand_of", "same_sizes"]

_CONSTANT_BYTES = 1 << 20


@dataclass(frozen=True)
class Shared:
    """An operand that is the same in every step: a value from outside the steps, or None if it is absent."""

    value: ir.Value | None


@dataclass(frozen=True)
class Constants:
    """An operand that is a different constant in each step: ``values``, one per step."""

    values: tuple[ir.Value, ...]


@dataclass(eq=False)
class Column:
    """One value per step: results of ``pack`` or, if it is None, rows of a tensor from ``first_row`` on."""

    values: tuple[ir.Value, ...]
    pack: "Pack | None" = None
    first_row: WrittenRow | None = None


@dataclass(frozen=True)
class SameStep:
    """An operand that is the value of ``column`` in the same step."""

    column: Column


@dataclass(frozen=True)
class PriorStep:
    """An operand that is the value of ``column`` in the previous step, or ``initial`` in the first step."""

    column: Column
    initial: ir.Value
    backwards: bool


Operand = Shared | Rows | Constants | SameStep | PriorStep


@dataclass(eq=False)
class Pack:
    """Similar nodes, one per step. ``results`` has a column for each output."""

    nodes: tuple[ir.Node, ...]
    results: list[Column] = field(default_factory=list)

    def operands(self) -> Iterable[tuple[ir.Value | None, ...]]:
        """Yield, for each input index, the values that the nodes read there, one per step."""
        return zip(*(node.inputs for node in self.nodes), strict=True)


@dataclass
class Packs:
    """Lists with the same node of all ``steps``. ``positions`` maps a value to its column and step."""

    steps: int
    packs: list[Pack] = field(default_factory=list)
    pack_of: dict[ir.Node, Pack] = field(default_factory=dict)
    positions: dict[ir.Value, tuple[Column, int]] = field(default_factory=dict)

    def add_column(self, column: Column) -> None:
        """Record ``column`` and the step of each of its values, unless a value is already in another column."""
        for step, value in enumerate(column.values):
            self.positions.setdefault(value, (column, step))

    def add(self, nodes: tuple[ir.Node, ...]) -> Pack:
        """Add a pack of ``nodes`` and return it."""
        pack = Pack(nodes)
        pack.results = [Column(values, pack) for values in zip(*(node.outputs for node in nodes), strict=True)]
        for column in pack.results:
            self.add_column(column)
        self.pack_of.update(dict.fromkeys(nodes, pack))
        self.packs.append(pack)
        return pack


class Keys:
    """Computes keys of nodes. Nodes with equal keys can form a pack, unless the key is None."""

    def __init__(self, order: Mapping[ir.Node, int]) -> None:
        self._known: dict[ir.Node, Hashable] = {}
        self._order = order

    def key_of(self, node: ir.Node) -> Hashable:
        """Return the key of ``node``, or None."""
        if node not in self._known:
            self._known[node] = self._compute_key(node)
        return self._known[node]

    def _compute_key(self, node: ir.Node) -> Hashable:
        if node not in self._order or node_graphs(node) or not is_deterministic(node):
            return None
        attributes = frozenset((name, attribute_key(attribute)) for name, attribute in node.attributes.items())
        present = tuple(value is not None for value in node.inputs)
        return (node.domain, node.op_type, node.overload, attributes, present, len(node.outputs))


def grow(seeds: Sequence[Column], rows: Mapping[ir.Value, WrittenRow], order: Mapping[ir.Node, int], keys: "Keys") -> Packs:
    """Return the packs that the search reaches from the columns ``seeds``. ``order``: positions of nodes."""
    packs = Packs(len(seeds[0].values))
    columns = deque(seeds)
    for column in seeds:
        packs.add_column(column)
    operands = deque[tuple[ir.Value | None, ...]]()
    while columns or operands:
        if columns:
            new = _users(columns.popleft(), packs, order, keys)
        else:
            new = _producers(operands.popleft(), packs, rows, keys)
        for pack in new:
            columns.extend(pack.results)
            operands.extend(pack.operands())
    return packs


def _users(column: Column, packs: Packs, order: Mapping[ir.Node, int], keys: Keys) -> list[Pack]:
    """Add packs of the nodes that read ``column`` at the same input index. Return the new packs."""
    by_key = dict[Hashable, dict[int, list[ir.Node]]]()
    for step, value in enumerate(column.values):
        for node, index in value.uses():
            key = keys.key_of(node)
            if key is not None and node not in packs.pack_of:
                by_key.setdefault((key, index), {}).setdefault(step, []).append(node)
    new = []
    for users in by_key.values():
        for nodes in _match_users(users, packs.steps, order):
            if len(set(nodes)) == len(nodes) and not any(node in packs.pack_of for node in nodes):
                new.append(packs.add(nodes))
    return new


def _match_users(users: Mapping[int, list[ir.Node]], steps: int, order: Mapping[ir.Node, int]) -> Sequence[tuple[ir.Node, ...]]:
    """Return users that can form packs, matched by order or, if a loop could not read them, by weights."""
    rows = _match_by_order(users, steps, order)
    if rows and all(map(_has_loop_weights, rows)):
        return rows
    by_weights = dict[Hashable, dict[int, list[ir.Node]]]()
    for step, nodes_of_step in users.items():
        for node in nodes_of_step:
            by_weights.setdefault(_weights(node), {}).setdefault(step, []).append(node)
    return [nodes for same_weights in by_weights.values() for nodes in _match_by_order(same_weights, steps, order)]


def _match_by_order(users: Mapping[int, list[ir.Node]], steps: int, order: Mapping[ir.Node, int]) -> Sequence[tuple[ir.Node, ...]]:
    if len(users) < steps or len(set(map(len, users.values()))) > 1:
        return []
    return list(zip(*(sorted(users[step], key=order.__getitem__) for step in range(steps)), strict=True))


def _has_loop_weights(nodes: tuple[ir.Node, ...]) -> bool:
    """Return True if each input's weight is equal or different in all steps, or present in one end step."""
    for values in zip(*map(_weights, nodes), strict=True):
        different = set(values)
        only_first = different - {None} <= {values[0]} and values.count(values[0]) == 1
        only_last = different - {None} <= {values[-1]} and values.count(values[-1]) == 1
        all_different = None not in different and len(different) == len(values)
        if len(different) > 1 and not (only_first or only_last or all_different):
            return False
    return True


def _weights(node: ir.Node) -> tuple[ir.Value | None, ...]:
    return tuple(value if value is not None and value.is_initializer() else None for value in node.inputs)


def _producers(values: tuple[ir.Value | None, ...], packs: Packs, rows: Mapping[ir.Value, WrittenRow], keys: Keys) -> list[Pack]:
    """Add a pack of the nodes that compute ``values`` and return [pack]; return [] if the nodes differ."""
    present = [value for value in values if value is not None]
    if len(present) < len(values) or rows_of(present, rows) is not None:
        return []
    nodes = [node for value in present if value not in packs.positions and (node := value.producer()) is not None]
    if len(set(nodes)) < len(values) or any(node in packs.pack_of for node in nodes):
        return []
    first = keys.key_of(nodes[0])
    have_equal_keys = first is not None and all(keys.key_of(node) == first for node in nodes[1:])
    outputs = {list(node.outputs).index(value) for node, value in zip(nodes, present, strict=True)}
    return [packs.add(tuple(nodes))] if have_equal_keys and len(outputs) == 1 else []


def operand_of(values: Sequence[ir.Value | None], packs: Packs, rows: Mapping[ir.Value, WrittenRow]) -> Operand | None:
    """Return the operand that has ``values``, one per step; None if the body of a loop cannot read them."""
    present = [value for value in values if value is not None]
    if not present:
        return Shared(None)
    if len(present) < len(values):
        return None
    if len(set(present)) == 1:
        return Shared(present[0]) if _is_from_outside(present[0], packs) else None
    return _step_operand(present, packs) or rows_of(present, rows) or _constant_operand(present)


def _is_from_outside(value: ir.Value, packs: Packs) -> bool:
    return value not in packs.positions or packs.positions[value][0].pack is None


def _step_operand(values: Sequence[ir.Value], packs: Packs) -> Operand | None:
    for column in {packs.positions[value][0] for value in values[:2] if value in packs.positions}:
        if tuple(values) == column.values and column.pack is not None:
            return SameStep(column)
        if tuple(values[1:]) == column.values[:-1] and _is_from_outside(values[0], packs):
            return PriorStep(column, values[0], backwards=False)
        if tuple(values[:-1]) == column.values[1:] and _is_from_outside(values[-1], packs):
            return PriorStep(column, values[-1], backwards=True)
    return None


def _constant_operand(values: Sequence[ir.Value]) -> Shared | Constants | None:
    arrays = [const_array(value, limit=_CONSTANT_BYTES) for value in values]
    known = [array for array in arrays if array is not None]
    if len(known) < len(values) or len({(array.dtype, array.shape) for array in known}) > 1 or known[0].dtype.kind not in "biuf":
        return None
    return Shared(values[0]) if len({array.tobytes() for array in known}) == 1 else Constants(tuple(values))


def same_sizes(values: Sequence[ir.Value]) -> bool:
    """Return True if ``values`` are tensors of one type and one shape without unknown sizes."""
    first = values[0]
    dims = [None] if first.shape is None else shape_dims(first.shape)
    if not isinstance(first.type, ir.TensorType) or None in dims:
        return False
    return all(value.dtype == first.dtype and value.shape == first.shape for value in values[1:])
