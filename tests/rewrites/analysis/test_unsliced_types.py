"""Loops over float8 and four bits are left, since nothing slices or joins such elements."""

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.api import rewritten
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

SCAN = """<ir_version: 11, opset_import: ["": 24]>
g (KIND[2] h, KIND[T,2] x) => (KIND[2] l, KIND[T,2] ys) {
  l, ys = Scan <num_scan_inputs = 1, body = b (KIND[2] s, KIND[2] xt) => (KIND[2] n, KIND[2] y) {
    n = Identity (xt)
    y = Identity (s)
  }> (h, x) }"""


@pytest.mark.parametrize("custom_ops", [False, True])
@pytest.mark.parametrize("kind", ["float8e4m3fn", "int4"])
def test_a_loop_over_elements_that_nothing_slices_is_left_with_a_reason(kind: str, custom_ops: bool):
    _, report = rewritten(onnx.parser.parse_model(SCAN.replace("KIND", kind)), custom_ops=custom_ops)
    assert not report.changed
    assert [(reason.code, reason.detail) for reason in report.loops[0].reasons] == [("ELEMENT-TYPE", f"'s' holds {kind}")]


def test_other_small_elements_are_sliced():
    assert rewritten(onnx.parser.parse_model(SCAN.replace("KIND", "int8")))[1].loops[0].fate == "removed"


def test_elements_that_are_only_computed_from_do_no_harm():
    model = onnx.parser.parse_model("""<ir_version: 11, opset_import: ["": 24]> g (float8e4m3fn[T,2] x) => (float[T,2] ys) {
        ys = Scan <num_scan_inputs = 1, body = b (float8e4m3fn[2] xt) => (float[2] y) { y = Cast <to = 1> (xt) }> (x) }""")
    assert rewritten(model)[1].loops[0].fate == "removed"


SCALE = "axes = Constant <value_ints = [0]> ()  m = ReduceMax <keepdims = 0> (n, axes)  r = DequantizeLinear (q, m)"
PACKED = {
    "after": "q = Cast <to = KIND> (n)  r = Cast <to = 1> (q)  y = Exp (r)",
    "after, read twice": "q = Cast <to = KIND> (n)  r = Cast <to = 1> (q)  e = Mul (r, r)  y = Add (e, r)",
    "after, quantized": "q = QuantizeLinear <output_dtype = KIND> (n, scale)  r = DequantizeLinear (q, scale)  y = Exp (r)",
    "before, in one": "q = Cast <to = KIND> (x)  r = Cast <to = 1> (q)  y = Mul (r, n)",
    "before, read by the recurrence": (
        "e = Exp (x)  q = Cast <to = KIND> (e)  axes = Constant <value_ints = [0]> ()  m = ReduceMax <keepdims = 0> (s, axes)  "
        "r = DequantizeLinear (q, m)  a = Add (s, r)  n = Tanh (a)  y = Exp (n)"
    ),
    "before, read with the state": f"q = Cast <to = KIND> (x)  {SCALE}  y = Mul (r, n)",
    "before, read with the state before": f"q = Cast <to = KIND> (x)  {SCALE.replace('(n,', '(s,')}  y = Mul (r, n)",
}


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("kind", ["INT4", "UINT4", "INT2", "UINT2"])
@pytest.mark.parametrize("inside", PACKED)
def test_no_loop_is_given_or_gives_stacks_of_packed_elements(inside: str, kind: str, native: bool) -> None:
    steps = PACKED[inside].replace("KIND", str(onnx.TensorProto.DataType.Value(kind)))
    model = onnx.parser.parse_model(f"""<ir_version: 11, opset_import: ["": 25]>
        g (float[4] h, float[T,4] xs) => (float[4] z, float[T,4] ys) <float scale = {{0.5}}> {{
            z, ys = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] x) => (float[4] n, float[4] y) {{
                {"" if "n = " in steps else "a = Add (s, x)  n = Tanh (a)"}  {steps}
            }}> (h, xs) }}""")
    feeds = {"h": np.zeros(4, np.float32), "xs": np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)}
    after = ortscan.optimize(model, native=native, verify=False)
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
