"""onnx cannot infer shapes of onnxruntime's own operators; the values after them must have shapes nevertheless."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.text import model_from_text, ort_run

HEADER = '<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]>\n'
OPERATORS = {
    "QuickGelu": "u = com.microsoft.QuickGelu (x)",
    "BiasGelu": "u = com.microsoft.BiasGelu (x, w)",
    "chain": "v = com.microsoft.Gelu (x) u = com.microsoft.QuickGelu (v)",
    "SkipLayerNormalization": "v = Relu (x) u = com.microsoft.SkipLayerNormalization (x, v, w, w)",
}


@pytest.mark.parametrize("opset", [9, 10, 11, 21])
@pytest.mark.parametrize("axis", ["", "<axis = 1>"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_what_a_body_makes_of_them_has_its_shape_in_every_opset(operator: str, axis: str, opset: int) -> None:
    model = model_from_text(
        HEADER
        + f"""g (float[T,2,3] xs) => (float z) <float[3] w = {{0.5, 1, 2}}, bool[3] some = {{1, 0, 1}}> {{
            z = Scan <num_scan_inputs = 1, body = b (float[2,3] x) => (float y) {{
                {OPERATORS[operator]} y = Compress {axis} (u, some) }}> (xs) }}""",
        check=False,
    )
    for info in (model.graph.output[0], model.graph.node[0].attribute[1].g.output[0]):
        info.type.tensor_type.ClearField("shape")
    model.graph.output[0].type.tensor_type.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in range(3 if axis else 2))
    feeds = {"xs": np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)}
    for after in (ortscan.migrate(model, opset, verify=False), ortscan.optimize(model, opset=opset, verify=False)):
        assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
