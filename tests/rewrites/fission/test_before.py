"""Work that leaves at the start of a loop; the next nodes to stack agree with a search through all nodes."""

import random

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.fission.before import ReadyQueue
from rewrites.graph.context import Options
from rewrites.loops import State
from tests.rewrites.analysis.cut.bodies import random_scan, reads_of
from tests.rewrites.apply import read, reasons
from tests.rewrites.fission.harness import body_ops, data, loops_of, outer_ops, scan, split
from tests.support.text import assert_text_equal

BACKWARDS = ", scan_input_directions: ints = [1], scan_output_directions: ints = [1]"


def test_a_state_that_keeps_the_last_input_is_the_input_one_step_later():
    after, _ = split(scan("y = Sub(x, d)  d_next = Identity(x)", "y", states="d", steps="T"))
    assert_text_equal(
        after,
        """main (float[3] d0, float[T, 3] xs, float[3] w) => (float[3] d_last, float[T, 3] ys)
        <int64[1] zero = {0}, int64[1] end = {-1}, int64[1] far = {9223372036854775807}> {
            row = Slice(xs, end, far, zero)
            d_last = Squeeze(row, zero)
            first = Unsqueeze(d0, zero)
            most = Slice(xs, zero, end, zero)
            late = Concat <axis: int = 0> (first, most)
            ys = Sub(xs, late)
        }""",
    )


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("attributes", ["", BACKWARDS])
def test_chains_of_delays_go_with_their_last_values(steps, attributes):
    body = "p = Add(x, d)  y = Mul(p, e)  d_next = Exp(x)  e_next = Sin(d)"
    text = scan(body, "y", states="d e", steps="T", attributes=attributes)
    after, report = split(text, feeds=data(read(text), T=steps))
    assert not loops_of(after)
    assert report.loops[0].fate == "removed"


@pytest.mark.parametrize(
    "attributes", ["", BACKWARDS, ", scan_input_directions: ints = [1]", ", scan_output_directions: ints = [1]"]
)
def test_a_delay_read_by_the_recurrence_and_after_it_leaves(attributes):
    text = scan("a = Mul(d, h)  h_next = Tanh(a)  y = Add(h_next, d)  d_next = Exp(x)", "y", states="d h", attributes=attributes)
    after, _ = split(text)
    assert body_ops(after) == ["Mul", "Tanh"]
    (loop,) = loops_of(after)
    assert len(loop.input) == 2


def test_a_delay_of_unknown_rank_leaves():
    text = """main (float[2, 3] w, float[T, 2, 3] xs, int64[k] shape) => (float[2, 3] last, float[T, 2, 3] ys) {
        d0 = Reshape(w, shape)
        d1, h1, ys = Scan <num_scan_inputs: int = 1, body: graph = body (d, h, x)
            => (float[2, 3] d_next, float[2, 3] h_next, float[2, 3] y) {
            a = Add(d, h)  h_next = Tanh(a)  y = Identity(d)  d_next = Identity(x)
        }> (d0, w, xs)
        last = Add(d1, h1)
    }"""
    feeds = {**data(read(text)), "shape": np.array([2, 3])}
    after, _ = split(text, feeds=feeds)
    assert body_ops(after) == ["Add", "Tanh"]


def test_a_state_kept_only_for_its_last_value_leaves():
    after, _ = split(scan("d_next = Exp(x)", "", states="d"))
    assert outer_ops(after) == ["Exp", "Slice", "Squeeze"]


@pytest.mark.parametrize(
    ("given", "ops"),
    [
        ("x", []),
        ("w", ["Concat", "Expand"]),
        ("c", ["Concat", "Expand"]),
        ("d", ["Concat", "Slice", "Slice", "Squeeze", "Unsqueeze"]),
    ],
)
def test_what_a_scan_output_copies_is_found_outside(given, ops):
    constant = "c = Constant <value_floats: floats = [1.0, 2.0, 3.0]> ()  " if given == "c" else ""
    states = "d" if given == "d" else ""
    after, _ = split(scan(f"{constant}y = Identity({given})  {'d_next = Exp(x)' if states else ''}", "y", states=states))
    assert not loops_of(after)
    assert [op for op in outer_ops(after) if op not in ("Identity", "Exp", "Constant")] == ops


def test_a_capture_of_unknown_rank_is_repeated_with_all_its_axes():
    text = """main (float[6] v, int64[k] shape, float[T, 2] xs) => (float[T, 3, 2] ys) {
        w = Reshape(v, shape)
        ys = Scan <num_scan_inputs: int = 1, body: graph = body (x) => (float[3, 2] y) { y = Identity(w) }> (xs)
    }"""
    feeds = {"v": np.arange(6, dtype=np.float32), "shape": np.array([3, 2]), "xs": np.zeros((3, 2), np.float32)}
    after, _ = split(text, feeds=feeds)
    assert not loops_of(after)


def test_an_outer_product_is_made_in_each_step():
    text = scan(
        "zero = Constant <value_ints: ints = [0]> ()  one = Constant <value_ints: ints = [1]> ()  a = Exp(x)  "
        "r = Unsqueeze(a, zero)  c = Unsqueeze(a, one)  k = Mul(r, c)  v = Mul(k, w)  m = MatMul(v, h)  h_next = Tanh(m)",
        "",
        states="h",
    )
    text = text.replace("float[5, 3]", "float[5, 30]").replace("float[3]", "float[30]")
    after, _ = split(text)
    assert body_ops(after) == ["MatMul", "Mul", "Mul", "Tanh"]
    assert "Exp" in outer_ops(after)


@pytest.mark.parametrize(("rows", "moves"), [(4, True), (32, False), ("B", True)])
def test_a_product_that_widens_moves_where_a_step_has_few_rows(rows, moves):
    text = f"""main (float[{rows}, 12] h0, float[5, {rows}, 3] xs, float[3, 12] w) => (float[{rows}, 12] h) {{
        h = Scan <num_scan_inputs: int = 1, body: graph = body (float[{rows}, 12] s, float[{rows}, 3] x) => (float[{rows}, 12] t) {{
            a = MatMul(x, w)  b = Add(a, s)  t = Tanh(b)
        }}> (h0, xs)
    }}"""
    after, _ = split(text)
    assert ("MatMul" not in body_ops(after)) == moves


def test_random_work_stays():
    text = scan("r = RandomUniformLike(x)  z = Sub(r, r)  s = Add(x, z)  h_next = Mul(s, h)", "", states="h")
    after, report = split(text, numbers=False)
    assert body_ops(after).count("RandomUniformLike") == 1
    assert reasons(report) == ["RANDOM"]


def test_what_all_steps_copy_needs_no_budget_beyond_the_result():
    after, _ = split(scan("y = Exp(x)  a = Mul(x, h)  h_next = Tanh(a)", "y", states="h"), options=Options(memory_budget=8))
    assert "Exp" not in body_ops(after)


@pytest.mark.parametrize(("steps", "hint", "moves"), [("5", {}, True), ("T", {}, False), ("T", {"T": 5}, True)])
def test_a_stack_without_a_bound_is_refused_where_it_dwarfs_the_loops_own(steps, hint, moves):
    text = f"""main (float[40] h0, float[{steps}, 40] xs) => (float[40] last) {{
        last = Scan <num_scan_inputs: int = 1, body: graph = body (float[40] h, float[40] x) => (float[40] h_next) {{
            zero = Constant <value_ints: ints = [0]> ()  a = Unsqueeze(x, zero)  one = Constant <value_ints: ints = [1]> ()
            b = Unsqueeze(x, one)  c = Mul(a, b)  s = ReduceMax <keepdims: int = 0> (c, one)  h_next = Mul(s, h)
        }}> (h0, xs)
    }}"""
    after, _ = split(text, options=Options(sizes=hint))
    assert ("ReduceMax" not in body_ops(after)) == moves


WIDE = "a = Exp(x)  b = Sin(x)  c = Neg(x)  p = Mul(a, h)  q = Add(p, b)  h_next = Sub(q, c)"


@pytest.mark.parametrize(("width", "stays"), [(3, False), (30000, True)])
def test_large_values_that_are_made_of_one_are_not_handed_over_instead_of_it(width, stays):
    text = scan(WIDE, "", states="h").replace("float[5, 3]", f"float[5, {width}]").replace("float[3]", f"float[{width}]")
    after, _ = split(text)
    assert ("Exp" in body_ops(after)) == stays


def test_a_large_value_that_the_recurrence_reads_itself_does_not_hold_its_work_back():
    text = scan(WIDE.replace("Sub(q, c)", "Sub(q, x)"), "", states="h")
    after, _ = split(text.replace("float[5, 3]", "float[5, 30000]").replace("float[3]", "float[30000]"))
    assert "Exp" not in body_ops(after)


@pytest.mark.parametrize(("rows", "steps", "moves"), [(1, 1000, True), (4, 20, True), (15, 1000, False)])
def test_a_product_whose_results_take_more_than_its_weights_stays(rows, steps, moves):
    text = f"""main (float[{rows}, 128] h0, float[{steps}, {rows}, 32] xs, float[32, 128] w) => (float[{rows}, 128] h) {{
        h = Scan <num_scan_inputs: int = 1, body: graph = body (float[{rows}, 128] s, float[{rows}, 32] x) => (float[{rows}, 128] t) {{
            a = MatMul(x, w)  b = Add(a, s)  t = Tanh(b)
        }}> (h0, xs)
    }}"""
    after, _ = split(text)
    assert ("MatMul" not in body_ops(after)) == moves


@pytest.mark.parametrize("given", ["x", "w2"])
def test_training_stays_and_is_named(given):
    norm = f"n, m2, v2 = BatchNormalization <training_mode: int = 1> ({given}, g, g, g, g)"
    text = f"""main (float[2, 3] h0, float[5, 2, 3] xs, float[3] g, float[2, 3] w2) => (float[2, 3] h) {{
        h = Scan <num_scan_inputs: int = 1, body: graph = body (float[2, 3] s, float[2, 3] x) => (float[2, 3] t) {{
            {norm}  a = Add(n, x)  b = Add(a, s)  t = Tanh(b)
        }}> (h0, xs)
    }}"""
    after, report = split(text, numbers=False)
    assert "BatchNormalization" in body_ops(after)
    assert reasons(report) == ["TRAINING"]


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
        ready = ReadyQueue(nodes, loop.states, known.__contains__)
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
            ready.mark_known(new)
        assert given == set(nodes)
    assert waited > 20


def test_what_is_told_twice_counts_once() -> None:
    loop, _ = random_scan(3)
    first = loop.body[0]
    ready = ReadyQueue([first], [], lambda value: value not in reads_of(first))
    assert ready.next_node() is None
    for value in reads_of(first):
        ready.mark_known([value, value])
    assert [ready.next_node(), ready.next_node()] == [first, None]
    assert ready.next_states() == []
