"""Compute a layered layout of a directed graph.

The longest path to a node decides its layer. The order of the nodes in a layer follows the mean positions of their neighbours. Then
each node moves as close to its neighbours as possible.
"""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Layout", "lay_out"]

_GAP, _SWEEPS, _ROUNDS = 16.0, 8, 10
_MOST_DUMMIES = 6000


@dataclass(frozen=True)
class Layout:
    """The layer and centre of each node. For each edge, ``bends`` has the (layer, centre) of its bends."""

    layer: Sequence[int]
    centre: Sequence[float]
    bends: Sequence[Sequence[tuple[int, float]]]


def lay_out(widths: Sequence[float], edges: Sequence[tuple[int, int]], first: Sequence[int], last: Sequence[int]) -> Layout:
    """Lay out an acyclic graph.

    Args:
        widths: the width of each node.
        edges: pairs of node indices.
        first: the nodes that stay in the first layer.
        last: the nodes that stay in the last layer.
    """
    count = len(widths)
    layer = _layers(count, edges, first, last)
    sizes, chains = list(widths), list[list[int]]()
    levels, links = list(layer), list[tuple[int, int]]()
    for source, target in edges:
        between = range(layer[source] + 1, layer[target])
        if len(sizes) - count + len(between) > _MOST_DUMMIES:
            between = range(0)
        chain = list(range(len(sizes), len(sizes) + len(between)))
        sizes += [4.0] * len(between)
        levels += list(between)
        chains.append(chain)
        links += list(zip([source, *chain], [*chain, target], strict=True))
    above: list[list[int]] = [[] for _ in sizes]
    below: list[list[int]] = [[] for _ in sizes]
    for source, target in links:
        above[target].append(source)
        below[source].append(target)
    rows = _ordered(levels, above, below)
    centre = _centres(rows, sizes, above, below, count)
    bends = [[(levels[slot], centre[slot]) for slot in chain] for chain in chains]
    return Layout(layer, centre[:count], bends)


def _layers(count: int, edges: Sequence[tuple[int, int]], first: Sequence[int], last: Sequence[int]) -> list[int]:
    """Return the layer of each node, below the layers of its sources.

    A node without sources is just above its nearest target.
    """
    coming: list[list[int]] = [[] for _ in range(count)]
    going: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        coming[target].append(source)
        going[source].append(target)
    missing = [len(sources) for sources in coming]
    ready = [node for node in range(count) if not missing[node]]
    start, layer = 1 if first else 0, [0] * count
    for node in ready:
        layer[node] = 0 if node in first else max([start, *(layer[source] + 1 for source in coming[node])])
        for target in going[node]:
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    for node in reversed(ready):
        if not coming[node] and node not in first and going[node]:
            layer[node] = max(start, min(layer[target] for target in going[node]) - 1)
    if last:
        bottom = max([0, *(layer[node] + 1 for node in range(count) if node not in last)])
        for node in last:
            layer[node] = bottom
    return layer


def _ordered(levels: Sequence[int], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(max(levels, default=-1) + 1)]
    for slot, level in enumerate(levels):
        rows[level].append(slot)
    best, fewest = [list(row) for row in rows], _crossings(rows, below)
    for sweep in range(_SWEEPS):
        neighbours, order = (above, rows[1:]) if sweep % 2 == 0 else (below, rows[-2::-1])
        position = {slot: number for row in rows for number, slot in enumerate(row)}
        for row in order:
            weight = {
                slot: sum(position[other] for other in neighbours[slot]) / len(neighbours[slot])
                if neighbours[slot]
                else float(position[slot])
                for slot in row
            }
            row.sort(key=weight.__getitem__)
            position.update((slot, number) for number, slot in enumerate(row))
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _crossings(rows: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> int:
    """Count the crossing pairs of links between adjacent layers, by insertion into a sorted list."""
    total = 0
    for row, under in pairwise(rows):
        position = {slot: number for number, slot in enumerate(under)}
        ends_so_far: list[int] = []
        for slot in row:
            ends = sorted(position[other] for other in below[slot])
            total += sum(len(ends_so_far) - bisect.bisect_right(ends_so_far, end) for end in ends)
            for end in ends:
                bisect.insort(ends_so_far, end)
    return total


def _centres(
    rows: Sequence[Sequence[int]],
    sizes: Sequence[float],
    above: Sequence[Sequence[int]],
    below: Sequence[Sequence[int]],
    count: int,
) -> list[float]:
    """Return the centre of each node, and of each bend of an edge.

    In each round, every node moves towards the mean of its neighbours. Rounds that use the neighbours above alternate with rounds
    that use the neighbours below, and the last two rounds use both. Adjacent bends have the largest weight, so that long edges
    become straight.
    """
    centre = [0.0] * len(sizes)
    for row in rows:
        _set_row(row, [0.0] * len(row), sizes, centre)
    for turn in range(_ROUNDS):
        for row in rows if turn % 2 == 0 else reversed(rows):
            wanted = []
            for slot in row:
                near = above[slot] if turn % 2 == 0 else below[slot]
                near = near if turn < _ROUNDS - 2 and near else [*above[slot], *below[slot]]
                pull = [4.0 if slot >= count and other >= count else 1.0 for other in near]
                total = sum(pull)
                wanted.append(sum(w * centre[o] for w, o in zip(pull, near, strict=True)) / total if total else centre[slot])
            _set_row(row, wanted, sizes, centre)
    left = min((centre[slot] - sizes[slot] / 2 for slot in range(len(sizes))), default=0.0)
    return [each - left for each in centre]


def _set_row(row: Sequence[int], wanted: Sequence[float], sizes: Sequence[float], centre: list[float]) -> None:
    """Set the centres of the nodes in ``row``, so that no nodes overlap.

    The sum of the squared distances to the centres ``wanted`` is minimal. The algorithm pools adjacent violators.

    Args:
        row: the indices of the nodes from left to right.
        wanted: the best centre of each node in ``row``.
        sizes: the widths of all nodes.
        centre: the centres of all nodes, which this function changes.
    """
    offsets, at = [], 0.0
    for number, slot in enumerate(row):
        if number:
            at += (sizes[row[number - 1]] + sizes[slot]) / 2 + _GAP
        offsets.append(at)
    blocks: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        blocks.append((want - offset, 1))
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (upper, few), (lower, many) = blocks[-2:]
            blocks[-2:] = [((upper * few + lower * many) / (few + many), few + many)]
    shifts = [mean for mean, number in blocks for _ in range(number)]
    for slot, shift, offset in zip(row, shifts, offsets, strict=True):
        centre[slot] = shift + offset
