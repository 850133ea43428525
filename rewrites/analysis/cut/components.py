"""Groups the states of a loop that need each other, and sorts the groups in topological order.

State ``a`` needs state ``b`` if the next value of ``a`` is computed from ``b``. States that need each other, directly or through
other states, form a component (a strongly connected component of the dependence graph). The components follow from the transitive
closure of the dependence, which Warshall's algorithm computes on bit sets.
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.dependence import reads
from rewrites.loops import ScanView, State

__all__ = ["Components", "find_components"]


@dataclass(frozen=True)
class Components:
    """The components of a loop. Each component comes after the components that it needs.

    All bit sets are integers in which bit ``i`` represents component ``i``.

    Args:
        members: The states of each component.
        needs: For each component, the bit set of itself and of all components that it needs, directly or indirectly.
        behind: For each value of the body, the bit set of the components on whose states it depends within one step.
        of: For each node of the body, the bit set of the components on whose states it depends within one step.
    """

    members: tuple[tuple[State, ...], ...]
    needs: tuple[int, ...]
    behind: dict[ir.Value, int]
    of: dict[ir.Node, int]

    def needing(self, number: int) -> int:
        """Return the bit set of component ``number`` and of all components that need it."""
        return sum(1 << i for i, needs in enumerate(self.needs) if needs >> number & 1)


def find_components(loop: ScanView) -> Components:
    """Return the components of ``loop``. The time grows with the square of the number of states."""
    count = len(loop.states)
    behind = {state.inner: 1 << i for i, state in enumerate(loop.states)}
    nodes: dict[ir.Node, int] = {}
    for node in loop.body:
        sources = 0
        for value in reads(node):
            sources |= behind.get(value, 0)
        nodes[node] = sources
        if sources:
            behind.update(dict.fromkeys(node.outputs, sources))
    needs = [behind.get(state.next, 0) | 1 << i for i, state in enumerate(loop.states)]
    for middle in range(count):
        for i in range(count):
            if needs[i] >> middle & 1:
                needs[i] |= needs[middle]
    first = [next(j for j in range(count) if needs[i] >> j & 1 and needs[j] >> i & 1) for i in range(count)]
    order = sorted(set(first), key=lambda i: (needs[i].bit_count(), i))
    number_of = {leader: number for number, leader in enumerate(order)}
    bits = [1 << number_of[leader] for leader in first]

    def joined(states: int) -> int:
        sources = 0
        while states:
            lowest = states & -states
            sources |= bits[lowest.bit_length() - 1]
            states ^= lowest
        return sources

    masks = {mask: joined(mask) for mask in {0, *behind.values()}}
    return Components(
        tuple(tuple(state for i, state in enumerate(loop.states) if first[i] == leader) for leader in order),
        tuple(joined(needs[leader]) for leader in order),
        {value: masks[mask] for value, mask in behind.items()},
        {node: masks[mask] for node, mask in nodes.items()},
    )
