"""Weights stay floats where a rewrite puts a product behind what is dequantized."""

import numpy as np
import onnx
import pytest

import ortscan
from rewrites.driver.model_changes import change_model
from rewrites.tidy import keep_float_weights
from tests.rewrites.apply import prepared, read
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

TURN = "Transpose <perm = [0, 2, 1]>"
PRODUCTS = {
    "Conv": ("float[2,4,9]", "float[4,4,1]", "c = Conv (h, w)"),
    "ConvTranspose": ("float[2,4,9]", "float[4,4,1]", "c = ConvTranspose (h, w)"),
    "Gemm": ("float[6,4]", "float[4,4]", "c = Gemm (h, w)"),
    "Conv of what is moved": ("float[2,9,4]", "float[4,4,1]", f"m = {TURN} (h) k = Conv (m, w) c = {TURN} (k)"),
}
STEPS = """g ({kind} s, float[3] xs, {weights} w) => ({kind} z) <float scale = {{0.02}}, int8 zero = {{0}}> {{
    z = Scan <num_scan_inputs = 1, body = b ({kind} h, float x) => ({kind} d) {{
        {product} q = QuantizeLinear (c, scale, zero) d = DequantizeLinear (q, scale, zero) }}> (s, xs) }}"""


def drawn(name: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    kind, weights, product = PRODUCTS[name]
    model = read(STEPS.format(kind=kind, weights=weights, product=product))
    random = np.random.default_rng(3)
    feeds = {
        one.name: random.uniform(-1, 1, [dim.dim_value for dim in one.type.tensor_type.shape.dim]).astype(np.float32)
        for one in model.graph.input
    }
    model.graph.initializer.append(onnx.numpy_helper.from_array(feeds.pop("w"), "w"))
    del model.graph.input[2]
    return model, feeds


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_steps_of_a_loop_one_after_the_other_give_the_same_numbers(name: str) -> None:
    model, feeds = drawn(name)
    after = ortscan.optimize(model, target="coreml", verify=False)
    assert "Scan" not in [node.op_type for node in after.graph.node]
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))


def test_a_model_whose_weights_onnxruntime_quantizes_stays() -> None:
    text = """g (int8[6,2] q, float[T] xs) => (int8[6,2] y, float[T] ys) <float scale = {0.02}, int8 zero = {0}, float[2,2] w = {1,2,3,4}> {
        d = DequantizeLinear (q, scale, zero) c = Gemm (d, w) y = QuantizeLinear (c, scale, zero)
        ys = Scan <num_scan_inputs = 1, body = b (float x) => (float v) { v = Exp (x) }> (xs) }"""
    assert not change_model(keep_float_weights.RULE, prepared(text))
