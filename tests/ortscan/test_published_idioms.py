"""Ways of writing that published models have, each rebuilt small: what is left of them, and the numbers."""

import numpy as np
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers, drawn
from tests.support.runtime import ort_run
from tests.support.text import parsed

STEP = "t = Tanh (a) q = Mul (s, t) s1 = Sub (q, a)"
PADDLES_WHILE = """g (float[5,2,4] x, float[2,4] h) => (float[2,4] l) <float none = {0}, int64[1] zero = {0}, int64[1] five = {5}, bool yes = {1}, float[1] one = {1}> {
    k, l = Loop <body = b (int64 it, bool c, int64[1] i, float[2,4] s) => (bool c1, int64[1] i1, float[2,4] s2) {
        r = Gather (x, i) a = Squeeze (r, zero) STEP u = Unsqueeze (s1, zero) v = Add (u, none) s2 = Squeeze (v, zero)
        f = Cast <to = 1> (i) g1 = Add (f, one) i1 = Cast <to = 7> (g1) d = Less (i1, five) c1 = Squeeze (d, zero) }> (, yes, zero, h) }"""
COLUMNS = """g (float[5,2,4] x, float[2,4] h, float[2,5,4] buffer) => (float[2,5,4] y) <bool yes = {1}, int64 five = {5}, int64[1] one = {1}, int64[3] row = {2, 1, 4}> {
    l, y = Loop <body = b (int64 i, bool c, float[2,4] s, float[2,5,4] w) => (bool c1, float[2,4] s1, float[2,5,4] w1) {
        c1 = Identity (c) a = Gather (x, i) STEP u = Unsqueeze (s1, one) p = Expand (i, row) w1 = ScatterElements <axis = 1> (w, p, u) }> (five, yes, h, buffer) }"""
COLUMNS_BY_RANGE = COLUMNS.replace(
    "p = Expand (i, row)",
    """n = Constant <value_int = 1> () j = Add (i, n) v = Constant <value_ints = [0]> () from = Unsqueeze (i, v) to = Unsqueeze (j, v) e = Slice (w, from, to, one)
        m = Shape (e) z = Expand (u, m) o = Range (i, j, n) line = Constant <value_ints = [1, -1, 1]> () grid = Reshape (o, line) p = Tile (grid, row)""",
).replace("(w, p, u)", "(w, p, z)")
OPEN_COLUMNS = (
    COLUMNS_BY_RANGE.replace("float[5,", "float[T,")
    .replace("float[2,5,", "float[2,T,")
    .replace("int64 five = {5}, ", "int64 first = {0}, ")
).replace("l, y = Loop", "dims = Shape (x) five = Gather (dims, first) l, y = Loop")
DELAY_LINE = """g (float[5,2,4] x, float[2,3] h) => (float[5,2,7] y, float[2,3] l) <int64[1] from = {4}, int64[1] to = {7}, int64[1] one = {1}> {
    l, y = Scan <num_scan_inputs = 1, body = b (float[2,3] s, float[2,4] a) => (float[2,3] s1, float[2,7] o) {
        w = Concat <axis = 1> (s, a) s1 = Slice (w, from, to, one) o = Identity (w) }> (h, x) }"""
BACKWARDS = """g (float[T,2,3] x) => (float[T,2,4] z) <int64[1] back = {-1}, int64[1] start = {-9223372036854775807}, int64[1] zero = {0}, int64[1] one = {1}> {
    u = Slice (x, back, start, zero, back) y = LSTM <hidden_size = 4> (u, W, R) q = Squeeze (y, one) z = Slice (q, back, start, zero, back) }"""


def written(text, **weights):
    return parsed(text.replace("STEP", STEP), 17, weights=drawn(1, **weights))


def operators(model, **options):
    after = ortscan.optimize(model, **options)
    rng = np.random.default_rng(0)
    shapes = {info.name: [dim.dim_value or 5 for dim in info.type.tensor_type.shape.dim] for info in model.graph.input}
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
    return [node.op_type for node in after.graph.node]


@pytest.mark.parametrize("text", [PADDLES_WHILE, COLUMNS, COLUMNS_BY_RANGE, DELAY_LINE])
def test_nothing_of_the_loop_is_left_where_the_target_has_none(text):
    assert not {"Loop", "Scan", "If"} & set(operators(written(text), target="coreml"))


@pytest.mark.parametrize("text", [PADDLES_WHILE, COLUMNS, COLUMNS_BY_RANGE])
def test_the_loop_is_a_scan_of_the_recurrence_alone(text):
    left = operators(written(text))
    assert "Loop" not in left
    assert "Tanh" in left


def test_columns_are_stacked_results_however_many_there_are():
    after = ortscan.optimize(written(OPEN_COLUMNS))
    assert not {"Loop", "ScatterElements"} & {node.op_type for node in after.graph.node}
    for steps in (1, 4):
        rng = np.random.default_rng(steps)
        feeds = {
            name: rng.normal(size=shape).astype(np.float32)
            for name, shape in (("x", (steps, 2, 4)), ("h", (2, 4)), ("buffer", (2, steps, 4)))
        }
        assert_same_numbers(ort_run(after, feeds), ort_run(written(OPEN_COLUMNS), feeds))


@pytest.mark.parametrize("other", ["Slice (w, to, more, one)", "Slice (w, v, from, one)", "Slice (w, from, to, v)"])
def test_what_reads_another_column_keeps_the_buffer(other):
    text = COLUMNS_BY_RANGE.replace(
        "e = Slice (w, from, to, one)",
        f"more = Add (to, one) g = Slice (w, from, to, one) o1 = {other} o2 = ReduceSum <keepdims = 0> (o1) e = Add (g, o2)",
    )
    assert "written-rows" not in {fired.rule for loop in ortscan.explain(written(text)).loops for fired in loop.fired}


def test_a_reversal_is_read_beyond_a_squeeze():
    model = written(BACKWARDS, W=(1, 16, 3), R=(1, 16, 4))
    assert operators(model, target="onnx") == ["LSTM", "Squeeze"]


def test_one_layer_for_each_slice_is_one_product():
    steps = " ".join(
        f"s{i} = Slice (x, c{i}, c{i + 1}, c1) q{i} = Squeeze (s{i}, c1) d{i} = Gemm (q{i}, W, b) a{i} = Relu (d{i}) u{i} = Unsqueeze (a{i}, c1)"
        for i in range(5)
    )
    bounds = ", ".join(f"int64[1] c{i} = {{{i}}}" for i in range(6))
    text = f"g (float[2,5,3] x) => (float[2,5,4] y) <{bounds}> {{ {steps} y = Concat <axis = 1> (u0, u1, u2, u3, u4) }}"
    left = operators(written(text, W=(3, 4), b=(4,)))
    assert left.count("Gemm") + left.count("MatMul") == 1
