"""Products of halves that read a Transpose, with which onnxruntime ends the process where it loads them."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from ortscan.running.crash_risks import may_crash
from rewrites.driver.model_changes import change_model
from rewrites.tidy import early_casts, level_half_products
from tests.rewrites.apply import prepared, read
from tests.support.runtime import ort_run

OPSETS = '<ir_version: 10, opset_import: ["": 18, "com.microsoft": 1]>'
W = "<float16[4, 3] w = {15360, 14336, 13312, 0, 15360, 16384, 15360, 0, 14336, 15360, 48128, 15360}, float16[4] v = {15360, 14336, 48128, 15360}>"
TURN = "t = Transpose <perm = [1, 0, 2]> (x)"


def levelled(text: str) -> onnx.ModelProto:
    ctx = prepared(text)
    change_model(level_half_products.RULE, ctx)
    change_model(early_casts.RULE, ctx)
    return ir.to_proto(ctx.model)


@pytest.mark.parametrize(
    ("head", "inside", "operators"),
    [
        ("x = [2, T, 4] y = [T, 2, 3]", f"{TURN} y = MatMul (t, w)", "Transpose Unsqueeze MatMul"),
        ("x = [2, T, 4] y = [T, 2, 3]", f"{TURN} i = Identity (t) y = MatMul (i, w)", "Transpose Identity Unsqueeze MatMul"),
        ("x = [4, T, 2] y = [T, 2, 3]", "t = Transpose <perm = [1, 2, 0]> (x) y = MatMul (t, w)", "Transpose Unsqueeze MatMul"),
        ("x = [2, T, 5, 4] y = [T, 5, 2, 3]", "t = Transpose <perm = [1, 2, 0, 3]> (x) y = MatMul (t, w)", "Transpose Unsqueeze MatMul"),
        ("x = [3, T, 2] y = [T, 4, 2]", f"{TURN} y = MatMul (w, t)", "Transpose Unsqueeze MatMul"),
        ("x = [2, T, 4] y = [T, 2]", f"{TURN} y = MatMul (t, v)", "Cast Cast Transpose MatMul Cast"),
        ("x = [2, T, 4] y = [T, 2, 3]", f"{TURN} y = com.microsoft.FusedMatMul (t, w)", "Transpose Unsqueeze FusedMatMul"),
        ("x = [2, T, 4] y = [T, 2]", f"{TURN} y = com.microsoft.FusedMatMul (t, v)", "Cast Cast Transpose FusedMatMul Cast"),
        ("x = [T, 2, 4] y = [T, 2, 3]", "y = MatMul (x, w)", "MatMul"),
    ],
)  # fmt: skip
def test_its_operands_get_equal_ranks(head, inside, operators):
    given, result = head.removeprefix("x = ").split(" y = ")
    text = f"{OPSETS} g (float16{given} x) => (float16{result} y) {W} {{ {inside} }}"
    after = levelled(text)
    assert sorted(node.op_type for node in after.graph.node) == sorted(operators.split())
    shape = [6 if dim == "T" else int(dim) for dim in given.strip("[]").split(", ")]
    x = np.random.default_rng(0).normal(size=shape).astype(np.float16)
    (y,) = ort_run(after, {"x": x})
    w = onnx.numpy_helper.to_array(after.graph.initializer["wv".index("v" if "v)" in inside else "w")]).astype(np.float32)
    perm = {"[1, 0, 2]": (1, 0, 2), "[1, 2, 0]": (1, 2, 0), "[1, 2, 0, 3]": (1, 2, 0, 3)}
    turned = x.astype(np.float32).transpose(next((p for said, p in perm.items() if said in inside), range(x.ndim)))
    np.testing.assert_allclose(y, w @ turned if "(w, t)" in inside else turned @ w, rtol=2e-2, atol=2e-2)


def test_operands_of_unknown_rank_are_cast_first():
    text = f"g (float16[2, T, 4] x, int64[N] s) => (float16[T, 2, 3] y) {W} {{ r = Reshape (x, s) {TURN.replace('(x)', '(r)')} y = MatMul (t, w) }}"
    after = levelled(text)
    kinds = [node.op_type for node in after.graph.node]
    assert kinds.index("Cast") < kinds.index("MatMul")
    assert kinds[-1] == "Cast"
    (y,) = ort_run(after, {"x": np.ones((2, 5, 4), np.float16), "s": np.array([2, 5, 4])})
    assert y.shape == (5, 2, 3)


def test_an_original_that_has_such_a_product_is_run_in_a_process_of_its_own():
    text = f"g (float16[2, T, 4] x) => (float16[T, 2, 3] y) {W} {{ {TURN} y = MatMul (t, w) }}"
    assert may_crash(read(text), None)
    assert not may_crash(read(text.replace("float16[", "float[").replace(W, W.replace("float16", "float"))), None)
