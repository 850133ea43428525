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
from rewrites.loop_form.written_out.packs import Column, Earlier, Keys, Operand, Pack, Packs, Same, grow, operand_of, same_sizes
from rewrites.loop_form.written_out.rows import Family, WrittenRow, rows_in

__all__ = ["LEAST_STEPS", "Chain", "chains_in", "may_be_written_out", "without_rank"]

LEAST_STEPS = 4
_FORTH, _BACK, _BOTH = (False,), (True,), (False, True)
"""Directions in which states are passed: False from the first written step to the last, True in the opposite order.

The step that runs first may differ from the others. The step that runs last may not, because it shows where a step ends.
"""


@dataclass(frozen=True)
class Chain:
    """The unrolled steps of a loop.

    ``steps``: their number. ``packs``: the packs with their operands, in the order in which one step runs them. ``falling``: True
    if the last of the written steps runs first.
    """

    steps: int
    packs: Sequence[tuple[Pack, Sequence[Operand]]]
    falling: bool

    @property
    def where(self) -> str:
        """Return the name of the chain in reports."""
        first = self.packs[0][0].nodes[0]
        return f"main/{self.steps} steps from {first.op_type} '{first.outputs[0].name}' on"

    @property
    def nodes(self) -> list[ir.Node]:
        """Return all nodes of all steps."""
        return [node for pack, _ in self.packs for node in pack.nodes]

    def last(self, column: Column) -> ir.Value:
        """Return the value of ``column`` in the step that runs last."""
        return column.values[0 if self.falling else -1]

    def has_states(self) -> bool:
        """Return True if a step reads a value of the previous step."""
        return any(isinstance(operand, Earlier) for _, operands in self.packs for operand in operands)


def chains_in(graph: ir.Graph, opset: int) -> Iterator[Chain]:
    """Yield the chains of at least four steps.

    If the caller changes the model, it must not continue this iteration.
    """
    order = {node: position for position, node in enumerate(graph)}
    rows = rows_in(graph, opset)
    families: dict[Family, dict[int, list[ir.Value]]] = {}
    for value, row in rows.items():
        if value.uses():
            families.setdefault(row.family, {}).setdefault(row.index, []).append(value)
    keys = Keys(order)
    for by_index in families.values():
        for run in _runs(sorted(by_index)):
            values = [by_index[index] for index in run]
            best: Chain | None = None
            for part, ways in ((values, _BOTH), (values[1:], _FORTH), (values[:-1], _BACK)):
                chain = _chain(part, ways, rows, order, keys)
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


def _chain(
    values: Sequence[Sequence[ir.Value]],
    ways: Sequence[bool],
    rows: Mapping[ir.Value, WrittenRow],
    order: Mapping[ir.Node, int],
    keys: Keys,
) -> Chain | None:
    if len(values) < LEAST_STEPS:
        return None
    seeds = [Column(column, None, rows[column[0]]) for column in zip(*values, strict=False)]
    found = grow(seeds, rows, order, keys)
    read = _readable(found, rows, order)
    for falling in ways:
        packs = _one_way(read, falling)
        if packs is not None and not _is_around(packs, order):
            return Chain(len(values), [(pack, read[pack]) for pack in packs], falling)
    return None


def _readable(found: Packs, rows: Mapping[ir.Value, WrittenRow], order: Mapping[ir.Node, int]) -> dict[Pack, list[Operand]]:
    """Map packs to their operands, in the order in which one step runs the packs.

    Leave out a pack if a loop cannot read one of its operands, if its results have different or unknown sizes, if an initial value
    differs in type or shape from later values, or if the pack depends on a pack that is left out.
    """
    packs = sorted(found.packs, key=lambda pack: order[pack.nodes[0]])
    read: dict[Pack, list[Operand]] = {}
    for pack in packs:
        operands = [operand_of(values, found, rows) for values in pack.operands()]
        known = [operand for operand in operands if operand is not None]
        if len(known) == len(operands) and all(same_sizes(column.values) for column in pack.results) and _fits(known):
            read[pack] = known
    while True:
        lost = [pack for pack, operands in read.items() if any(_is_lost(operand, read) for operand in operands)]
        if not lost:
            return read
        for pack in lost:
            del read[pack]


def _fits(operands: Iterable[Operand]) -> bool:
    """Return True if the initial value of each state has the type and shape of its later values."""
    return all(same_sizes([operand.initial, operand.column.values[0]]) for operand in operands if isinstance(operand, Earlier))


def _is_lost(operand: Operand, read: Collection[Pack]) -> bool:
    pack = operand.column.pack if isinstance(operand, Same | Earlier) else None
    return pack is not None and pack not in read


def _one_way(read: Mapping[Pack, Sequence[Operand]], falling: bool) -> list[Pack] | None:
    """Return the packs of the recurrences that run in one direction, and all packs related to them.

    ``falling``: True if the recurrences run from the last written step to the first. Related are the packs on which a recurrence
    depends, the packs that depend on a recurrence, and all packs that these need. If no pack reads a value of the previous step,
    return all packs. If packs read such values but there is no recurrence in this direction, return None.
    """
    kept: dict[Pack, Sequence[Operand]] = {}
    for pack, operands in read.items():
        wrong = any(isinstance(operand, Earlier) and operand.falling != falling for operand in operands)
        if not wrong and all(other in kept or other is pack for other in _needs(operands, Same)):
            kept[pack] = operands
    while lost := [pack for pack, operands in kept.items() if any(_is_lost(operand, kept) for operand in operands)]:
        for pack in lost:
            del kept[pack]
    forth = {pack: set(_needs(operands, Same, Earlier)) for pack, operands in kept.items()}
    recurrent = {pack for pack, operands in kept.items() if pack in _reached(_needs(operands, Earlier), forth)}
    if not recurrent:
        has_states = any(isinstance(operand, Earlier) for operands in read.values() for operand in operands)
        return None if falling or not kept or has_states else list(kept)
    back: dict[Pack, set[Pack]] = {pack: set() for pack in kept}
    for pack, needed in forth.items():
        for other in needed:
            back[other].add(pack)
    wanted = _reached(recurrent, forth) | _reached(recurrent, back)
    wanted = _reached(wanted, forth)
    return [pack for pack in read if pack in wanted]


def _needs(operands: Iterable[Operand], *kinds: type[Same | Earlier]) -> list[Pack]:
    """Return the packs that compute ``operands``. Skip operands whose class is not in ``kinds``."""
    columns = [operand.column for operand in operands if isinstance(operand, kinds) and isinstance(operand, Same | Earlier)]
    return [column.pack for column in columns if column.pack is not None]


def _reached(start: Collection[Pack], edges: Mapping[Pack, Iterable[Pack]]) -> set[Pack]:
    reached, waiting = set(start), list(start)
    while waiting:
        for other in edges[waiting.pop()]:
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return reached


def _is_around(packs: Iterable[Pack], order: Mapping[ir.Node, int]) -> bool:
    """Return True if a node outside ``packs`` depends on a pack, and a pack depends on this node."""
    inside = {node for pack in packs for node in pack.nodes}
    first, last = min(order[node] for node in inside), max(order[node] for node in inside)
    results = {value for node in inside for value in node.outputs}
    beyond = set[ir.Value]()
    for node in list(order)[first : last + 1]:
        if node in inside:
            if any(value in beyond for value in node.inputs):
                return True
        elif any(value in results or value in beyond for value in reads(node)):
            beyond.update(node.outputs)
    return False


def may_be_written_out(model: ir.Model) -> bool:
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


def without_rank(graph: ir.Graph) -> list[tuple[ir.Value, int]]:
    """Return the tensors of unknown rank from which at least four rows are read at constant indices.

    Return each as a pair with the number of these rows.
    """
    return [(value, count) for value, count in _row_counts(graph).items() if count >= LEAST_STEPS and rank_of(value) is None]
