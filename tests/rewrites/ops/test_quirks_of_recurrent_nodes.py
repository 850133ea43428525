"""What is wrong with onnxruntime's RNN, GRU and LSTM is still wrong."""

import numpy as np
import pytest
from onnx import ModelProto

from tests.support.quantized_bodies import WIDE, quantized_lstm
from tests.support.quirks import dies, gives, model, ones, refuses, shows, unwritten

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LAST = {"RNN": "y, h", "GRU": "y, h", "LSTM": "y, u, h"}
"""The last value given is the hidden state, or of an LSTM the cell."""
NATIVE = ("RNN", "GRU", "LSTM")


def cell(kind: str, attributes: str = "hidden_size = 2", element: str = "float", given: str = "(x, W, R)") -> ModelProto:
    wide = 2 * GATES[kind]
    return model(
        f"""g ({element}[T,B,3] x, {element}[1,{wide},3] W, {element}[1,{wide},2] R, int32[B] lengths, float[1,B,2] h0)
            => ({element}[?,?,?,?] y, {element}[?,?,?] h) {{ {LAST[kind]} = {kind} <{attributes}> {given} }}"""
    )


def feeds(kind: str, steps: int = 3, rows: int = 2, weight: float = 0.5, dtype: type = np.float32) -> dict[str, np.ndarray]:
    wide = 2 * GATES[kind]
    return {
        "x": np.ones((steps, rows, 3), dtype),
        "W": np.full((1, wide, 3), weight, dtype),
        "R": np.full((1, wide, 2), weight, dtype),
        "lengths": np.arange(rows, dtype=np.int32),
        "h0": np.full((1, rows, 2), 0.5, np.float32),
    }


def test_what_is_asked_here_runs_where_nothing_is_odd() -> None:
    for kind in NATIVE:
        y, _ = gives(cell(kind), feeds(kind))
        assert y.shape == (3, 1, 2, 2)
        assert np.isfinite(y).all()


@pytest.mark.parametrize("kind", NATIVE)
@shows("ORT-RECURRENT-LAYOUT")
def test_the_batch_comes_first(kind: str) -> bool:
    return refuses(cell(kind, "hidden_size = 2, layout = 1"), feeds(kind), "Batchwise recurrent operations")


@pytest.mark.parametrize("kind", NATIVE)
@shows("ORT-RECURRENT-BFLOAT16")
def test_a_node_is_on_bfloat16(kind: str) -> bool:
    return refuses(cell(kind, element="bfloat16"), {}, f"Could not find an implementation for {kind}")


@pytest.mark.parametrize("kind", NATIVE)
@shows("ORT-RECURRENT-DOUBLE")
def test_a_node_is_on_double(kind: str) -> bool:
    why = "Could not find an implementation for RNN" if kind == "RNN" else f"{kind} operator does not support double yet"
    return refuses(cell(kind, element="double"), feeds(kind, dtype=np.float64), why)


@shows("ORT-RECURRENT-SOFTPLUS")
def test_softplus_of_a_large_number_is_infinite() -> bool:
    y, _ = gives(cell("RNN", 'hidden_size = 2, activations = ["Softplus"]'), feeds("RNN", steps=1, weight=50))
    return bool(np.isinf(y).all())


@pytest.mark.parametrize(("name", "wanted"), [("Affine", 1.5), ("ScaledTanh", np.tanh(1.5)), ("ThresholdedRelu", 1.5)])
@shows("ORT-RECURRENT-DEFAULTS")
def test_parameters_of_activations_are_not_given(name: str, wanted: float) -> bool:
    weight = 0.5 if name != "ThresholdedRelu" else 0.25
    y, _ = gives(cell("RNN", f'hidden_size = 2, activations = ["{name}"]'), feeds("RNN", steps=1, weight=weight))
    if name == "ThresholdedRelu":
        return bool(np.allclose(y, 0.75))  # which is below the default threshold of 1
    assert not np.allclose(wanted, 0)
    return bool((y == 0).all())


@pytest.mark.parametrize("kind", NATIVE)
@shows("ORT-RECURRENT-EMPTY-ROW")
def test_a_row_of_length_0_ends_in_zeros(kind: str) -> bool:
    proto = cell(kind, given="(x, W, R, , lengths, h0)")
    if kind == "LSTM":
        proto.graph.node[0].output[1:] = ["h"]
    return bool((gives(proto, feeds(kind))[1][0, 0] == 0).all())


@shows("ORT-RNN-NO-STEPS")
def test_an_rnn_without_steps_ends_in_zeros() -> bool:
    return bool((gives(cell("RNN", given="(x, W, R, , , h0)"), feeds("RNN", steps=0))[1] == 0).all())


@shows("ORT-GRU-NO-STEPS")
def test_a_gru_has_no_steps() -> bool:
    return dies(cell("GRU"), feeds("GRU", steps=0))


@shows("ORT-LSTM-NO-STEPS")
def test_an_lstm_without_steps_gives_what_nothing_wrote() -> bool:
    return unwritten(cell("LSTM"), feeds("LSTM", steps=0, rows=1000)) == {1}


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@shows("ORT-RECURRENT-NO-ROWS")
def test_a_node_has_no_rows(kind: str) -> bool:
    return dies(cell(kind), feeds(kind, rows=0))


@shows("ORT-QUANTIZED-LSTM-NO-STEPS")
def test_a_quantized_lstm_without_steps_gives_what_nothing_wrote() -> bool:
    return unwritten(quantized_lstm(), {"x": np.zeros((0, 1000, WIDE), np.float32)}) == {2}


@shows("ORT-QUANTIZED-LSTM-NO-ROWS")
def test_a_quantized_lstm_has_no_rows() -> bool:
    return dies(quantized_lstm(), {"x": np.zeros((3, 0, WIDE), np.float32)})


@pytest.mark.parametrize("kind", NATIVE)
@shows("ORT-RECURRENT-HIDDEN-SIZE")
def test_a_node_does_not_say_how_wide_it_is(kind: str) -> bool:
    return refuses(cell(kind, 'direction = "forward"'), feeds(kind), "hidden_size")


@shows("ORT-RECURRENT-ACTIVATION-NAMES")
def test_the_activation_of_an_rnn_is_in_small_letters() -> bool:
    return refuses(cell("RNN", 'hidden_size = 2, activations = ["tanh"]'), feeds("RNN"), "allowed_activations")


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@pytest.mark.parametrize("clip", ["0.0", "-1.0"])
@shows("ORT-RECURRENT-CLIP")
def test_a_clip_is_none(kind: str, clip: str) -> bool:
    return refuses(cell(kind, f"hidden_size = 2, clip = {clip}"), feeds(kind), "clip_ > 0")


@shows("ORT-RECURRENT-NAN")
def test_relu_of_nan_is_0() -> bool:
    given = feeds("RNN", steps=1) | {"x": np.full((1, 2, 3), np.nan, np.float32)}
    y, _ = gives(cell("RNN", 'hidden_size = 2, activations = ["Relu"]'), given)
    assert np.isnan(gives(model("g (float[2] x) => (float[2] y) { y = Relu (x) }"), {"x": ones(2) * np.nan})[0]).all()
    return bool((y == 0).all())
