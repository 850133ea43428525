"""What a Slice of sizes gives where onnx does not know its bounds is not known."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import ortscan
from rewrites.analysis.shapes.onnx_inference import infer_by_onnx
from rewrites.analysis.shapes.unknown_bounds import hide_unknown_bounds
from tests.rewrites.apply import read
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

HEAD = """<ir_version: 10, opset_import: ["": 21]> g (float[2,T,5] x, int64[1] start, int64[1] end, int64[1] step) => (float[] y)"""
WEIGHTS = "<int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] minus = {-1}>"


def shape_of(cut: str, hide: bool) -> list[int | str] | None:
    """The sizes that onnx infers for y, made as large as the part of the sizes of x."""
    model = onnx.parser.parse_model(f"{HEAD} {WEIGHTS} {{ s = Shape (x) {cut} y = ConstantOfShape (part) }}")
    if hide:
        hide_unknown_bounds(model)
    (info,) = onnx.shape_inference.infer_shapes(model, data_prop=True).graph.output
    dims = info.type.tensor_type.shape.dim
    return [dim.dim_value or dim.dim_param for dim in dims] if info.type.tensor_type.HasField("shape") else None


@pytest.mark.parametrize("cut", ["part = Slice (s, start, two, zero)", "part = Slice (s, two, end, zero, minus)"])
def test_bounds_that_are_not_known_are_hidden_from_onnx_which_takes_them_for_0(cut: str) -> None:
    assert shape_of(cut, hide=False) is not None
    assert shape_of(cut, hide=True) is None


def test_bounds_that_are_known_stay() -> None:
    assert shape_of("part = Slice (s, zero, two, zero)", hide=True) == [2, "T"]
    assert shape_of("one_on = Constant <value_ints = [1]> () part = Slice (s, one_on, two, zero)", hide=True) == ["T"]


def test_a_slice_before_opset_10_has_its_bounds_as_attributes() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 4, opset_import: ["": 9]> g (float[2,T] x) => (int64[1] y) { s = Shape (x) y = Slice <starts = [1], ends = [2]> (s) }"""
    )
    before = model.SerializeToString()
    hide_unknown_bounds(model)
    assert model.SerializeToString() == before


SHARED = """<ir_version: 8, opset_import: ["": 18]> g (float[1,B,1] x, float[2,B,1] u, int64 n) => (float[?,B,1] y, float[2,B,1] z)
<int64[1] zero = {0}, int64[1] one = {1}, int64[1] nine = {9}> {
    MORE s = Shape (x) v = Slice (s, one, nine, zero) c = Concat <axis = 0> (zero, v) y = Reshape (x, c)
    z = Loop (n, , u) <body = b (int64 i, bool k, float[2,B,1] h) => (bool k1, float[2,B,1] h1) {
        e = Concat <axis = 0> (one, one, one) w = Expand (h, e) h1 = Sin (w) k1 = Identity (k) }> }"""
SHARES = [
    SHARED.replace("MORE", ""),
    SHARED.replace("int64[1] one = {1}, ", "").replace("MORE", "one = Constant <value_ints = [1]> ()"),
]


@pytest.mark.parametrize("text", SHARES, ids=["initializers", "nodes"])
def test_a_bound_that_a_body_reads_too_is_known(text: str) -> None:
    model = ir.from_proto(onnx.parser.parse_model(text))
    infer_by_onnx(model, data_prop=True)
    (shape,) = (node.outputs[0].shape for node in model.graph if node.op_type == "Reshape")
    assert shape is not None
    assert str(shape) == "[1,B,1]"


@pytest.mark.parametrize("text", SHARES, ids=["initializers", "nodes"])
def test_a_result_has_bounds_of_its_own_beside_a_body_that_reads_them(text: str) -> None:
    model = onnx.parser.parse_model(text)
    after = ortscan.optimize(model)
    onnx.checker.check_model(after, full_check=True)
    (slice_,) = (node for node in after.graph.node if node.op_type == "Slice")
    bodies = [attribute.g for node in after.graph.node for attribute in node.attribute if attribute.HasField("g")]
    assert not {name for body in bodies for node in body.node for name in node.input} & set(slice_.input)
    assert ortscan.optimize(after) == after


@pytest.mark.parametrize("version", [3, 4, 8])
def test_a_step_that_a_body_reads_too_is_known(version: int) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: {version}, opset_import: ["": 18]> g (float[1,2] x, float[1] u, int64 n) => (float[] y, float[1] z) {{
        zero = Constant <value_ints = [0]> () minus = Constant <value_ints = [-1]> () far = Constant <value_ints = [-99]> ()
        y = Slice (x, minus, far, zero, minus)
        z = Loop (n, , u) <body = b (int64 i, bool k, float[1] h) => (bool k1, float[1] h1) {{
            w = Unsqueeze (h, minus) h1 = Squeeze (w, minus) k1 = Identity (k) }}> }}""")
    hide_unknown_bounds(model)
    y = onnx.shape_inference.infer_shapes(model, data_prop=True).graph.output[0]
    assert [dim.dim_value for dim in y.type.tensor_type.shape.dim] == [1, 2]


@pytest.mark.parametrize("opset", [10, 11, 18])
@pytest.mark.parametrize(
    ("axis", "expected"), [("zero", [None, 3]), ("one", ["B", 1])], ids=["where the size is free", "where it is known"]
)
def test_a_slice_cuts_a_dimension_with_a_name_in_every_opset(opset: int, axis: str, expected: list[object]) -> None:
    model = ir.from_proto(
        onnx.parser.parse_model(
            f"""<ir_version: 5, opset_import: ["": {opset}]> g (float[B,3] x) => (float[?,?] y)
            <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] minus = {{-1}}, int64[1] last = {{2147483647}}> {{
                s = Slice (x, minus, last, {axis}) y = Identity (s) }}"""
        )
    )
    infer_by_onnx(model, data_prop=True)
    shape = model.graph[0].outputs[0].shape
    assert shape is not None
    names = [None if str(dim).startswith("unk__") else dim.value if isinstance(dim, ir.SymbolicDim) else dim for dim in shape]
    assert names == expected


def test_a_trip_count_of_sizes_that_are_cut_at_run_time_is_not_taken_for_known() -> None:
    model = read(
        """g (float[2,T] x, int64[1] start, float[3] s0) => (float[3] last)
        <int64[1] zero = {0}, int64[1] two = {2}, int64 first = {0}, bool yes = {1}, float[3] half = {0.5, 0.25, 2}> {
            s = Shape (x) part = Slice (s, start, two, zero) made = ConstantOfShape (part) sizes = Shape (made) m = Gather (sizes, first)
            last = Loop <body = body (int64 i, bool c, float[3] a) => (bool c1, float[3] b) { c1 = Identity (c) b = Mul (a, half) }> (m, yes, s0)
        }"""
    )
    after = ortscan.optimize(model, max_unroll=4, verify=False)
    for start in (0, 1):
        feeds = {"x": np.zeros((2, 5), np.float32), "start": np.array([start]), "s0": np.ones(3, np.float32)}
        assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))


AXES = """<ir_version: 10, opset_import: ["": 18, "own": 1]> g (float[2,6] x, float[?,2] h0, int64 n) => (float[] h, float[] y)
<int64[1] zero = {0}, int64[1] two = {2}> {
    h, y = Loop (n, , h0) <body = b (int64 i, bool c, float[2,2] a) => (bool c1, float[2,2] k, float[2,2] r) {
        ax = own.axis () p = Slice (x, zero, two, ax) k = Add (a, p) r = Identity (k) c1 = Identity (c) }> }
<domain: "own", opset_import: ["": 18]> axis () => (q) { q = Constant <value_ints = [1]> () }"""


def test_a_slice_along_what_a_function_gives_is_not_cut_along_the_first_axes(recwarn: pytest.WarningsRecorder) -> None:
    model = onnx.parser.parse_model(AXES)
    after = ortscan.optimize(model, opset=19, verify=False)
    assert after.opset_import[0].version == 19
    assert not recwarn.list
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(2, 6)}
    feeds |= {"h0": np.ones((2, 2), np.float32), "n": np.array(4)}
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))


def test_axes_of_which_onnx_knows_no_shape_are_hidden_with_the_bounds() -> None:
    model = ir.from_proto(
        onnx.parser.parse_model(
            """<ir_version: 10, opset_import: ["": 18]> g (float[2,6] x, int64[] axes) => (float[] y)
            <int64[1] zero = {0}, int64[1] two = {2}> { s = Slice (x, zero, two, axes) y = Identity (s) }"""
        )
    )
    infer_by_onnx(model, data_prop=True)
    assert model.graph[0].outputs[0].shape != ir.Shape([2, 6])


CALLED = """<ir_version: 10, opset_import: ["": 21, "my": 1]> g (float[2,T,5] x, int64[1] start) => (float[] y) {
    s = Shape (x) part = my.Part (s, start) y = ConstantOfShape (part) }
<opset_import: ["": 21], domain: "my"> Part (s, start) => (part) { two = Constant <value_ints = [2]> () BODY }"""


@pytest.mark.parametrize(("body", "sizes"), [("part = Slice (s, start, two)", None), ("part = Slice (s, two, two)", [])])
def test_bounds_in_functions_are_hidden_unless_they_are_constants_there(body: str, sizes: list[int] | None) -> None:
    model = onnx.parser.parse_model(CALLED.replace("BODY", body))
    hide_unknown_bounds(model)
    (info,) = onnx.shape_inference.infer_shapes(model, data_prop=True, strict_mode=True).graph.output
    has_shape = info.type.tensor_type.HasField("shape")
    assert (list(info.type.tensor_type.shape.dim) if has_shape else None) == sizes
