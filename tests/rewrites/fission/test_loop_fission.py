"""A loop as a whole: what leaves, what stays, what crosses, and when it is left alone."""

import itertools

import numpy as np
import pytest

from rewrites.graph.context import Options
from tests.rewrites.apply import patches, read, reasons
from tests.rewrites.fission.harness import body_ops, data, loops_of, outer_ops, scan, split
from tests.support.text import assert_text_equal

RNN = scan("a = Exp(x)  b = Add(a, h)  h_next = Tanh(b)  y = Softmax(h_next)", "y", states="h")


def test_only_the_recurrence_stays():
    after, report = split(RNN)
    assert patches(report) == ["loop-fission", "unused-scan-inputs"]
    assert_text_equal(
        after,
        """main (float[3] h0, float[5, 3] xs, float[3] w) => (float[3] h_last, float[5, 3] ys) {
            a = Exp(xs)
            h_last, hs = Scan <num_scan_inputs: int = 1, body: graph = body (h, a_in) => (h_next, h_copy) {
                b = Add(a_in, h)
                h_next = Tanh(b)
                h_copy = Identity(h_next)
            }> (h0, a)
            ys = Softmax <axis: int = 1> (hs)
        }""",
    )


def test_a_loop_without_a_recurrence_goes():
    after, report = split(scan("a = Exp(x)  y = Mul(a, w)", "y"))
    assert report.loops[0].fate == "removed"
    assert_text_equal(after, "main (float[5, 3] xs, float[3] w) => (float[5, 3] ys) { a = Exp(xs)  ys = Mul(a, w) }")


@pytest.mark.parametrize("way", list(itertools.product("01", repeat=4)), ids="".join)
def test_every_choice_of_directions_keeps_its_numbers(way):
    text = scan(
        "a = Exp(x)  b = Add(a, u)  h_next = Mul(b, h)  y = Sin(b)  z = Cos(h_next)",
        "y z",
        states="h",
        scans="x u",
        attributes=f", scan_input_directions: ints = [{way[0]}, {way[1]}], scan_output_directions: ints = [{way[2]}, {way[3]}]",
    )
    after, report = split(text)
    assert body_ops(after) == ["Mul"]
    assert report.loops[0].fate == "reduced"


@pytest.mark.parametrize("way", list(itertools.product("01", repeat=2)), ids="".join)
def test_a_loop_without_a_recurrence_goes_in_every_direction(way):
    text = scan(
        "y = Exp(x)", "y", attributes=f", scan_input_directions: ints = [{way[0]}], scan_output_directions: ints = [{way[1]}]"
    )
    after, _ = split(text)
    assert outer_ops(after) == (["Exp"] if way[0] == way[1] else ["Exp", "Slice"])


def test_before_opset_10_directions_must_agree():
    body, attributes = "y = Exp(x)", ", scan_input_directions: ints = [1], scan_output_directions: ints = [{}]"
    after, _ = split(scan(body, "y", attributes=attributes.format(1)), opset=9)
    assert not loops_of(after)
    after, report = split(scan(body, "y", attributes=attributes.format(0)), opset=9)
    assert loops_of(after)
    assert reasons(report) == ["SCAN-DIRECTIONS"]


def test_a_bare_recurrence_is_left_and_named():
    after, report = split(scan("b = Add(x, h)  h_next = Tanh(b)  y = Identity(h_next)", "y", states="h"))
    assert body_ops(after) == ["Add", "Tanh"]
    assert reasons(report) == ["RECURRENCE"]
    assert "'h'" in report.loops[0].reasons[0].detail


def test_what_crosses_must_not_outnumber_the_work_that_leaves():
    text = scan(
        "a, b, c = Split <axis: int = 0, num_outputs: int = 3> (x)  d = Mul(a, h)  e = Mul(b, d)  h_next = Mul(c, e)",
        "",
        states="h",
    )
    after, report = split(text)
    assert body_ops(after) == ["Mul", "Mul", "Mul", "Split"]
    assert reasons(report) == ["RECURRENCE"]


def test_a_loop_of_opset_8_is_left():
    text = """<ir_version: 8, opset_import: ["": 8]> main (float[2, 5, 3] xs) => (float[2, 5, 3] ys) {
        ys = Scan <num_scan_inputs: int = 1, body: graph = body (float[3] x) => (float[3] y) { y = Exp(x) }> (, xs)
    }"""
    _, report = split(text)
    assert reasons(report) == ["SCAN-8"]


@pytest.mark.parametrize(
    "stuck", ["k = NonZero(m)  n = Shape(k)  f = Cast <to: int = 1> (n)  p = ReduceSum <keepdims: int = 0> (f)"]
)
def test_a_stuck_operator_stays_with_what_needs_it_and_is_named(stuck):
    text = scan(f"a = Exp(x)  m = Sin(a)  {stuck}  q = Mul(p, h)  h_next = Tanh(q)  y = Cos(h_next)", "y", states="h")
    after, report = split(text)
    assert body_ops(after) == ["Cast", "Mul", "NonZero", "ReduceSum", "Shape", "Tanh"]
    assert reasons(report) == ["DATA-DEPENDENT-SHAPE"]


def test_a_branch_stays_and_reads_what_left_before_it():
    text = scan(
        """a = Exp(x)  b = Sin(a)  s = ReduceSum <keepdims: int = 0> (x)  zero = Constant <value_float: float = 0.0> ()
        c = Less(s, zero)
        d = If (c) <then_branch: graph = yes () => (float[3] t) { t = Mul(b, h) },
            else_branch: graph = no () => (float[3] f) { f = Neg(b) }>
        h_next = Tanh(d)  y = Cos(h_next)""",
        "y",
        states="h",
    )
    after, report = split(text)
    assert body_ops(after) == ["If", "Tanh"]
    assert reasons(report) == ["RECURRENCE"]


def test_a_branch_taken_step_by_step_keeps_its_loop():
    text = scan(
        """s = ReduceSum <keepdims: int = 0> (x)  zero = Constant <value_float: float = 0.0> ()  c = Less(s, zero)  one = Constant <value_int: int = 1> ()
        d = If (c) <then_branch: graph = yes () => (float[3] t) { e = Exp(x)  i = Cast <to: int = 7> (e)  k = Div(i, one)  t = Cast <to: int = 1> (k) },
            else_branch: graph = no () => (float[3] f) { f = Neg(x) }>
        y = Cos(d)""",
        "y",
    )
    after, report = split(text)
    assert body_ops(after) == ["If"]
    assert reasons(report) == ["BATCHED-CONDITION"]


INNER = """q = Exp(r)
    z = Scan <num_scan_inputs: int = 1, body: graph = inner (float e) => (float g) {{ g = {op}(e) }}> (q)"""


def test_a_loop_in_a_loop_goes_first_and_the_outer_one_after_it():
    text = f"""main (float[4, 3] rs) => (float[4, 3] zs) {{
        zs = Scan <num_scan_inputs: int = 1, body: graph = outer (float[3] r) => (float[3] z) {{ {INNER.format(op="Sin")} }}> (rs)
    }}"""
    after, report = split(text)
    assert outer_ops(after) == ["Exp", "Sin"]
    assert [loop.fate for loop in report.loops] == ["removed", "removed"]


def test_a_loop_in_a_branch_goes():
    text = """main (bool c, float[4, 3] xs) => (float[4, 3] ys) {
        ys = If (c) <
            then_branch: graph = yes () => (float[4, 3] t) {
                t = Scan <num_scan_inputs: int = 1, body: graph = body (float[3] x) => (float[3] y) { y = Exp(x) }> (xs)
            },
            else_branch: graph = no () => (float[4, 3] f) { f = Neg(xs) }>
    }"""
    for choice in (True, False):
        _, report = split(text, feeds={"c": np.array(choice), "xs": np.ones((4, 3), np.float32)})
        assert report.loops[0].fate == "removed"


def test_a_loop_that_reads_anothers_results_is_split_too():
    text = """main (float[3] h0, float[T, 3] xs) => (float[3] h, float[T, 3] zs) {
        g, ys = Scan <num_scan_inputs: int = 1, body: graph = one (float[3] g_in, float[3] x) => (float[3] g_out, float[3] y) {
            a = Exp(x)  g_out = Mul(a, g_in)  y = Sin(g_out)
        }> (h0, xs)
        h, zs = Scan <num_scan_inputs: int = 1, body: graph = two (float[3] h_in, float[3] v) => (float[3] h_out, float[3] z) {
            b = Cos(v)  h_out = Add(b, h_in)  z = Tanh(h_out)
        }> (g, ys)
    }"""
    after, _ = split(text)
    assert len(loops_of(after)) == 2
    assert outer_ops(after) == ["Cos", "Exp", "Scan", "Scan", "Sin", "Tanh"]


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_the_number_of_steps_and_sizes_may_be_unknown(steps):
    text = """main (float[B, 3] h0, float[T, B, 3] xs, float[3, 3] w) => (float[B, 3] h, float[T, B, 3] ys) {
        h, ys = Scan <num_scan_inputs: int = 1, body: graph = body (float[B, 3] h_in, float[B, 3] x)
            => (float[B, 3] h_out, float[B, 3] y) {
            a = MatMul(x, w)  b = Add(a, h_in)  h_out = Tanh(b)  y = MatMul(h_out, w)
        }> (h0, xs)
    }"""
    after, _ = split(text, feeds=data(read(text), T=steps, B=2))
    assert body_ops(after) == ["Add", "Tanh"]


def test_bodies_without_declared_shapes_are_split():
    text = """main (float[2, 3] h0, float[T, 2, 3] xs) => (float[2, 3] h, float[T, 2, 3] ys) {
        h, ys = Scan <num_scan_inputs: int = 1, body: graph = body (h_in, x) => (h_out, y) {
            a = Exp(x)  b = Add(a, h_in)  h_out = Tanh(b)  y = Softmax(h_out)
        }> (h0, xs)
    }"""
    after, _ = split(text)
    assert body_ops(after) == ["Add", "Tanh"]


def test_numbers_that_differ_between_steps_are_scanned_one_by_one():
    text = """main (float h0, float[T] xs) => (float h, float[T] ys) {
        h, ys = Scan <num_scan_inputs: int = 1, body: graph = body (float h_in, float x) => (float h_out, float y) {
            a = Exp(x)  b = Add(a, h_in)  h_out = Tanh(b)  y = Cos(h_out)
        }> (h0, xs)
    }"""
    after, _ = split(text)
    assert body_ops(after) == ["Add", "Tanh"]


@pytest.mark.parametrize("kind", ["int64", "int32", "double", "bool", "string"])
def test_every_element_type_crosses(kind):
    work, after_work = {"bool": ("Not(x)", "Not(s)"), "string": ("StringConcat(x, x)", "StringConcat(s, s)")}.get(
        kind, ("Abs(x)", "Abs(s)")
    )
    recur = {"bool": "Xor(a, s)", "string": "StringConcat(a, s)"}.get(kind, "Sub(a, s)")
    text = f"""main ({kind}[2] s0, {kind}[3, 2] xs) => ({kind}[2] last, {kind}[3, 2] ys) {{
        last, ys = Scan <num_scan_inputs: int = 1, body: graph = body ({kind}[2] s, {kind}[2] x)
            => ({kind}[2] s_out, {kind}[2] y) {{
            a = {work}  y = {after_work}  s_out = {recur}
        }}> (s0, xs)
    }}"""
    after, _ = split(text, opset=20)
    assert len(body_ops(after)) == 1


@pytest.mark.parametrize("part", ["before", "after"])
def test_no_stack_breaks_the_memory_budget(part):
    work = {"before": "k = MatMul(r, x1)  s = ReduceMax <keepdims: int = 0> (k, one)", "after": "s = Exp(x)"}[part]
    last = {"before": "y = Cos(h_next)", "after": "k = MatMul(r, h1)  y = ReduceMax <keepdims: int = 0> (k, one)"}[part]
    text = scan(
        f"one = Constant <value_ints: ints = [1]> ()  zero = Constant <value_ints: ints = [0]> ()  "
        f"x1 = Unsqueeze(x, zero)  r = Constant <value: tensor = float[3, 1] {{1, 2, 3}}> ()  {work}  g = Mul(s, h)  "
        f"h_next = Tanh(g)  h1 = Unsqueeze(h_next, zero)  {last}",
        "y",
        states="h",
    )
    free, _ = split(text)
    tight, _ = split(text, options=Options(memory_budget=5 * 3 * 4))
    assert "MatMul" not in body_ops(free)
    assert "MatMul" in body_ops(tight)


def test_memory_is_named_where_nothing_can_leave():
    text = scan(
        "one = Constant <value_ints: ints = [1]> ()  a = Unsqueeze(x, one)  b = Exp(a)  c = Sin(b)  "
        "d = Mul(c, c)  e = ReduceSum <keepdims: int = 0> (d, one)  h_next = Mul(e, h)",
        "",
        states="h",
    )
    _, report = split(text, options=Options(memory_budget=8))
    assert reasons(report) == ["MEMORY-BUDGET"]


def test_a_state_that_may_begin_with_another_size_is_left():
    text = """g (float[B,2] s, float[T,B,2] xs, float[2,2] w) => (float[?,2] z, float[?,?,2] ys) {
        z, ys = Scan <num_scan_inputs = 1, body = b (float[?,2] h, float[?,2] x) => (float[?,2] h1, float[?,2] y) {
            y = Add (h, x) h1 = Tanh (w) }> (s, xs) }"""
    feeds = {"s": np.ones((3, 2), np.float32), "xs": np.ones((1, 3, 2), np.float32), "w": np.eye(2, dtype=np.float32)}
    _, report = split(text, feeds=feeds)
    assert reasons(report) == ["LOOP-STATE-SHAPE"]
    alike = text.replace("float[2,2] w", "float[B,2] w")
    _, report = split(alike, feeds={**feeds, "w": np.ones((3, 2), np.float32)})
    assert "loop-fission" in patches(report)
