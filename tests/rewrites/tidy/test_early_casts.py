"""Casts between transposes and products, with which onnxruntime ends the process where it loads them."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import ortscan
from rewrites.driver.model_changes import change_model
from rewrites.tidy import early_casts
from tests.rewrites.apply import prepared
from tests.support.runtime import ort_run
from tests.support.text import assert_text_equal, model_from_text

OPSETS = '<ir_version: 10, opset_import: ["": 18, "com.microsoft": 1]>'
HEAD = "g (float16[2, 5, 4] x, float[4, 3] w) => (float[5, 2, 3] y)"
TURN = "Transpose <perm = [1, 0, 2]>"


def moved(inside: str, head: str = HEAD) -> onnx.ModelProto:
    ctx = prepared(f"{head} {{ {inside} }}")
    change_model(early_casts.RULE, ctx)
    return ir.to_proto(ctx.model)


def test_a_cast_goes_before_the_transpose():
    after = moved(f"t = {TURN} (x) c = Cast <to = 1> (t) y = MatMul (c, w)")
    assert_text_equal(after, f"{HEAD} {{ c = Cast <to = 1> (x) t = {TURN} (c) y = MatMul (t, w) }}")
    x, w = np.arange(40).reshape(2, 5, 4).astype(np.float16), np.ones((4, 3), np.float32)
    (y,) = ort_run(after, {"x": x, "w": w})
    np.testing.assert_allclose(y, x.astype(np.float32).transpose(1, 0, 2) @ w)


def test_it_goes_before_what_onnxruntime_drops_too_once_for_all_products():
    after = moved(
        f"t = {TURN} (x) i = Identity (t) c = Cast <to = 1> (i) n = Neg (w) y = MatMul (c, w) z = MatMul (c, n)",
        HEAD.replace(" y)", " y, float[5, 2, 3] z)"),
    )
    assert [node.op_type for node in after.graph.node] == ["Cast", "Transpose", "Identity", "Neg", "MatMul", "MatMul"]


@pytest.mark.parametrize(
    ("inside", "operators"),
    [
        ("c = Cast <to = 1> (t) d = Mul (c, two) y = MatMul (d, w)", "Cast Transpose Mul MatMul"),
        ("a = Mul (t, half) c = Cast <to = 1> (a) y = MatMul (c, w)", "Mul Cast Transpose MatMul"),
        ("e = Expand (t, one) c = Cast <to = 1> (e) y = MatMul (c, w)", "Cast Transpose Expand MatMul"),
        ("s = Slice (t, zero, far) c = Cast <to = 1> (s) y = MatMul (c, w)", "Cast Transpose Slice MatMul"),
        ("c = CastLike (t, w) y = MatMul (c, w)", "CastLike Transpose MatMul"),
        ("c = Cast <to = 1> (t) y = com.microsoft.FusedMatMul (c, w)", "Cast Transpose FusedMatMul"),
        ("c = Cast <to = 11> (t) d = Cast <to = 1> (c) y = MatMul (d, w)", "Cast Cast Transpose MatMul"),
    ],
)
def test_what_onnxruntime_takes_away_may_stand_between(inside, operators):
    weights = "<float two = {2}, float16 half = {15360}, int64[1] one = {1}, int64[1] zero = {0}, int64[1] far = {99}>"
    text = f"{OPSETS} {HEAD} {weights} {{ t = {TURN} (x) {inside} }}"
    ctx = prepared(text)
    change_model(early_casts.RULE, ctx)
    after = ir.to_proto(ctx.model)
    assert [node.op_type for node in after.graph.node] == operators.split()
    x, w = np.arange(40).reshape(2, 5, 4).astype(np.float16), np.ones((4, 3), np.float32)
    (y,) = ort_run(after, {"x": x, "w": w})
    factor = 2 if "two" in inside else 1
    np.testing.assert_allclose(y, factor * x.astype(np.float32).transpose(1, 0, 2) @ w)


def test_casts_to_other_types_go_first_too():
    head = HEAD.replace("float[", "double[")
    after = moved(f"t = {TURN} (x) c = Cast <to = 11> (t) y = MatMul (c, w)", head)
    assert [node.op_type for node in after.graph.node] == ["Cast", "Transpose", "MatMul"]


def test_it_stays_where_others_read_it():
    head = HEAD.replace(" y)", " y, float16[5, 2, 4] t)")
    after = moved(f"t = {TURN} (x) c = Cast <to = 1> (t) y = MatMul (c, w)", head)
    assert [node.op_type for node in after.graph.node] == ["Transpose", "Cast", "Transpose", "MatMul"]


@pytest.mark.parametrize(
    ("inside", "head"),
    [
        (f"t = {TURN} (x) c = Cast <to = 1> (t) y = MatMul (c, w)", HEAD.replace("[4, 3] w", "[5, 4, 3] w")),
        ("c = Cast <to = 1> (x) y = MatMul (c, w)", HEAD.replace("[5, 2, 3] y", "[2, 5, 3] y")),
        (f"t = {TURN} (x) a = Abs (t) c = Cast <to = 1> (a) y = MatMul (c, w)", HEAD),
    ],
)
def test_other_casts_stay(inside, head):
    assert_text_equal(moved(inside, head), f"{head} {{ {inside} }}")


def test_the_result_of_a_scan_that_casts_loads():
    model = model_from_text(
        """g (float16[2, T, 4] x, float[4, 3] w) => (float[T, 2, 3] y) {
            y = Scan <num_scan_inputs = 1, scan_input_axes = [1], body = b (float16[2, 4] r) => (float[2, 3] p) {
                c = Cast <to = 1> (r) p = MatMul (c, w) }> (x) }""",
        18,
    )
    assert ortscan.optimize(model, verify=True).graph.node[0].op_type == "Cast"
