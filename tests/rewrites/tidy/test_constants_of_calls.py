"""A body that passes weights to a function which dequantizes them has these weights itself."""

import numpy as np
import onnx

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

MODEL = """<ir_version: 10, opset_import: ["": 21, "my": 1]>
g (float[N,2] xs, float[2] h0, float[N,2] us) => (float[2] h, float[2] k) <OUTER> {
    h = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] x) => (float[2] s1) <INNER> {
        y = my.F (s, w, z) c = Tanh (y) s1 = Add (c, x) }> (h0, xs)
    k = Scan <num_scan_inputs = 1, body = d (float[2] s, float[2] x) => (float[2] s1) <INNER> {
        y = my.G (s, w, z) c = Sin (y) s1 = Sub (c, x) }> (h0, us)
}
<domain: "my", opset_import: ["": 21, "my": 1]>
G (a, b, z) => (p) { q = my.F (a, b, z) p = Abs (q) }
<domain: "my", opset_import: ["": 21, "my": 1]>
F (a, b, z) => (p) { s = Constant <value_float = 0.02> () d = OPERATOR (b, s, z) p = MatMul (a, d) }"""
WEIGHTS = "uint8[2,2] w = {164, 175, 125, 105}, uint8 z = {130}"
FEEDS = {"xs": np.ones((3, 2), np.float32), "us": np.ones((3, 2), np.float32), "h0": np.ones(2, np.float32)}


CASTING = """
<domain: "my", opset_import: ["": 21]>
H (b, s, z) => (d) { f = Cast <to = 1> (b) e = Cast <to = 1> (z) g = Sub (f, e) d = Mul (g, s) }"""


def model(operator: str = "DequantizeLinear") -> onnx.ModelProto:
    text = MODEL.replace(" <OUTER>", "").replace("INNER", WEIGHTS).replace("OPERATOR", operator)
    return onnx.parser.parse_model(text + CASTING)


def weights_of_bodies(after: onnx.ModelProto) -> list[set[int]]:
    bodies = [attribute.g for node in after.graph.node for attribute in node.attribute if attribute.name == "body"]
    return [{tensor.data_type for tensor in body.initializer} for body in bodies]


def test_each_body_gets_its_weights_back() -> None:
    after = ortscan.optimize(model())
    assert weights_of_bodies(after) == [{onnx.TensorProto.UINT8}] * 2
    assert_same_numbers(ort_run(after, FEEDS), ort_run(model(), FEEDS))


def test_weights_of_other_functions_stay_outside() -> None:
    assert weights_of_bodies(ortscan.optimize(model("my.H"), opset=22)) == [set(), set()]
