"""``optimize`` does not change its own results: rules do not apply to what the last rules of the first call put into bodies."""

from pathlib import Path

import pytest

import ortscan
from tests.support.small_models import PLAIN, RECURRENCE
from tests.support.text import model_from_text, parsed

MODELS = {
    "bounds of a Slice of sizes": (
        """g (float[T,4] x, float[4] h0) => (float[4] h, float[T,K] y) <int64[1] a = {0}, int64[1] b = {1}, int64[1] c = {0}> {
            h, y = Scan <num_scan_inputs = 1, body = body (float[4] s, float[4] e) => (float[4] s1, float[K] o) {
                n = Shape (s) m = Slice (n, a, b, c) z = Expand (e, m) u = Sin (s) v = Mul (u, z) s1 = Add (v, e) o = Identity (s1) }> (h0, x) }""",
        {"passes": ["own-outputs"]},
    ),
    "the same bound twice": (
        """g (float[T,4] x, float[4] h0) => (float[4] h) <int64[1] a = {0}, int64[1] b = {2}, int64[1] c = {0}, int64[1] d = {2}> {
            h = Scan <num_scan_inputs = 1, body = body (float[4] s, float[4] e) => (float[4] s1) {
                p = Slice (s, a, b, c) q = Slice (e, c, d, a) r = MatMul (p, q) u = Sin (s) v = Mul (u, r) s1 = Add (v, e) }> (h0, x) }""",
        {},
    ),
    "an outer product": (
        """g (int64 m, bool t, float[4,2] h0) => (float[4,2] h) <int64[1] one = {1}, int64[1] two = {0}> {
            h = Loop (m, t, h0) <body = body (int64 i, bool c, float[4,2] s) => (bool c1, float[4,2] s1) {
                k = Constant <value_floats = [1.0, 2.0, 3.0, 4.0]> () l = Constant <value_floats = [5.0, 6.0]> ()
                f = Cast <to = 1> (i) p = Mul (k, f) q = Mul (l, f) a = Unsqueeze (p, one) b = Unsqueeze (q, two) o = Mul (a, b)
                u = Sin (s) s1 = Add (u, o) n = ReduceSum <keepdims = 0> (s1) z = Constant <value_float = 9.0> () c1 = Less (n, z) }> }""",
        {},
    ),
    "a Loop that is a Scan for one step or more": (
        """g (int64 m, bool t, float[4] h0, float[N,4] x) => (float[4] h, float[?,4] y) {
            h, y = Loop (m, t, h0) <body = body (int64 i, bool c, float[4] s) => (bool c1, float[4] s1, float[4] o) {
                c1 = Identity (c) e = Gather (x, i) u = Sin (s) s1 = Add (u, e) o = Identity (s1) }> }""",
        {"passes": ["default", "guard-scan", "guard-recurrence"]},
    ),
}


@pytest.mark.parametrize("text", [RECURRENCE, PLAIN])
def test_a_model_that_nothing_changed_is_written_as_it_was(text: str, tmp_path: Path) -> None:
    model = parsed(text)
    model.graph.node[0].domain = ""
    (tmp_path / "in.onnx").write_bytes(before := model.SerializeToString())
    ortscan.optimize(tmp_path / "in.onnx", output=tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx").read_bytes() == before
    assert ortscan.optimize(before).SerializeToString() == before
    assert not ortscan.explain(before).changed


@pytest.mark.parametrize("opset", [16, 18, 21])
@pytest.mark.parametrize("model", MODELS)
def test_a_second_call_changes_nothing(model: str, opset: int) -> None:
    text, options = MODELS[model]
    once = ortscan.optimize(model_from_text(text, opset, check=False), verify=False, **options)
    assert ortscan.optimize(once, verify=False, **options) == once
    assert not ortscan.explain(once, **options).patches
