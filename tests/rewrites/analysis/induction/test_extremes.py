import numpy as np
import onnx
import pytest

from ortscan import optimize
from tests.support.text import assert_same_numbers, model_from_text, ort_run

COUNTED = """g (float[T,2] xs, float[2] s, int64 m, int64[1] k0) => (float[2] z, int64[1] n) <int64[1] one = {1}> {
    z, n = Loop <body = b (int64 i, bool c, float[2] h, int64[1] k) => (bool c1, float[2] h1, int64[1] k1) {
        c1 = Identity (c)  k1 = Add (k, one)  x = Gather (xs, i)  h0 = Add (h, x)  h1 = Tanh (h0)
    }> (m, , s, k0) }"""


@pytest.mark.long
@pytest.mark.parametrize("opset", [7, 8, 9, 11, 12])
@pytest.mark.parametrize("steps", [-1, 0, 1, 3])
def test_a_count_of_steps_is_never_below_zero_in_any_opset(opset: int, steps: int) -> None:
    feeds = {"xs": np.ones((3, 2), np.float32), "s": np.zeros(2, np.float32), "m": np.array(steps), "k0": np.array([5])}
    model = model_from_text(COUNTED, opset, ir_version=8)
    after = optimize(model, opset="keep")
    assert isinstance(after, onnx.ModelProto)
    onnx.checker.check_model(after, full_check=True)
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
