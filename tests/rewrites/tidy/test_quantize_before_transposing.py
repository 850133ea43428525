"""Outputs that another node quantizes are given out as they are."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

SCAN = """<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x, float[T,4] e) => (float[2,3] y, float[T] z) <float s = {0.05}, uint8 p = {0}> {
    y = Neg (x)
    z = Scan <num_scan_inputs = 1, body = b (float[4] r) => (float q) {
        TRANSPOSED k = QuantizeLinear (t, s, p) d = DequantizeLinear (k, s, p) q = ReduceMean <keepdims = 0> (d) }> (e) }"""
TRANSPOSED = {
    "once": "t = Transpose (y)",
    "twice": "u = Transpose (y) t = Transpose (u)",
    "by way of a copy": "i = Identity (y) u = Transpose (i) t = Identity (u)",
}
FEEDS = {"x": np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32), "e": np.ones((3, 4), np.float32)}


@pytest.mark.parametrize("transposed", TRANSPOSED)
def test_what_leaves_a_body_does_not_quantize_what_others_read(transposed: str) -> None:
    model = model_from_text(SCAN.replace("TRANSPOSED", TRANSPOSED[transposed]))
    after = ortscan.optimize(model, verify=False)
    assert "Scan" not in {node.op_type for node in after.graph.node}
    assert_same_numbers(ort_run(after, FEEDS), ort_run(model, FEEDS))
    assert ortscan.optimize(after, verify=False) == after


def test_what_a_model_quantizes_itself_is_left() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x, float[T,4] e) => (float[2,3] y, float z, float[T,4] v) {
        s = Constant <value_float = 0.05> () p = Constant <value = uint8 {0}> ()
        y = Neg (x) t = Transpose (y) k = QuantizeLinear (t, s, p) d = DequantizeLinear (k, s, p) z = ReduceMean <keepdims = 0> (d)
        v = Scan <num_scan_inputs = 1, body = b (float[4] r) => (float[4] q) { q = Tanh (r) }> (e) }"""
    )
    after = ortscan.optimize(model)
    assert "Scan" not in {node.op_type for node in after.graph.node}
    assert [node.op_type for node in after.graph.node if node.op_type in ("Transpose", "QuantizeLinear")] == [
        "Transpose",
        "QuantizeLinear",
    ]
