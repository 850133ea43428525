"""Cells whose weights are model inputs, overridable initializers, or computed at run time."""

import numpy as np
import onnx
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.rewrites.recurrences.written_cells import ENCODINGS, Written, written
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

KINDS = ("RNN", "GRU", "GRU keeping the rest", "LSTM", "LSTM peepholes", "LSTM coupled")
SPLIT = "projection before the loop"


def fed(cell: Written, *, overridable: bool) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return the model of `cell` with its weights as inputs, and the weights."""
    model = cell.model()
    weights = {
        name: array for name, array in cell.weights.items() if name.rstrip("igfonzr")[:1] in "WRBCp" and array.dtype == np.float32
    }
    kept = [tensor for tensor in model.graph.initializer if overridable or tensor.name not in weights]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    model.graph.input.extend(onnx.helper.make_tensor_value_info(name, 1, array.shape) for name, array in weights.items())
    return model, weights


def nodes_of(model: onnx.ModelProto, cell: Written, weights: dict[str, np.ndarray]) -> list[str]:
    """Optimise, compare for several weights, and return the recurrent nodes and loops that remain."""
    result = to_caller_type(rewritten(model, target="onnx", debug=True)[0])
    onnx.checker.check_model(result, full_check=True)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        feeds = cell.feeds(seed=seed) | {
            name: rng.standard_normal(array.shape).astype(np.float32) for name, array in weights.items()
        }
        assert_same_numbers(ort_run(result, feeds), ort_run(model, feeds), rtol=1e-4, atol=1e-5)
    return [node.op_type for node in result.graph.node if node.op_type in {"RNN", "GRU", "LSTM", "Scan", "Loop"}]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("encoding", [encoding for encoding in ENCODINGS if encoding != SPLIT])
def test_run_time_weights_are_split_for_the_node(kind, encoding):
    cell = written(kind, encoding, "tanh")
    model, weights = fed(cell, overridable=len(encoding) % 2 == 0)
    assert weights
    assert nodes_of(model, cell, weights) == [kind.split(" ")[0]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_projection_with_run_time_weights_stays_before_the_node(kind):
    cell = written(kind, SPLIT)
    model, weights = fed(cell, overridable=False)
    assert nodes_of(model, cell, weights) == [kind.split(" ")[0]]


def test_weights_are_computed_once_before_the_node():
    cell = written(
        "LSTM", "one product for all gates", change=lambda text: f"RR = MatMul (R, mix)  {text.replace('(h, R)', '(h, RR)')}"
    )
    cell.weights["mix"] = np.eye(16, dtype=np.float32)[::-1].copy() * 0.5
    model, weights = fed(cell, overridable=False)
    assert nodes_of(model, cell, weights) == ["LSTM"]


def test_a_number_that_is_added_to_one_gate_is_part_of_its_bias():
    cell = written(
        "LSTM",
        "one product for all gates",
        change=lambda text: text.replace("f = Sigmoid (a_f)", "af = Add (a_f, Bias)  f = Sigmoid (af)"),
    )
    cell.weights["Bias"] = np.float32(1).reshape(())
    model, weights = fed(cell, overridable=True)
    assert "Bias" in weights
    assert nodes_of(model, cell, weights) == ["LSTM"]


def test_a_weight_that_is_used_twice_is_cut_twice():
    cell = written("GRU", "split by Slice", change=lambda text: f"W3 = Gather (R, three)  {text.replace('(x, W)', '(x, W3)')}")
    cell.weights["three"] = np.array([3, 1, 2])
    del cell.weights["W"]
    model, weights = fed(cell, overridable=False)
    assert set(weights) == {"R", "B"}
    assert nodes_of(model, cell, weights) == ["GRU"]


def test_activations_that_depend_on_fed_numbers_keep_the_loop():
    cell = written(
        "LSTM",
        "one product for all gates",
        change=lambda text: text.replace("g = Tanh (a_g)", "g0 = Tanh (a_g)  g = Mul (g0, Wide)"),
    )
    cell.weights["Wide"] = np.ones(4, np.float32)
    model, weights = fed(cell, overridable=False)
    assert nodes_of(model, cell, weights) == ["Scan"]
