"""Quantized recurrences keep their results. Products of inputs leave a Scan exactly; a DynamicQuantizeLSTM is guarded."""

from collections import Counter

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.quantized_bodies import HIDDEN, WAYS, WEIGHTS_ALONE, WIDE, quantized_lstm, quantized_scan
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
    after, feeds = ortscan.optimize(model, verify=False), feeds_of(model)
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
    assert not [each.name for each in after.graph.initializer if each.data_type == onnx.TensorProto.FLOAT and len(each.dims) == 2]


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
    """It cannot replace a step: the results of the first step depend on the input of the last."""
    model = quantized_lstm()
    x = np.random.default_rng(0).normal(0, 0.1, (5, 1, 4)).astype(np.float32)
    alone, larger = ort_run(model, {"x": x}), ort_run(model, {"x": np.concatenate([x[:4], 1000 * x[4:]])})
    assert np.abs(alone[0][0] - larger[0][0]).max() > 0.5 * np.abs(alone[0][0]).max()


REFUSES_NOTHING = """s1, v = Scan <num_scan_inputs = 1, body = b (float[1] a, float[B,4] e) => (float[1] a1, float[B,4] f) {
    a1 = Identity (a) f = Tanh (e) }> (o, x)"""
BEHIND = """zero = Constant <value_ints = [0]> () q = ReduceSum <keepdims = 0> (h, zero) one = Constant <value_ints = [1]> () k = ReduceSum <keepdims = 0> (y, one)
    v = Scan <num_scan_inputs = 1, body = b (float[B,8] a, float[B,8] e) => (float[B,8] a1) { f = Tanh (e) m = Mul (a, f) a1 = Sub (m, f) }> (q, k)"""
STEPPED = """zero = Constant <value_int = 0> () yes = Constant <value = bool {1}> () q = Gather (h, zero) sh = Shape (y) n = Gather (sh, zero)
    v = Loop <body = b (int64 i, bool d, a) => (bool d1, a1) { d1 = Identity (d) f = Gather (y, i) w = ReduceSum <keepdims = 0> (f, axis) t = Tanh (w) m = Mul (a, t) a1 = Sub (m, t) }> (n, yes, q)
    axis = Constant <value_ints = [0]> ()"""


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_it_is_kept_from_no_rows_once_a_scan_that_refused_nothing_is_gone(direction: str, target: str) -> None:
    model = quantized_lstm(REFUSES_NOTHING, "float[T,B,4] v", direction)
    after = ortscan.optimize(model, target=target, verify=False)
    assert "DynamicQuantizeLSTM" not in {node.op_type for node in after.graph.node}
    onnx.checker.check_model(after, full_check=True)
    assert ortscan.optimize(after, target=target, verify=False) == after
    ways = 1 + (direction == "bidirectional")
    for steps, rows in ((3, 2), (1, 1), (2, 0), (0, 0)):
        feeds = {"x": np.random.default_rng(0).normal(size=(steps, rows, WIDE)).astype(np.float32)}
        found = ort_run(after, feeds)
        assert [each.shape for each in found[:3]] == [(steps, ways, rows, HIDDEN), (ways, rows, HIDDEN), (ways, rows, HIDDEN)]
        if rows:
            assert_same_numbers(found, ort_run(model, feeds))


def test_it_is_not_guarded_where_the_batch_is_known_or_nothing_refused_it() -> None:
    fixed = quantized_lstm(REFUSES_NOTHING, "float[T,B,4] v")
    for model, options in ((fixed, {"fix_shapes": {"x": [None, 2, WIDE]}}), (quantized_lstm(), {})):
        after = ortscan.optimize(model, **options)
        assert "DynamicQuantizeLSTM" in {node.op_type for node in after.graph.node}


@pytest.mark.parametrize("level", ["quick", "full"])
def test_sizes_of_zero_are_not_tried_on_it(level: str) -> None:
    model = quantized_lstm(BEHIND, "float[B,8] v")
    outcome = ortscan.verify(model, model, level=level)
    assert outcome.ok
    assert not any(0 in case.dims.values() for case in outcome.cases)
    assert "onnxruntime may crash or return uninitialised values at DynamicQuantizeLSTM" in outcome.summary()


@pytest.mark.parametrize("target", ["coreml", "webgpu", "directml"])
def test_explain_says_what_becomes_of_it_where_there_is_none(target: str) -> None:
    (entry,) = ortscan.explain(quantized_lstm(), target=target).loops
    assert (entry.kind, entry.fate) == ("DynamicQuantizeLSTM", "kept")
    assert [reason.code for reason in entry.reasons] == ["UNROLL-NODE"]
    assert f"{target} has no DynamicQuantizeLSTM" in entry.reasons[0].detail
    assert "it falls back to onnxruntime's CPU" in entry.runs


def test_nothing_is_said_of_it_where_it_runs_or_loops_run_too() -> None:
    for target in ("cpu", "onnx", "cuda"):
        assert not ortscan.explain(quantized_lstm(), target=target).loops


def test_the_shapes_of_what_it_gives_are_known_to_a_loop_behind_it() -> None:
    model = quantized_lstm(STEPPED, "float[B,8] v")
    model.graph.node.insert(0, model.graph.node.pop())
    assert [loop.kind for loop in ortscan.explain(model).loops] == ["Loop"]
    after = ortscan.optimize(model)
    assert "Loop" not in {node.op_type for node in after.graph.node}
