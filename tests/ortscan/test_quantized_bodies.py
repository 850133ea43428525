"""Loops whose products are quantized: products of inputs leave with the very numbers that they had, and it is said why the rest stays."""

from collections import Counter

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.quantized_bodies import WAYS, WEIGHTS_ALONE, quantized_scan
from tests.support.quantized_lstm import quantized_lstm
from tests.support.runtime import ort_run


def feeds_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    dims = {info.name: [dim.dim_value or 20 for dim in info.type.tensor_type.shape.dim] for info in model.graph.input}
    return {name: rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in dims.items()}


def body_of(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    (scan,) = (node for node in model.graph.node if node.op_type == "Scan")
    return list(next(attribute.g for attribute in scan.attribute if attribute.name == "body").node)


@pytest.mark.parametrize("steps", [20, "T"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cell", ["LSTM", "GRU", "RNN"])
def test_the_product_of_the_inputs_leaves_with_its_numbers(cell: str, way: str, steps: int | str) -> None:
    model = quantized_scan(cell, way, steps)
    after, feeds = ortscan.optimize(model), feeds_of(model)
    left = Counter(node.op_type for node in body_of(after))
    assert left["MatMul"] + left["MatMulInteger"] == 1
    for mine, theirs in zip(ort_run(after, feeds), ort_run(model, feeds), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=2e-6)  # far below what one quantization step changes


@pytest.mark.parametrize("way", ["static", "static to the end"])
def test_weights_stay_integers_and_are_dequantized_beside_their_products(way: str) -> None:
    after = ortscan.optimize(quantized_scan("LSTM", way, hidden=32, wide=32))
    for nodes in (body_of(after), after.graph.node):
        made = {value: node.op_type for node in nodes for value in node.output}
        (product,) = (node for node in nodes if node.op_type == "MatMul")
        assert [made.get(value) for value in product.input] == ["DequantizeLinear", "DequantizeLinear"]
    assert not [one.name for one in after.graph.initializer if one.data_type == onnx.TensorProto.FLOAT and len(one.dims) == 2]


def test_weights_that_floats_are_multiplied_by_become_constants() -> None:
    after = ortscan.optimize(quantized_scan("LSTM", WEIGHTS_ALONE), verify=False)  # onnxruntime 1.32 does not load what is given
    assert [node.op_type for node in after.graph.node if node.op_type in ("LSTM", "Scan")] == ["LSTM"]


def test_few_steps_keep_what_would_take_more_operators_than_they_run() -> None:
    report = ortscan.explain(quantized_scan("RNN", "dynamic", 4))
    assert "COST-FEW-STEPS" in {reason.code for loop in report.loops for reason in loop.reasons}
    assert len(ortscan.optimize(quantized_scan("RNN", "dynamic", 4)).graph.node) == 1


@pytest.mark.parametrize(("way", "how"), [("dynamic", "by the range of the step"), ("static", "by a scale of its own")])
def test_it_is_said_why_the_state_keeps_its_loop(way: str, how: str) -> None:
    (loop,) = ortscan.explain(quantized_scan("LSTM", way)).loops
    (said,) = (reason.detail for reason in loop.reasons if reason.code == "CELL-QUANTIZED")
    assert how in said


def test_a_dynamic_quantize_lstm_takes_the_range_of_all_steps() -> None:
    """What stands in the way of it: the first step's numbers depend on what the last step reads."""
    model = quantized_lstm()
    x = np.random.default_rng(0).normal(0, 0.1, (5, 1, 4)).astype(np.float32)
    alone, larger = ort_run(model, {"x": x}), ort_run(model, {"x": np.concatenate([x[:4], 1000 * x[4:]])})
    assert np.abs(alone[0][0] - larger[0][0]).max() > 0.5 * np.abs(alone[0][0]).max()
