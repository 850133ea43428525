"""A DynamicQuantizeLSTM keeps its numbers, is kept from what ends the process, and is spoken of where a target lacks it."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.quantized_lstm import HIDDEN, WIDE, quantized_lstm
from tests.support.runtime import ort_run

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
    after = ortscan.optimize(model, target=target)
    assert "DynamicQuantizeLSTM" not in {node.op_type for node in after.graph.node}
    onnx.checker.check_model(after, full_check=True)
    assert ortscan.optimize(after, target=target) == after
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
    assert "sizes of zero were not tried: DynamicQuantizeLSTM does not survive them" in outcome.summary()


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
