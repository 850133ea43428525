"""How what a provider made of a model is judged and counted."""

import base64

import numpy as np
import onnx
import pytest

from tests.campaigns.providers import abilities, record
from tests.campaigns.providers.cases import judge, with_sizes
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

EXPECTED = [np.array([1.0, 2.0], np.float32), np.array([3], np.int64)]


def page(*outputs: np.ndarray) -> dict[str, object]:
    packed = [
        {"dtype": one.dtype.name, "shape": list(one.shape), "base64": base64.b64encode(one.tobytes()).decode()} for one in outputs
    ]
    return {"outputs": packed}


@pytest.mark.parametrize(
    ("outputs", "became"),
    [
        (EXPECTED, "equal"),
        ([EXPECTED[0] + np.float32(1e-5), EXPECTED[1]], "equal"),
        ([EXPECTED[0] + np.float32(0.5), EXPECTED[1]], "differs by 2.5e-01"),
        ([np.array([1.0, np.nan], np.float32), EXPECTED[1]], "differs by"),
        ([EXPECTED[0], EXPECTED[1] + 1], "differs: other integers"),
        ([EXPECTED[0][:1], EXPECTED[1]], "differs: float32[1], not float32[2]"),
        ([EXPECTED[0].astype(np.float64), EXPECTED[1]], "differs: float64[2], not float32[2]"),
    ],
)
def test_outputs_are_equal_within_the_tolerance_alone(outputs, became):
    assert judge(page(*outputs), "", EXPECTED, 1e-4).startswith(became)


def test_what_did_not_run_says_so():
    assert judge({"refused": "no\nkernel"}, "", EXPECTED, 1e-4) == "refused: no kernel"
    assert judge({"failed": "x"}, "", EXPECTED, 1e-4) == "failed: x"


@pytest.mark.parametrize(
    ("places", "verdict"),
    [
        ({"mine": {"Relu": 2, "LSTM": 1}}, "runs"),
        ({"mine": {"*": 3}}, "runs"),
        ({"mine": {"Relu": 2}, "CPU": {"LSTM": 1}}, "left"),
        ({"mine": {"*": 2}, "CPU": {"LSTM": 1}}, "left"),
    ],
)
def test_an_operator_runs_there_where_its_node_is_there(places, verdict):
    asked = next(one for one in abilities.ABILITIES if one.name == "LSTM")
    assert record.ability(asked, {"became": "equal", "places": places}, ["mine"])["verdict"] == verdict
    assert record.ability(asked, {"became": "differs by 1", "places": places}, ["mine"])["verdict"] == "breaks"


@pytest.mark.parametrize("asked", abilities.ABILITIES, ids=lambda asked: asked.name)
def test_each_small_model_is_one_and_what_it_asks_about_matters(asked):
    model = abilities.model_of(asked)
    onnx.checker.check_model(model, full_check=True)
    (found,) = ort_run(model, abilities.feeds(model))
    assert np.abs(found).max() > 0
    plain = next(one for one in abilities.ABILITIES if one.name == asked.operator) if asked.limit else None
    if plain is not None and asked.limit != "reset_before":
        (without,) = ort_run(abilities.model_of(plain), abilities.feeds(abilities.model_of(plain)))
        assert not np.allclose(found, without, atol=1e-3)


def test_sizes_are_declared_as_fed():
    model = model_from_text("g (float[A, B] x) => (float[A, B] y) { y = Neg (x) }", 18)
    fixed = with_sizes(model, {"x": np.zeros((2, 3), np.float32)})
    assert [dim.dim_value for dim in fixed.graph.input[0].type.tensor_type.shape.dim] == [2, 3]
