"""Weights are stored in fewer bits on request, the error is measured against the float32 original, and it has a limit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.errors import OptionError, VerificationFailed
from ortscan.report.outcome import Report
from rewrites.base.weights_report import WeightsReport
from tests.support.text import ort_run, parsed


def uniform(*dims: int) -> np.ndarray:
    return np.random.default_rng(dims).uniform(-1, 1, dims).astype(np.float32) / np.float32(np.sqrt(dims[-1]))


def recurrent(kind: str, gates: int, directions: int = 1, opset: int = 18) -> onnx.ModelProto:
    attributes = "hidden_size = 64" + (', direction = "bidirectional"' if directions == 2 else "")
    text = f"g (float[T, 1, 32] x) => (float[T, {directions}, 1, 64] y) {{ y = {kind} <{attributes}> (x, w, r) }}"
    weights = {"w": uniform(directions, 64 * gates, 32), "r": uniform(directions, 64 * gates, 64)}
    return parsed(text, opset, weights=weights, ir_version=8)


NORMED = """g (float[T, 1, 64] x, float[1, 64] h0) => (float[1, 64] h, float[T, 1, 8] z) {
    h, ys = Scan <num_scan_inputs = 1, body = b (float[1, 64] s, float[1, 64] xt) => (float[1, 64] t, float[1, 64] u) {
        m = MatMul (s, r)  a = Add (m, xt)  n = Softmax (a)  t = Tanh (n)  u = Identity (t)
    }> (h0, x)
    z = MatMul (ys, w)
}"""
LOOP = parsed(NORMED, weights={"r": uniform(64, 64), "w": uniform(64, 8)})


def optimized(model: Any, **options: Any) -> tuple[onnx.ModelProto, Report]:
    return ortscan.optimize(model, report=True, **options)


@pytest.mark.parametrize("model", [recurrent("LSTM", 4), recurrent("LSTM", 4, 2), recurrent("GRU", 3), recurrent("RNN", 1)])
@pytest.mark.parametrize(("stored_as", "share", "error"), [("int8", 0.3, 0.02), ("float16", 0.52, 0.001), ("bfloat16", 0.52, 0.02)])
def test_a_recurrent_node_gets_smaller_weights(model: onnx.ModelProto, stored_as: str, share: float, error: float) -> None:
    small, report = optimized(model, weights=stored_as, max_error=error)
    assert small.ByteSize() <= share * model.ByteSize()
    feeds = {"x": 5 * uniform(20, 1, 32)}
    before, after = ort_run(model, feeds)[0], ort_run(small, feeds)[0]
    assert 0 < np.abs(before - after).max() <= error * np.abs(before).max()
    assert report.weights is not None
    assert 0 < report.weights.error <= error
    assert [weight.stored_as for weight in report.weights.weights] == [stored_as, stored_as]
    assert report.changed
    assert f"{stored_as} weights, error" in str(report)


def test_the_weights_of_a_body_are_widened_outside_the_loop() -> None:
    small, report = optimized(LOOP, weights="int8", max_error=0.05)
    (scan,) = [node for node in small.graph.node if node.op_type == "Scan"]
    assert not any(node.op_type == "Cast" for node in scan.attribute[0].g.node)
    assert [node.op_type for node in small.graph.node].count("Cast") == 1
    assert not scan.attribute[0].g.initializer
    assert "r_int8" in {tensor.name for tensor in small.graph.initializer}
    assert report.weights is not None
    assert [weight.name for weight in report.weights.weights] == ["r"]


def test_a_weight_whose_error_is_too_large_stays_float32() -> None:
    text = "g (float[4, 64] x) => (float[4, 64] z) { a = MatMul (x, fine) y = MatMul (a, coarse) z = Tanh (y) }"
    coarse = uniform(64, 64)
    coarse[0] = 100 * np.abs(coarse).max()
    small, report = optimized(parsed(text, weights={"fine": np.eye(64, dtype=np.float32), "coarse": coarse}), weights="int8")
    assert report.weights is not None
    assert {weight.name: weight.stored_as for weight in report.weights.weights} == {"fine": "int8", "coarse": "float32"}
    assert report.weights.error <= report.weights.max_error == 0.01
    assert {tensor.name for tensor in small.graph.initializer} == {"fine_int8", "fine_scale", "coarse"}
    first, second = report.weights.sentences()
    assert first.startswith("1 of 2 weights stored as int8; the weights take 63 % of the bytes")
    assert second.startswith("stays float32: 'coarse' (its error would be ")
    assert second.endswith(" %, the limit is 1 %)")


def test_an_error_above_the_limit_is_refused() -> None:
    with pytest.raises(VerificationFailed, match=r"Each weight alone makes a larger error than 0.0001 % if it is stored as int8"):
        ortscan.optimize(recurrent("GRU", 3), weights="int8", max_error=1e-6)


def test_a_model_without_weights_is_returned_with_a_reason() -> None:
    small, report = optimized(parsed("g (float[4] x) => (float[4] y) { y = Tanh (x) }"), weights="int8")
    assert report.weights == WeightsReport("int8", 0.01, 0.0, float("inf"), 0, left_out="the model has no constant of floats")
    assert [node.op_type for node in small.graph.node] == ["Tanh"]
    assert not report.changed
    assert "no weight is stored as int8" in report.to_html()


@pytest.mark.parametrize(
    "options", [{"weights": "int4"}, {"weights": 8}, {"max_error": -1.0}, {"max_error": "1 %"}, {"max_error": 0.02}]
)
def test_an_invalid_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        ortscan.optimize(LOOP, **options)


def test_a_weight_that_a_model_of_ir_3_lists_as_an_input_is_stored() -> None:
    old = recurrent("LSTM", 4, opset=8)
    weights = [onnx.helper.make_tensor_value_info(tensor.name, 1, tensor.dims) for tensor in old.graph.initializer]
    old.graph.input.extend(weights)
    old.ir_version = 3
    small, report = optimized(old, weights="int8", max_error=0.02)
    assert report.weights is not None
    assert len(report.weights.stored) == 2
    assert (small.ir_version, [value.name for value in small.graph.input]) == (4, ["x"])
    feeds = {"x": uniform(20, 1, 32)}
    before, after = ort_run(old, feeds)[0], ort_run(small, feeds)[0]
    assert np.abs(before - after).max() <= 0.02 * np.abs(before).max()


def test_a_weight_that_the_caller_may_replace_is_stored_if_it_is_frozen() -> None:
    model = recurrent("GRU", 3)
    model.graph.input.append(onnx.helper.make_tensor_value_info("r", 1, [1, 192, 64]))
    kept = optimized(model, weights="int8", max_error=0.02)[1].weights
    assert kept is not None
    assert kept.sentences()[1] == "'r' stays float32, because the caller may replace it; to make it a constant: freeze"
    frozen = optimized(model, weights="int8", max_error=0.02, freeze=True)[1].weights
    assert frozen is not None
    assert [weight.name for weight in frozen.stored] == ["w", "r"]


def test_numbers_that_the_format_cannot_store_are_named_instead_of_an_error() -> None:
    weights = {"fine": np.eye(64, dtype=np.float32), "large": 1e5 * np.eye(64, dtype=np.float32)}
    text = "g (float[4, 64] x) => (float[4, 64] y) {{ a = MatMul (x, {}) y = MatMul (a, large) }}"
    reason = "has values above 65504, which float16 cannot store; use bfloat16 or int8"
    _, report = optimized(parsed(text.format("fine"), weights=weights), weights="float16")
    assert report.weights is not None
    assert report.weights.sentences()[1] == f"stays float32: 'large' ({reason})"
    with pytest.raises(VerificationFailed, match=f"^'large' {reason}.$"):
        ortscan.optimize(parsed(text.format("large"), weights=weights), weights="float16", max_error=1)


def test_the_error_of_integers_is_the_share_of_elements_that_differ() -> None:
    text = "g (float[N, 64] x) => (int64[N, 1] y) { a = MatMul (x, w) y = ArgMax <axis = 1> (a) }"
    alike = np.repeat(uniform(64, 1), 64, axis=1) * (1 + 1e-4 * uniform(64, 64))
    weights = optimized(parsed(text, weights={"w": alike}), weights="int8", max_error=1)[1].weights
    assert weights is not None
    assert 0.01 < weights.error < 1
    assert weights.error_text == f"{100 * weights.error:.2g} % of the elements differ"
    exact = optimized(parsed(text, weights={"w": np.eye(64, dtype=np.float32)}), weights="int8")[1].weights
    assert exact is not None
    assert exact.error_text == "0 % of the elements differ"


def test_no_decibels_are_shown_for_an_error_of_zero() -> None:
    text = "g (float[N, 64] x) => (float[N, 64] y) { y = MatMul (x, w) }"
    weights = optimized(parsed(text, weights={"w": np.zeros((64, 64), np.float32)}), weights="int8")[1].weights
    assert weights is not None
    assert weights.error_text == "error 0 % of the largest number"


def test_bfloat16_needs_an_opset_that_has_it() -> None:
    old = recurrent("GRU", 3, opset=12)
    with pytest.raises(OptionError, match=r"bfloat16 needs opset 13, but the model has 12; convert it \(--opset 18\)"):
        ortscan.optimize(old, weights="bfloat16")
    assert ortscan.optimize(old, weights="bfloat16", opset=18).opset_import[0].version == 18
    assert ortscan.optimize(old, weights="int8").opset_import[0].version == 12


def test_the_result_contains_the_smaller_weights_of_a_model_with_external_data(tmp_path: Path) -> None:
    onnx.save(recurrent("LSTM", 4), tmp_path / "in.onnx", save_as_external_data=True, location="in.data", size_threshold=0)
    ortscan.optimize(tmp_path / "in.onnx", weights="int8", max_error=0.05, output=tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx").stat().st_size <= 0.3 * (tmp_path / "in.data").stat().st_size
    feeds = {"x": np.ones((3, 1, 32), np.float32)}
    expected, actual = (ort_run(str(tmp_path / name), feeds)[0] for name in ("in.onnx", "out.onnx"))
    assert np.abs(expected - actual).max() <= 0.05 * np.abs(expected).max()


def test_the_command_line_prints_the_error_and_measures_it_on_given_inputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(recurrent("LSTM", 4), tmp_path / "in.onnx")
    np.savez(tmp_path / "x.npz", x=np.ones((3, 1, 32), np.float32))
    command = [
        "optimize",
        str(tmp_path / "in.onnx"),
        str(tmp_path / "out.onnx"),
        "--weights",
        "int8",
        "--max-error",
        "0.05",
        "--no-verify",
    ]
    assert main([*command, "--inputs", str(tmp_path / "x.npz")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 of 2 weights stored as int8; the weights take 27 % of the bytes; on 1 set of inputs: error " in printed
    assert main([*command, "--json"]) == 0
    weights = json.loads(capsys.readouterr().out)["report"]["weights"]
    assert weights["cases"] == 3
    assert [weight["stored_as"] for weight in weights["weights"]] == ["int8", "int8"]
    assert main([*command, "--max-error", "1e-6"]) == 3
    assert "raise --max-error" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--weights", "None"], "--weights must be 'int8', 'float16' or 'bfloat16', not 'None'."),
        (["--weights", "int8", "--max-error", "x"], "must be a number such as 0.01 (1 %), not 'x'."),
        (["--max-error", "0.02"], "--max-error has no effect without weights"),
    ],
)
def test_a_wrong_option_of_the_command_line_is_named(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(LOOP, tmp_path / "in.onnx")
    assert main(["optimize", str(tmp_path / "in.onnx"), str(tmp_path / "out.onnx"), *options]) in (1, 2)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.onnx").exists()


def test_recurrent_nodes_are_compiled_after_their_weights_were_stored() -> None:
    small, report = optimized(recurrent("LSTM", 4), weights="int8", max_error=0.05, native=True)
    (call,) = small.graph.node
    assert (call.op_type, list(call.input)) == ("Cell1", ["x", "w_int8", "r_int8", "w_scale", "r_scale"])
    assert [fired.rule for cell in report.cells for fired in cell.fired] == ["native-cell"]
    assert report.weights is not None
    assert report.operators_after["ai.ortscan.Cell1"] == 1


def test_a_compiled_loop_that_stores_its_weights_as_float32_is_named() -> None:
    text = """g (int64 n, bool c, float[1, 64] s) => (float[1, 64] y) { y = Loop <body = b
        (int64 i, bool d, float[1, 64] h) => (bool e, float[1, 64] k) {
            m = MatMul (h, w)  k = Tanh (m)  t = ReduceMax <keepdims = 0> (k)  z = Constant <value = float {0.001}> ()  e = Greater (t, z)
        }> (n, c, s) }"""
    model = parsed(text, weights={"w": uniform(64, 64)})
    _, compiled = optimized(model, weights="int8", max_error=1, native=True)
    assert [
        message for message in compiled.messages if "1 smaller weight became float32 again in compiled loops: 'w_int8'" in message
    ]
    assert not [message for message in optimized(model, weights="int8", max_error=1)[1].messages if "float32 again" in message]
