"""An If in a function, in an opset before 11: what one of its branches tells must not count for the other, whoever calls it."""

import warnings

import numpy as np
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import parsed

SCANNED = """z = my.f (x, c) l, y = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] r) => (float[3] s1, float[3] v) {
    s1 = Add (s, r) v = Tanh (s1) }> (h, z)"""
CALLED_BY_ANOTHER = SCANNED.replace("my.f", "my.g")
JOINED = SCANNED.replace("z = my.f (x, c)", "w = my.f (x, c) z = Concat <axis = 0> (w, x)")
IN_A_BODY = """l, y = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] r) => (float[3] s1, float[3] v) {
    z = my.f (x, c) k = ReduceMean <axes = [0], keepdims = 0> (z) s1 = Add (s, r) v = Mul (s1, k) }> (h, x)"""
MODEL = """<ir_version: 8, opset_import: ["": OPSET, "my": 1]>
g (float[N,3] x, bool c, float[3] h) => (float[3] l, float[M,3] y) { BODY }
<domain: "my", opset_import: ["": OPSET, "my": 1]> g (x, c) => (y) { y = my.f (x, c) }
<domain: "my", opset_import: ["": OPSET]> f (x, c) => (y) {
    o = Constant <value = float[2,3] {1, 2, 3, 4, 5, 6}> ()
    y = If (c) <then_branch = t () => (float[2,3] a) { a = Identity (o) }, else_branch = e () => (float[K,3] b) { b = Neg (x) }> }"""


@pytest.mark.parametrize("opset", [9, 10])
@pytest.mark.parametrize("body", [SCANNED, CALLED_BY_ANOTHER, JOINED, IN_A_BODY])
def test_no_size_of_one_branch_is_taken_for_that_of_the_other(body: str, opset: int) -> None:
    model = parsed(MODEL.replace("BODY", body).replace("OPSET", str(opset)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = [ortscan.optimize(model, opset="keep", target=target, verify=False) for target in ("cpu", "coreml")]
        made.append(ortscan.migrate(model, 18, verify=False))
    for rows in (3, 4):
        for flag in (True, False):
            feeds = {"c": np.array(flag), "x": np.ones((rows, 3), np.float32), "h": np.ones(3, np.float32)}
            for after in made:
                assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
