"""Steps that a model has written out: which nodes they are, and which way they hand their states on.

Of the packs that rows lead to those stay whose every operand a loop could read; of these, where there are states, what one
recurrence needs and what it feeds, all in one direction. A chain can be cut out: no way leads out of it and back.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.dependence import reads
from rewrites.graph.values import const_array, rank_of
from rewrites.loop_form.written_out.operands import Before, Operand, Same, operand_of, same_sizes
from rewrites.loop_form.written_out.packs import Column, Keys, Pack, Packs, grow
from rewrites.loop_form.written_out.rows import Family, Row, rows_in

__all__ = ["LEAST_STEPS", "Chain", "chains_in", "may_be_written_out", "without_rank"]

LEAST_STEPS = 4
_FORTH, _BACK, _BOTH = (False,), (True,), (False, True)
"""Which ways states are handed on. The step that runs first may be another; without the one that runs last nothing would tell
whether what a node makes of a state is the end of a step or the beginning of the next."""


@dataclass(frozen=True)
class Chain:
    """``packs``, in an order in which one step runs them, each with its operands; ``falling``: the step written last runs first."""

    steps: int
    packs: Sequence[tuple[Pack, Sequence[Operand]]]
    falling: bool

    @property
    def where(self) -> str:
        """What reports call it."""
        first = self.packs[0][0].nodes[0]
        return f"main/{self.steps} steps from {first.op_type} '{first.outputs[0].name}' on"

    @property
    def nodes(self) -> list[ir.Node]:
        """All nodes of all steps."""
        return [node for pack, _ in self.packs for node in pack.nodes]

    def last(self, column: Column) -> ir.Value:
        """Return what ``column`` has in the step that runs last."""
        return column.values[0 if self.falling else -1]

    def has_states(self) -> bool:
        """Whether a step needs anything of the one before."""
        return any(isinstance(operand, Before) for _, operands in self.packs for operand in operands)


def chains_in(graph: ir.Graph, opset: int) -> Iterator[Chain]:
    """Yield chains of four steps or more; the model must not change in between."""
    order = {node: place for place, node in enumerate(graph)}
    rows = rows_in(graph, opset)
    families: dict[Family, dict[int, list[ir.Value]]] = {}
    for value, row in rows.items():
        if value.uses():
            families.setdefault(row.family, {}).setdefault(row.index, []).append(value)
    keys = Keys(order)
    for by_index in families.values():
        for run in _runs(sorted(by_index)):
            at = [by_index[index] for index in run]
            best: Chain | None = None
            for part, ways in ((at, _BOTH), (at[1:], _FORTH), (at[:-1], _BACK)):
                chain = _chain(part, ways, rows, order, keys)
                best = chain if best is None or (chain is not None and chain.has_states()) else best
                if best is not None and best.has_states():
                    break
            if best is not None:
                yield best


def may_be_written_out(model: ir.Model) -> bool:
    """Whether the main graph reads four rows of a tensor by numbers, before any shape is known."""
    return any(count >= LEAST_STEPS for count in _rows_taken(model.graph).values())


def without_rank(graph: ir.Graph) -> list[tuple[ir.Value, int]]:
    """Return the tensors of which four rows or more are read by numbers, and how many; no rank is known, so no chain is found."""
    return [(value, count) for value, count in _rows_taken(graph).items() if count >= LEAST_STEPS and rank_of(value) is None]


def _rows_taken(graph: ir.Graph) -> Counter[ir.Value]:
    taken = Counter[ir.Value]()
    for node in graph:
        source = node.inputs[0] if node.domain == "" and node.inputs else None
        maker = None if source is None else source.producer()
        if source is None or source.is_initializer() or (maker is not None and maker.op_type in ("Shape", "Constant")):
            continue
        if node.op_type in ("Gather", "Slice") and all(
            const_array(value) is not None for value in node.inputs[1:] if value is not None
        ):
            taken[source] += 1
        elif node.op_type == "Split":
            taken[source] += len(node.outputs)
    return taken


def _runs(indices: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the longest runs of numbers that follow each other."""
    start = 0
    for place in range(1, len(indices) + 1):
        if place == len(indices) or indices[place] != indices[place - 1] + 1:
            yield indices[start:place]
            start = place


def _chain(
    values: Sequence[Sequence[ir.Value]],
    ways: Sequence[bool],
    rows: Mapping[ir.Value, Row],
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


def _readable(found: Packs, rows: Mapping[ir.Value, Row], order: Mapping[ir.Node, int]) -> dict[Pack, list[Operand]]:
    """Return the packs whose operands a loop could read, with those, in an order in which one step runs them."""
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


def _is_lost(operand: Operand, read: Collection[Pack]) -> bool:
    pack = operand.column.pack if isinstance(operand, Same | Before) else None
    return pack is not None and pack not in read


def _fits(operands: Iterable[Operand]) -> bool:
    """Whether states have one type and shape from the first step on."""
    return all(same_sizes([one.initial, one.column.values[0]]) for one in operands if isinstance(one, Before))


def _one_way(read: Mapping[Pack, Sequence[Operand]], falling: bool) -> list[Pack] | None:
    """Return the packs that run in that direction or in any: those of recurrences, with what they need and feed.

    Where no recurrence is found there are none, but where no direction is asked of any pack all of them.
    """
    kept: dict[Pack, Sequence[Operand]] = {}
    for pack in read:
        wrong = any(isinstance(one, Before) and one.falling != falling for one in read[pack])
        if not wrong and all(other in kept or other is pack for other in _same(read[pack])):
            kept[pack] = read[pack]
    while lost := [pack for pack, operands in kept.items() if any(_is_lost(one, kept) for one in operands)]:
        for pack in lost:
            del kept[pack]
    recurrent = _recurrent(kept)
    if not recurrent:
        stateless = not falling and kept and not any(isinstance(one, Before) for operands in read.values() for one in operands)
        return list(kept) if stateless else None
    forth = {pack: set(_needs(operands)) for pack, operands in kept.items()}
    back: dict[Pack, set[Pack]] = {pack: set() for pack in kept}
    for pack, needed in forth.items():
        for other in needed:
            back[other].add(pack)
    wanted = _reached(recurrent, forth) | _reached(recurrent, back)
    wanted = _reached(wanted, forth)
    return [pack for pack in read if pack in wanted]


def _same(operands: Iterable[Operand]) -> Iterator[Pack]:
    for one in operands:
        if isinstance(one, Same) and one.column.pack is not None:
            yield one.column.pack


def _needs(operands: Iterable[Operand]) -> Iterator[Pack]:
    for one in operands:
        if isinstance(one, Same | Before) and one.column.pack is not None:
            yield one.column.pack


def _reached(start: Iterable[Pack], edges: Mapping[Pack, Iterable[Pack]]) -> set[Pack]:
    reached, waiting = set(start), list(start)
    while waiting:
        for other in edges[waiting.pop()]:
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return reached


def _recurrent(kept: Mapping[Pack, Sequence[Operand]]) -> set[Pack]:
    """Return the packs that need themselves, of the step before."""
    needs = {pack: set(_needs(operands)) for pack, operands in kept.items()}
    found = set[Pack]()
    for pack, operands in kept.items():
        before = {one.column.pack for one in operands if isinstance(one, Before) and one.column.pack is not None}
        if pack not in found and before and pack in _reached(before, needs):
            found.add(pack)
    return found


def _is_around(packs: Iterable[Pack], order: Mapping[ir.Node, int]) -> bool:
    """Whether a node outside reads what the packs make, and the packs read what comes of that."""
    inside = {node for pack in packs for node in pack.nodes}
    first, last = min(order[node] for node in inside), max(order[node] for node in inside)
    made = {value for node in inside for value in node.outputs}
    beyond = set[ir.Value]()
    for node in list(order)[first : last + 1]:
        if node in inside:
            if any(value in beyond for value in node.inputs):
                return True
        elif any(value in made or value in beyond for value in reads(node)):
            beyond.update(node.outputs)
    return False
