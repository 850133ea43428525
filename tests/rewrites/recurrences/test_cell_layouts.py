"""Cells whose states and inputs are not just rows of float32: further leading axes, no inputs, float16, casts."""

import numpy as np
import onnx
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

RNG = np.random.default_rng(4)
W, R, B = (RNG.standard_normal(shape).astype(np.float32) for shape in ((3, 4), (4, 4), (4,)))
LSTM = """p0 = MatMul (x, WL)  p1 = MatMul (h, RL)  p = Add (p0, p1)  i0, o0, f0, g0 = Split <axis = -1, num_outputs = 4> (p)
i = Sigmoid (i0)  o = Sigmoid (o0)  f = Sigmoid (f0)  g = Tanh (g0)  fc = Mul (f, c)  ig = Mul (i, g)  c1 = Add (fc, ig)
t = Tanh (c1)  h1 = Mul (o, t)  y = Identity (h1)"""


def nodes_of(
    text: str, feeds: dict[str, np.ndarray], *, tolerance: float = 1e-5, target: str = "onnx", **weights: np.ndarray
) -> list[str]:
    """Optimise, compare with the original, and return the recurrent nodes and loops that remain."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    result = to_caller_type(rewritten(model, target=target, debug=True)[0])
    onnx.checker.check_model(result, full_check=True)
    assert_same_numbers(ort_run(result, feeds), ort_run(model, feeds), rtol=10 * tolerance, atol=tolerance)
    return [node.op_type for node in result.graph.node if node.op_type in {"RNN", "GRU", "LSTM", "Scan", "Loop", "If"}]


def normal(*shape: int, kind: type = np.float32) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(kind)


@pytest.mark.parametrize("lead", [(2, 3), (1, 2), (2, 1, 3)])
def test_more_leading_axes_are_rows_too(lead):
    dims = ",".join(map(str, lead))
    text = f"""g (float[{dims},4] h0, float[{dims},4] c0, float[6,{dims},3] xs) => (float[{dims},4] hn, float[6,{dims},4] ys) {{
        hn, cn, ys = Scan <num_scan_inputs = 1, body = step (float[{dims},4] h, float[{dims},4] c, float[{dims},3] x)
            => (float[{dims},4] h1, float[{dims},4] c1, float[{dims},4] y) {{ {LSTM} }}> (h0, c0, xs) }}"""
    feeds = {"h0": normal(*lead, 4), "c0": normal(*lead, 4), "xs": normal(6, *lead, 3)}
    assert nodes_of(text, feeds, WL=normal(3, 16), RL=normal(4, 16)) == ["LSTM"]


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("target", ["cpu", "onnx", "cuda", "directml"])
def test_one_of_the_leading_axes_may_be_free(rows, target):
    text = f"""g (float[3,B,4] h0, float[3,B,4] c0, float[6,3,B,3] xs) => (float[3,B,4] hn, float[6,3,B,4] ys) {{
        hn, cn, ys = Scan <num_scan_inputs = 1, body = step (float[3,B,4] h, float[3,B,4] c, float[3,B,3] x)
            => (float[3,B,4] h1, float[3,B,4] c1, float[3,B,4] y) {{ {LSTM} }}> (h0, c0, xs) }}"""
    feeds = {"h0": normal(3, rows, 4), "c0": normal(3, rows, 4), "xs": normal(6, 3, rows, 3)}
    assert nodes_of(text, feeds, target=target, WL=normal(3, 16), RL=normal(4, 16)) == ["If"]


def test_two_free_leading_axes_keep_the_loop():
    text = f"""g (float[A,B,4] h0, float[A,B,4] c0, float[6,A,B,3] xs) => (float[6,A,B,4] ys) {{
        hn, cn, ys = Scan <num_scan_inputs = 1, body = step (float[A,B,4] h, float[A,B,4] c, float[A,B,3] x)
            => (float[A,B,4] h1, float[A,B,4] c1, float[A,B,4] y) {{ {LSTM} }}> (h0, c0, xs) }}"""
    feeds = {"h0": normal(2, 3, 4), "c0": normal(2, 3, 4), "xs": normal(6, 2, 3, 3)}
    assert nodes_of(text, feeds, WL=normal(3, 16), RL=normal(4, 16)) == ["Scan"]


def test_a_cell_without_inputs_is_given_zeros():
    text = """g (float[B,4] h0, float[T,2] zs) => (float[B,4] hn, float[T,B,4] ys, float[T,2] ws) {
        hn, ys, ws = Scan <num_scan_inputs = 1, body = step (float[B,4] h, float[2] z) => (float[B,4] h1, float[B,4] y, float[2] w) {
            hr = MatMul (h, R)  a = Add (hr, B)  h1 = Tanh (a)  y = Identity (h1)  w = Exp (z) }> (h0, zs) }"""
    assert nodes_of(text, {"h0": normal(2, 4), "zs": normal(5, 2)}, R=R, B=B) == ["If"]


@pytest.mark.parametrize("axis", [-1, 0])
def test_two_states_in_one_tensor_are_split(axis):
    """Two states are concatenated, as by TensorFlow's state_is_tuple=False, or stacked."""
    shape = "2,8" if axis else "2,2,4"
    read = "h, c = Split <axis = 1, num_outputs = 2> (s)" if axis else "h = Gather (s, none)  c = Gather (s, one)"
    write = (
        "s1 = Concat <axis = 1> (h1, c1)"
        if axis
        else "h2 = Unsqueeze (h1, first)  c2 = Unsqueeze (c1, first)  s1 = Concat <axis = 0> (h2, c2)"
    )
    text = f"""g (float[{shape}] s0, float[6,2,3] xs) => (float[{shape}] sn, float[6,2,4] ys) {{
        sn, ys = Scan <num_scan_inputs = 1, body = step (float[{shape}] s, float[2,3] x) => (float[{shape}] s1, float[2,4] y) {{
            {read}  {LSTM}  {write} }}> (s0, xs) }}"""
    feeds = {"s0": normal(*map(int, shape.split(","))), "xs": normal(6, 2, 3)}
    places = {"none": np.array(0), "one": np.array(1), "first": np.array([0])}
    assert nodes_of(text, feeds, WL=normal(3, 16), RL=normal(4, 16), **places) == ["LSTM"]


ELMAN = "xw = MatMul (x, W)  hr = MatMul (h, R)  s = Add (xw, hr)  a = Add (s, B)  h1 = Tanh (a)"
HALF = {"W": W.astype(np.float16), "R": R.astype(np.float16), "B": B.astype(np.float16)}


def test_float16_stays_float16():
    text = f"""g (float16[2,4] h0, float16[6,2,3] xs) => (float16[2,4] hn) {{
        hn = Scan <num_scan_inputs = 1, body = step (float16[2,4] h, float16[2,3] x) => (float16[2,4] h1) {{ {ELMAN} }}> (h0, xs) }}"""
    feeds = {"h0": normal(2, 4, kind=np.float16), "xs": normal(6, 2, 3, kind=np.float16)}
    assert nodes_of(text, feeds, tolerance=4e-3, **HALF) == ["RNN"]


CASTS = """xc = Cast <to = 1> (x)  hc = Cast <to = 1> (h)  xw = MatMul (xc, W)  hr = MatMul (hc, R)  s = Add (xw, hr)  a = Add (s, B)
t = Tanh (a)  h1 = Cast <to = 10> (t)"""


def test_casts_up_and_down_to_the_states_type_vanish():
    text = f"""g (float16[2,4] h0, float16[6,2,3] xs) => (float16[2,4] hn) {{
        hn = Scan <num_scan_inputs = 1, body = step (float16[2,4] h, float16[2,3] x) => (float16[2,4] h1) {{ {CASTS} }}> (h0, xs) }}"""
    feeds = {"h0": normal(2, 4, kind=np.float16), "xs": normal(6, 2, 3, kind=np.float16)}
    weights = {name: array.astype(np.float32) for name, array in HALF.items()}
    assert nodes_of(text, feeds, tolerance=4e-3, **weights) == ["RNN"]


def test_float32_weights_that_are_no_float16_keep_the_loop():
    text = f"""g (float16[2,4] h0, float16[6,2,3] xs) => (float16[2,4] hn) {{
        hn = Scan <num_scan_inputs = 1, body = step (float16[2,4] h, float16[2,3] x) => (float16[2,4] h1) {{ {CASTS} }}> (h0, xs) }}"""
    feeds = {"h0": normal(2, 4, kind=np.float16), "xs": normal(6, 2, 3, kind=np.float16)}
    assert nodes_of(text, feeds, tolerance=4e-3, W=W, R=R, B=B) == ["Scan"]


def test_inputs_of_float16_are_widened_before_the_node():
    text = f"""g (float[2,4] h0, float16[6,2,3] xs) => (float[2,4] hn) {{
        hn = Scan <num_scan_inputs = 1, body = step (float[2,4] h, float16[2,3] x16) => (float[2,4] h1) {{
            x = Cast <to = 1> (x16)  {ELMAN} }}> (h0, xs) }}"""
    assert nodes_of(text, {"h0": normal(2, 4), "xs": normal(6, 2, 3, kind=np.float16)}, W=W, R=R, B=B) == ["RNN"]


def test_rounding_within_the_step_keeps_the_loop():
    text = f"""g (float[2,4] h0, float[6,2,3] xs) => (float[2,4] hn) {{
        hn = Scan <num_scan_inputs = 1, body = step (float[2,4] h2, float[2,3] x) => (float[2,4] h1) {{
            h3 = Cast <to = 10> (h2)  h = Cast <to = 1> (h3)  {ELMAN} }}> (h0, xs) }}"""
    assert nodes_of(text, {"h0": normal(2, 4), "xs": normal(6, 2, 3)}, W=W, R=R, B=B) == ["Scan"]


def test_double_keeps_the_loop():
    text = f"""g (double[2,4] h0, double[6,2,3] xs) => (double[2,4] hn) {{
        hn = Scan <num_scan_inputs = 1, body = step (double[2,4] h, double[2,3] x) => (double[2,4] h1) {{ {ELMAN} }}> (h0, xs) }}"""
    weights = {"W": W.astype(np.float64), "R": R.astype(np.float64), "B": B.astype(np.float64)}
    assert nodes_of(text, {"h0": normal(2, 4, kind=np.float64), "xs": normal(6, 2, 3, kind=np.float64)}, **weights) == ["Scan"]
