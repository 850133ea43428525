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

    A bit set is an integer. Bit ``i`` is set if component ``i`` belongs to the set.

    Args:
        members: The states of each component.
        needs: For each component, the bit set of itself and of all components that it needs, directly or indirectly.
        components_of_value: Maps each value of the body to the bit set of the components on whose states the value depends. Only
            dependences within one step count.
        components_of_node: The same bit sets for the nodes of the body.
    """

    members: tuple[tuple[State, ...], ...]
    needs: tuple[int, ...]
    components_of_value: dict[ir.Value, int]
    components_of_node: dict[ir.Node, int]

    def with_dependents(self, component: int) -> int:
        """Return the bit set of ``component`` and of all components that need it."""
        return sum(1 << i for i, needs in enumerate(self.needs) if needs >> component & 1)


def find_components(loop: ScanView) -> Components:
    """Return the components of ``loop``. The time grows with the square of the number of states."""
    count = len(loop.states)
    states_of_value = {state.inner: 1 << i for i, state in enumerate(loop.states)}
    states_of_node: dict[ir.Node, int] = {}
    for node in loop.body:
        sources = 0
        for value in reads(node):
            sources |= states_of_value.get(value, 0)
        states_of_node[node] = sources
        if sources:
            states_of_value.update(dict.fromkeys(node.outputs, sources))
    needs = [states_of_value.get(state.next, 0) | 1 << i for i, state in enumerate(loop.states)]
    for middle in range(count):
        for i in range(count):
            if needs[i] >> middle & 1:
                needs[i] |= needs[middle]
    leader_of = [next(j for j in range(count) if needs[i] >> j & 1 and needs[j] >> i & 1) for i in range(count)]
    order = sorted(set(leader_of), key=lambda i: (needs[i].bit_count(), i))
    number_of = {leader: number for number, leader in enumerate(order)}
    bits = [1 << number_of[leader] for leader in leader_of]

    def components_of_states(state_bits: int) -> int:
        """Convert a bit set of states to the bit set of the components that contain these states."""
        result = 0
        while state_bits:
            lowest = state_bits & -state_bits
            result |= bits[lowest.bit_length() - 1]
            state_bits ^= lowest
        return result

    components_of_mask = {mask: components_of_states(mask) for mask in {0, *states_of_value.values()}}
    return Components(
        tuple(tuple(state for i, state in enumerate(loop.states) if leader_of[i] == leader) for leader in order),
        tuple(components_of_states(needs[leader]) for leader in order),
        {value: components_of_mask[mask] for value, mask in states_of_value.items()},
        {node: components_of_mask[mask] for node, mask in states_of_node.items()},
    )
