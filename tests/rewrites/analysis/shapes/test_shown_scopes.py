"""What one graph inside a model holds under a name is not taken for what another holds under it."""

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.errors import UnsupportedModel
from ortscan.soundness.shape_agreement import disagreement
from rewrites.analysis.shapes.shown_scopes import feedable_inputs, make_names_unique, show_captured_constants
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

TEXT = """<ir_version: 8, opset_import: ["": OPSET]> g (float[4,1,1,3] x, float[4,1,1,3] u, int64[k] n, bool c) => (float[?,?,?,?] y) {
    y = If (c) <then_branch = a () => (float[?,?,?,?] p) { t = Shape (x) p = ConstantOfShape (t) },
        else_branch = b () => (float[?,?,?,?] q) { t = Identity (n) w = ConstantOfShape (t) q = Add (w, u) }> }"""


def _sizes_of_output(proto: onnx.ModelProto) -> list[int] | None:
    """What onnx infers of the second branch's first tensor."""
    inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    branch = inferred.graph.node[0].attribute[1].g
    kind = next(info.type.tensor_type for info in branch.value_info if info.name == "w")
    return [dim.dim_value for dim in kind.shape.dim] if kind.HasField("shape") else None


@pytest.mark.parametrize("opset", [11, 16, 18])
def test_the_sizes_of_one_branch_are_not_those_of_the_other(opset: int) -> None:
    proto = onnx.parser.parse_model(TEXT.replace("OPSET", str(opset)))
    assert _sizes_of_output(proto) == [4, 1, 1, 3]  # as long as it is so the renaming is needed
    make_names_unique(proto)
    assert _sizes_of_output(proto) is None


def test_a_sound_result_is_not_refused_for_what_onnx_mixes_up() -> None:
    proto = onnx.parser.parse_model(TEXT.replace("OPSET", "18").replace("q = Add (w, u)", "q = Relu (w)"))
    other = onnx.parser.parse_model(
        TEXT.replace("OPSET", "18")
        .replace("q = Add (w, u)", "q = Relu (w)")
        .replace("t = Shape (x) p = ConstantOfShape (t)", "s = Shape (x) p = ConstantOfShape (s)")
    )
    for each in (proto, other):
        each.graph.node.append(onnx.helper.make_node("Relu", ["y"], ["z"]))
    assert disagreement(proto, other) is None


def test_names_of_inner_graphs_that_are_used_twice_are_told_apart() -> None:
    proto = onnx.parser.parse_model(TEXT.replace("OPSET", "18"))
    make_names_unique(proto)
    branches = [attribute.g for attribute in proto.graph.node[0].attribute]
    names = [name for branch in branches for node in branch.node for name in node.output]
    assert len(set(names)) == len(names)
    onnx.checker.check_model(proto)
    feeds = {"x": np.ones((4, 1, 1, 3), np.float32), "u": np.ones((4, 1, 1, 3), np.float32), "n": np.array([1, 1, 1, 3])}
    for flag in (True, False):
        given = feeds | {"c": np.array(flag)}
        assert_same_numbers(ort_run(proto, given), ort_run(onnx.parser.parse_model(TEXT.replace("OPSET", "18")), given))


def test_a_model_whose_names_are_its_own_stays_as_it_is() -> None:
    proto = onnx.parser.parse_model(
        TEXT.replace("OPSET", "18").replace("t = Shape (x) p = ConstantOfShape (t)", "s = Shape (x) p = ConstantOfShape (s)")
    )
    before = proto.SerializeToString()
    make_names_unique(proto)
    assert proto.SerializeToString() == before


def test_a_loop_of_sizes_that_another_branch_names_is_rewritten_right() -> None:
    text = TEXT.replace("OPSET", "18").replace(
        "w = ConstantOfShape (t)",
        "k = Constant <value_int = 2> () w0 = ConstantOfShape (t) w = Loop (k, , w0) <body = l (int64 i, bool d, float[?,?,?,?] s) => (bool e, float[?,?,?,?] o) { e = Identity (d) t0 = Shape (s) z = ConstantOfShape (t0) o = Add (s, z) }>",
    )
    model = onnx.parser.parse_model(text)
    after = ortscan.optimize(model, verify=False)
    feeds = {"x": np.ones((4, 1, 1, 3), np.float32), "u": np.ones((4, 1, 1, 3), np.float32), "n": np.array([1, 1, 1, 3])}
    for flag in (True, False):
        given = feeds | {"c": np.array(flag)}
        assert_same_numbers(ort_run(after, given), ort_run(model, given))


SCAN = "Scan <num_scan_inputs = 1, body = b (float[3] h, float[3] r) => (float[3] g) { t = Add (h, r) g = Tanh (t) }>"
IN_A_FUNCTION = {
    "loops in branches": f"z = If (c) <then_branch = d () => (p) {{ p = {SCAN} (v, x) }}, else_branch = e () => (q) {{ q = {SCAN} (v, x) }}>",
    "loops beside each other": f"p = {SCAN} (v, x) z = {SCAN} (p, x)",
    "a branch like a loop": f"z = If (c) <then_branch = d () => (p) {{ p = {SCAN} (v, x) }}, else_branch = e () => (q) {{ t = Add (v, v) q = Add (t, t) }}>",
    "branches beside branches": """w = If (c) <then_branch = d () => (p) { p = Add (v, v) }, else_branch = e () => (q) { q = Sub (v, v) }>
        z = If (c) <then_branch = d () => (p) { p = Add (w, v) }, else_branch = e () => (q) { q = Add (w, w) }>""",
}


@pytest.mark.parametrize("case", IN_A_FUNCTION)
def test_graphs_of_a_function_may_use_one_name(case: str) -> None:
    text = f"""<ir_version: 8, opset_import: ["": OPSET, "f": 1]> g (float[T,3] x, bool c, float[3] v) => (float[3] u) {{ u = f.p (x, v, c) }}
        <domain: "f", opset_import: ["": OPSET]> p (x, v, c) => (z) {{ {IN_A_FUNCTION[case]} }}"""
    proto = onnx.parser.parse_model(text.replace("OPSET", "18"))
    with pytest.raises(onnx.shape_inference.InferenceError, match="already exists"):  # as long as it is so the renaming is needed
        onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
    make_names_unique(proto)
    onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
    older = onnx.parser.parse_model(text.replace("OPSET", "13"))
    feeds = {"x": np.ones((2, 3), np.float32), "c": np.array(True), "v": np.ones(3, np.float32)}
    feeds = {info.name: feeds[info.name] for info in older.graph.input}
    assert_same_numbers(ort_run(ortscan.migrate(older, 18), feeds), ort_run(older, feeds))


SCAN_OF_ROWS = """g (float[T,2,3] x GIVEN) => (float[?,?] y) <INITIAL> {
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
    text = SCAN_OF_ROWS.replace("INSIDE", inside).replace("GIVEN", given).replace("INITIAL", initial).replace("BEFORE", before)
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
    show_captured_constants(model.graph, feedable_inputs(model))
    assert _sizes_in_body(model, "q") == [1]


def test_what_a_caller_may_feed_is_no_constant() -> None:
    model = _model(BODY["of the body"])
    model.graph.input.append(onnx.helper.make_tensor_value_info("k", onnx.TensorProto.INT64, [2]))
    show_captured_constants(model.graph, feedable_inputs(model))
    assert _sizes_in_body(model, "q") != [1]
    model.ir_version = 3
    assert "k" not in feedable_inputs(model)


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
