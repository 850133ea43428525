"""Finds chains of unrolled steps: their nodes, and the order in which they run.

A chain consists of packs (similar nodes, one per step) that the search reaches from rows of a tensor. The body of a loop must be
able to read the operands of the packs. No path leads out of a chain and back into it. If steps read results of the previous step,
the chain has only packs on which a recurrence depends, or which depend on a recurrence. All states of the chain are then passed in
one direction: to the next written step, or to the previous one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.dependence import reads
from rewrites.graph.values import const_array, rank_of
from rewrites.loop_form.written_out.packs import (
    Column,
    Keys,
    Operand,
    Pack,
    Packs,
    PriorStep,
    SameStep,
    grow,
    operand_of,
    same_sizes,
)
from rewrites.loop_form.written_out.rows import RowFamily, WrittenRow, rows_in

__all__ = ["LEAST_STEPS", "Chain", "chains_in", "may_have_unrolled_steps", "tensors_without_rank"]

LEAST_STEPS = 4
_FORTH, _BACK, _BOTH = (False,), (True,), (False, True)
"""Directions in which states are passed: False from the first written step to the last, True in the opposite order.

The step that runs first may differ from the others. The step that runs last may not, because it shows where a step ends.
"""


@dataclass(frozen=True)
class Chain:
    """The unrolled steps of a loop.

    ``steps``: their number. ``packs``: the packs with their operands, in the order in which one step runs them. ``backwards``: True
    if the step that is written last runs first.
    """

    steps: int
    packs: Sequence[tuple[Pack, Sequence[Operand]]]
    backwards: bool

    @property
    def where(self) -> str:
        """Return the name of the chain in reports."""
        first = self.packs[0][0].nodes[0]
        return f"main/{self.steps} steps from {first.op_type} '{first.outputs[0].name}' on"

    @property
    def nodes(self) -> list[ir.Node]:
        """Return all nodes of all steps."""
        return [node for pack, _ in self.packs for node in pack.nodes]

    def last_value(self, column: Column) -> ir.Value:
        """Return the value of ``column`` in the step that runs last."""
        return column.values[0 if self.backwards else -1]

    def has_states(self) -> bool:
        """Return True if a step reads a value of the previous step."""
        return any(isinstance(operand, PriorStep) for _, operands in self.packs for operand in operands)


def chains_in(graph: ir.Graph, opset: int) -> Iterator[Chain]:
    """Yield the chains of at least four steps.

    If the caller changes the model, it must not continue this iteration.
    """
    order = {node: position for position, node in enumerate(graph)}
    rows = rows_in(graph, opset)
    families: dict[RowFamily, dict[int, list[ir.Value]]] = {}
    for value, row in rows.items():
        if value.uses():
            families.setdefault(row.family, {}).setdefault(row.index, []).append(value)
    keys = Keys(order)
    for by_index in families.values():
        for run in _runs(sorted(by_index)):
            values = [by_index[index] for index in run]
            best: Chain | None = None
            for part, directions in ((values, _BOTH), (values[1:], _FORTH), (values[:-1], _BACK)):
                chain = _find_chain(part, directions, rows, order, keys)
                best = chain if best is None or (chain is not None and chain.has_states()) else best
                if best is not None and best.has_states():
                    break
            if best is not None:
                yield best


def _runs(indices: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the maximal runs of consecutive numbers in the sorted ``indices``."""
    start = 0
    for end in range(1, len(indices) + 1):
        if end == len(indices) or indices[end] != indices[end - 1] + 1:
            yield indices[start:end]
            start = end


def _find_chain(
    values: Sequence[Sequence[ir.Value]],
    directions: Sequence[bool],
    rows: Mapping[ir.Value, WrittenRow],
    order: Mapping[ir.Node, int],
    keys: Keys,
) -> Chain | None:
    """Return a chain from ``values``, the rows of each step, that runs in one of ``directions``."""
    if len(values) < LEAST_STEPS:
        return None
    seeds = [Column(column, None, rows[column[0]]) for column in zip(*values, strict=False)]
    candidates = grow(seeds, rows, order, keys)
    readable = _readable_packs(candidates, rows, order)
    for falling in directions:
        packs = _packs_in_direction(readable, falling)
        if packs is not None and not _has_path_outside(packs, order):
            return Chain(len(values), [(pack, readable[pack]) for pack in packs], falling)
    return None


def _readable_packs(
    candidates: Packs, rows: Mapping[ir.Value, WrittenRow], order: Mapping[ir.Node, int]
) -> dict[Pack, list[Operand]]:
    """Map packs to their operands, in the order in which one step runs the packs.

    Leave out a pack if a loop cannot read one of its operands, if its results have different or unknown sizes, if an initial value
    differs in type or shape from later values, or if the pack depends on a pack that is left out.
    """
    packs = sorted(candidates.packs, key=lambda pack: order[pack.nodes[0]])
    readable: dict[Pack, list[Operand]] = {}
    for pack in packs:
        operands = [operand_of(values, candidates, rows) for values in pack.operands()]
        known = [operand for operand in operands if operand is not None]
        if len(known) == len(operands) and all(same_sizes(column.values) for column in pack.results) and _initial_values_fit(known):
            readable[pack] = known
    while True:
        removed = [pack for pack, operands in readable.items() if any(_needs_other_pack(operand, readable) for operand in operands)]
        if not removed:
            return readable
        for pack in removed:
            del readable[pack]


def _initial_values_fit(operands: Iterable[Operand]) -> bool:
    """Return True if the initial value of each state has the type and shape of its later values."""
    return all(same_sizes([operand.initial, operand.column.values[0]]) for operand in operands if isinstance(operand, PriorStep))


def _needs_other_pack(operand: Operand, packs: Collection[Pack]) -> bool:
    """Return True if ``operand`` is computed by a pack that is not in ``packs``."""
    pack = operand.column.pack if isinstance(operand, SameStep | PriorStep) else None
    return pack is not None and pack not in packs


def _packs_in_direction(readable: Mapping[Pack, Sequence[Operand]], backwards: bool) -> list[Pack] | None:
    """Return the packs of the recurrences that run in one direction, and all packs related to them.

    ``backwards``: True if the recurrences run from the step that is written last to the first. Related are the packs on which a
    recurrence depends, the packs that depend on a recurrence, and all packs that these need. If no pack reads a value of the
    previous step, return all packs. If packs read such values but there is no recurrence in this direction, return None.
    """
    kept: dict[Pack, Sequence[Operand]] = {}
    for pack, operands in readable.items():
        has_other_direction = any(isinstance(operand, PriorStep) and operand.backwards != backwards for operand in operands)
        if not has_other_direction and all(other in kept or other is pack for other in _needed_packs(operands, SameStep)):
            kept[pack] = operands
    while removed := [pack for pack, operands in kept.items() if any(_needs_other_pack(operand, kept) for operand in operands)]:
        for pack in removed:
            del kept[pack]
    needed_of = {pack: set(_needed_packs(operands, SameStep, PriorStep)) for pack, operands in kept.items()}
    recurrent = {pack for pack, operands in kept.items() if pack in _reachable(_needed_packs(operands, PriorStep), needed_of)}
    if not recurrent:
        has_states = any(isinstance(operand, PriorStep) for operands in readable.values() for operand in operands)
        return None if backwards or not kept or has_states else list(kept)
    users_of: dict[Pack, set[Pack]] = {pack: set() for pack in kept}
    for pack, needed in needed_of.items():
        for other in needed:
            users_of[other].add(pack)
    related = _reachable(recurrent, needed_of) | _reachable(recurrent, users_of)
    related = _reachable(related, needed_of)
    return [pack for pack in readable if pack in related]


def _needed_packs(operands: Iterable[Operand], *kinds: type[SameStep | PriorStep]) -> list[Pack]:
    """Return the packs that compute ``operands``. Skip operands whose class is not in ``kinds``."""
    columns = [operand.column for operand in operands if isinstance(operand, kinds) and isinstance(operand, SameStep | PriorStep)]
    return [column.pack for column in columns if column.pack is not None]


def _reachable(start: Collection[Pack], edges: Mapping[Pack, Iterable[Pack]]) -> set[Pack]:
    """Return the packs that ``edges`` reach from ``start``, including ``start``."""
    reached, pending = set(start), list(start)
    while pending:
        for neighbour in edges[pending.pop()]:
            if neighbour not in reached:
                reached.add(neighbour)
                pending.append(neighbour)
    return reached


def _has_path_outside(packs: Iterable[Pack], order: Mapping[ir.Node, int]) -> bool:
    """Return True if a node outside ``packs`` depends on a pack, and a pack depends on this node."""
    nodes = {node for pack in packs for node in pack.nodes}
    first, last = min(order[node] for node in nodes), max(order[node] for node in nodes)
    results = {value for node in nodes for value in node.outputs}
    values_between = set[ir.Value]()
    for node in list(order)[first : last + 1]:
        if node in nodes:
            if any(value in values_between for value in node.inputs):
                return True
        elif any(value in results or value in values_between for value in reads(node)):
            values_between.update(node.outputs)
    return False


def may_have_unrolled_steps(model: ir.Model) -> bool:
    """Return True if the main graph reads at least four rows of a tensor at constant indices.

    Shapes need not be inferred yet.
    """
    return any(count >= LEAST_STEPS for count in _row_counts(model.graph).values())


def _row_counts(graph: ir.Graph) -> Counter[ir.Value]:
    counts = Counter[ir.Value]()
    for node in graph:
        source = node.inputs[0] if node.domain == "" and node.inputs else None
        producer = None if source is None else source.producer()
        if source is None or source.is_initializer() or (producer is not None and producer.op_type in ("Shape", "Constant")):
            continue
        indices = [value for value in node.inputs[1:] if value is not None]
        if node.op_type in ("Gather", "Slice") and all(const_array(value) is not None for value in indices):
            counts[source] += 1
        elif node.op_type == "Split":
            counts[source] += len(node.outputs)
    return counts


def tensors_without_rank(graph: ir.Graph) -> list[tuple[ir.Value, int]]:
    """Return the tensors of unknown rank from which at least four rows are read at constant indices.

    Each is paired with the number of these rows.
    """
    return [(value, count) for value, count in _row_counts(graph).items() if count >= LEAST_STEPS and rank_of(value) is None]
