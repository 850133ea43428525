"""int8 that is moved after it is dequantized: onnxruntime does not load it from opset 21 on, so it is moved before."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

MODEL = """<ir_version: 8, opset_import: ["": 13]>
g (float[T,3] x) => (float[T] y) <float s = {0.1}, int8 p = {3}, int64[1] k = {1}, int64[1] o = {2}> {
    y = Scan <num_scan_inputs = 1, body = b (float[3] e) => (float r) {
        q = QuantizeLinear (e, s, p) d = DequantizeLinear (q, s, p) u = Unsqueeze (d, k) MOVED r = ReduceMax <keepdims = 0> (z)
    }> (x) }"""
MOVED = {
    "transposed": "z = Transpose <perm = [1, 0]> (u)",
    "quantized anew": "v = Transpose <perm = [1, 0]> (u) a, b1, c = DynamicQuantizeLinear (v) z = DequantizeLinear (a, b1, c)",
    "cut, by way of a copy": "i = Identity (u) v = Slice (i, k, o) w = Squeeze (v, k) z = Add (w, e)",
    "read twice": "v = Reshape (u, l) z = Mul (v, d)",
}
FEEDS = {"x": np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)}


def model_of(moved: str, kind: str = "int8") -> onnx.ModelProto:
    text = MODEL.replace("MOVED", MOVED[moved]).replace("int8", kind)
    return model_from_text(text.replace("int64[1] o", "int64[1] l = {-1}, int64[1] o").replace("k, o)", "o, k)", 0), check=False)


@pytest.mark.parametrize("moved", MOVED)
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_it_loads_in_every_opset(moved, kind):
    model = model_of(moved, kind)
    wanted = ort_run(model, FEEDS)
    for after in (ortscan.migrate(model, 21), ortscan.optimize(model, opset=23), ortscan.optimize(model)):
        onnx.checker.check_model(after, full_check=True)
        assert_same_numbers(ort_run(after, FEEDS), wanted)


@pytest.mark.parametrize(("kind", "opset", "moves"), [("int8", 21, True), ("int8", 20, False), ("uint8", 21, False)])
def test_only_what_does_not_load_is_exchanged(kind, opset, moves):
    text = f"""<ir_version: 8, opset_import: ["": 17]>
    g ({kind}[2,3] q) => (float y) <float s = {{0.5}}, {kind} p = {{1}}> {{
        d = DequantizeLinear (q, s, p) t = Transpose <perm = [1, 0]> (d) y = ReduceMax <keepdims = 0> (t) }}"""
    kinds = [node.op_type for node in ortscan.migrate(model_from_text(text), opset).graph.node]
    assert (kinds.index("Transpose") < kinds.index("DequantizeLinear")) == moves
