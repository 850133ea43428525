"""The model of a whole loop as text, for each kind of input and output of its step."""

from typing import Any

import onnx
import onnx_ir as ir
import pytest

from rewrites.base.errors import OptionError
from rewrites.stepping.step_roles import RoleNames, read_roles
from rewrites.stepping.whole_model import build_whole
from tests.support.text import assert_text_equal, parsed

STEP = """g (float[B,2] h, float[B,2] x, float[2] w) => (float[B,2] h1, float[B,2] y) <float[2] k = {1, 2}> {
    a = Mul (x, w) b = Mul (a, k) h1 = Add (h, b) y = Neg (h1) }"""
BODY = "a = Mul (x, w) b = Mul (a, k) h1 = Add (h, b) y = Neg (h1)"


def whole(step: str | onnx.ModelProto, opset: int = 18, **names: Any) -> ir.Model:
    model = ir.from_proto(parsed(step, opset) if isinstance(step, str) else step)
    build_whole(model, read_roles(model, RoleNames(**names)))
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    return model


def test_a_step_with_a_scanned_input_becomes_a_scan() -> None:
    expected = f"""g (float[B,2] h, float[steps,B,2] x, float[2] w) => (float[B,2] h1, float[steps,B,2] y) <float[2] k = {{1, 2}}> {{
        h1, y = Scan <num_scan_inputs = 1, body = b (float[?,2] h, float[?,2] x) => (float[?,2] h1, float[?,2] y) {{ {BODY} }}> (h, x) }}"""
    assert_text_equal(whole(STEP, states={"h": "h1"}, scan=["x"]), expected, body_types=True)


def test_the_axis_of_the_steps_can_be_chosen() -> None:
    expected = f"""g (float[B,2] h, float[B,steps,2] x, float[2] w) => (float[B,2] h1, float[B,2,steps] y) <float[2] k = {{1, 2}}> {{
        t = Transpose <perm = [1, 0, 2]> (x)
        h1, y = Scan <num_scan_inputs = 1, scan_output_axes = [2],
            body = b (float[?,2] h, float[?,2] x) => (float[?,2] h1, float[?,2] y) {{ {BODY} }}> (h, t) }}"""
    assert_text_equal(whole(STEP, states={"h": "h1"}, scan={"x": 1}, stack={"y": -1}), expected)


def test_a_stop_makes_a_loop_that_reads_the_row_of_the_step() -> None:
    step = "g (float[2] h, float[2] x) => (float[2] h1, bool stop) { h1 = Add (h, x) t = ReduceMax <keepdims = 0> (h1) z = Neg (t) stop = Less (t, z) }"
    expected = """g (float[2] h, float[steps,2] x) => (float[2] h1, bool[?] stop) <int64[1] zero = {0}> {
        s = Shape <start = 0, end = 1> (x) n = Squeeze (s, zero)
        h1, stop = Loop <body = b (int64 i, bool c, float[2] h) => (bool go, float[2] h1, bool stop) {
            r = Gather <axis = 0> (x, i)
            h1 = Add (h, r) t = ReduceMax <keepdims = 0> (h1) z = Neg (t) stop = Less (t, z) go = Not (stop) }> (n, , h) }"""
    assert_text_equal(whole(step, states={"h": "h1"}, scan=["x"], stop="stop"), expected)


@pytest.mark.parametrize(
    ("shape", "go"),
    [
        ("B", "n = Not (d) m = Cast <to = 6> (n) k = ReduceSum <keepdims = 0> (m) go = Cast <to = 9> (k)"),
        ("1", "n = Not (d) go = Reshape (n, scalar)"),
    ],
)
def test_a_batch_stops_when_all_its_rows_do(shape: str, go: str) -> None:
    step = f"g (float[{shape}] h) => (float[{shape}] h1, bool[{shape}] d) {{ h1 = Neg (h) d = Less (h, h1) }}"
    weights = "int64 five = {5}" + (", int64[0] scalar = {}" if shape == "1" else "")
    expected = f"""g (float[{shape}] h) => (float[{shape}] h1) <{weights}> {{
        h1 = Loop <body = b (int64 i, bool c, float[{shape}] h) => (bool go, float[{shape}] h1) {{
            h1 = Neg (h) d = Less (h, h1) {go} }}> (five, , h) }}"""
    assert_text_equal(whole(step, states={"h": "h1"}, stop="d", max_steps=5, outputs=["h1"]), expected)


def test_the_most_steps_can_be_an_input_next_to_the_rows() -> None:
    step = "g (float h, float x) => (float h1) { h1 = Add (h, x) }"
    expected = """g (float h, float[steps] x, int64 n) => (float h1) <int64[1] zero = {0}> {
        s = Shape <start = 0, end = 1> (x) rows = Squeeze (s, zero) l = Less (n, rows) m = Where (l, n, rows)
        h1 = Loop <body = b (int64 i, bool c, float h) => (bool go, float h1) {
            r = Gather <axis = 0> (x, i) h1 = Add (h, r) go = Identity (c) }> (m, , h) }"""
    assert_text_equal(whole(step, states={"h": "h1"}, scan=["x"], max_steps="n"), expected)


def test_a_loop_stacks_along_another_axis_with_a_transpose() -> None:
    step = "g (float[2] h) => (float[2] h1, float[2] y) { h1 = Neg (h) y = Exp (h) }"
    expected = """g (float[2] h) => (float[2] h1, float[2,4] y) <int64 four = {4}> {
        h1, v = Loop <body = b (int64 i, bool c, float[2] h) => (bool go, float[2] h1, float[2] y) {
            h1 = Neg (h) y = Exp (h) go = Identity (c) }> (four, , h) y = Transpose <perm = [1, 0]> (v) }"""
    assert_text_equal(whole(step, states={"h": "h1"}, max_steps=4, stack={"y": 1}), expected)


@pytest.mark.parametrize(("kind", "number"), [("int64", "i"), ("int32", "t"), ("int64[1]", "u"), ("int32[1,1]", "u")])
def test_a_counter_is_the_number_of_the_step(kind: str, number: str) -> None:
    axes = kind.count("1]") and kind.count(",") + 1
    steps = ["t = Cast <to = 6> (i)"] * ("int32" in kind) + [f"u = Reshape ({'t' if 'int32' in kind else 'i'}, ones)"] * bool(axes)
    weights = ["int64 two = {2}"] + [f"int64[{axes}] ones = {{{', '.join('1' * axes)}}}"] * bool(axes)
    step = f"g ({kind} p, float h) => (float h1) {{ q = Cast <to = 1> (p) h1 = Add (h, q) }}"
    if axes:
        step = f"g ({kind} p, float h) => (float h1) {{ q = Cast <to = 1> (p) r = ReduceSum <keepdims = 0> (q) h1 = Add (h, r) }}"
    sums = f"r = ReduceSum <keepdims = 0> (q) h1 = Add (h, {'r' if axes else 'q'})" if axes else "h1 = Add (h, q)"
    expected = f"""g (float h) => (float h1) <{", ".join(weights)}> {{
        h1 = Loop <body = b (int64 i, bool c, float h) => (bool go, float h1) {{
            {" ".join(steps)} q = Cast <to = 1> ({number}) {sums} go = Identity (c) }}> (two, , h) }}"""
    assert_text_equal(whole(step, states={"h": "h1"}, counter="p", max_steps=2), expected)


def test_a_scan_scans_the_numbers_of_the_steps() -> None:
    step = "g (int64 p, float h, float x) => (float h1) { q = Cast <to = 1> (p) y = Mul (q, x) h1 = Add (h, y) }"
    expected = """g (float h, float[steps] x) => (float h1) <int64[1] zeros = {0}, int64 zero = {0}, int64 one = {1}> {
        s = Shape <start = 0, end = 1> (x) n = Squeeze (s, zeros) ps = Range (zero, n, one)
        h1 = Scan <num_scan_inputs = 2, body = b (float h, float x, int64 p) => (float h1) {
            q = Cast <to = 1> (p) y = Mul (q, x) h1 = Add (h, y) }> (h, x, ps) }"""
    assert_text_equal(whole(step, states={"h": "h1"}, counter="p", scan=["x"]), expected)


def test_a_state_that_grows_has_no_fixed_size_in_the_loop() -> None:
    step = "g (float[B,P] c, float[B,1] x) => (float[B,Q] c1) { c1 = Concat <axis = 1> (c, x) }"
    expected = """g (float[B,P] c, float[steps,B,1] x) => (float[B,?] c1) <int64[1] zero = {0}> {
        s = Shape <start = 0, end = 1> (x) n = Squeeze (s, zero)
        c1 = Loop <body = b (int64 i, bool go, float[?,?] c) => (bool on, float[?,?] c1) {
            r = Gather <axis = 0> (x, i) c1 = Concat <axis = 1> (c, r) on = Identity (go) }> (n, , c) }"""
    assert_text_equal(whole(step, states={"c": "c1"}, scan=["x"]), expected, body_types=True)


def test_a_state_that_grows_is_not_stacked() -> None:
    step = "g (float[B,P] c, float[B,1] x) => (float[B,Q] c1) { c1 = Concat <axis = 1> (c, x) }"
    with pytest.raises(OptionError, match="The size of 'c1' changes from step to step"):
        whole(step, states={"c": "c1"}, scan=["x"], stack=["c1"])


def test_an_output_that_the_body_does_not_compute_or_returns_twice_gets_its_own_node() -> None:
    expected = """g (float h, float k, float[steps] x, float w) => (float[steps] h1) {
        v, u, h1 = Scan <num_scan_inputs = 1, body = b (float h, float k, float x) => (float h1, float k1, float y) {
            h1 = Add (h, x) k1 = Identity (h1) y = Identity (h1) }> (h, k, x) }"""
    step = "g (float h, float k, float x, float w) => (float h1) { h1 = Add (h, x) }"
    assert_text_equal(whole(step, states={"h": "h1", "k": "h1"}, scan=["x"], stack=["h1"]), expected)


def test_a_row_that_the_step_returns_unchanged_is_copied() -> None:
    step = "g (float h, float x) => (float h1, float y) { y = Identity (x) h1 = Add (h, x) }"
    model = parsed(step)
    del model.graph.node[0]
    model.graph.output[1].name = "x"
    with pytest.raises(Exception, match="'x' is an input and an output of the step"):
        whole(model, states={"h": "h1"}, scan=["x"])
    whole(model, states={"h": "h1"}, scan=["x"], outputs=["h1"])


def test_nested_graphs_read_the_values_of_the_body_and_of_the_main_graph() -> None:
    step = """g (float h, float x, bool deep) => (float h1) <float k = {2}> { z = Mul (x, k)
        h1 = If (deep) <then_branch = t () => (float r) { r = Add (h, z) }, else_branch = e () => (float q) { q = Mul (h, k) }> }"""
    expected = """g (float h, float[steps] x, bool deep) => (float h1) <float k = {2}> {
        h1 = Scan <num_scan_inputs = 1, body = b (float h, float x) => (float h1) { z = Mul (x, k)
            h1 = If (deep) <then_branch = t () => (float r) { r = Add (h, z) }, else_branch = e () => (float q) { q = Mul (h, k) }>
        }> (h, x) }"""
    assert_text_equal(whole(step, states={"h": "h1"}, scan=["x"]), expected)


def test_names_of_the_step_that_the_loop_would_use_stay_apart() -> None:
    step = """g (float loop, float[2,steps] x_step, float step) => (float loop_step, float[2,steps] goes_on) {
        x_step_step = Neg (x_step) goes_on = Add (x_step_step, loop) loop_step = Add (loop, step) }"""
    model = whole(step, states={"loop": "loop_step"}, scan={"x_step": 2}, stop=None, max_steps=3)
    assert [(value.name, str(value.shape)) for value in model.graph.inputs] == [
        ("loop", "[]"),
        ("x_step", "[2,steps,steps_]"),
        ("step", "[]"),
    ]
    assert [value.name for value in model.graph.outputs] == ["loop_step", "goes_on"]


def test_functions_metadata_and_the_default_of_a_state_stay() -> None:
    text = """<ir_version: 10, opset_import: ["": 18, "my": 1], metadata_props: ["key": "value"]>
    g (float h, float x) => (float h1) <float h = {3}> { h1 = my.Plus (h, x) }
    <opset_import: ["": 18], domain: "my"> Plus (a, b) => (c) { c = Add (a, b) }"""
    model = whole(parsed(text), states={"h": "h1"}, scan=["x"])
    assert [*model.functions] == [("my", "Plus", "")]
    assert model.metadata_props == {"key": "value"}
    assert model.graph.initializers["h"] is model.graph.inputs[0]


def test_a_weight_that_the_step_returns_keeps_its_numbers() -> None:
    step = "g (float h, float x) => (float h1, float k) <float k = {2}> { h1 = Add (h, x) }"
    expected = """g (float h, float[steps] x) => (float h1, float[steps] k) <float two = {2}> {
        h1, k = Scan <num_scan_inputs = 1, body = b (float h, float x) => (float h1, float y) {
            h1 = Add (h, x) y = Identity (two) }> (h, x) }"""
    assert_text_equal(whole(step, states={"h": "h1"}, scan=["x"]), expected)
