"""onnx's inference knows the constants that inner graphs read of the graphs around them, as onnxruntime does."""

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.errors import UnsupportedModel
from ortscan.soundness.shape_agreement import disagreement
from rewrites.analysis.shapes.shown_scopes import given_to, show_captured_constants
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

SCAN = """g (float[T,2,3] x GIVEN) => (float[?,?] y) <INITIAL> {
    BEFORE y = Scan <num_scan_inputs = 1, body = b (float[2,3] r) => (float[?] q) { INSIDE }> (x) }"""
BODY = {
    "of the body": "p = Reshape (r, k) q = ReduceSum <keepdims = 0> (p, o)",
    "of a branch": """n = ReduceSum <keepdims = 0> (r) t = Greater (n, n) p = If (t)
        <then_branch = d () => (a) { a = Reshape (r, k) }, else_branch = e () => (c) { s = Neg (r) c = Reshape (s, k) }> q = ReduceSum <keepdims = 0> (p, o)""",
    "of a graph with one of its own": """n = ReduceSum <keepdims = 0> (r) t = Greater (n, n) m = Constant <value_int = 1> () p = Loop (m, t, r)
        <body = d (int64 i, bool z, a) => (z, c) { k = Constant <value_ints = [1, 6]> () c = Reshape (a, k) }> q0 = Reshape (p, k) q = ReduceSum <keepdims = 0> (q0, o)""",
}
ORIGIN = {
    "an initializer": ("", "int64[2] k = {6,1}, int64[1] o = {0}", ""),
    "a Constant": ("", "int64[1] o = {0}", "k = Constant <value_ints = [6, 1]> ()"),
}


def _model(inside: str, origin: str = "an initializer") -> onnx.ModelProto:
    given, initial, before = ORIGIN[origin]
    text = SCAN.replace("INSIDE", inside).replace("GIVEN", given).replace("INITIAL", initial).replace("BEFORE", before)
    return model_from_text(text, 18, check=False)


def _sizes_in_body(model: onnx.ModelProto, name: str) -> list[int] | None:
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    body = inferred.graph.node[-1].attribute[1].g
    found = {info.name: info.type.tensor_type for info in [*body.value_info, *body.output]}
    return [dim.dim_value for dim in found[name].shape.dim] if name in found and found[name].HasField("shape") else None


@pytest.mark.parametrize("origin", ORIGIN)
@pytest.mark.parametrize("case", BODY)
def test_a_size_that_a_captured_constant_tells_is_known(case: str, origin: str) -> None:
    model = _model(BODY[case], origin)
    assert _sizes_in_body(model, "q") != [1]
    show_captured_constants(model.graph, given_to(model))
    assert _sizes_in_body(model, "q") == [1]


def test_what_a_caller_may_feed_is_no_constant() -> None:
    model = _model(BODY["of the body"])
    model.graph.input.append(onnx.helper.make_tensor_value_info("k", onnx.TensorProto.INT64, [2]))
    show_captured_constants(model.graph, given_to(model))
    assert _sizes_in_body(model, "q") != [1]
    model.ir_version = 3
    assert "k" not in given_to(model)


def test_sizes_that_a_body_declares_against_captured_constants_are_held_against_no_result() -> None:
    before = _model("u = Unsqueeze (r, o) q = ReduceMean <keepdims = 0> (u)").SerializeToString()
    model = onnx.load_from_string(before)
    model.graph.node[0].attribute[1].g.output[0].type.tensor_type.shape.dim[0].dim_value = 7
    after = onnx.load_from_string(before)
    del after.graph.node[:], after.graph.output[0].type.tensor_type.shape.dim[1:]
    after.graph.node.append(onnx.helper.make_node("ReduceMean", ["x"], ["y"], keepdims=0))
    assert disagreement(model, after) is None


BROKEN = {
    "Scan": "y = Scan <num_scan_inputs = 1, body = b (float[2,3] r) => (float[?,?] q) { q = Slice (r, one, two, AXIS) }> (x)",
    "Loop": "y = Loop (m, t) <body = b (int64 i, bool c) => (bool d, float[?,?] q) { d = Identity (c) r = Gather (x, i) q = Slice (r, one, two, AXIS) }>",
    "If": """y = Scan <num_scan_inputs = 1, body = b (float[2,3] r) => (float[?,?] q) { q = If (t)
        <then_branch = d () => (a) { a = Slice (r, one, two, AXIS) }, else_branch = e () => (c) { c = Neg (r) }> }> (x)""",
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_captured_axis_that_is_none_is_told_of_the_model_and_not_of_a_rule(case: str) -> None:
    text = f"""g (float[3,2,3] x, float[2] w) => (float[?,?,?] y) <int64[1] two = {{2}}, bool t = {{1}}, int64 m = {{3}}, int64[1] one = {{1}}, int64[1] axis = {{2}}> {{
        {BROKEN[case].replace("AXIS", "axis")} }}"""
    with pytest.raises(UnsupportedModel, match=r"^The model is not valid: onnx says: .*Slice.*axis"):
        ortscan.optimize(model_from_text(text, 18, check=False))
    right = model_from_text(text.replace("axis = {2}", "axis = {1}"), 18, check=False)
    feeds = {"x": np.ones((3, 2, 3), np.float32), "w": np.ones(2, np.float32)}
    assert ort_run(ortscan.optimize(right), feeds)[0].shape == ort_run(right, feeds)[0].shape
