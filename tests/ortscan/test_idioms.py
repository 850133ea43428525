"""Loops in the forms that front ends and published models use: what remains of each, with equal results."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers, drawn
from tests.support.runtime import ort_run
from tests.support.text import model_from_text, parsed

STEP = "a = Gather (x, i) t = Tanh (a) q = Mul (s, t) s1 = Sub (q, a) i1 = Add (i, one) c1 = Less (i1, n)"
TORCH = {
    "a buffer written by numbers": """g (float[6,2,4] x, float[2,4] h) => (float[6,2,4] y, float[2,4] l) <int64 zero = {0}, int64 n = {6}, int64 one = {1}, int64[1] axis = {0}> {
        yes = Less (zero, n) shape = Shape (x) w0 = ConstantOfShape (shape)
        k, l, y = Loop <body = b (int64 it, bool c, int64 i, float[2,4] s, float[6,2,4] w) => (bool c1, int64 i1, float[2,4] s1, float[6,2,4] w1) { STEP
            u = Unsqueeze (s1, axis) m = Constant <value_ints = [-1]> () p = Reshape (i, m) r = Unsqueeze (p, axis) w1 = ScatterND (w, r, u) }> (, yes, zero, h, w0) }""",
    "a tensor that grows": """g (float[6,2,4] x, float[2,4] h) => (float[N,2,4] y, float[2,4] l) <int64 zero = {0}, int64 n = {6}, int64 one = {1}, int64[1] axis = {0}> {
        yes = Less (zero, n) dims = Constant <value_ints = [0, 2, 4]> () w0 = ConstantOfShape (dims)
        k, l, y = Loop <body = b (int64 it, bool c, int64 i, float[2,4] s, float[N,2,4] w) => (bool c1, int64 i1, float[2,4] s1, float[M,2,4] w1) { STEP
            u = Unsqueeze (s1, axis) w1 = Concat <axis = 0> (w, u) }> (, yes, zero, h, w0) }""",
    "as many rows as there are": """g (float[T,2,4] x, float[2,4] h) => (float[2,4] l) <int64 zero = {0}, int64 one = {1}> {
        dims = Shape (x) n = Gather (dims, zero) yes = Less (zero, n)
        k, l = Loop <body = b (int64 it, bool c, int64 i, float[2,4] s) => (bool c1, int64 i1, float[2,4] s1) { STEP }> (, yes, zero, h) }""",
}
TENSORFLOW = {
    "a state that nobody reads": """g (float[6,2,4] x, float[2,4] h) => (float[2,4] l) <int32 zero = {0}, int32 n = {6}, int32 one = {1}, bool yes = {1}> {
        size = Constant <value_ints = [512, 512]> () w0 = ConstantOfShape (size)
        k, d, l = Loop <body = b (int64 it, bool c, int32 i, float[512,512] w, float[2,4] s) => (bool c1, int32 i1, float[512,512] w1, float[2,4] s1) { STEP
            f = Cast <to = 1> (i1) e = Add (w, f) w1 = Tanh (e) }> (, yes, zero, w0, h) }""",
    "a result that nobody reads": """g (float[6,2,4] x, float[2,4] h) => (float[2,4] l) <int64 zero = {0}, int64 n = {6}, int64 one = {1}, bool yes = {1}> {
        k, l, dead = Loop <body = b (int64 it, bool c, int64 i, float[2,4] s) => (bool c1, int64 i1, float[2,4] s1, float[512,512] w) { STEP
            size = Constant <value_ints = [512, 512]> () r = ReduceSum <keepdims = 0> (t) w = Expand (r, size) }> (, yes, zero, h) }""",
    "what only its sizes are read of": """g (float[6,2,4] x, float[2,4] h) => (float[2,4] l) <int64 zero = {0}, int64 n = {6}, int64 one = {1}, bool yes = {1}> {
        k, l = Loop <body = b (int64 it, bool c, int64 i, float[2,4] s) => (bool c1, int64 i1, float[2,4] s2) { STEP
            size = Constant <value_ints = [512, 512]> () r = ReduceSum <keepdims = 0> (t) w = Expand (r, size) e = Shape (w) f = Cast <to = 1> (e)
            m = ReduceMin <keepdims = 0> (f) s2 = Div (s1, m) }> (, yes, zero, h) }""",
}
SLICES = {
    "sliced and reshaped": ("s{t} = Slice (x, c{t}, c{u}, c1) r{t} = Reshape (s{t}, flat)", "d{t} = MatMul (r{t}, W) e{t} = Add (d{t}, b) a{t} = Relu (e{t})"),
    "gathered and squeezed": ("s{t} = Gather <axis = 1> (x, c{t}) r{t} = Squeeze (s{t}, c1)", "d{t} = Gemm (r{t}, W, b) e{t} = Tanh (d{t}) a{t} = Gemm (e{t}, V)"),
    "split": ("r{t} = Squeeze (p{t}, c1)", "d{t} = MatMul (r{t}, W) e{t} = Add (d{t}, b) a{t} = Sigmoid (e{t})"),
}  # fmt: skip


def compared(model: onnx.ModelProto, **options: object) -> list[str]:
    rng = np.random.default_rng(0)
    shapes = {info.name: [dim.dim_value or 6 for dim in info.type.tensor_type.shape.dim] for info in model.graph.input}
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    after = ortscan.optimize(model, **options)
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
    return [node.op_type for node in after.graph.node]


@pytest.mark.parametrize("form", [*TORCH, *TENSORFLOW])
def test_a_while_is_its_recurrence(form: str) -> None:
    text = (TORCH | TENSORFLOW)[form].replace("STEP", STEP)
    left = compared(model_from_text(text, 18, check=False))
    assert not {"Loop", "ScatterND", "Expand"} & set(left)
    assert "Tanh" in left or "If" in left


@pytest.mark.parametrize("form", SLICES)
def test_a_layer_for_each_slice_is_one_product_for_all(form: str) -> None:
    taken, layer = SLICES[form]
    head = "p0, p1, p2, p3, p4, p5 = Split <axis = 1, num_outputs = 6> (x)" if form == "split" else ""
    steps = " ".join(f"{taken} {layer} u{{t}} = Unsqueeze (a{{t}}, c1)".format(t=t, u=t + 1) for t in range(6))
    numbers = ", ".join(f"int64[1] c{t} = {{{t}}}" for t in range(7))
    text = f"g (float[2,6,3] x) => (float[2,6,4] y) <{numbers}, int64[2] flat = {{-1, 3}}> {{ {head} {steps} y = Concat <axis = 1> (u0, u1, u2, u3, u4, u5) }}"
    left = compared(parsed(text, weights=drawn(W=(3, 4), b=(4,), V=(4, 4))))
    assert left.count("MatMul") + left.count("Gemm") == (layer + " ").count("MatMul") + layer.count("Gemm")


PUBLISHED_STEP = "t = Tanh (a) q = Mul (s, t) s1 = Sub (q, a)"
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
    return parsed(text.replace("STEP", PUBLISHED_STEP), 17, weights=drawn(1, **weights))


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
    after = ortscan.optimize(written(OPEN_COLUMNS), verify=False)
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


STEPS = 12
CORES = {
    "LinearAttention": (
        "x = Gather <axis = 0> (xs, i)  k, v = Split <axis = 1, num_outputs = 2> (x)  c = Constant <value = float {0.9}> ()"
        '  d = Mul (S, c)  o = Einsum <equation = "hk,hv->hkv"> (k, v)  S1 = Add (d, o)  y = Einsum <equation = "hk,hkv->hv"> (v, S1)',
        "2,3,3",
        "2,3",
    ),
    "CumSum": (
        "x = Gather <axis = 0> (xs, i)  n = Add (i, one)  f = Cast <to = 1> (n)  d = Sub (x, S)  e = Div (d, f)  S1 = Add (S, e)"
        "  y = Identity (S1)",
        "2,6",
        "2,6",
    ),
}


def as_jax(core: str, state: str, row: str) -> str:
    """Return a while-loop that counts and writes each row into a buffer."""
    return f"""g (float[{STEPS},2,6] xs) => (float[{STEPS},{row}] ys)
        <int64 m = {{{STEPS}}}, int64 zero = {{0}}, int64[3] all = {{{STEPS},{row}}}, int64[{len(state.split(","))}] one_state = {{{state}}}> {{
        empty = ConstantOfShape (all)  S0 = ConstantOfShape (one_state)  go = Less (zero, m)
        last, end, ys = Loop <body = b (int64 t, bool g0, int64 i, float[{state}] S, float[{STEPS},{row}] old)
            => (bool g1, int64 i1, float[{state}] S1, float[{STEPS},{row}] new) {{
            one = Constant <value = int64 {{1}}> ()  {core}  i1 = Add (i, one)  g1 = Less (i1, m)
            index = Constant <value = int64[2] {{1, 1}}> ()  at = Reshape (i, index)
            axis = Constant <value = int64[1] {{0}}> ()  rows = Unsqueeze (y, axis)  new = ScatterND (old, at, rows) }}> (, go, zero, S0, empty) }}"""


def as_tensorflow(core: str, state: str, row: str) -> str:
    """Return a loop that counts in addition to its own number, and collects tensors."""
    return f"""g (float[{STEPS},2,6] xs) => (float[A,B,C] ys)
        <int64 m = {{{STEPS}}}, int64 zero = {{0}}, int64[{len(state.split(","))}] one_state = {{{state}}}> {{
        none = SequenceEmpty <dtype = 1> ()  S0 = ConstantOfShape (one_state)  go = Less (zero, m)
        last, end, all = Loop <body = b (int64 t, bool g0, int64 i, float[{state}] S, seq(float[{row}]) old)
            => (bool g1, int64 i1, float[{state}] S1, seq(float[{row}]) new) {{
            one = Constant <value = int64 {{1}}> ()  {core}  i1 = Add (i, one)  g1 = Less (i1, m)  new = SequenceInsert (old, y) }}>
            (m, go, zero, S0, none)
        ys = ConcatFromSequence <axis = 0, new_axis = 1> (all) }}"""


@pytest.mark.parametrize("write", [as_jax, as_tensorflow])
@pytest.mark.parametrize("operator", CORES)
def test_a_loop_with_a_counter_and_a_buffer_ends_in_the_form_of_its_scan(operator, write) -> None:
    model = model_from_text(write(*CORES[operator]), 18)
    result = ortscan.optimize(model, verify=False)
    operators = [node.op_type for node in result.graph.node]
    assert operator in operators
    assert not {"Loop", "Scan"} & set(operators)
    feeds = {"xs": np.random.default_rng(0).standard_normal((STEPS, 2, 6)).astype(np.float32)}
    np.testing.assert_allclose(ort_run(result, feeds)[0], ort_run(model, feeds)[0], rtol=1e-5, atol=1e-6)


CELL = "a = MatMul (h, R) b = Add (a, x) h1 = Tanh (b) y = Mul (h1, two)"
WEIGHTS = "float[4,4] R = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1}, float two = {2}"
SCAN = f"""g (float[T,2,4] xs, float[2,4] h0) => (float[T,2,4] ys, float[2,4] l) <{WEIGHTS}> {{
    l, ys = Scan <num_scan_inputs = 1, body = b (float[2,4] h, float[2,4] x) => (float[2,4] h1, float[2,4] y) {{ {CELL} }}> (h0, xs) }}"""
FROM_THE_END = SCAN.replace("num_scan_inputs = 1", "num_scan_inputs = 1, scan_input_directions = [1]")
LOOP = f"""g (float[T,2,4] xs, float[2,4] h0) => (float[T,2,4] ys, float[2,4] l) <{WEIGHTS}, int64 first = {{0}}, bool yes = {{1}}> {{
    dims = Shape (xs) frames = Gather (dims, first)
    l, ys = Loop <body = b (int64 i, bool c, float[2,4] h) => (bool c1, float[2,4] h1, float[2,4] y) {{ c1 = Identity (c) x = Gather (xs, i) {CELL} }}> (frames, yes, h0) }}"""
LAYERS = f"""g (float[T,2,4] xs, float[2,4] h0) => (float[T,2,4] ys, float[2,4] l) <{WEIGHTS}> {{
    k, zs = Scan <num_scan_inputs = 1, body = b (float[2,4] h, float[2,4] x) => (float[2,4] h1, float[2,4] y) {{ {CELL} }}> (h0, xs)
    l, ys = Scan <num_scan_inputs = 1, body = b2 (float[2,4] h, float[2,4] x) => (float[2,4] h1, float[2,4] y) {{ {CELL} }}> (k, zs) }}"""
FORMS = {"a Scan": SCAN, "a Scan from the end": FROM_THE_END, "a Loop": LOOP, "two layers": LAYERS}


def frames(count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"xs": rng.normal(size=(count, 2, 4)).astype(np.float32), "h0": rng.normal(size=(2, 4)).astype(np.float32)}


@pytest.mark.parametrize("target", ["cpu", "coreml"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("said", ["declared", "fixed"])
def test_one_frame_is_the_step_alone(said: str, form: str, target: str) -> None:
    declared = model_from_text(FORMS[form].replace("[T,", "[1,"), 18)
    after = ortscan.optimize(declared, target=target, verify=False) if said == "declared" else None
    after = after or ortscan.optimize(model_from_text(FORMS[form], 18), target=target, fix_dims={"T": 1}, verify=False)
    assert not {"Scan", "Loop", "If", "RNN"} & {node.op_type for node in after.graph.node}
    assert_same_numbers(ort_run(after, frames(1)), ort_run(declared, frames(1)))


@pytest.mark.parametrize("form", FORMS)
def test_any_number_of_frames_may_be_one(form: str) -> None:
    model = model_from_text(FORMS[form], 18)
    after = ortscan.optimize(model, verify=False)
    for count in (1, 5):
        assert_same_numbers(ort_run(after, frames(count)), ort_run(model, frames(count)))


def test_frames_one_by_one_are_all_frames_at_once() -> None:
    step, given = ortscan.optimize(model_from_text(SCAN, 18), fix_dims={"T": 1}, verify=False), frames(6)
    state, heard = given["h0"], []
    for frame in given["xs"]:
        y, state = ort_run(step, {"xs": frame[None], "h0": state})
        heard.append(y)
    assert_same_numbers([np.concatenate(heard), state], ort_run(model_from_text(SCAN, 18), given))
