"""Weights that one body alone multiplies by, moved into it."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import ortscan
from rewrites.driver.model_changes import change_model
from rewrites.tidy import weights_into_bodies
from tests.rewrites.apply import prepared
from tests.support.plugin_sessions import both, taken
from tests.support.runtime import ort_run
from tests.support.text import assert_text_equal, model_from_text

OWN = "<float[2,2] w = {1, 2, -1, 0.5}>"
STEP = "a = MatMul (h, w) b = Tanh (a) c = Neg (b) h1 = Add (c, x) y = Identity (h1)"


def scan(body: str = STEP, main: str = OWN, own: str = "", more: str = "", outputs: str = "") -> str:
    return f"""g (float[2,2] h0, float[T,2,2] xs) => (float[2,2] hT, float[T,2,2] ys{outputs}) {main} {{ {more}
      hT, ys = Scan <num_scan_inputs = 1, body = b (float[2,2] h, float[2,2] x) => (float[2,2] h1, float[2,2] y) {own} {{ {body} }}> (h0, xs)
    }}"""


def moved(text: str, ir_version: int = 10) -> onnx.ModelProto:
    ctx = prepared(text)
    ctx.model.ir_version = ir_version
    change_model(weights_into_bodies.RULE, ctx)
    return ir.to_proto(ctx.model)


def test_a_weight_becomes_its_reader_s_own() -> None:
    after = moved(scan())
    assert_text_equal(after, scan(main="", own=OWN))
    feeds = {"h0": np.eye(2, dtype=np.float32), "xs": np.ones((5, 2, 2), np.float32)}
    for one, other in zip(ort_run(after, feeds), ort_run(model_from_text(scan(), 18), feeds), strict=True):
        np.testing.assert_array_equal(one, other)


def test_weights_of_an_inner_loop_and_of_a_branch_in_a_body_go_to_where_they_are_read() -> None:
    inner = "h1 = Scan <num_scan_inputs = 1, body = c (float[2,2] s, float[2] z) => (float[2,2] s1) {OWN} { a = MatMul (s, w) b = Tanh (a) c = Neg (b) s1 = Add (c, z) }> (h, x) y = Identity (h1)"
    branch = """e = ReduceMax <keepdims = 0> (x) c = Cast <to = 9> (e)
      h1 = If <then_branch = t () => (float[2,2] p) {OWN} { a = MatMul (h, w) b = Tanh (a) d = Neg (b) p = Add (d, h) }, else_branch = f () => (float[2,2] q) { q = Tanh (h) }> (c) y = Identity (h1)"""
    for body in (inner, branch):
        assert_text_equal(moved(scan(body.replace("{OWN}", ""))), scan(body.replace("{OWN}", OWN), main=""))


@pytest.mark.parametrize(
    "text",
    [
        scan("a = MatMul (w, h) h1 = Add (a, x) y = Identity (h1)"),
        scan("a = MatMul (h, w) b = Add (a, w) h1 = Add (b, x) y = Identity (h1)"),
        scan(more="z = MatMul (h0, w)", outputs=", float[2,2] z"),
        scan().replace("ys)", "ys, float[2,2] w)", 1),
        scan().replace("xs)", "xs, float[2,2] w)", 1),
        "g (float[2,2] h, bool c) => (float[2,2] y) "
        + OWN
        + """ {
           y = If <then_branch = t () => (float[2,2] p) { p = MatMul (h, w) }, else_branch = f () => (float[2,2] q) { q = Tanh (h) }> (c) }""",
    ],
    ids=["left", "read otherwise too", "read outside", "an output", "an input", "no loop"],
)
def test_others_stay(text: str) -> None:
    assert_text_equal(moved(text), text)


SMALL = [
    "h1 = MatMul (h, w) y = Relu (h1)",
    "h1 = Gemm (h, w, x) y = Relu (h1)",
    "a = MatMul (h, w) h1 = Tanh (a) y = Relu (h1)",
    "a = MatMul (h, w) b = Add (a, x) h1 = Tanh (b) y = Relu (h1)",
    "a = MatMul (h, w) b = Mul (x, a) h1 = Max (b, x) y = Identity (h1)",
]


@pytest.mark.parametrize("body", SMALL)
def test_weights_of_a_body_with_one_buffer_stay(body: str) -> None:
    assert_text_equal(moved(scan(body)), scan(body))


@pytest.mark.parametrize(
    "body",
    [
        "a = MatMul (h, w) b = Exp (x) h1 = Add (a, b) y = Identity (h1)",
        "a = MatMul (h, w) b = Softmax (a) h1 = Add (b, x) y = Identity (h1)",
        "a = MatMul (h, w) b = Add (a, x) c = Sigmoid (b) h1 = Tanh (c) y = Identity (h1)",
    ],
)
def test_weights_of_a_body_with_more_buffers_move(body: str) -> None:
    assert_text_equal(moved(scan(body)), scan(body, main="", own=OWN))


def test_a_weight_moves_into_a_small_branch_of_a_body_with_more_buffers() -> None:
    body = """d = Exp (x) e = ReduceMax <keepdims = 0> (d) c = Cast <to = 9> (e)
      h1 = If <then_branch = t () => (float[2,2] p) {OWN} { p = MatMul (h, w) }, else_branch = f () => (float[2,2] q) { q = Tanh (h) }> (c) y = Identity (h1)"""
    assert_text_equal(moved(scan(body.replace("{OWN}", ""))), scan(body.replace("{OWN}", OWN), main=""))


def test_optimize_leaves_the_weight_of_a_small_body_outside() -> None:
    after = ortscan.optimize(model_from_text(scan(SMALL[3]), 18), skip=["recurrent-cell"])
    assert [weight.name for weight in after.graph.initializer] == ["w"]


def test_weights_that_are_large_or_in_files_stay(tmp_path) -> None:
    large = model_from_text(scan().replace("2,2", "600,600").replace(OWN.replace("2,2", "600,600"), ""), 18, check=False)
    large.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((600, 600), np.float32), "w"))
    assert [one.name for one in ortscan.optimize(large, verify=False).graph.initializer] == ["w"]
    small = model_from_text(scan(), 18)
    small.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.ones((2, 2), np.float32), "w"))
    onnx.save(small, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    ctx = prepared(scan())
    ctx.model = ir.load(tmp_path / "m.onnx")
    assert not change_model(weights_into_bodies.RULE, ctx)


def test_models_whose_initializers_are_inputs_stay() -> None:
    assert [one.name for one in moved(scan(), ir_version=4).graph.initializer] == ["w"]
    listed = scan().replace("xs)", "xs, float[2,2] w)", 1)
    after = ortscan.optimize(model_from_text(listed, 18, ir_version=3))
    assert [one.name for one in after.graph.input] == ["h0", "xs", "w"]
    assert [one.name for one in after.graph.initializer] == ["w"]


def test_optimize_ends_so_and_again(tmp_path) -> None:
    once = ortscan.optimize(model_from_text(scan(), 18))
    assert not once.graph.initializer
    assert ortscan.optimize(once, verify=False).SerializeToString() == once.SerializeToString()
    assert [one.name for one in ortscan.optimize(model_from_text(scan(), 18), skip=["weights-into-bodies"]).graph.initializer] == [
        "w"
    ]


def test_the_plugin_takes_loops_with_weights_of_their_own(tmp_path) -> None:
    model, feeds = moved(scan()), {"h0": np.eye(2, dtype=np.float32), "xs": np.ones((5, 2, 2), np.float32)}
    assert taken(model, feeds, tmp_path) == 1
    for one, other in zip(*both(model, feeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
