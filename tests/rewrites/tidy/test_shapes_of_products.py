"""Products of which nothing but the shape is read."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import ortscan
from rewrites.cleanup.cleanup import remove_unread
from rewrites.driver.model_changes import change_model
from rewrites.tidy import shapes_of_products
from tests.rewrites.apply import prepared
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

HEAD = """g (float[A,B,3] x, float[3,4] w, float[4] c, float[A,B,4] d) => (int64[?] y) <int64[1] zero = {0}, int64[1] one = {1},
    int64[1] two = {2}, int64[1] three = {3}, int64 last = {-1}, int64 first = {0}, float[1,4] k = {1, 2, 3, 4}>"""


def shaped(inside: str, opset: int = 18, head: str = HEAD) -> list[str]:
    """Check what the rule makes of it, and return the operators that are left."""
    text = f"{head} {{ {inside} }}"
    ctx = prepared(text, opset=opset)
    change_model(shapes_of_products.RULE, ctx)
    remove_unread(ctx.model.graph)
    after = ir.to_proto(ctx.model)
    onnx.checker.check_model(after, full_check=True)
    before, rng = model_from_text(text, opset), np.random.default_rng(0)
    for sizes in ((2, 5), (1, 1), (0, 3)):
        given = {"x": (*sizes, 3), "w": (3, 4), "c": (4,), "d": (*sizes, 4)}
        feeds = {info.name: rng.normal(size=given[info.name]).astype(np.float32) for info in before.graph.input}
        assert_same_numbers(ort_run(after, feeds), ort_run(before, feeds))
    return [node.op_type for node in after.graph.node]


@pytest.mark.parametrize(
    "inside",
    [
        "p = MatMul (x, w) s = Shape (p) y = Slice (s, zero, two)",
        "p = MatMul (x, w) s = Shape (p) y = Slice (s, one, two)",
        "p = MatMul (x, w) s = Shape (p) q = Gather (s, first) y = Reshape (q, one)",
        "p = MatMul (x, w) q = Add (p, c) t = Tanh (q) u = Mul (k, t) s = Shape (u) y = Slice (s, zero, two)",
        "e = Transpose <perm = [1, 0]> (w) p = MatMul (x, w) r = MatMul (p, e) s = Shape (r) y = Slice (s, one, two)",
    ],
)
@pytest.mark.parametrize("opset", [11, 18])
def test_leading_sizes_are_those_of_the_operand(inside: str, opset: int) -> None:
    assert "MatMul" not in shaped(inside, opset)


@pytest.mark.parametrize(
    "inside",
    [
        "p = MatMul (x, w) s = Shape (p) y = Neg (s)",
        "p = MatMul (x, w) s = Shape (p) y = Slice (s, two, three)",
        "p = MatMul (x, w) s = Shape (p) q = Gather (s, last) y = Reshape (q, one)",
        "p = MatMul (x, w) s = Shape <start = 1> (p) y = Neg (s)",
        "p = MatMul (x, w) s = Shape <start = -2, end = -1> (p) y = Neg (s)",
        "p = MatMul (x, w) s = Shape (p) a = Slice (s, zero, one) b = Shape (p) e = Slice (b, two, three) y = Concat <axis = 0> (a, e)",
    ],
)
def test_the_last_size_is_the_weights(inside: str) -> None:
    assert "MatMul" not in shaped(inside)


@pytest.mark.parametrize(
    "inside",
    [
        "p = MatMul (x, w) s = Shape (p) t = ReduceSum <keepdims = 0> (p) n = Cast <to = 7> (t) z = Mul (n, first) y = Add (s, z)",
        "p = MatMul (x, w) q = Add (p, d) s = Shape (q) y = Neg (s)",
        "p = MatMul (x, w) q = Transpose (p) s = Shape (q) y = Neg (s)",
        "a = Transpose <perm = [1, 0]> (w) p = MatMul (c, a) s = Shape (p) y = Neg (s)",
        "p = MatMul (x, w) q = MatMul (p, c) s = Shape (q) y = Neg (s)",
        "q = Tanh (x) s = Shape (q) y = Neg (s)",
    ],
    ids=["it is read", "what is added may be larger", "it is turned", "of a vector", "by a vector", "no product"],
)
def test_what_is_read_or_of_another_shape_stays(inside: str) -> None:
    left = shaped(inside)
    assert "MatMul" in left or "Tanh" in left


def test_weights_are_once_in_the_file_where_the_initial_state_is_made_beside_a_product() -> None:
    model = model_from_text(
        """g (float[T,B,3] x, float[4,4] u) => (float[T,B,4] y) <int64[1] one = {1}, int64[1] two = {2}> {
            p = MatMul (x, w) s = Shape (p) n = Slice (s, one, two) k = Constant <value_ints = [4]> () m = Concat <axis = 0> (n, k)
            h = ConstantOfShape (m) l, y = Scan <num_scan_inputs = 1, body = b (float[B,4] a, float[B,3] e) => (float[B,4] a1, float[B,4] o) {
                q = MatMul (e, w) r = MatMul (a, u) t = Add (q, r) a1 = Tanh (t) o = Identity (a1) }> (h, x) }""",
        17,
        check=False,
    )
    weights = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    model.graph.input.pop()
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.eye(4, dtype=np.float32), "u"))
    after = ortscan.optimize(model, target="onnx")
    assert [tensor.name for tensor in after.graph.initializer if 12 <= np.prod(tensor.dims) < 16] != ["w"]
    assert "MatMul" not in [node.op_type for node in after.graph.node]
