"""Numbers that are moved after they are dequantized: where onnxruntime would not load or survive it, they are moved before."""

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


@pytest.mark.long
@pytest.mark.parametrize("moved", MOVED)
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_it_loads_in_every_opset(moved, kind):
    model = model_of(moved, kind)
    wanted = ort_run(model, FEEDS)
    for after in (
        ortscan.migrate(model, 21, verify=False),
        ortscan.optimize(model, opset=23, verify=False),
        ortscan.optimize(model, verify=False),
    ):
        onnx.checker.check_model(after, full_check=True)
        assert_same_numbers(ort_run(after, FEEDS), wanted)


@pytest.mark.parametrize(("kind", "opset", "moves"), [("int8", 21, True), ("int8", 20, False), ("uint8", 21, False)])
def test_only_what_does_not_load_is_exchanged(kind, opset, moves):
    text = f"""<ir_version: 8, opset_import: ["": 17]>
    g ({kind}[2,3] q) => (float y) <float s = {{0.5}}, {kind} p = {{1}}> {{
        d = DequantizeLinear (q, s, p) t = Transpose <perm = [1, 0]> (d) y = ReduceMax <keepdims = 0> (t) }}"""
    kinds = [node.op_type for node in ortscan.migrate(model_from_text(text), opset).graph.node]
    assert (kinds.index("Transpose") < kinds.index("DequantizeLinear")) == moves


CAPTURED = """<ir_version: 8, opset_import: ["": 13]>
g (float[2,3] x, int64 n, float h) => (float y, float[K,3] r) <float s = {{0.1}}, {kind} p = {{3}}> {{
    q = QuantizeLinear (x, s{zero}) d = DequantizeLinear (q, s{zero})
    y, r = Loop (n, , h) <body = b (int64 i, bool c, float a) => (bool c1, float a1, float[3] r1) {{
        c1 = Identity (c) t = Transpose <perm = [1, 0]> (d) {more} u = ReduceMax <axes = [1], keepdims = 0> (m) r1 = Mul (u, a)
        e = ReduceSum <keepdims = 0> (r1) k = Tanh (e) f = Tanh (k) a1 = Sub (f, a) }}> }}"""


@pytest.mark.long
@pytest.mark.parametrize("more", ["m = Identity (t)", "m = Transpose <perm = [0, 1]> (t)", "m = Add (t, a)"])
@pytest.mark.parametrize(("kind", "zero"), [("int8", ", p"), ("uint8", ", p"), ("uint8", "")])
def test_a_loop_that_reads_what_was_moved_out_of_it_loads(kind, more, zero):
    model = model_from_text(CAPTURED.format(kind=kind, more=more, zero=zero), check=False)
    given = {"x": FEEDS["x"][:2], "n": np.array(3), "h": np.array(0.5, np.float32)}
    wanted = ort_run(model, given)
    for after in (ortscan.optimize(model, verify=False), *(ortscan.migrate(model, opset, verify=False) for opset in (17, 21))):
        assert_same_numbers(ort_run(after, given), wanted)


BEHIND_EXPAND = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x, bool c) => (float[6] y) <float s = {0.1}, uint8 p = {3}, int64[2] e = {2, 3}, int64[1] f = {6}> {
    q = QuantizeLinear (x, s, p) d = DequantizeLinear (q, s, p) w = Expand (d, e) MOVED
    y = If (c) <then_branch = t () => (float[6] a) { READ }, else_branch = o () => (float[6] b) { n = Reshape (x, f) b = Neg (n) }> }"""


@pytest.mark.parametrize(
    ("moved", "read", "moves"),
    [("z = Reshape (w, f)", "a = Abs (z)", True), ("z = Abs (w)", "a = Reshape (z, f)", False), ("", "a = Reshape (w, f)", False)],
)
def test_an_expand_before_the_moved_numbers_moves_with_them(moved, read, moves):
    model = model_from_text(BEHIND_EXPAND.replace("MOVED", moved).replace("READ", read))
    after = ortscan.migrate(model, 18, verify=False)
    kinds = [node.op_type for node in after.graph.node]
    assert (kinds.index("Expand") < kinds.index("DequantizeLinear")) == moves
    feeds = {"x": FEEDS["x"][:2], "c": np.array(True)}
    step = np.float32(0.1)
    dequantized = (np.clip(np.rint(feeds["x"] / step) + 3, 0, 255) - 3).astype(np.float32) * step
    assert_same_numbers(ort_run(after, feeds), [np.abs(dequantized.ravel()) if "Abs" in moved + read else dequantized.ravel()])
