"""Declared sizes: all of them, unusual ones, and sizes that do not fit one of the branches."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers, drawn
from tests.support.runtime import ort_run
from tests.support.text import model_from_text, parsed

SCAN = """<ir_version: 8, opset_import: ["": OPSET]> g (float[N,2] x, float[2] h) => (float[2] l, float[N,2] ys) {
    l, ys = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] a) => (float[2] n, float[2] y) { n = Add (s, a) y = Tanh (n) }> (h, x) }"""
LOOP = """<ir_version: 8, opset_import: ["": OPSET]> g (float[N,2] x, float[2] h) => (float[2] l, float[N,2] ys) <int64[1] z = {0}, int64[0] o = {}> {
    sh = Shape (x) q = Gather (sh, z) m = Reshape (q, o)
    l, ys = Loop <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] n, float[2] y) { d = Identity (c) a = Gather (x, i) n = Add (s, a) y = Tanh (n) }> (m, , h) }"""
COUNT = """<ir_version: 8, opset_import: ["": OPSET]> g (float[N,2] x, float[2] h) => (float[2] l, float[N,2] ys) {
    sh = Shape (x) e = ConstantOfShape (sh) l, ys = Scan <num_scan_inputs = 2, body = b (float[2] s, float[2] a, float[2] k) => (float[2] n, float[2] y) { n = Add (s, a) y = Add (n, k) }> (h, x, e) }"""


FROM_ZEROS = """<ir_version: 8, opset_import: ["": OPSET]> g (float[N,2] x, float[2] h) => (float[2] l, float[N,2] ys) <float[2] none = {0, 0}> {
    k, ys = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] a) => (float[2] n, float[2] y) { n = Add (s, a) y = Tanh (n) }> (none, x) l = Add (k, h) }"""


DELAY = SCAN.replace("n = Add (s, a) y = Tanh (n)", "n = Identity (a) y = Add (s, a)")
REVERSED = DELAY.replace("num_scan_inputs = 1", "num_scan_inputs = 1, scan_input_directions = [1]")
LAST = SCAN.replace("n = Add (s, a) y = Tanh (n)", "n = Identity (a) y = Tanh (a)")
CELL = SCAN.replace(
    "n = Add (s, a) y = Tanh (n)",
    "c = Constant <value = float[2,2] {1, 2, 3, 4}> () p = MatMul (s, c) q = Add (p, a) n = Tanh (q) y = Identity (n)",
)
CUT = (
    SCAN.replace("l, ys =", "q = Slice (x, o, m) l, ys =")
    .replace("(h, x)", "(h, q)")
    .replace("ys) {", "ys) <int64[1] o = {0}, int64[1] m = {99}> {")
)


def with_negative_sizes(text):
    model = model_from_text(text, check=False)
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.shape.dim[0].dim_param:
            value.type.tensor_type.shape.dim[0].dim_value = -1
    return model


@pytest.mark.parametrize("text", [SCAN, LOOP, COUNT, FROM_ZEROS, DELAY, REVERSED, LAST, CELL, CUT])
@pytest.mark.parametrize("opset", [11, 16])
def test_a_size_of_minus_one_is_a_free_one(text, opset):
    model = with_negative_sizes(text.replace("OPSET", str(opset)))
    free = [ortscan.optimize(model, verify=False), ortscan.migrate(model, 18, verify=False)]
    for steps in (1, 3):
        feeds = {"x": np.arange(2 * steps, dtype=np.float32).reshape(steps, 2), "h": np.ones(2, np.float32)}
        wanted = ort_run(model, feeds)
        for after in (*free, ortscan.optimize(model, fix_shapes={"x": [steps, 2]}, verify=False)):
            assert_same_numbers(ort_run(after, feeds), wanted)
            onnx.checker.check_model(after, full_check=True)


@pytest.mark.parametrize("text", [SCAN, DELAY])
def test_a_size_of_minus_one_is_declared_free_where_something_is_changed(text):
    model = with_negative_sizes(text.replace("OPSET", "16"))
    free = model_from_text(text.replace("OPSET", "16"), check=False)
    for value in (*free.graph.input, *free.graph.output):
        value.type.tensor_type.shape.dim[0].ClearField("dim_param")
    after = ortscan.optimize(model, verify=False)
    assert (list(after.graph.input), list(after.graph.output)) == (list(free.graph.input), list(free.graph.output))
    assert ortscan.migrate(model, 18, verify=False).graph.input == free.graph.input
    assert ortscan.migrate(model, 16).graph.input == model.graph.input
    assert ortscan.optimize(with_negative_sizes(PLAIN)).graph.input == with_negative_sizes(PLAIN).graph.input


PLAIN = """<ir_version: 8, opset_import: ["": 16]> g (float[N,2] x) => (float[M,2] y) <int64[1] o = {1}, int64[1] m = {9}> { y = Slice (x, o, m) }"""
TWO_RATES = """<ir_version: 8, opset_import: ["": 16]>
g (float[B,N] x, float[B,3] h, int64 rate) => (float[B,3] y, float[K,M] s) <int64 k = {16}, float[6,3] wide, float[4,3] narrow, int64[1] zero = {0}> {
    c = Equal (rate, k)
    y, s = If (c) <
        then_branch = t () => (float[B,3] y1, float[B,3] s1) { f = MatMul (x, wide) y1 = Add (f, h) s1 = Tanh (y1) },
        else_branch = e () => (float[B,3] y2, float[B,3] s2) { INSIDE }> }"""
OTHERS = {
    "plain": "f2 = MatMul (x, narrow) y2 = Add (f2, h) s2 = Sigmoid (y2)",
    "behind a nested If": "f2 = If (c) <then_branch = p () => (v) { v = Neg (h) }, else_branch = q () => (w) { w = MatMul (x, narrow) }> y2 = Add (f2, h) s2 = Sigmoid (y2)",
    "in a Scan": "ax = Unsqueeze (x, zero) r = Scan <num_scan_inputs = 1, body = b (float[B,N] a) => (float[B,3] m) { m = MatMul (a, narrow) }> (ax) f2 = Squeeze (r, zero) y2 = Add (f2, h) s2 = Sigmoid (y2)",
}  # fmt: skip


@pytest.mark.parametrize("inside", OTHERS)
@pytest.mark.parametrize(("width", "rate"), [(6, 16), (4, 8)])
@pytest.mark.parametrize("target", ["cpu", "onnx"])
def test_a_branch_made_for_another_size_may_stay(inside, width, rate, target):
    rng = np.random.default_rng(0)
    text = TWO_RATES.replace("INSIDE", OTHERS[inside]).replace("float[6,3] wide, float[4,3] narrow, ", "")
    model = parsed(text, weights=drawn(wide=(6, 3), narrow=(4, 3)))
    feeds = {"x": rng.normal(size=(2, width)).astype(np.float32), "h": rng.normal(size=(2, 3)).astype(np.float32)}
    feeds["rate"] = np.array(rate)
    wanted = ort_run(model, feeds)
    after = ortscan.optimize(model, fix_shapes={"x": [2, width], "h": [2, 3]}, target=target, verify=False)
    onnx.checker.check_model(after, full_check=True)
    assert_same_numbers(ort_run(after, feeds), wanted)
    with pytest.raises(Exception, match="MatMul"):
        ort_run(after, {**feeds, "rate": np.array(24 - rate)})


LYING = """<ir_version: 8, opset_import: ["": 18]> g (float[T,2] x, float[2] h) => (float[T,2] y, float[T,2] z) <int64 many = {100}, bool yes = {1}, int64 one = {1}, int64 zero = {0}> {
    y = Loop <body = b (int64 i, bool c) => (bool c1, float[2] v) { r = Gather (x, i) v = Tanh (r) c1 = Less (i, zero) }> (many, yes)
    s = Shape (y) n = Gather (s, zero) sx = Shape (x) t = Gather (sx, zero)
    l, z = Loop <body = e (int64 j, bool d, float[2] a) => (bool d1, float[2] a1, float[2] w) {
        p = Min (j, n) r1 = Gather (x, p) q = Add (a, r1) a1 = Tanh (q) w = Identity (a1) d1 = Identity (d) }> (t, yes, h) }"""


def test_a_name_that_an_output_shares_with_an_input_proves_no_size():
    model = model_from_text(LYING, check=False)
    feeds = {"x": np.arange(10, dtype=np.float32).reshape(5, 2), "h": np.ones(2, np.float32)}
    wanted = ort_run(model, feeds)
    assert len(wanted[0]) == 1
    after = ortscan.optimize(model, verify=False)
    assert_same_numbers(ort_run(after, feeds), wanted)
    assert after.graph.output == model.graph.output


UNPROVEN = """<ir_version: 8, opset_import: ["": 18]> g (float[T,R,1] x, float[N,4] a, int64 n) => (float[T,?,?] y) <bool yes = {1}> {
    y = Scan <num_scan_inputs = 1, body = b (float[R,1] t) => (float[?,1] u) {
        s = Shape (t) z = Loop <body = l (int64 i, bool c, int64[?] v) => (bool c1, int64[?] w) { w = ArgMax (a) c1 = Identity (c) }> (n, yes, s)
        f = Cast <to = 1> (z) m = ReduceSum (f) p = Add (t, m) u = Identity (p) }> (x) }"""


def test_what_a_scan_stacks_keeps_the_rank_that_only_a_declaration_tells():
    model = model_from_text(UNPROVEN, check=False)
    feeds = {"x": np.ones((3, 2, 1), np.float32), "a": np.eye(2, 4, dtype=np.float32), "n": np.array(2)}
    assert_same_numbers(ort_run(ortscan.optimize(model, verify=False), feeds), ort_run(model, feeds))


EARLY = """<ir_version: 8, opset_import: ["": 16]> g (float[T] x, float[T,2] rows) => (float[T] ys, float[T,2] zs) <int64 far = {99}, bool yes = {1}, float zero = {0}, int64 o = {0}> {
    l, ys = Loop <body = b (int64 i, bool c, float s) => (bool d, float n, float y) { a = Gather (x, i) n = Add (s, a) y = Identity (n) d = Less (n, one) }> (far, yes, zero)
    READ
    zs = Loop <body = b2 (int64 j, bool c2) => (bool d2, float[2] z) { d2 = Identity (c2) r = Gather (rows, j) z = Tanh (r) }> (count, yes) }"""


@pytest.mark.parametrize(
    "read", ["sh = Shape (ys) count = Gather (sh, o)", "count = Size (ys)", "e = Neg (ys) sh = Shape (e) count = Gather (sh, o)"]
)
@pytest.mark.parametrize("options", [{"fix_shapes": {"x": [4], "rows": [4, 2]}}, {}, {"fix_shapes": {"x": [4]}}])
def test_a_fixed_size_does_not_say_how_many_steps_a_loop_takes_that_leaves_early(options, read):
    model = model_from_text(EARLY.replace("READ", read).replace("far = {99}", "far = {99}, float one = {1}"), check=False)
    feeds = {"x": np.array([0.5, 0.9, 2, 3], np.float32), "rows": np.arange(8, dtype=np.float32).reshape(4, 2)}
    wanted = ort_run(model, feeds)
    assert wanted[1].shape == (2, 2)
    assert_same_numbers(ort_run(ortscan.optimize(model, verify=False, **options), feeds), wanted)


WORDS = """<ir_version: 6, opset_import: ["": 12]> g (TYPE[T,2] x, float[2] h) => (float[2] l, TYPE[5,2] ys) {
    l, ys = Scan <num_scan_inputs = 1, body = b (float[2] s, TYPE[2] e) => (float[2] n, TYPE[2] y) { n = Tanh (s) y = Identity (e) }> (h, x) }"""


@pytest.mark.parametrize("element", ["string", "float", "int64"])
@pytest.mark.parametrize("options", [{"target": "coreml"}, {}, {"passes": ["default", "guard-scan"]}, {"native": True}])
def test_rows_declared_as_another_number_of_rows_are_as_many_as_they_are(options, element):
    model = model_from_text(WORDS.replace("TYPE", element), check=False)
    rows = np.arange(8).reshape(4, 2).astype({"float": np.float32}.get(element, np.int64))
    feeds = {"x": rows.astype(str).astype(object) if element == "string" else rows, "h": np.ones(2, np.float32)}
    after = ortscan.optimize(model, verify=False, **options)
    got, wanted = (ort_run(each, feeds) for each in (after, model))
    assert [value.shape for value in got] == [(2,), (4, 2)]
    assert all(np.array_equal(left, right) for left, right in zip(got[1:], wanted[1:], strict=True))


STEP = "t = Tanh (a) q = Mul (s, t) s1 = Sub (q, a) o = Identity (s1)"
EXPANDED = f"""g (float[T,2,4] x, float[1,4] k) => (float[T,2,4] y) {{
    n = Shape (x) z = Constant <value_int = 0> () one = Constant <value_ints = [1]> () end = Constant <value_ints = [3]> ()
    rest = Slice (n, one, end) h = Expand (k, rest) m = Gather (n, z) c = Constant <value = bool {{1}}> ()
    l, y = Loop <body = b (int64 i, bool d, float[2,4] s) => (bool d1, float[2,4] s1, float[2,4] o) {{
        d1 = Identity (d) a = Gather (x, i) {STEP} }}> (m, c, h) }}"""
RESHAPED = f"""g (float[2,T,4] x, float[2,4] h) => (float[T,2,4] y) {{
    u = Transpose <perm = [1, 0, 2]> (x) n = Shape (u) r = Reshape (u, n)
    l, y = Scan <num_scan_inputs = 1, body = b (float[2,4] s, float[2,4] a) => (float[2,4] s1, float[2,4] o) {{ {STEP} }}> (h, r) }}"""
BY_SIZES = f"""g (float[T,2,4] x, float[2,4] h) => (float[T,2,4] y) {{
    n = Size (x) f = Cast <to = 1> (n) v = Mul (x, f)
    l, y = Scan <num_scan_inputs = 1, body = b (float[2,4] s, float[2,4] a) => (float[2,4] s1, float[2,4] o) {{ {STEP} }}> (h, v) }}"""
LOOPLESS = "g (float[T,4] x) => (float[T,4] y) { n = Shape (x) r = Reshape (x, n) y = Tanh (r) }"


def operators(model):
    return [node.op_type for node in model.graph.node]


def both(text):
    return model_from_text(text, 17), model_from_text(text.replace("[T,", "[5,").replace(",T,", ",5,"), 17)


@pytest.mark.parametrize("text", [EXPANDED, RESHAPED, BY_SIZES])
@pytest.mark.parametrize("target", ["cpu", "coreml"])
def test_declared_sizes_do_what_fixed_ones_do(text, target):
    free, static = both(text)
    sizes = {info.name: [dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in static.graph.input}
    after = ortscan.optimize(static, target=target, verify=False)
    assert operators(after) == operators(ortscan.optimize(free, target=target, fix_shapes=sizes, verify=False))
    assert not {"Shape", "Size", "Gather", "Constant"} & set(operators(after))
    assert ortscan.optimize(after, target=target, verify=False) == after
    rng = np.random.default_rng(0)
    feeds = {name: rng.normal(size=dims).astype(np.float32) for name, dims in sizes.items()}
    assert_same_numbers(ort_run(after, feeds), ort_run(static, feeds))


def test_one_free_size_leaves_what_depends_on_it():
    free, _ = both(BY_SIZES)
    assert "Size" in operators(ortscan.optimize(free))


def test_a_static_model_without_loops_stays_as_it_is():
    _, static = both(LOOPLESS)
    assert operators(ortscan.optimize(static)) == operators(static)
