"""A function that holds the Transpose, the Cast or the product of a pair that onnxruntime crashes on where it fuses them."""

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.quirks import dies, fate_of
from tests.support.runtime import ort_run
from tests.support.text import parsed

SCAN = """<ir_version: 8, opset_import: ["": 14, "my": 1]> g (KIND[1,T,2] x, float16[2,1] v) => (KIND[1,1] last, KIND[T,1,1] ys)
    <KIND[1,1] h = {0}, float16[2,1] w = {15360, 16384}, float[2,1] d = {1, 2}> {
    TURNED
    last, ys = Scan <num_scan_inputs = 1, body = b (KIND[1,1] s, float16[1,2] r) => (KIND[1,1] s1, KIND[1,1] y) {
        PRODUCT a = Mul (p, s) s1 = Tanh (a) y = Identity (s1) }> (h, t)
}
<domain: "my", opset_import: ["": 14]> turn (x) => (t) { t = Transpose <perm = [1, 0, 2]> (x) }
<domain: "my", opset_import: ["": 14]> pair (x) => (s, t) { s = Neg (x) t = Transpose <perm = [1, 0, 2]> (x) }
<domain: "my", opset_import: ["": 14]> product (r, w) => (p) { p = MatMul (r, w) }
<domain: "my", opset_import: ["": 14]> cast (r) => (c) { c = Cast <to = 1> (r) }"""
TURN = "t = Transpose <perm = [1, 0, 2]> (x)"
CASES = [
    ("t = my.turn (x)", "p = MatMul (r, w)", "float16"),
    ("s, t = my.pair (x)", "p = MatMul (r, w)", "float16"),
    (TURN, "p = my.product (r, w)", "float16"),
    ("t = my.turn (x)", "p = my.product (r, w)", "float16"),
    ("t = my.turn (x)", "c = Cast <to = 1> (r) p = MatMul (c, d)", "float"),
    (TURN, "c = my.cast (r) p = MatMul (c, d)", "float"),
]
STATELESS = """<ir_version: 8, opset_import: ["": 13, "my": 1]> g (float16[1,T,2] x) => (float16[T,1,1] y) <float16[2,1] w = {15360, 16384}> {
    t = my.turn (x) y = MatMul (t, w)
}
<domain: "my", opset_import: ["": 13]> turn (x) => (t) { t = Transpose <perm = [1, 0, 2]> (x) }"""
X = np.linspace(-1, 1, 6).astype(np.float16).reshape(1, 3, 2)


def rewritten(rewrite: Callable[[onnx.ModelProto], onnx.ModelProto], data: bytes) -> bytes:
    return rewrite(onnx.load_from_string(data)).SerializeToString()


@pytest.mark.parametrize("options", [{}, {"native": True}, {"opset": "keep"}])
@pytest.mark.parametrize(("turned", "product", "kind"), CASES)
def test_the_work_before_a_recurrence_loads(turned: str, product: str, kind: str, options: dict[str, object]) -> None:
    text = SCAN.replace("TURNED", turned).replace("PRODUCT", product).replace("KIND[1,T,2]", "float16[1,T,2]").replace("KIND", kind)
    model = parsed(text)
    fate = fate_of(partial(rewritten, partial(ortscan.optimize, **options)), model.SerializeToString())
    assert not fate.died
    optimized = onnx.load_from_string(fate.result)
    assert not dies(optimized, {"x": X, "v": X[0, :2, :1]})


def test_a_migrated_product_loads() -> None:
    model = parsed(STATELESS)
    assert dies(model, {"x": X})
    fate = fate_of(partial(rewritten, partial(ortscan.migrate, opset=18)), model.SerializeToString())
    assert not fate.died
    (y,) = ort_run(onnx.load_from_string(fate.result), {"x": X})
    np.testing.assert_allclose(y, X.transpose(1, 0, 2) @ np.array([[1], [2]], np.float16), rtol=1e-2, atol=1e-3)
