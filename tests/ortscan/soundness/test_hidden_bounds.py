"""Declared shapes stay if onnx contradicts them only because it does not know the bounds of a Slice."""

import warnings

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

FUNCTIONS = """
<opset_import: ["": 17], domain: "my"> Sizes (x) => (s, i) { s = Shape (x) i = Constant <value_ints = [1]> () }
<opset_import: ["": 17], domain: "my"> Part (s, i, end) => (part) { part = Slice (s, i, end) }"""
HIDDEN_BY_AN_IF = """<ir_version: 8, opset_import: ["": 17, "my": 1]> g (float[4, 1, 2] x) => (float[a, b] y) <int64[1] two = {2}> {
    no = Constant <value = bool {0}> ()
    y = If (no) <then_branch = t () => (float[1, 1] u) { u = Constant <value = float[1, 1] {3}> () },
        else_branch = e () => (float[?, ?] w) {
            s, i = my.Sizes (x) part = CUT three = Constant <value_ints = [3]> ()
            size = Concat <axis = 0> (part, three) w = ConstantOfShape (size) }> }"""
HIDDEN_BY_A_LOOP = """<ir_version: 8, opset_import: ["": 17, "my": 1]> g (float[4, 1, 2] x) => (float[4, 1, 2] y)
<int64[1] two = {2}, int64[1] four = {4}, int64 n = {2}, bool yes = {1}> {
    s, i = my.Sizes (x) part = CUT size = Concat <axis = 0> (four, part, two) zeros = ConstantOfShape (size)
    y = Loop (n, yes, zeros) <body = b (int64 k, bool c, float[4, 1, 2] h) => (bool c1, float[4, 1, 2] h1) {
        c1 = Identity (c) a = Add (h, x) h1 = Tanh (a) }> }"""


@pytest.mark.parametrize("text", [HIDDEN_BY_AN_IF, HIDDEN_BY_A_LOOP], ids=["If", "Loop"])
@pytest.mark.parametrize("cut", ["Slice (s, i, two)", "my.Part (s, i, two)"])
@pytest.mark.parametrize("target", ["cpu", "coreml"])
def test_the_declared_shape_stays_and_nothing_is_blamed(text: str, cut: str, target: str) -> None:
    model = model_from_text(text.replace("CUT", cut) + FUNCTIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = ortscan.optimize(model, target=target)
    assert result.graph.output[0] == model.graph.output[0]
    onnx.checker.check_model(result, full_check=True)
    feeds = {"x": np.arange(8, dtype=np.float32).reshape(4, 1, 2)}
    np.testing.assert_allclose(ort_run(result, feeds)[0], ort_run(model, feeds)[0], rtol=1e-6)
