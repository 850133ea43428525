"""The mask of a Dropout, which changed its type in opset 10, where nobody reads it."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import parsed

HEADER = '<ir_version: 8, opset_import: ["": OPSET, "my": 1]> '
SCAN_8 = """g (float[B,T,3] x, float[B,3] h, int64[B] n) => (float[B,3] l, float[B,T,3] y) {
    l, y = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] r) => (float[3] s1, float[3] v) {
        v, m = Dropout <ratio = 0.25> (r) s1 = Add (s, r) }> (n, h, x) }"""
SCAN_9 = """g (float[T,B,3] x, float[B,3] h) => (float[B,3] l, float[T,B,3] y) {
    l, y = Scan <num_scan_inputs = 1, body = b (float[B,3] s, float[B,3] r) => (float[B,3] s1, float[B,3] v) {
        v, m = Dropout (r) s1 = Add (s, r) }> (h, x) }"""
PLAIN = "g (float[B,T,3] x) => (float[B,T,3] y) { a, m = Dropout (x) y = Tanh (a) }"
BRANCH = """g (float[B,T,3] x, bool c) => (float[B,T,3] y) {
    y = If (c) <then_branch = t () => (float[B,T,3] a) { a, m = Dropout (x) }, else_branch = e () => (float[B,T,3] b) { b = Neg (x) }> }"""
FUNCTION = """g (float[B,T,3] x) => (float[B,T,3] y) { y = my.f (x) }
<domain: "my", opset_import: ["": OPSET]> f (x) => (y) { y, m = Dropout <ratio = 0.75> (x) }"""


@pytest.mark.parametrize("text", [PLAIN, BRANCH, FUNCTION, SCAN_8, SCAN_9])
@pytest.mark.parametrize(("source", "target"), [(9, 10), (9, 18), (10, 9), (8, 18)])
def test_a_mask_that_nobody_reads_stops_no_migration(text: str, source: int, target: int) -> None:
    if (source == 8) != (text == SCAN_8) and text in (SCAN_8, SCAN_9):
        source = 8 if text == SCAN_8 else 9
        target = max(target, 10)
    model = parsed((HEADER + text).replace("OPSET", str(source)))
    after = ortscan.migrate(model, target)
    onnx.checker.check_model(after, full_check=True)
    rng = np.random.default_rng(0)
    feeds = {"x": rng.normal(size=(2, 3, 3)).astype(np.float32), "c": np.array(True), "n": np.array([1, 3])}
    feeds["h"] = rng.normal(size=(2 if source == 8 else 3, 3)).astype(np.float32)
    feeds = {info.name: feeds[info.name] for info in model.graph.input}
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
