"""Operators of onnx's reference, trusted, corrected or refused, compared with onnxruntime in types that both support."""

import numpy as np
import onnx
import pytest

from rewrites.python_ops.reference import reference_evaluator, reference_runs
from tests.support.python_calls import session
from tests.support.runtime import ort_run
from tests.support.text import parsed

HEAD = '<ir_version: 8, opset_import: ["": 18]>'
X = np.random.default_rng(0).integers(-2, 3, (2, 5, 3)).astype(np.float32)
RIGHT = {
    "LRN of more channels than rows": "g (float[2, 5, 3] x) => (float[2, 5, 3, 1] y) { s = Constant <value_ints = [2, 5, 3, 1]> ()"
    " r = Reshape (x, s) y = LRN <size = 3, alpha = 0.5> (r) }",
    "LRN of one channel": "g (float[2, 5, 3] x) => (float[10, 1, 3, 1] y) { s = Constant <value_ints = [10, 1, 3, 1]> ()"
    " r = Reshape (x, s) y = LRN <size = 5, beta = 0.3, bias = 2.0> (r) }",
    "OneHot with a depth of one number": "g (float[2, 5, 3] x) => (float[2, 5, 3, 4] y) { i = Cast <to = 7> (x)"
    " d = Constant <value_ints = [4]> () v = Constant <value_floats = [0.5, 2.0]> () y = OneHot (i, d, v) }",
    "OneHot along the first axis": "g (float[2, 5, 3] x) => (float[2, 2, 5, 3] y) { i = Cast <to = 7> (x)"
    " d = Constant <value_int = 2> () v = Constant <value_floats = [0.5, 2.0]> () y = OneHot <axis = 0> (i, d, v) }",
    "TopK with ties": "g (float[2, 5, 3] x) => (float[2, 3, 3] y, int64[2, 3, 3] i) { k = Constant <value_ints = [3]> ()"
    " y, i = TopK <axis = 1> (x, k) }",
    "TopK of the smallest": "g (float[2, 5, 3] x) => (float[2, 5, 2] y, int64[2, 5, 2] i) { k = Constant <value_ints = [2]> ()"
    " y, i = TopK <largest = 0> (x, k) }",
    "TopK of nothing": "g (float[2, 5, 3] x) => (float[2, 5, 0] y, int64[2, 5, 0] i) { k = Constant <value_ints = [0]> ()"
    " y, i = TopK (x, k) }",
    "Softsign of a scalar": "g (float[2, 5, 3] x) => (float y) { s = ReduceSum <keepdims = 0> (x) y = Softsign (s) }",
}


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_corrected_reference_equals_onnxruntime(text: str):
    model = parsed(HEAD + text)
    for found, wanted in zip(reference_evaluator(model).run(None, {"x": X}), ort_run(model, {"x": X}), strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


REFUSED = {
    "LpPool <kernel_shape = [2, 2], ceil_mode = 1> (x)": "ceil_mode",
    "AveragePool <kernel_shape = [2, 2], dilations = [2, 1]> (x)": "dilations",
    "MaxPool <kernel_shape = [2, 2]> (x)": "pads and steps",
    'ConvTranspose <auto_pad = "SAME_UPPER"> (x, w)': "auto_pad",
    "ConvTranspose <group = 2> (x, w)": "group",
    "Unique <sorted = 0> (x)": "sorted = 0",
    'Resize <coordinate_transformation_mode = "pytorch_half_pixel"> (x, "", w)': "coordinate_transformation_mode",
    'Resize <coordinate_transformation_mode = "align_corners"> (x, "", w)': "coordinate_transformation_mode",
}


@pytest.mark.parametrize("node", REFUSED)
def test_wrong_reference_operators_are_not_called(node: str):
    reason = reference_runs(one(node))
    assert reason is not None
    assert reason.detail.endswith(f" is wrong with {REFUSED[node]}")


TRUSTED = [
    "AveragePool <kernel_shape = [2, 2], strides = [2, 2], pads = [1, 0, 0, 1], ceil_mode = 0, dilations = [1, 1]> (x)",
    "ConvTranspose <strides = [2, 2], group = 1> (x, w)",
    "Unique <sorted = 0, axis = 0> (x)",
    "Resize (x, , w)",
    'Resize <coordinate_transformation_mode = "align_corners"> (x, , , s)',
]


@pytest.mark.parametrize("node", TRUSTED)
def test_right_reference_operators_are_called(node: str):
    assert reference_runs(one(node)) is None


def one(node: str) -> onnx.ModelProto:
    node = node.replace('""', "")
    return parsed(f"{HEAD} g (double[1, 2, 4, 4] x, float[N] w, int64[4] s) => (double[M] y) {{ y = {node} }}")


TOP = f"{HEAD} g (uint64[N, 4] x, int64[M] k) => (uint64[N, K] y, int64[N, K] i) {{ y, i = TopK (x, k) }}"


@pytest.mark.long
@pytest.mark.parametrize(
    ("k", "message"), [([-1], "k is -1, which is not from 0 to 4"), ([5], "k is 5,"), ([1, 2], "k has 2 numbers, not one")]
)
def test_invalid_inputs_are_an_error(k: list[int], message: str):
    made = session(TOP)
    values, places = made.run(None, {"x": np.array([[1, 4, 4, 3]], np.uint64), "k": np.array([2])})
    assert (values.tolist(), places.tolist()) == ([[4, 4]], [[1, 2]])
    with pytest.raises(ValueError, match=message):
        made.run(None, {"x": np.array([[1, 4, 2, 3]], np.uint64), "k": np.array(k)})
