"""Scans whose state changes its shape become Loops; the numbers are those of a plain loop over time."""

import numpy as np
import onnx
import pytest

import ortscan
from rewrites.repair import growing_state
from tests.rewrites.apply import apply, patches, reasons
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

APPENDS = """
g (float[2] h, float[T, 1] x) => (float[K] l) {
  l = Scan <num_scan_inputs = 1, body = b (float[N] s, float[1] xt) => (float[M] n) { n = Concat <axis = 0> (s, xt) }> (h, x)
}
"""
SUMS = """
g (float[H] h, float[1, T] x) => (float[K] l, float[1, T] ys) {
  l, ys = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], scan_input_directions = [1],
                scan_output_directions = [1],
    body = b (float[N] s, float[1] xt) => (float[M] n, float[1] y) {
      y = ReduceSum <keepdims = 1> (s) n = Concat <axis = 0> (s, xt)
    }> (h, x)
}
"""
PADS = """
g (float[2] h, float[T, 2] x) => (float[K] l) <int64[2] p = {0, 1}> {
  l = Scan <num_scan_inputs = 1, body = b (float[N] s, float[2] xt) => (float[M] n) { m = ReduceSum (xt) a = Add (s, m) n = Pad (a, p) }> (h, x)
}
"""
SHRINKS = """
g (float[K] h, float[T, 1] x) => (float[M] l) <int64[1] one = {1}, int64[1] big = {100}> {
  l = Scan <num_scan_inputs = 1, body = b (float[N] s, float[1] xt) => (float[Q] n) { n = Slice (s, one, big) }> (h, x)
}
"""
DOUBLES = """
g (float[K] h, float[T, 1] x) => (float[M] l) <int64[1] two = {2}> {
  l = Scan <num_scan_inputs = 1, body = b (float[N] s, float[1] xt) => (float[Q] n) { n = Tile (s, two) }> (h, x)
}
"""
SOMETIMES = """
g (float[K] h, float[T, 1] x) => (float[M] l) <float[1] one = {1}, int64[1] zero = {0}> {
  l = Scan <num_scan_inputs = 1, body = b (float[N] s, float[1] xt) => (float[Q] n) {
    more = Greater (xt, one)
    flag = Squeeze (more, zero)
    n = If (flag) <
      then_branch = t () => (float[A] u) { u = Concat <axis = 0> (s, xt) },
      else_branch = e () => (float[B] v) { v = Identity (s) }>
  }> (h, x)
}
"""


def model_of(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')


TEXTS = {"appends": APPENDS, "sums": SUMS, "pads": PADS, "shrinks": SHRINKS, "doubles": DOUBLES, "sometimes": SOMETIMES}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_growing_state_has_the_numbers_of_a_loop_over_time(text: str, steps: int):
    model = model_of(text)
    width = 2 if text is PADS else 1
    x = np.arange(steps * width, dtype=np.float32).reshape(steps, width)
    feeds = {"h": np.array([1, 2], np.float32), "x": x.T if text is SUMS else x}
    result = ortscan.optimize(model, verify=False)  # onnxruntime runs no such model, so that there is nothing to compare with
    onnx.checker.check_model(result, full_check=True)
    assert_same_numbers(ort_run(result, feeds), run_model(model, feeds))


def test_it_is_a_loop_and_comes_back_to_no_scan():
    _, report = apply(APPENDS, [growing_state], check=False)
    assert patches(report) == ["growing-state"]
    assert "Scan" not in ortscan.explain(model_of(APPENDS)).operators_after


@pytest.mark.parametrize(
    "body",
    [
        "n = Add (s, xt)",
        "c = Concat <axis = 0> (s, xt) n = Slice (c, zero, two)",
        "n = Concat <axis = 0> (xt)",
        "n = Slice (s, zero, two)",
        "n = Slice (xt, zero, two)",
    ],
)
def test_a_state_that_keeps_its_shape_stays_in_a_scan(body: str):
    text = f"""
    g (float[2] h, float[T, 2] x) => (float[2] l) <int64[1] zero = {{0}}, int64[1] two = {{2}}> {{
      l = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] xt) => (float[2] n) {{ {body} }}> (h, x)
    }}
    """
    _, report = apply(text, [growing_state])
    assert not report.patches


def test_an_empty_state_that_is_appended_to_itself_stays_in_a_scan():
    text = """
    g (float[T, 2] x) => (float[K, 2] l, float[T, 2] y) <float[0, 2] none = {}> {
      l, y = Scan <num_scan_inputs = 1, body = b (float[N, 2] s, float[2] xt) => (float[N, 2] n, float[2] y) {
        n = Concat <axis = 0> (s, s) y = Neg (xt)
      }> (none, x)
    }
    """
    assert not apply(text, [growing_state])[1].patches
    assert patches(apply(text.replace("[0, 2] none = {}", "[1, 2] none = {1, 2}"), [growing_state], check=False)[1]) == [
        "growing-state"
    ]


def test_what_cannot_become_a_loop_is_said_with_a_reason():
    strings = APPENDS.replace("float", "string")
    assert reasons(apply(strings, [growing_state], check=False)[1]) == ["GROWING-STRINGS"]
    assert reasons(apply(SUMS.replace("ReduceSum", "ReduceMax"), [growing_state], opset=9, check=False)[1]) == ["GROWING-OPSET"]
