"""Opsets 1 to 6, which onnxruntime does not run: lifted to 26 there and compared with numpy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from rewrites.base.errors import MigrationError
from tests.rewrites.migration.holders import Case, convert, in_main
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

A = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
PER_CHANNEL = np.array([1, 2, 3], np.float32)
IMAGE = A[:, :, :2, :2].copy()


def case(node: str, opset: int, x: np.ndarray = A, kind: int = TensorProto.FLOAT, **constants: Any) -> Case:
    return Case(node, opset, {"x": x}, {name: np.asarray(value) for name, value in constants.items()}, {"y": kind})


@pytest.mark.parametrize(
    ("old", "numpy"),
    [
        (case("y = Add <broadcast = 1, axis = 1> (x, b)", 6, b=PER_CHANNEL), lambda x: x + PER_CHANNEL[:, None, None]),
        (case("y = Mul <broadcast = 1> (x, b)", 1, b=A[0, 0]), lambda x: x * A[0, 0]),
        (case("y = Sub <broadcast = 1, axis = 1> (x, b)", 6, b=A[0, :, :, 0]), lambda x: x - A[0, :, :, :1]),
        (case("y = Div <consumed_inputs = [0, 0]> (x, b)", 1, b=A + 9), lambda x: x / (A + 9)),
        (case("y = Pow <broadcast = 1, axis = -2> (x, b)", 1, b=np.full(4, 2, np.float32)), lambda x: x**2),
        (case("y = Greater <broadcast = 1> (x, b)", 6, kind=TensorProto.BOOL, b=np.float32(0)), lambda x: x > 0),
        (case("y = PRelu (x, b)", 6, b=PER_CHANNEL), lambda x: np.where(x < 0, x * PER_CHANNEL[:, None, None], x)),
        (case("y = PRelu <consumed_inputs = [0, 0]> (x, b)", 1, b=np.float32([0.5])), lambda x: np.where(x < 0, x / 2, x)),
        (case("y = Gemm <broadcast = 1> (x, w, b)", 6, A[0, 0], w=A[0, 1].T.copy(), b=A[0, 2, 0, :4]), lambda x: x @ A[0, 1].T + A[0, 2, 0, :4]),
        (case("y = Reshape <shape = [0, -1]> (x)", 1), lambda x: x.reshape(2, -1)),
        (case('y = Cast <to = "INT32"> (x)', 1, kind=TensorProto.INT32), lambda x: x.astype(np.int32)),
        (case("y = Concat (x, x)", 1), lambda x: np.concatenate([x, x], 1)),
        (case("y = Tile (x, n, a)", 1, n=np.float32(3), a=np.float32(2)), lambda x: np.tile(x, [1, 1, 3, 1])),
        (case("y = Pad <paddings = [0, 1, 0, 0, 2, 0], value = 3.0> (x)", 1, A[0]), lambda x: np.pad(x, [(0, 0), (1, 2), (0, 0)], constant_values=3)),
        (case("y = Split <axis = 1> (x, s)", 1, A[0], s=np.float32([4])), lambda x: x),
        (case('y = Upsample <height_scale = 2.0, width_scale = 3.0, mode = "nearest"> (x)', 1), lambda x: x.repeat(2, 2).repeat(3, 3)),
        (case("y = LpPool <kernel_shape = [2, 2], p = 2.0> (x)", 1, IMAGE), lambda x: np.sqrt((x**2).sum((2, 3), keepdims=True))),
        (case("y = Dropout <is_test = 1, ratio = 0.9> (x)", 6), lambda x: x),
        (case("y = Selu (x)", 1), lambda x: np.float32(1.0507) * np.where(x > 0, x, np.float32(1.6732) * (np.exp(x) - 1))),
        (case("y = Clip <max = 0.5, consumed_inputs = [0]> (x)", 1), lambda x: np.minimum(x, np.float32(0.5))),
        (case("y = Softmax (x)", 1, A[0, 0]), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
        (case("y = Abs <consumed_inputs = [0]> (x)", 5), np.abs),
        (case("y, i = TopK <k = 1> (x)", 1, A[0, 0]), lambda x: x.max(1, keepdims=True)),
        (case("y = Slice <starts = [1], ends = [3], axes = [1]> (x)", 1), lambda x: x[:, 1:3]),
    ],
    ids=lambda value: str(value) if isinstance(value, Case) else "",
)  # fmt: skip
def test_a_node_of_the_first_opsets_computes_what_its_text_says(old: Case, numpy: Callable[[np.ndarray], np.ndarray]):
    model, feeds = in_main(old)
    assert_same_numbers(ort_run(convert(model, 26), feeds), [numpy(feeds["x"])], rtol=2e-6)


@pytest.mark.parametrize("opset", [1, 6])
def test_batch_normalization_for_inference_is_lifted(opset: int):
    legacy = ", consumed_inputs = [0, 0, 0, 1, 1]" if opset == 1 else ""
    weights = {name: PER_CHANNEL * i for i, name in enumerate("sbmv", 1)}
    old = case(f"y = BatchNormalization <is_test = 1, epsilon = 0.5{legacy}> (x, s, b, m, v)", opset, **weights)
    scale, bias, mean, variance = (weights[name][:, None, None] for name in "sbmv")
    model, feeds = in_main(old)
    assert_same_numbers(ort_run(convert(model, 26), feeds), [(A - mean) / np.sqrt(variance + 0.5) * scale + bias], rtol=1e-5)


@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_a_recurrent_node_only_loses_the_word_whether_it_has_outputs(op: str, gates: int):
    weights = {"w": A[:1, 0, :gates].repeat(4, 1), "r": np.ones((1, 4 * gates, 4), np.float32) / 9}
    old = case(f"y = {op} <hidden_size = 4, output_sequence = 1> (x, w, r)", 5, A[0], **weights)
    new = case(f"y = {op} <hidden_size = 4> (x, w, r)", 7, A[0], **weights)
    model, feeds = in_main(old)
    assert_same_numbers(ort_run(convert(model, 26), feeds), ort_run(in_main(new)[0], feeds), rtol=1e-6)


def test_the_misspelt_direction_of_the_first_gru_is_corrected():
    weights = {"w": A[:1, 0, :3].repeat(4, 1), "r": np.ones((1, 12, 4), np.float32)}
    (node,) = convert(
        in_main(case('y, h = GRU <direction = "foward", hidden_size = 4> (x, w, r)', 1, A[0], **weights))[0], 3
    ).graph.node
    assert {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}["direction"] == b"forward"


@pytest.mark.parametrize(
    ("node", "opset", "reason"),
    [
        ("y = Dropout (x)", 6, "it is in training mode"),
        ("y, m = BatchNormalization (x, s, s, s, s)", 6, "it has the outputs of training mode"),
        ("y = LpPool <kernel_shape = [2, 2], p = 1.5> (x)", 1, "must be an integer"),
        ('y = Cast <to = "COLOUR"> (x)', 1, "is not an element type"),
        ("y = MeanVarianceNormalization <normalize_variance = 0> (x)", 8, "its variance is not normalized"),
        ("y = Gelu (x)", 8, "onnx defines it from opset 20 on"),
        ("y = Clip <min = 1> (x)", 8, "its attribute 'min' is of type INT, not FLOAT"),
        ("y, m = Dropout (x)\nz = Neg (m)", 8, "its mask is used"),
        ('y = Resize <coordinate_transformation_mode = "tf_half_pixel_for_nn"> (x, none, s)', 11, "which opset 13 removed"),
    ],
)  # fmt: skip
def test_what_has_no_successor_is_refused_by_name(node: str, opset: int, reason: str):
    outputs = {name: TensorProto.FLOAT for name in "yz" if f"{name} =" in node or f"{name}, " in node}
    old = Case(node, opset, {"x": A}, {"s": PER_CHANNEL, "none": np.zeros(0, np.float32)}, outputs)
    with pytest.raises(MigrationError, match=reason) as error:
        convert(in_main(old)[0], 26)
    assert "cannot be lifted from opset" in str(error.value)


def test_an_axis_to_broadcast_along_needs_known_ranks():
    model, _ = in_main(case("y = Add <broadcast = 1, axis = 1> (x, b)", 6, b=PER_CHANNEL), shapes=False)
    with pytest.raises(MigrationError, match="the rank of its input 0 is not known"):
        convert(model, 7)
