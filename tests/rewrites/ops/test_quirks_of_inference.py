"""What is wrong with onnx's inference, its parser and its reference of operators is still wrong."""

import math
import resource
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from tests.support.quirks import fate_of, gives, model, ones, shows

BODY = """g (float[2,3] x, int64 m, bool t) => (float[?,?,?] y) <int64[1] a = {0}, int64[1] o = {1}, int64[2] s = {3,2}> {
    y = Loop (m, t) <body = b (int64 i, bool c) => (bool d, float[] z) { d = Identity (c) INSIDE z = Neg (r) }> }"""
SIBLINGS = """g (float[4,1,1,3] x, int64[k] n, bool c) => (float[?,?,?,?] y) {
    y = If (c) <then_branch = a () => (float[?,?,?,?] p) { t = Shape (x) p = ConstantOfShape (t) },
        else_branch = b () => (float[?,?,?,?] q) { t = Identity (n) w = ConstantOfShape (t) q = Neg (w) }> }"""


def infer(proto: onnx.ModelProto, strict: bool = False) -> onnx.ModelProto:
    return onnx.shape_inference.infer_shapes(proto, data_prop=True, strict_mode=strict)


def sizes(name: str, graph: onnx.GraphProto) -> list[int | str] | None:
    """The sizes that a graph, or one in it, says a value has."""
    inner = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    infos = [info for one in [graph, *inner] for info in (*one.value_info, *one.output) if info.name == name]
    shapes = [info.type.tensor_type.shape for info in infos if info.type.tensor_type.HasField("shape")]
    return [dim.dim_value or dim.dim_param for dim in shapes[0].dim] if shapes else None


def inferred(name: str, text: str, opset: int = 18) -> list[int | str] | None:
    return sizes(name, infer(model(text, opset)).graph)


@shows("ONNX-SLICE-UNKNOWN-BOUNDS")
def test_a_slice_of_sizes_begins_nobody_knows_where() -> bool:
    text = """g (float[2,T,5] x, int64[1] start) => (float[] y) <int64[1] two = {2}, int64[1] zero = {0}> {
        s = Shape (x) p = Slice (s, start, two, zero) y = ConstantOfShape (p) }"""
    return inferred("y", text) == [2, "T"]


@shows("ONNX-AXES-WITHOUT-SHAPE")
def test_axes_of_a_slice_have_no_shape() -> bool:
    text = """g (float[2,6] x, int64AXES axes) => (float[] y) <int64[1] zero = {0}, int64[1] two = {2}> {
        c = Slice (x, zero, two, axes) y = Neg (c) }"""
    assert inferred("c", text.replace("AXES", "[1]")) == ["unk__0", "unk__1"]
    return inferred("c", text.replace("AXES", "[]")) == [2, 6]


@pytest.mark.parametrize("inside", ["r = Reshape (x, s)", "k = Shape (x) p = Slice (k, a, o, a) r = ConstantOfShape (p)"])
@shows("ONNX-CAPTURED-CONSTANTS")
def test_a_body_reads_constants_of_the_graph_around(inside: str) -> bool:
    found = inferred("r", BODY.replace("INSIDE", inside))
    return found is None or not any(isinstance(size, int) and size for size in found)


@shows("ONNX-NAMES-OF-OTHER-GRAPHS")
def test_two_branches_use_one_name() -> bool:
    assert inferred("w", SIBLINGS.replace("t = Shape (x) p = ConstantOfShape (t)", "u = Shape (x) p = ConstantOfShape (u)")) is None
    return inferred("w", SIBLINGS) == [4, 1, 1, 3]


@shows("ONNX-SLICE-10-NAMES")
def test_a_slice_cuts_a_size_with_a_name() -> bool:
    text = "g (float[B,3] x) => (float[?,3] y) <int64[1] a = {0}, int64[1] o = {1}> { c = Slice (x, a, o, a) y = Neg (c) }"
    assert inferred("c", text, 11) != ["B", 3]
    return inferred("c", text, 10) == ["B", 3]


@shows("ONNX-OUTER-PRODUCT")
def test_three_numbers_meet_two_crosswise() -> bool:
    text = """g (float[2] x) => (int64[3,2] y) <int64[3] a = {1,2,3}, int64[2] b = {1,2}, int64[1] one = {1}, int64[1] zero = {0}> {
        u = Unsqueeze (a, one) v = Unsqueeze (b, zero) y = Mul (u, v) }"""
    infer(model(text, 13), strict=True)
    try:
        infer(model(text, 18), strict=True)
    except onnx.shape_inference.InferenceError as error:
        return "Invalid rank for Mul broadcasting" in str(error)
    return False


@shows("ONNX-IF-10-SIZES")
def test_one_branch_of_an_old_if_tells_the_sizes_of_both() -> bool:
    text = """g (float[2,3] x, float[N,3] u, bool c) => (float[?,3] s) {
        y = If (c) <then_branch = t () => (float[?,3] a) { a = Neg (x) }, else_branch = e () => (float[?,3] b) { b = Neg (u) }> s = Neg (y) }"""
    assert inferred("y", text, 11) != [2, 3]
    return inferred("y", text, 10) == [2, 3]


@shows("ONNX-STALE-DECLARATIONS")
def test_a_declaration_contradicts_the_operators() -> bool:
    proto = model("g (float[3,2] x) => (float[?,?] z) { y = Neg (x) z = Exp (y) }", 18)
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [7, 2]))
    return sizes("z", infer(proto).graph) == [7, 2]


@shows("ONNX-LONG-VECTORS")
def test_a_vector_is_followed_element_by_element() -> bool:
    proto = model("g (int64[300000] x) => (int64[?] y) { k = Concat <axis = 0> (x, x) y = Add (k, k) }", 18)
    taken = fate_of(memory_of_inference, proto.SerializeToString()).result
    return taken > 300_000 * 50


def memory_of_inference(data: bytes) -> int:
    """How many bytes more this process has taken at most, once onnx has inferred."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    onnx.shape_inference.infer_shapes(data, data_prop=True)
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


@shows("ONNX-SPLIT-OUTPUTS")
def test_a_split_has_more_outputs_than_it_says() -> bool:
    proto = model("g (float[4] x) => (float[?] y, float[?] z, float[?] u) { y, z, u = Split <num_outputs = 2> (x) }", 18)
    return fate_of(memory_of_inference, proto.SerializeToString()).died


@shows("ONNX-NEGATIVE-SIZE")
def test_a_slice_is_taken_along_a_size_below_zero() -> bool:
    proto = model("g (float[N,2] x) => (float[M,2] y) <int64[1] one = {1}, int64[1] nine = {9}> { y = Slice (x, one, nine) }", 18)
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    return fate_of(memory_of_inference, proto.SerializeToString()).died


@shows("ONNX-TEXT-DEPTH")
def test_a_text_is_nested_deep() -> bool:
    head = '<ir_version: 10, opset_import: ["": 18]> g (bool c) => () {'
    return fate_of(parse, head + "y = If (c) <then_branch = t () => (float y) {" * 20_000).died


def parse(text: str) -> str:
    try:
        onnx.parser.parse_model(text)
    except Exception as error:
        return str(error)[:100]
    return ""


@shows("ONNX-STFT-ONESIDED")
def test_an_stft_does_not_say_that_it_is_one_sided() -> bool:
    text = """g (float[1,16,1] x) => (float[?,?,?,?] y) <int64 k = {4}, float[8] w = {1,1,1,1,1,1,1,1}> { y = STFT (x, k, w) }"""
    assert gives(model(text, 17), {"x": ones(1, 16, 1)})[0].shape == (1, 3, 5, 2)
    return inferred("y", text, 17) == [1, 3, 8, 2]


@shows("ONNX-RANGE-VECTOR")
def test_a_range_is_by_a_constant_vector_of_one_number() -> bool:
    text = "g (int64[1] m) => (int64[K] y) <int64 z = {0}, int64 o = {1}, int64[1] n = {3}> { y = Range (z, GIVEN, o) }"
    infer(model(text.replace("GIVEN", "m"), 18), strict=True)
    try:
        infer(model(text.replace("GIVEN", "n"), 18), strict=True)
    except onnx.shape_inference.InferenceError as error:
        return "should be scalars" in str(error)
    return False


def referred(text: str, **feeds: np.ndarray) -> Any:
    try:
        return ReferenceEvaluator(model(text, 18)).run(None, feeds)[0]
    except Exception:
        return None


@shows("ONNX-REFERENCE-OPERATORS")
def test_the_reference_of_erf_is_not_of_doubles() -> bool:
    found = referred("g (double[1] x) => (double[1] y) { y = Erf (x) }", x=np.array([0.3]))
    return abs(found[0] - math.erf(0.3)) > 1e-12


@shows("ONNX-REFERENCE-OPERATORS")
def test_the_reference_of_lrn_is_over_batches() -> bool:
    text, x = (
        "g (float[2,3,1,1] x) => (float[2,3,1,1] y) { y = LRN <size = 3> (x) }",
        np.arange(6, dtype=np.float32).reshape(2, 3, 1, 1),
    )
    found = referred(text, x=100 * x)
    return not np.allclose(found, gives(model(text, 18), {"x": 100 * x})[0])


@shows("ONNX-REFERENCE-OPERATORS")
def test_the_reference_of_softsign_takes_no_scalar() -> bool:
    found = referred("g (float x) => (float y) { y = Softsign (x) }", x=np.array(0.5, np.float32))
    return found is None


@shows("ONNX-REFERENCE-OPERATORS")
def test_the_reference_of_one_hot_takes_no_vector_of_one_number() -> bool:
    text = "g (int64[2] x, int64[1] d, float[2] v) => (float[?,?] y) { y = OneHot (x, d, v) }"
    return referred(text, x=np.array([0, 1]), d=np.array([3]), v=np.array([0, 1], np.float32)) is None


@shows("ONNX-REFERENCE-OPERATORS")
def test_the_reference_of_top_k_takes_minus_one() -> bool:
    text = "g (float[3] x, int64[1] k) => (float[?] y, int64[?] i) { y, i = TopK (x, k) }"
    return referred(text, x=ones(3), k=np.array([-1])) is not None


@shows("ONNX-REFERENCE-SCAN")
def test_the_reference_of_a_scan_knows_no_directions() -> bool:
    text = """g (float[3,2] x) => (float[3,2] y) {
        y = Scan <num_scan_inputs = 1, scan_input_directions = [1], body = b (float[2] e) => (float[2] o) { o = Neg (e) }> (x) }"""
    assert referred(text.replace("[1]", "[0]"), x=ones(3, 2)) is not None
    return referred(text, x=ones(3, 2)) is None
