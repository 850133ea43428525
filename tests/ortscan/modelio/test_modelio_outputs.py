"""Outputs in a form that onnxruntime refuses are written in another form."""

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.errors import OrtscanWarning
from rewrites.base.errors import UnsupportedModel
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

HEAD = '<ir_version: 8, opset_import: ["": OPSET]>'
OUTER = """
g (float[2] h, float[2] c, float[T,2] x) => (float[2] l, float[T,2] ys) {
  d = Add (c, c)
  l, ys = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] a) => (float[2] n, float[2] d) {
    p = Mul (s, s)
    q = Add (p, a)
    n = Tanh (q)
  }> (h, x) }"""
UNREAD = """
g (float[2] h, float[2] c, float[T,2] x) => (float[2] l, float[2] d) {
  d = Add (c, c)
  l = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] a) => (float[2] n, float[2] y) {
    p = Mul (s, s)
    q = Add (p, a)
    n = Tanh (q)
    y = Identity (n)
  }> (h, x) }"""


@pytest.mark.parametrize("opset", [16, 18])
@pytest.mark.parametrize(
    ("text", "said"), [(OUTER, "inserted an Identity for the output 'd' of 'b'"), (UNREAD, "added the unread outputs of its body")]
)
def test_a_scan_whose_outputs_are_not_written_as_onnxruntime_wants_runs(text: str, said: str, opset: int):
    model = onnx.parser.parse_model(HEAD.replace("OPSET", str(opset)) + text)
    before = model.SerializeToString()
    x, h, c = np.ones((3, 2), np.float32) / 3, np.ones(2, np.float32), np.full(2, 2, np.float32)
    with pytest.raises(Exception, match=r"outer scope value|Expected 1"):
        ort_run(model, {"h": h, "c": c, "x": x})
    report = ortscan.explain(model)
    assert report.changed
    assert any(said in message for message in report.messages)
    last = h
    for row in x:
        last = np.tanh(last * last + row)
    expected = [last, np.full((3, 2) if text is OUTER else 2, 4, np.float32)]
    assert_same_numbers(ort_run(ortscan.optimize(model, verify=False), {"h": h, "c": c, "x": x}), expected)
    assert_same_numbers(ortscan.InferenceSession(model).run(None, {"h": h, "c": c, "x": x}), expected)
    assert model.SerializeToString() == before


def test_an_output_that_nothing_defines_is_still_refused():
    model = onnx.parser.parse_model(HEAD.replace("OPSET", "18") + OUTER.replace("float[2] d) {", "float[2] e) {"))
    with pytest.raises(UnsupportedModel, match="output 'e' of graph 'b' is not defined"):
        ortscan.optimize(model)


def test_a_branch_may_give_a_value_of_the_graph_around_it():
    model = onnx.parser.parse_model(
        HEAD.replace("OPSET", "18")
        + """g (bool f, float[2] c) => (float[2] y) {
          d = Add (c, c)
          y = If (f) <then_branch = t () => (float[2] d) { }, else_branch = e () => (float[2] n) { n = Neg (d) }> }"""
    )
    c = np.ones(2, np.float32)
    with pytest.warns(OrtscanWarning, match="not verified: nothing was compared: the original does not load"):
        result = ortscan.optimize(model)
    assert [ort_run(result, {"f": np.array(flag), "c": c})[0].tolist() for flag in (True, False)] == [[2, 2], [-2, -2]]
