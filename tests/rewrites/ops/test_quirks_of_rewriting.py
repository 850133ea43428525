"""What onnxruntime's optimiser moves, fuses, folds or drops, and should not, it still does."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from ortscan.running.crash_risks import crash_risks
from tests.support.quirks import dies, gives, model, ones, refuses, shows

HALF = np.float16
MOVED = """g (float[2,2] x, bool c) => (float[2,2] y) <float s = {{0.5}}, int8 z = {{0}}, int64[2] sizes = {{2, 2}}, int64[1] axis = {{0}}> {{
    q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) t = Unsqueeze (d, axis) m = {}
    y = If (c) <then_branch = b () => (float[2,2] u) {{ u = Identity (m) }}, else_branch = e () => (float[2,2] v) {{ v = Abs (x) }}> }}"""
WEIGHTS = "<float16[4,3] w = {0,0,0,0,0,0,0,0,0,0,0,0}, float16[4] v = {0,0,0,0}>"


@pytest.mark.parametrize("perm", ["1, 0, 2", "1, 2, 0"])
@shows("ORT-CAST-AFTER-TRANSPOSE")
def test_a_cast_is_between_a_transpose_and_a_product(perm: str) -> bool:
    text = f"""g (float16[4,4,4] x, float[4,3] w) => (float[?,?,?] y) {{
        t = Transpose <perm = [{perm}]> (x) c = Cast <to = 1> (t) y = MatMul (c, w) }}"""
    return dies(model(text), {"x": ones(4, 4, 4, dtype=HALF), "w": ones(4, 3)})


@pytest.mark.parametrize("operands", ["t, w", "t, v"])
@shows("ORT-HALVES-AFTER-TRANSPOSE")
def test_a_product_of_halves_reads_a_transpose(operands: str) -> bool:
    text = f"g (float16[2,T,4] x) => (float16[] y) {WEIGHTS} {{ t = Transpose <perm = [1, 0, 2]> (x) y = MatMul ({operands}) }}"
    return dies(model(text), {"x": ones(2, 5, 4, dtype=HALF)})


@pytest.mark.parametrize(
    "inside",
    [
        "t = f.turn (x) y = MatMul (t, w)",
        "t = Transpose <perm = [1, 0, 2]> (x) y = f.product (t, w)",
        "t = Transpose <perm = [1, 0, 2]> (x) y = com.microsoft.FusedMatMul (t, w)",
    ],
)  # fmt: skip
@shows("ORT-HALVES-AFTER-TRANSPOSE")
def test_a_product_of_halves_reads_a_transpose_after_inlining(inside: str) -> bool:
    functions = """<domain: "f", opset_import: ["": 18]> turn (x) => (t) { t = Transpose <perm = [1, 0, 2]> (x) }
        <domain: "f", opset_import: ["": 18]> product (t, w) => (y) { y = MatMul (t, w) }"""
    text = f"g (float16[2,5,4] x) => (float16[?,?,?] y) {WEIGHTS} {{ {inside} }} {functions}"
    return dies(model(text, 18, ', "f": 1, "com.microsoft": 1'), {"x": ones(2, 5, 4, dtype=HALF)})


@shows("ORT-CAST-AFTER-TRANSPOSE")
def test_a_cast_like_is_between_a_transpose_and_a_product() -> bool:
    text = """g (float16[4,4,4] x, float[4,3] w) => (float[?,?,?] y) {
        t = Transpose <perm = [1, 0, 2]> (x) c = CastLike (t, w) y = MatMul (c, w) }"""
    return dies(model(text), {"x": ones(4, 4, 4, dtype=HALF), "w": ones(4, 3)})


@shows("ORT-DEQUANTIZED-INTO-BODY")
def test_a_branch_reads_dequantized_numbers_that_are_moved() -> bool:
    text = """g (uint8[2,3] q, bool c) => (float[3,2] y) <float s = {0.5}, uint8 p = {1}> {
        d = DequantizeLinear (q, s, p) t = Transpose <perm = [1, 0]> (d)
        y = If (c) <then_branch = b () => (float[3,2] u) { u = Neg (t) }, else_branch = e () => (float[3,2] v) { v = Abs (t) }> }"""
    return dies(model(text, 17), {"q": ones(2, 3, dtype=np.uint8), "c": np.array(True)})


def moved(kind: str, opset: int) -> onnx.ModelProto:
    text = f"""g ({kind}[2,3] q) => (float y) <float s = {{0.5}}, {kind} p = {{0}}> {{
        d = DequantizeLinear (q, s, p) t = Transpose <perm = [1, 0]> (d) y = ReduceMax <keepdims = 0> (t) }}"""
    return model(text, opset)


@shows("ORT-DEQUANTIZED-INT8")
def test_dequantized_int8_is_moved() -> bool:
    feeds = {"q": ones(2, 3, dtype=np.int8)}
    assert gives(moved("int8", 20), feeds) == [0.5]
    return refuses(moved("int8", 21), feeds, "does not match y_zero_point type UINT8")


@shows("ORT-DEQUANTIZED-INT32")
def test_dequantized_int32_is_moved() -> bool:
    feeds = {"q": ones(2, 3, dtype=np.int32)}
    assert gives(moved("int32", 17), feeds, optimised=False) == [0.5]
    return refuses(moved("int32", 17), feeds, "operator (QuantizeLinear)")


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@shows("ORT-DEQUANTIZED-OUTER-WEIGHTS")
def test_a_branch_dequantizes_weights_of_the_graph_around_it(kind: str) -> bool:
    text = f"""g (float[1,2] x, bool c) => (float[1,2] y) <{kind}[2,2] w = {{1, 2, 3, 4}}, float s = {{0.5}}, {kind} z = {{0}}> {{
        y = If (c) <then_branch = b () => (float[1,2] u) {{ d = DequantizeLinear (w, s, z) p = MatMul (x, d) u = Tanh (p) }},
            else_branch = e () => (float[1,2] v) {{ v = Abs (x) }}> }}"""
    feeds = {"x": ones(1, 2), "c": np.array(False)}
    assert gives(model(text, 17), feeds, optimised=False)[0].tolist() == [[1.0, 1.0]]
    return refuses(model(text, 17), feeds, "Missing required weight")


@pytest.mark.parametrize("moved", ["Transpose (d)", "Reshape (d, sizes)", "Squeeze (t, axis)"])
@shows("ORT-DEQUANTIZED-CAPTURED")
def test_what_was_dequantized_and_moved_is_read_within(moved: str) -> bool:
    proto = model(MOVED.format(moved), 19)
    assert crash_risks(proto)
    return dies(proto, {"x": ones(2, 2), "c": np.array(True)})


def test_what_was_dequantized_may_be_read_within_as_it_is() -> None:
    for moved in ("Relu (d)", "Identity (d)"):
        proto = model(MOVED.format(moved), 19)
        assert not crash_risks(proto)
        assert gives(proto, {"x": ones(2, 2), "c": np.array(True)})[0].tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_nodes_without_operands_are_no_error_of_the_search() -> None:
    bare = [onnx.helper.make_node(kind, [], []) for kind in ("DequantizeLinear", "Transpose")]
    assert not crash_risks(onnx.helper.make_model(onnx.helper.make_graph(bare, "g", [], [])))


@shows("ORT-QUANTIZED-OUTPUT")
def test_an_output_is_transposed_and_quantized_for_another_reader() -> bool:
    text = """g (float[2,3] x) => (float[2,3] y, float[3,2] z) <float s = {0.5}, uint8 p = {0}> {
        y = Abs (x) t = Transpose (y) k = QuantizeLinear (t, s, p) z = DequantizeLinear (k, s, p) }"""
    x = np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3)
    return not np.array_equal(gives(model(text, 17), {"x": x})[0], x)


@shows("ORT-QUANTIZED-WEIGHTS")
def test_what_was_dequantized_is_multiplied_by_weights() -> bool:
    text = """g (int8[2,2] q) => (int8[2,2] y) <float s = {0.02}, float t = {0.1}, int8 p = {0}, float[2,2] w = {100, 0.3, 100, 0.3}> {
        d = DequantizeLinear (q, s, p) c = Gemm (d, w) y = QuantizeLinear (c, s, p) }"""
    feeds = {"q": ones(2, 2, dtype=np.int8) * 5}
    return not np.array_equal(gives(model(text, 17), feeds)[0], gives(model(text, 17), feeds, optimised=False)[0])


@shows("ORT-RETURNING-CASTS")
def test_a_branch_reads_what_was_cast_there_and_back() -> bool:
    text = """g (float[2] x, bool c) => (float[2] z) { d = Cast <to = 11> (x) y = Cast <to = 1> (d)
        z = If (c) <then_branch = a () => (float[2] p) { p = Neg (y) }, else_branch = b () => (float[2] q) { q = Abs (y) }> }"""
    feeds = {"x": ones(2), "c": np.array(True)}
    assert gives(model(text.replace("to = 11", "to = 10")), feeds)[0].tolist() == [-1, -1]
    return refuses(model(text), feeds, "Missing Input: y")


@pytest.mark.parametrize("copy", ["Identity (x)", "Dropout (x)", "Cast <to = 1> (x)"])
@shows("ORT-RECIPROCAL-OF-COPY")
def test_a_reciprocal_is_multiplied_by_a_copy(copy: str) -> bool:
    text = f"g (float[2] x, float[2] a) => (float[2] y) <float one = {{1}}> {{ v = {copy} d = Div (one, a) y = Mul (d, v) }}"
    feeds = {"x": ones(2), "a": ones(2)}
    assert gives(model(text.replace(copy, "Abs (x)")), feeds)[0].tolist() == [1, 1]
    return refuses(model(text), feeds, "Node input 'v' is not a graph input")


@pytest.mark.parametrize("product", ["MatMul (t, v)", "com.microsoft.FusedMatMul <transA = 1> (x, v)"])
@shows("ORT-TRANSPOSED-TIMES-VECTOR")
def test_a_transpose_is_multiplied_by_a_vector(product: str) -> bool:
    text = f"g (float[2,2] x, float[2] v) => (float[2] y) {{ t = Transpose (x) y = {product} }}"
    x, v = np.array([[0, 1], [2, 3]], np.float32), np.array([1, 10], np.float32)
    (found,) = gives(model(text, 22, ', "com.microsoft": 1'), {"x": x, "v": v})
    return not np.allclose(found, x.T @ v)


@shows("ORT-GATHER-AT-RANGE")
def test_a_gather_at_a_range_is_out_of_range() -> bool:
    text = "g (float[4] x, int64 n) => (float[K] y) <int64 z = {0}, int64 o = {1}> { r = Range (z, n, o) y = Gather (x, r) }"
    feeds = {"x": ones(4), "n": np.array(9)}
    assert refuses(model(text), feeds, "out of data bounds", optimised=False)
    return not refuses(model(text), feeds, "out of data bounds")


@shows("ORT-RESHAPE-FUSED")
def test_a_computed_size_has_too_few_elements() -> bool:
    text = """g (float[A,B] x, float[C,D] u) => (float[?,?] y) <int64 z = {0}, int64[1] i = {0}, int64[1] two = {2}> {
        s = Shape (u) a = Gather (s, z) b = Unsqueeze (a, i) c = Concat <axis = 0> (two, b) y = Reshape (x, c) }"""
    feeds = {"x": ones(2, 3), "u": ones(1, 1)}
    assert refuses(model(text), feeds, "cannot be reshaped", optimised=False)
    return not refuses(model(text), feeds, "cannot be reshaped")


@shows("ORT-SHARED-MEMORY")
def test_a_slice_of_opset_10_is_of_a_size_with_a_name() -> bool:
    text = """g (float[B] x, float[1,B] u) => (float y, float[1,B] z)
        <int64[1] minus = {-1}, int64[1] last = {9}, int64[1] axis = {0}> {
            e = Squeeze <axes = [0]> (u) f = Add (e, x) v = Sin (f) z = Unsqueeze <axes = [0]> (v)
            w = Slice (x, minus, last, axis) k = Neg (w) y = Squeeze (k) }"""
    feeds = {"x": ones(3), "u": ones(1, 3)}
    assert gives(model(text, 11), feeds)[0] == -1
    return refuses(model(text, 10), feeds, "running Add node")


@shows("ORT-FOLDED-JOINS")
def test_joins_of_joins_are_computed_to_load_a_model(tmp_path: Path) -> bool:
    joins = " ".join(f"a{k + 1} = Concat <axis = 0> (a{k}, a{k})" for k in range(16))
    proto = model(f"g (int64[N] x) => (int64[N] y) {{ a0 = Constant <value_ints = [1]> () {joins} y = Add (x, a16) }}")
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "m.onnx")
    options.log_severity_level = 4
    ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return (tmp_path / "m.onnx").stat().st_size > 8 << 16 > 100 * proto.ByteSize()
