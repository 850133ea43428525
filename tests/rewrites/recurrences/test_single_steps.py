"""Recurrent nodes that compute one step of a loop become one node for all steps."""

import numpy as np
import onnx
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def stepwise(kind: str, attributes: str = "", *, peepholes: bool = False, result: str = "hn1") -> onnx.ModelProto:
    """A loop that does one step of `kind` with 4 units at a time."""
    gates, second = GATES[kind], kind == "LSTM"
    given = "h3, c3, P" if peepholes else "h3, c3" if second else "h3"
    states = "float[2,4] h, float[2,4] c" if second else "float[2,4] h"
    nexts = "float[2,4] h1, float[2,4] c1" if second else "float[2,4] h1"
    text = f"""<ir_version: 8, opset_import: ["": 18]>
    g (float[2,4] h0, float[2,4] c0, float[6,2,3] xs) => (float[6,2,4] ys) {{
        {"hn, cn" if second else "hn"}, ys = Scan <num_scan_inputs = 1, body = step ({states}, float[2,3] x) => ({nexts}, float[2,4] y) {{
            x3 = Unsqueeze (x, first)  h3 = Unsqueeze (h, first)
            {"c3 = Unsqueeze (c, first)" if second else ""}
            y4, hn1{", cn1" if second else ""} = {kind} <hidden_size = 4 {attributes}> (x3, W, R, B, , {given})
            {"y3 = Squeeze (y4, first)" if result == "y4" else ""}
            h1 = Squeeze ({"y3" if result == "y4" else result}, first)
            {"c1 = Squeeze (cn1, first)" if second else ""}
            y = Identity (h1)
        }}> ({"h0, c0" if second else "h0"}, xs) }}"""
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(1)
    shapes = {"W": (1, gates * 4, 3), "R": (1, gates * 4, 4), "B": (1, 2 * gates * 4), "P": (1, 12)}
    arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()} | {"first": np.array([0])}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    return model


def nodes_of(model: onnx.ModelProto) -> list[str]:
    """Optimise, compare with the original, and return the recurrent nodes and loops that remain."""
    result = to_caller_type(rewritten(model, target="onnx", debug=True)[0])
    rng = np.random.default_rng(2)
    feeds = {"h0": (2, 4), "c0": (2, 4), "xs": (6, 2, 3)}
    given = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in feeds.items()}
    assert_same_numbers(ort_run(result, given), ort_run(model, given), rtol=1e-4, atol=1e-5)
    return [node.op_type for node in result.graph.node if node.op_type in {*GATES, "Scan", "Loop"}]


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("RNN", ""),
        ("RNN", ', activations = ["Relu"], clip = 0.5'),
        ("GRU", ""),
        ("GRU", ", linear_before_reset = 1"),
        ("GRU", ', activations = ["HardSigmoid", "Softsign"], activation_alpha = [0.3], activation_beta = [0.4]'),
        ("LSTM", ""),
        ("LSTM", ", input_forget = 1"),
        ("LSTM", ", clip = 0.7"),
        ("LSTM", ', activations = ["Sigmoid", "LeakyRelu", "Elu"], activation_alpha = [0.1, 0.7]'),
        (
            "LSTM",
            ', activations = ["Sigmoid", "ScaledTanh", "Affine"], activation_alpha = [1.5, 1.0], activation_beta = [0.5, 0.0]',
        ),
        ("RNN", ', activations = ["ThresholdedRelu"], activation_alpha = [0.3]'),
    ],
)
@pytest.mark.parametrize("result", ["hn1", "y4"])
def test_one_step_at_a_time_becomes_all_steps(kind, attributes, result):
    assert nodes_of(stepwise(kind, attributes, result=result)) == [kind]


def test_peepholes_stay():
    assert nodes_of(stepwise("LSTM", peepholes=True)) == ["LSTM"]


def test_an_activation_that_overflows_in_the_node_keeps_the_loop():
    assert nodes_of(stepwise("RNN", ', activations = ["Softplus"]')) == ["Scan"]


def test_sequence_lengths_in_each_step_keep_the_loop():
    model = stepwise("GRU")
    body = onnx.helper.get_node_attr_value(model.graph.node[0], "body")
    next(node for node in body.node if node.op_type == "GRU").input[4] = "lengths"
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 0], np.int32), "lengths"))
    assert nodes_of(model) == ["Scan"]
