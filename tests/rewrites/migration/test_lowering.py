"""What was lifted can be lowered again and computes the same; what an older opset cannot say is refused by name."""

import numpy as np
import pytest
from onnx import TensorProto

from rewrites.base.errors import MigrationError
from tests.rewrites.migration.cases import CASES
from tests.rewrites.migration.holders import Case, convert, in_main, in_scan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

X = {"x": np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)}
ATTENTION_SCORES = "y, , , z = Attention <is_causal = 1, qk_matmul_output_mode = 2, q_num_heads = 1, kv_num_heads = 1> (x, x, x)"


def cannot_return(case: Case) -> str | None:
    """Why a case cannot be lowered again once it was lifted, or None."""
    if "GroupNormalization" in case.ops:
        return "the previous version means something else"
    if case.ops & {"Softmax", "LogSoftmax", "Hardmax"}:
        return "its shape holds a 0" if 0 in case.feeds["x"].shape and case.opset < 13 else None
    if "MeanVarianceNormalization" in case.ops:
        return "it exists only since opset 9"
    nearest = "linear" not in case.nodes and case.ops <= {"Resize", "Upsample"}
    return "opset 10 does not have its" if nearest and "s" in case.feeds and case.opset < 11 else None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_was_lifted_can_be_lowered_again(case: Case):
    model, feeds = in_main(case)
    lifted = convert(model, case.newest)
    if reason := cannot_return(case):
        with pytest.raises(MigrationError, match=reason):
            convert(lifted, case.opset)
    else:
        lowered = convert(lifted, case.opset)
        assert lowered.opset_import[0].version == case.opset
        assert_same_numbers(ort_run(lowered, feeds), ort_run(model, feeds), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("node", "opset", "target", "reason"),
    [
        ("y = Gelu (x)", 20, 19, "it exists only since opset 20"),
        ("y = Slice (x, two, zero, one, minus)", 13, 9, "Slice has no steps before opset 10"),
        ("y = TopK <largest = 0> (x, one)", 11, 10, "has no attribute 'largest'"),
        ("y = Clip (x, low)", 11, 10, "its bounds are not constant"),
        ("y = Gemm (x, x)", 11, 10, "requires the input 'C'"),
        ("y = RoiAlign (x, x, x)", 16, 15, "never shifted by half a pixel"),
        ("y = Resize (x, , two)", 13, 10, "does not have its coordinates"),
        ("y = Dropout (x, , training)", 13, 11, "it is in training mode"),
        ("y, m = Dropout (x)\nz = Neg (m)", 10, 9, "its mask is used"),
        ("y = ReduceSum <noop_with_empty_axes = 1> (x)", 13, 12, "reduces nothing if it has no axes"),
        ("y, z, w = Split <num_outputs = 3, axis = 1> (x)", 18, 17, "its parts may differ in size"),
        ("y = LSTM <layout = 1> (x, x, x)", 14, 13, "has no attribute 'layout'"),
        ("y = Max (x, low)", 8, 7, "its operands are not known to have the same shape"),
        ('y = Pad <mode = "wrap"> (x, pads)', 19, 18, "no mode 'wrap'"),
        (
            'y = Resize <coordinate_transformation_mode = "half_pixel_symmetric"> (x, , , two)',
            19,
            18,
            "no coordinates 'half_pixel_symmetric'",
        ),
        ('y = ScatterElements <reduction = "max"> (x, x, x)', 18, 16, "no reduction 'max'"),
        ('y = ScatterND <reduction = "min"> (x, x, x)', 18, 16, "no reduction 'min'"),
        ("y = QuantizeLinear (x, scales)", 13, 10, "one scale for the whole tensor"),
        ("y = Pow (x, double)", 12, 11, "needs one type for 'T', not tensor\\(float\\) and tensor\\(double\\)"),
        ("y = GridSample (x, x)", 20, 19, "an input of rank 4 before opset 20"),
        ("y = Reshape <allowzero = 1> (x, low)", 14, 13, "its dimensions are not constant"),
        ("y = BatchNormalization <training_mode = 1> (x, x, x, x, x)", 14, 13, "it is in training mode"),
        ("y = GroupNormalization <num_groups = 1> (x, x, x)", 21, 20, "means something else"),
        ("y = Mod (x, low)", 28, 26, "floor division of floats"),
        ('y = BitShift <direction = "LEFT"> (bits, wide)', 28, 26, "by the number of bits of its type"),
        ('y = BitShift <direction = "LEFT"> (bits, bits)', 28, 26, "its numbers of bits are not constant"),
        (ATTENTION_SCORES, 25, 24, "other scores for masked positions"),
        ('y = SpaceToDepth <blocksize = 2, mode = "CRD"> (x)', 28, 26, "no attribute 'mode'"),
        ('y = Pad <mode = "edge"> (x, pads, , axes)', 18, 17, "has at most 3 inputs, and it has 4"),
    ],
)
def test_what_an_older_opset_cannot_say_is_refused_by_name(node: str, opset: int, target: int, reason: str):
    constants = {
        "zero": [0],
        "one": [1],
        "two": [3],
        "minus": [-1],
        "pads": [1, 1],
        "axes": [0],
        "scales": [1.0, 2.0],
        "double": 2.0,
    }
    weights = {name: np.array(items) for name, items in constants.items()} | {"training": np.array(True), "wide": np.uint8(8)}
    case = Case(node, opset, {**X, "low": np.float32(0), "bits": np.zeros(2, np.uint8)}, weights)
    model, _ = in_main(case)
    with pytest.raises(MigrationError, match=reason) as error:
        convert(model, target)
    op = node.split("= ")[1].split(maxsplit=1)[0]
    assert str(error.value).startswith(f"{op} 'n_y' cannot be lowered from opset {opset} to {target}: ")


@pytest.mark.parametrize("shape", ["Concat <axis = 0> (n, two, two)", "Concat <axis = 0> (n, minus)"])
@pytest.mark.parametrize("rows", [0, 3])
def test_a_size_of_0_may_be_copied_from_the_same_axis(shape: str, rows: int):
    rank = "N,2,2" if "two" in shape else "N,4"
    text = f"""main (float[N,4] x) => (float[{rank}] y) <int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[1] minus = {{4}}> {{
        all = Shape (x)  n = Gather (all, zero)  s = {shape}  y = Reshape <allowzero = 1> (x, s) }}"""
    model, feeds = model_from_text(text, 14), {"x": np.ones((rows, 4), np.float32)}
    assert_same_numbers(ort_run(convert(model, 13), feeds), ort_run(model, feeds))


def test_a_constant_shape_without_zeros_may_give_a_size_of_0():
    text = "main (float[4,0] x) => (float[0,3] y) <int64[2] s = {-1, 3}> { y = Reshape <allowzero = 1> (x, s) }"
    model, feeds = model_from_text(text, 14), {"x": np.ones((4, 0), np.float32)}
    assert_same_numbers(ort_run(convert(model, 13), feeds), ort_run(model, feeds))


def test_a_size_of_another_axis_may_be_0():
    text = """main (float[N,4] x) => (float[4,N] y) <int64[1] zero = {0}, int64[1] four = {4}> {
        all = Shape (x)  n = Gather (all, zero)  s = Concat <axis = 0> (four, n)  y = Reshape <allowzero = 1> (x, s) }"""
    with pytest.raises(MigrationError, match="its dimensions are not constant"):
        convert(model_from_text(text, 14), 13)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("read", [True, False])
def test_scores_of_an_attention_cross_opset_25_unless_they_are_masked(mode: int, read: bool):
    scores, results = (", , , s", ", float[1,1,3,3] s") if read else ("", "")
    attention = f"y{scores} = Attention <is_causal = 1, qk_matmul_output_mode = {mode}> (q, q, q)"
    model = model_from_text(f"main (float[1,1,3,2] q) => (float[1,1,3,2] y{results}) {{ {attention} }}", 24)
    if mode == 2 and read:
        with pytest.raises(MigrationError, match=r"cannot be lifted from opset 24 to 28: .* other scores for masked positions"):
            convert(model, 28)
    else:
        q = {"q": np.linspace(-1, 1, 6, dtype=np.float32).reshape(1, 1, 3, 2)}
        assert_same_numbers(ort_run(convert(model, 28), q), ort_run(model, q), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("axes", ["", "<keepdims = 0>", "<noop_with_empty_axes = 1>"])
def test_sums_of_powers_that_would_overflow_are_not_lifted(axes: str):
    model, _ = in_main(Case(f"y = ReduceLogSumExp {axes} (x)", 18, X))
    assert convert(model, 27)
    with pytest.raises(
        MigrationError, match=r"cannot be lifted from opset 18 to 28: .* opset 27 is the newest that computes the same"
    ):
        convert(model, 28)


@pytest.mark.parametrize("node", ["y = ReduceLogSumExp (x)", "y = ReduceLogSumExp <keepdims = 0> (x, one)"])
@pytest.mark.parametrize("target", [27, 18, 13])
def test_sums_of_powers_overflow_in_an_older_opset_as_they_do_in_28(node: str, target: int):
    x = np.array([[1e4, 1], [-1e4, -1e4], [1, 2]], np.float32)
    model, feeds = in_main(Case(node, 28, {"x": x}, {"one": np.array([1])}))
    expected = ort_run(model, feeds)
    assert np.isinf(expected[0]).any()
    assert_same_numbers(ort_run(convert(model, target), feeds), expected, rtol=1e-6, atol=1e-7)


def test_nothing_is_lowered_below_opset_7():
    model = model_from_text("main (float[3,4] x) => (float[3,4] y) { y = Add (x, x) }", 8)
    assert convert(model, 7)
    with pytest.raises(MigrationError, match="Nothing is lowered to opset 6"):
        convert(model, 6)


def test_operands_of_one_shape_need_no_broadcasting():
    model = model_from_text("main (float[N,4] x, float[N,4] z) => (float[N,4] y) { y = Sum (x, z) }", 8)
    assert convert(model, 7)


def test_a_type_the_older_version_does_not_take_is_refused():
    case = Case("y = Clip (x)", 12, {"x": np.arange(3)}, {}, {"y": TensorProto.INT64})
    with pytest.raises(MigrationError, match="version 11 of it does not support 'input' of type tensor"):
        convert(in_main(case)[0], 11)
    assert convert(in_main(case)[0], 13)


def test_a_scan_is_not_lowered_to_the_batched_one():
    with pytest.raises(MigrationError, match="Scan 'scan' cannot be lowered from opset 16 to 8"):
        convert(in_scan(Case("y = Relu (x)", 16, X))[0], 8)


def test_a_softmax_along_another_axis_than_the_last_is_turned():
    model, feeds = in_main(Case("y = Softmax <axis = 0> (x)", 13, X))
    lowered = convert(model, 11)
    assert [node.op_type for node in lowered.graph.node] == ["Transpose", "Softmax", "Transpose"]
    assert_same_numbers(ort_run(lowered, feeds), ort_run(model, feeds), rtol=1e-6)


def test_an_axis_from_the_end_is_counted_from_the_front():
    model = model_from_text("main (float[3,4] x) => (float[3,8] y) { y = Concat <axis = -1> (x, x) }", 13)
    assert [one.i for one in convert(model, 10).graph.node[0].attribute] == [1]
