"""What a Loop gives without a step where its body declares ranks and no sizes: onnxruntime infers them all the same."""

import numpy as np
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

BODIES = {
    "by a constant": "at = Reshape (i, one) end = Add (at, one) s = Slice (x, at, end, zero) r = Squeeze (s, zero) u = MatMul (r, w) y = Tanh (u)",
    "of a constant": "p, q = Split <axis = 1> (w, widths) y = Identity (p)",
    "of what is declared likewise": "r = Gather (x, i) u = MatMul (r, w) v = Sin (u) y = Cos (v)",
    "of what is not inferred": "r = Gather (x, i) u = Compress <axis = 0> (r, flags) y = Tanh (u)",
}
VALUE_INFO = "<float[?,?] v>"


@pytest.mark.parametrize("body", BODIES)
def test_a_result_of_no_step_has_the_sizes_that_onnxruntime_infers(body: str) -> None:
    declared = VALUE_INFO if " v = " in BODIES[body] else ""
    model = model_from_text(
        f"""g (float[T,?,3] x, int64 m) => (float[?,?,?] ys)
        <float[3,4] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}, int64[2] widths = {{2, 2}}, bool[2] flags = {{1, 1}}, bool t = {{1}}, int64[1] zero = {{0}},
         int64[1] one = {{1}}> {{
            ys = Loop <body = b (int64 i, bool c) => (bool d, float[?,?] y) {declared} {{ d = Identity (c) {BODIES[body]} }}> (m, t)
        }}""",
        19,
    )
    loaded, report = rewritten(model, passes=["loop-to-scan"], debug=True)
    assert report.patches
    result = to_caller_type(loaded)
    for steps in (0, 2):
        feeds = {"x": np.ones((2, 2, 3), np.float32), "m": np.array(steps)}
        assert ort_run(result, feeds)[0].shape == ort_run(model, feeds)[0].shape
