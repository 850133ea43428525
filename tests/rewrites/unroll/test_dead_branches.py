"""A loop in a branch that nobody reads any more goes with it, before any rule looks at it again."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.runtime import ort_run

TEXT = """<ir_version: 8, opset_import: ["": 18]>
g (float[3] x, bool go) => (float[3] y) {
    two = Constant <value_int = 2> ()
    w = Loop <body = first (int64 i, bool c, float[3] a) => (bool c1, float[3] a1) { c1 = Identity (c)  a1 = Tanh (a) }> (two, , x)
    unread = If (go) <
        then_branch = some () => (float[3] u) {
            five = Constant <value_int = 5> ()
            u = Loop <body = second (int64 j, bool d, float[3] b) => (bool d1, float[3] b1) { d1 = Identity (d)  b1 = Add (b, w) }> (five, , w)
        },
        else_branch = none () => (float[3] v) { v = Neg (w) }>
    y = Exp (w)
}"""


@pytest.mark.parametrize("target", ["cpu", "onnx", "qnn", "webgpu"])
def test_a_loop_in_a_branch_that_nobody_reads_is_looked_at_no_more(target):
    model = onnx.parser.parse_model(TEXT)
    after = ortscan.optimize(model, target=target, max_unroll=8, verify=False)
    feeds = {"x": np.array([0.5, -1, 2], np.float32), "go": np.array(True)}
    np.testing.assert_allclose(ort_run(after, feeds)[0], ort_run(model, feeds)[0], rtol=1e-5)
