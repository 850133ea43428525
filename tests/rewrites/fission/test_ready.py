"""What can be stacked next, against looking at all nodes anew each time."""

import random

import onnx_ir as ir

from rewrites.fission.ready import Ready
from rewrites.loops import State
from tests.rewrites.analysis.cut.bodies import random_scan, reads_of


def test_the_first_node_of_which_all_is_known_comes_next_and_each_once() -> None:
    waited = 0
    for seed in range(80):
        rng = random.Random(seed)
        loop, _ = random_scan(seed)
        nodes = list(loop.body)
        outside = {value for node in nodes for value in reads_of(node) if value.graph is not loop.body}
        inputs = [value for value in loop.body.inputs if rng.random() < 0.6]
        known, given = {*outside, *inputs}, set[ir.Node]()
        late = [value for value in loop.body.inputs if value not in known]
        ready = Ready(nodes, loop.states, known.__contains__)
        told: list[State] = []
        while True:
            due = [state for state in loop.states if state.next in known and state not in told]
            assert ready.next_states() == due
            told += due
            possible = [node for node in nodes if node not in given and reads_of(node) <= known]
            node = ready.next_node()
            assert node is (possible[0] if possible else None)
            if node is not None:
                given.add(node)
                new = list(node.outputs)
            elif late:
                waited += 1
                new = [late.pop(rng.randrange(len(late)))]
            else:
                break
            known.update(new)
            ready.know(new)
        assert given == set(nodes)
    assert waited > 20


def test_what_is_told_twice_counts_once() -> None:
    loop, _ = random_scan(3)
    first = loop.body[0]
    ready = Ready([first], [], lambda value: value not in reads_of(first))
    assert ready.next_node() is None
    for value in reads_of(first):
        ready.know([value, value])
    assert [ready.next_node(), ready.next_node()] == [first, None]
    assert ready.next_states() == []
