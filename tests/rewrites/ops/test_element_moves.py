"""What the map of a movement does to arrays is what onnxruntime gives; along axes that it does not cut it works element by element."""

import itertools

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from rewrites.graph.values import const_array, shape_dims
from rewrites.ops.element_moves import Movement, movement
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

CASES = {
    "a Split into given sizes": ("float[2,6] x", "p, q = Split <axis = -1> (x, sizes)", "int64[2] sizes = {1, 5}"),
    "a Split into equal parts": ("float[5,2] x", "p, q = Split <num_outputs = 2> (x)", ""),
    "a Slice that leaves out": (
        "float[4,5] x",
        "p = Slice (x, a, b, c, d)",
        "int64[1] a={1}, int64[1] b={9}, int64[1] c={-1}, int64[1] d={2}",
    ),
    "a Slice backwards": (
        "float[4,5] x",
        "p = Slice (x, a, b, c, d)",
        "int64[1] a={-1}, int64[1] b={-9}, int64[1] c={0}, int64[1] d={-2}",
    ),
    "a Slice of everything": ("float[4,5] x", "p = Slice (x, a, b)", "int64[2] a={0, 0}, int64[2] b={4, 99}"),
    "a Gather of one": ("float[4,5] x", "p = Gather <axis = 1> (x, i)", "int64 i = {-2}"),
    "a Gather of a table": ("float[4,5,2] x", "p = Gather <axis = 1> (x, i)", "int64[2,3] i = {0, 1, 2, 4, 4, -5}"),
    "a Transpose": ("float[2,3,4] x", "p = Transpose <perm = [1, 2, 0]> (x)", ""),
    "a Transpose without a permutation": ("float[2,3,4] x", "p = Transpose (x)", ""),
    "a Squeeze of all": ("float[1,3,1] x", "p = Squeeze (x)", ""),
    "a Squeeze of one": ("float[1,3,1] x", "p = Squeeze (x, a)", "int64[1] a = {-1}"),
    "an Unsqueeze": ("float[2,3] x", "p = Unsqueeze (x, a)", "int64[3] a = {-1, 0, 2}"),
    "an Expand of one axis": ("float[2,1,3] x", "p = Expand (x, s)", "int64[3] s = {2, 4, 1}"),
    "an Expand to more axes": ("float[2,1] x", "p = Expand (x, s)", "int64[4] s = {1, 3, 2, 5}"),
    "an Identity": ("float[2,3] x", "p = Identity (x)", ""),
    "a Reshape": ("float[2,6] x", "p = Reshape (x, s)", "int64[3] s = {0, -1, 3}"),
    "a Reshape with allowzero": ("float[2,6] x", "p = Reshape <allowzero = 1> (x, s)", "int64[3] s = {2, -1, 3}"),
    "a Reshape to a scalar with allowzero": ("float[1,1] x", "p = Reshape <allowzero = 1> (x, s)", "int64[0] s = {}"),
    "a Reshape to a size of 0": ("float[0,6] x", "p = Reshape <allowzero = 1> (x, s)", "int64[3] s = {2, 0, 3}"),
    "a Reshape of nothing": ("float[0,6] x", "p = Reshape (x, s)", "int64[3] s = {0, 2, 3}"),
    "a Concat": ("float[2,3] x, float[2,1] y, float[2,2] z", "p = Concat <axis = 1> (x, y, z)", ""),
}

REFUSED = {
    "an index that is out of range": ("float[4,5] x", "p = Gather (x, i)", "int64 i = {4}"),
    "sizes that do not add up": ("float[6] x", "p, q = Split (x, sizes)", "int64[2] sizes = {1, 4}"),
    "a Squeeze of what is not 1": ("float[2,3] x", "p = Squeeze (x, a)", "int64[1] a = {0}"),
    "a Reshape into another number of elements": ("float[2,3] x", "p = Reshape (x, s)", "int64[2] s = {4, -1}"),
    "a Reshape of nothing that is not told": ("float[0,3] x", "p = Reshape (x, s)", "int64[2] s = {0, -1}"),
    "a Reshape of elements to a size of 0": ("float[2,6] x", "p = Reshape <allowzero = 1> (x, s)", "int64[2] s = {0, 6}"),
    "a Reshape to a size of 0 and one to infer": ("float[0,6] x", "p = Reshape <allowzero = 1> (x, s)", "int64[2] s = {0, -1}"),
    "an Expand that does not fit": ("float[2,3] x", "p = Expand (x, s)", "int64[1] s = {2}"),
    "a cut of an axis of unknown size": ("float[N,3] x", "p = Slice (x, a, b)", "int64[1] a = {0}, int64[1] b = {2}"),
    "indices that the model computes": ("float[2,3] x, int64[1] i", "p = Gather (x, i)", ""),
    "an operator that computes": ("float[2,3] x", "p = Neg (x)", ""),
}


def read(inputs: str, node: str, constants: str) -> tuple[onnx.ModelProto, ir.Node, Movement | None]:
    results = ", ".join(f"float[{name}s] {name}" for name in node.split(" = ", maxsplit=1)[0].split(", "))
    proto = model_from_text(f"g({inputs}) => ({results}) <{constants}> {{ {node} }}", 18, check=False)
    (one,) = ir.from_proto(proto).graph
    assert one.inputs[0] is not None
    assert one.inputs[0].shape is not None
    return proto, one, movement(one, 18, shape_dims(one.inputs[0].shape), lambda index: const_array(one.inputs[index]))


def outputs_of(model: onnx.ModelProto, node: ir.Node, arrays: list[np.ndarray]) -> list[np.ndarray]:
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return ort_run(model, {value.name: array for value, array in zip(node.inputs, arrays, strict=False) if value is not None})


@pytest.mark.parametrize("case", CASES)
def test_the_map_of_a_movement_does_what_onnxruntime_does(case: str) -> None:
    model, node, found = read(*CASES[case])
    assert found is not None
    values = node.inputs if node.op_type == "Concat" else node.inputs[:1]
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=value.shape.numpy()).astype(np.float32) for value in values]  # type: ignore[union-attr]
    made, wanted = found.apply(arrays), outputs_of(model, node, arrays)
    assert len(made) == len(wanted)
    for one, other in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("case", CASES)
def test_along_an_axis_that_is_not_cut_the_result_is_made_element_by_element(case: str) -> None:
    _, node, found = read(*CASES[case])
    assert found is not None
    values = node.inputs if node.op_type == "Concat" else node.inputs[:1]
    arrays = [np.random.default_rng(i).normal(size=value.shape.numpy()) for i, value in enumerate(values)]  # type: ignore[union-attr]
    whole = found.apply(arrays)
    assert found.axes is None or all(result.ndim == len(found.axes) for result in whole)
    for place, axis in enumerate(found.axes or ()):
        if axis is None:
            assert all(result.shape[place] == 1 for result in whole)
        elif axis not in found.changed_axes:
            for index, (i, result) in itertools.product(range(arrays[0].shape[axis]), enumerate(whole)):
                one = found.apply([np.take(array, [index], axis) for array in arrays])[i]
                np.testing.assert_array_equal(one, np.take(result, [index], place))


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_movement_that_is_known_has_no_map(case: str) -> None:
    assert read(*REFUSED[case])[2] is None
