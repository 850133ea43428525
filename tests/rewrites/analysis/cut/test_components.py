"""Components of states against reachability by powers of the matrix of what each state is computed from."""

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.components import find_components
from rewrites.loops import ScanView
from tests.rewrites.analysis.cut.bodies import random_scan, reads_of


def states_behind(loop: ScanView) -> dict[ir.Value, set[int]]:
    """For each value of the body the states that it is computed from in one step, by asking for each state alone."""
    found: dict[ir.Value, set[int]] = {}
    for i, state in enumerate(loop.states):
        tainted = {state.inner}
        for node in loop.body:
            if reads_of(node) & tainted:
                tainted.update(node.outputs)
        for value in tainted:
            found.setdefault(value, set()).add(i)
    return found


def reachable(loop: ScanView, behind: dict[ir.Value, set[int]]) -> np.ndarray:
    """Which state needs which: powers of the matrix of direct needs and the identity."""
    count = len(loop.states)
    needs = np.eye(count, dtype=np.int64)
    for i, state in enumerate(loop.states):
        needs[i, sorted(behind.get(state.next, set()))] = 1
    return np.linalg.matrix_power(needs, max(count, 1)) > 0


def bits(numbers: set[int]) -> int:
    return sum(1 << number for number in numbers)


def test_states_that_reach_each_other_are_one_component_after_those_they_need() -> None:
    joined = 0
    for seed in range(80):
        loop, _ = random_scan(seed)
        behind = states_behind(loop)
        reach = reachable(loop, behind)
        found = find_components(loop)
        place = {state.inner: number for number, members in enumerate(found.members) for state in members}
        number = [place[state.inner] for state in loop.states]
        assert sum(map(len, found.members)) == len(loop.states)
        joined += len(found.members) < len(loop.states)
        for i in range(len(loop.states)):
            assert found.needs[number[i]] == bits({number[j] for j in np.flatnonzero(reach[i])})
            assert found.with_dependents(number[i]) == bits({number[j] for j in np.flatnonzero(reach[:, i])})
            for j in range(len(loop.states)):
                assert (number[i] == number[j]) == (reach[i, j] and reach[j, i])
                assert number[j] <= number[i] or not reach[i, j]
        for value in [*loop.body.inputs, *(value for node in loop.body for value in node.outputs)]:
            assert found.components_of_value.get(value, 0) == bits({number[i] for i in behind.get(value, set())})
        for node in loop.body:
            assert found.components_of_node[node] == bits({number[i] for value in reads_of(node) for i in behind.get(value, set())})
    assert joined > 10
