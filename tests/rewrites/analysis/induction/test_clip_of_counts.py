"""A condition on a clipped count stops a Loop where it did."""

import numpy as np
import pytest

from ortscan import optimize
from tests.support.text import assert_same_numbers, model_from_text, ort_run

STOPPED = """g (float[2] s) => (float[2] z) <int64 m = {10}, float two = {2}, float limit = {LIMIT}> {
    z = Loop <body = b (int64 i, bool c, float[2] h) => (bool c1, float[2] h1) {
        f = Cast <to = 1> (i)  k = Clip <BOUNDS> (f)  d = Mul (k, two)  c1 = Less (d, limit)  h1 = Tanh (h) }> (m, , s) }"""


@pytest.mark.parametrize(
    ("bounds", "limit"), [("min = 0.5", 1), ("min = 1.5", 3), ("max = 2.5", 5), ("min = 0.0", 5), ("min = 1.0", 2)]
)
def test_a_loop_on_a_clipped_count_runs_as_many_steps(bounds: str, limit: int) -> None:
    model = model_from_text(STOPPED.replace("LIMIT", str(limit)).replace("BOUNDS", bounds), 10, ir_version=5)
    feeds = {"s": np.array([0.5, -2], np.float32)}
    assert_same_numbers(ort_run(optimize(model, opset="keep", verify=False), feeds), ort_run(model, feeds))
