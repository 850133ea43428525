"""Constants that operators rearrange equal the arrays that onnxruntime computes."""

from collections import Counter

import numpy as np
import onnx
import pytest

from rewrites.recurrences.constants import ConstantReader
from tests.rewrites.apply import context_of
from tests.rewrites.recurrences.cells.random_bodies import random_body
from tests.support.runtime import ort_run


def model_of(nodes: list[str], names: list[str], weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    text = f'<ir_version: 10, opset_import: ["": 18]> g () => ({", ".join(f"float[] {name}" for name in names)}) {{ {" ".join(nodes)} }}'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


def compare(model: onnx.ModelProto) -> Counter[str]:
    ctx, found = context_of(model), Counter[str]()
    constants = ConstantReader(ctx.opset)
    for value, wanted in zip(ctx.model.graph.outputs, ort_run(model, {}, optimised=False), strict=True):
        array, maker = constants.of(value), value.producer()
        if array is not None and maker is not None:
            found[maker.op_type] += 1
            assert (array.shape, array.dtype) == (wanted.shape, wanted.dtype), value
            np.testing.assert_allclose(array, wanted, rtol=1e-6, atol=1e-6, err_msg=str(value))
    return found


def test_rearranged_weights_are_known_constants() -> None:
    found: Counter[str] = Counter()
    for seed in range(200):
        body = random_body(seed)
        numbers = np.random.default_rng(seed)
        weights = {
            name: numbers.standard_normal(shape).astype(np.float32)
            for name, shape in {"h": (2, 4), "c": (2, 4), "x": (2, 3)}.items()
        }
        if body.nodes:
            names = [name for name in body.shapes if name not in weights]
            found += compare(model_of(body.nodes, names, {**weights, **body.weights}))
    often = {
        "Add",
        "Concat",
        "Gather",
        "Identity",
        "Mul",
        "Neg",
        "Reshape",
        "Slice",
        "Split",
        "Squeeze",
        "Sub",
        "Transpose",
        "Unsqueeze",
    }
    assert often <= found.keys(), found


@pytest.mark.parametrize("start", [0, 1, -1, -2, 9, -9])
@pytest.mark.parametrize("end", [0, 2, -1, 9, -9, 2**31 - 1, -(2**63), 2**63 - 1])
def test_a_slice_of_a_constant_is_cut_as_onnxruntime_cuts_it(start: int, end: int) -> None:
    nodes, names, weights = [], [], {"a": np.array([0]), "s": np.array([start]), "e": np.array([end])}
    for length in (0, 1, 5):
        weights[f"w{length}"] = np.arange(length * 2, dtype=np.float32).reshape(length, 2)
        for step in (1, 2, -1, -2):
            names.append(f"v{len(names)}")
            weights[f"t{len(names)}"] = np.array([step])
            nodes.append(f"{names[-1]} = Slice (w{length}, s, e, a, t{len(names)})")
    assert compare(model_of(nodes, names, weights))["Slice"] == len(names)
