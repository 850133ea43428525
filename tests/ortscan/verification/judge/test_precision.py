"""The coarsest floats that each output depends on, through bodies and functions."""

import numpy as np
import pytest

from ortscan.verification.judge.precision import coarsest_floats
from tests.support.text import model_from_text

F16, F64 = np.dtype(np.float16), np.dtype(np.float64)
SCAN = """g (double[T, 4] x, double[4] h, float16[4] k) => (double[4] l, float16[4] m, double[T, 4] y) {{
  l, m, y = Scan <num_scan_inputs = 1, body = b (double[4] s, float16[4] u, double[4] e)
    => (double[4] n, float16[4] v, double[4] o) {{ c = Cast <to = 10> (s) {} }}> (h, k, x) }}"""
FUNCTIONS = """<ir_version: 10, opset_import: ["": 18, "f": 1]>
g (double[N] x) => (double[N] y, double[N] z) {{ y = f.{} (x) z = Sin(x) }}
<domain: "f", opset_import: ["": 18]> cast <to> (x) => (y) {{ h = Cast <to: int = @to> (x) y = Cast <to = 11> (h) }}
<domain: "f", opset_import: ["": 18, "f": 1]> outer (x) => (y) {{ y = f.cast <to = 10> (x) }}"""


@pytest.mark.parametrize(
    ("inside", "types"),
    [
        ("n = Sin(s) v = Tanh(u) o = Add(e, s)", [F64, F16, F64]),
        ("n = Sin(s) v = Add(u, c) o = Add(e, s)", [F64, F16, F64]),
        ("d = Cast <to = 11> (u) n = Sin(d) v = Tanh(u) o = Identity(e)", [F16, F16, F64]),
        ("d = Cast <to = 11> (u) n = Sin(d) v = Tanh(u) o = Add(e, s)", [F16, F16, F16]),
        ("d = Cast <to = 7> (u) r = Cast <to = 11> (d) n = Add(s, r) v = Tanh(u) o = Add(e, s)", [F64, F16, F64]),
    ],
    ids=["apart", "one way", "one state", "at the step after", "through integers"],
)
def test_each_output_of_a_scan_has_the_roundings_of_what_it_depends_on(inside, types):
    assert list(coarsest_floats(model_from_text(SCAN.format(inside), 18)).values()) == types


@pytest.mark.parametrize("call", ["cast <to = 10>", "outer"])
def test_functions_are_looked_into(call):
    assert coarsest_floats(model_from_text(FUNCTIONS.format(call))) == {"y": F16, "z": F64}


def test_both_branches_of_an_if_count_and_its_condition_does_not():
    text = """g (double[N] x, float16 k) => (double[N] y, double[N] z) {
      l = Constant <value = float16 {14336}> () c = Less(k, l) y, z = If (c) <
        then_branch = t () => (double[N] a, double[N] b) { h = Cast <to = 10> (x) a = Cast <to = 11> (h) b = Identity(x) },
        else_branch = e () => (double[N] a2, double[N] b2) { a2 = Neg(x) b2 = Sin(x) }> }"""
    assert coarsest_floats(model_from_text(text, 18)) == {"y": F16, "z": F64}


def test_a_state_that_comes_round_through_another_counts():
    text = """g (double[4] x, float16[4] k) => (double[4] y, float16[4] z, double[4] w) {
      n = Constant <value_int = 3> () y, z, w = Loop (n, , x, k, x) <
        body = b (int64 i, bool p, double[4] s, float16[4] u, double[4] t) => (bool q, double[4] s2, float16[4] u2, double[4] t2) {
          q = Identity(p) s2 = Sin(t) u2 = Tanh(u) t2 = Cast <to = 11> (u) }> }"""
    assert coarsest_floats(model_from_text(text, 18)) == {"y": F16, "z": F16, "w": F16}
