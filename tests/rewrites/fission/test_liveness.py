"""Live bytes against a slow simulation that asks of every stack anew whether anything still reads it."""

import random

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.batching import Operand
from rewrites.fission.liveness import Liveness
from rewrites.graph.context import Options
from rewrites.graph.marks import STACK_BYTES
from rewrites.graph.values import through_identity
from rewrites.loops import ScanView, State, view
from tests.rewrites.analysis.cut.bodies import random_scan, reads_of
from tests.rewrites.apply import prepared

STEPS = 64
"""What an unknown trip count is taken as."""


def bytes_of(value: ir.Value) -> int:
    assert value.shape is not None
    return 4 * int(np.prod([dim for dim in value.shape.dims if isinstance(dim, int)]))


def test_a_stack_is_held_until_its_last_reader_and_final_values_for_ever() -> None:
    freed = 0
    for seed in range(120):
        rng = random.Random(seed)
        loop, ctx = random_scan(seed)
        alive, nodes = Liveness(loop, StepSizes.of(loop, ctx)), list(loop.body)
        given = {one for output in loop.scan_outputs for one in (output.inner, through_identity(output.inner))}
        kept = [state for state in loop.states if rng.random() < 0.7]
        alive.ignore_states(state for state in loop.states if state not in kept)
        final, held, most = {state.next for state in kept}, dict[ir.Value, int](), 0
        for place, node in enumerate(nodes):
            batched = rng.random() < 0.8
            new = {value: Operand(value, batched, value) for value in node.outputs}
            costs = {value: 0 if value in given else bytes_of(value) * (STEPS if batched else 1) for value in new}
            most = max(most, sum(held.values()) + sum(costs.values()))
            alive.add(new)
            needed = final.union(*map(reads_of, nodes[place:]))
            held |= {value: cost for value, cost in costs.items() if value in needed}
            assert (alive.current, alive.peak) == (sum(held.values()), most)
            alive.release_after(node)
            needed = final.union(*map(reads_of, nodes[place + 1 :]))
            freed += len(held.keys() - needed)
            held = {value: cost for value, cost in held.items() if value in needed}
            assert alive.current == sum(held.values())
    assert freed > 100


def test_a_copy_goes_on_alone_and_later_splits_know_what_is_held() -> None:
    loop, ctx = random_scan(3)
    alive = Liveness(loop, StepSizes.of(loop, ctx))
    other = alive.copy()
    for node in loop.body:
        other.add({value: Operand(value, True, value) for value in node.outputs})
        other.release_after(node)
    assert alive.current == alive.peak == 0 < other.peak
    other.record_on(loop.node)
    assert Liveness(loop, StepSizes.of(loop, ctx)).current == STACK_BYTES.of(loop.node) == other.peak


def test_a_value_that_is_the_next_of_two_states_is_held_where_one_of_them_is_forgotten() -> None:
    ctx = prepared(
        """g (float[2] a0, float[2] b0, float[T,2] xs) => (float[2] a, float[2] b) {
        a, b = Scan <num_scan_inputs = 1, body = s (float[2] p, float[2] q, float[2] x) => (float[2] n, float[2] m) {
            d = Sub (p, q) n = Add (d, x) m = Identity (n) }> (a0, b0, xs) }"""
    )
    loop = view(ctx.model.graph.node(0), ctx.opset)
    assert isinstance(loop, ScanView)
    both = tuple(State(state.initial, state.inner, loop.states[0].next, state.final) for state in loop.states)
    twice = ScanView(**{**loop.__dict__, "states": both})
    alive, copy = Liveness(twice, StepSizes.of(loop, ctx)), loop.body.node(-1)
    alive.ignore_states([both[1]])
    alive.add({both[0].next: Operand(both[0].next, True, both[0].next)})
    alive.release_after(copy)
    assert alive.current == 2 * 4 * STEPS


VIEWS = ("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")


def random_work(seed: int) -> list[ir.Node]:
    """Nodes that a rule might build: some are views of others, some hold a Scan."""
    rng, names, nodes = random.Random(seed), ["x"], list[str]()
    for i in range(rng.randint(1, 9)):
        one, other = rng.choice(names[-3:]), rng.choice(names)
        kind = rng.choice(["Exp", "Add", "Identity", "Reshape", "Identity", "Scan"])
        if kind == "Scan":
            body = f"b{i} (float[8] r{i}) => (float[8] q{i}) {{ p{i} = Exp (r{i}) i{i} = Identity (p{i}) q{i} = Add (i{i}, p{i}) }}"
            nodes.append(f"n{i} = Scan <num_scan_inputs = 1, body = {body}> ({one})")
        else:
            nodes.append(f"n{i} = {kind} ({one}{', shape' if kind == 'Reshape' else f', {other}' if kind == 'Add' else ''})")
        names.append(f"n{i}")
    last = " ".join(["end = Sum (", ", ".join(names[1:]), ")"]) if rng.random() < 0.3 else f"end = Neg ({names[-1]})"
    text = f"g (float[4,8] x) => (float[4,8] end) <int64[2] shape = {{4, 8}}> {{ {' '.join(nodes)} {last} }}"
    return list(prepared(text).model.graph)


def peak(nodes: list[ir.Node], size: int) -> int:
    """The most bytes that exist at a time, all results `size` bytes each, a view the very bytes of what it is a view of."""
    buffer: dict[ir.Value, ir.Value] = {}
    for node in nodes:
        source = node.inputs[0]
        for value in node.outputs:
            buffer[value] = buffer.get(source, source) if node.op_type in VIEWS and source is not None else value
    most = 0
    for now, node in enumerate(nodes):
        there = {buffer[value] for before in nodes[: now + 1] for value in before.outputs}
        needed = {buffer.get(value, value) for after in nodes[now:] for value in reads_of(after)} | set(node.outputs)
        unread = {buffer[value] for value in there if not any(value in reads_of(one) for one in nodes)}
        own = {value for before in nodes for value in before.outputs}
        inner = [attribute.as_graph() for attribute in node.attributes.values() if attribute.type == ir.AttributeType.GRAPH]
        inside = max((32 * len(graph.inputs) + peak(list(graph), 32) for graph in inner), default=0)
        most = max(most, size * len(there & (needed | unread) & own) + inside)
    return most


@pytest.mark.parametrize("block", range(4))
def test_what_is_made_on_the_way_takes_its_peak_and_a_view_keeps_what_it_is_a_view_of(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        loop, ctx = random_scan(1)
        nodes = random_work(seed)
        alive = Liveness(loop, StepSizes.of(loop, ctx))
        alive.add({}, nodes)
        assert alive.peak == peak(nodes, 4 * 8 * 4), [str(node) for node in nodes]
        assert alive.current == 0


def test_what_does_not_fit_beside_what_is_held_is_refused() -> None:
    ctx = prepared(
        """g (float[2] h0, float[T,2] xs) => (float[2] h) { h = Scan <num_scan_inputs = 1, body = s (float[2] p, float[2] x) => (float[2] n) {
            e = Exp (x) f = Neg (e) k = Concat <axis = 0> (e, f) m = ReduceMax <keepdims = 0> (k) n = Mul (m, p) }> (h0, xs) }"""
    )
    loop = view(ctx.model.graph.node(0), ctx.opset)
    assert isinstance(loop, ScanView)
    first, second = (loop.body.node(place).outputs[0] for place in (0, 2))
    one, both = bytes_of(first) * STEPS, (bytes_of(first) + bytes_of(second)) * STEPS
    for budget, fits in ((both - 1, False), (both, True)):
        ctx.options = Options(memory_budget=budget)
        alive = Liveness(loop, StepSizes.of(loop, ctx))
        alive.add({first: Operand(first, True, first)})
        assert alive.current == one
        refusal = alive.refusal({second: Operand(second, True, second)})
        assert (refusal is None) == fits
        assert refusal is None or f"beside the {one}" in refusal.detail
