"""Inputs that become constants: ``fix_inputs`` and ``freeze``."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.errors import OptionError
from tests.support.text import model_from_text

RATES = """
<ir_version: 9, opset_import: ["": 18]>
rates (float[T] x, int64 sr) => (float[T] y) {
  fast = Constant <value_int = 16000> ()
  is_fast = Equal (sr, fast)
  y = If (is_fast) <
    then_branch = a () => (float[T] t) { two = Constant <value_float = 2.0> () t = Mul (x, two) },
    else_branch = b () => (float[T] e) { e = Neg (x) }>
}"""

WEIGHTS = """
<ir_version: 9, opset_import: ["": 18]>
steps (float[T,2] x, float[2] w, int64 n) => (float[T,2] y)
<float[2] w = {2.0, 3.0}> {
  h0 = Constant <value_floats = [0.0, 0.0]> ()
  h, y = Scan <num_scan_inputs = 1, body = b (float[2] h1, float[2] x1) => (float[2] h2, float[2] y1) {
    hw = Mul (h1, w) h2 = Add (hw, x1) y1 = Identity (h2) }> (h0, x)
}"""


def rates() -> onnx.ModelProto:
    return model_from_text(RATES)


def run(model: onnx.ModelProto, **feeds: Any) -> list[Any]:
    return ort.InferenceSession(model.SerializeToString()).run(None, feeds)


def inputs(model: onnx.ModelProto) -> list[str]:
    return [value.name for value in model.graph.input]


def test_an_input_that_is_fixed_is_a_constant_and_what_it_decides_is_decided() -> None:
    result = ortscan.optimize(rates(), fix_inputs={"sr": 16000}, verify="full")
    assert inputs(result) == ["x"]
    assert [node.op_type for node in result.graph.node if node.op_type != "Constant"] == ["Mul"]
    x = np.array([1, -2], np.float32)
    np.testing.assert_array_equal(run(result, x=x)[0], run(rates(), x=x, sr=np.array(16000))[0])


def test_a_frozen_initializer_is_no_input_and_the_original_is_not_changed() -> None:
    model = model_from_text(WEIGHTS)
    before = model.SerializeToString()
    result = ortscan.optimize(model, freeze=True, fix_inputs={"n": 3})
    assert (inputs(model), inputs(result)) == (["x", "w", "n"], ["x"])
    assert model.SerializeToString() == before
    x = np.ones((4, 2), np.float32)
    np.testing.assert_allclose(run(result, x=x)[0], run(model, x=x, n=np.array(0))[0], rtol=1e-6)


def test_an_initializer_is_frozen_by_name_and_may_get_another_value() -> None:
    model = model_from_text(WEIGHTS)
    assert inputs(ortscan.optimize(model, freeze=["w"])) == ["x", "n"]
    other = ortscan.optimize(model, fix_inputs={"w": [0.5, 1]})
    assert inputs(other) == ["x", "n"]
    x = np.ones((3, 2), np.float32)
    n, w = np.array(0), np.array([0.5, 1], np.float32)
    np.testing.assert_allclose(run(other, x=x, n=n)[0], run(model, x=x, n=n, w=w)[0], rtol=1e-6)


def test_a_file_keeps_its_kind_and_its_weights_beside_it(tmp_path: Path) -> None:
    model = rates()
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(2000, dtype=np.float32), "big"))
    model.graph.node.append(onnx.helper.make_node("Identity", ["big"], ["z"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [2000]))
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=100)
    ortscan.optimize(str(path), fix_inputs={"sr": 8000}, output=str(path))
    session = ort.InferenceSession(str(path))
    x = np.ones(3, np.float32)
    y, z = session.run(None, {"x": x})
    np.testing.assert_array_equal(y, -x)
    np.testing.assert_array_equal(z, np.arange(2000, dtype=np.float32))


def test_in_ir_version_3_a_fixed_input_is_listed_as_its_weights_are() -> None:
    model = model_from_text(WEIGHTS.replace("ir_version: 9", "ir_version: 3").replace('"": 18', '"": 12'))
    result = ortscan.optimize(model, opset="keep", fix_inputs={"n": 1})
    x = np.ones((2, 2), np.float32)
    session = ort.InferenceSession(result.SerializeToString())
    assert [value.name for value in session.get_inputs()] == ["x"]
    np.testing.assert_allclose(session.run(None, {"x": x})[0], run(model, x=x, n=np.array(0))[0], rtol=1e-6)


def test_texts_halves_and_truth_values_are_built_in_as_what_they_are() -> None:
    model = model_from_text("""<ir_version: 9, opset_import: ["": 18]>
    kinds (string s, float16[2] h, bool f) => (string s2, float16[2] h2, bool f2) { s2 = Identity (s) h2 = Neg (h) f2 = Not (f) }""")
    result = ortscan.optimize(model, fix_inputs={"s": "a;b", "h": [1, 2.5], "f": np.bool_(True)}, verify=False)
    text, halves, truth = run(result)
    assert (text, halves.tolist(), bool(truth)) == ("a;b", [-1, -2.5], False)


def test_the_report_says_what_is_built_in() -> None:
    report = ortscan.explain(rates(), fix_inputs={"sr": 8000})
    assert "built in: 'sr' is 8000 and no longer an input" in report.messages


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fix_inputs": {"rate": 1}}, "fix_inputs: the model has no input 'rate'; it has 'x', 'sr'."),
        ({"fix_inputs": {"sr": 1.5}}, "fix_inputs: 'sr' has the type int64, which cannot hold 1.5."),
        ({"fix_inputs": {"sr": [1, 2]}}, "fix_inputs: 'sr' must have the shape [], but [1, 2] has [2]."),
        ({"fix_inputs": {"sr": 2**70}}, "fix_inputs: 'sr' has the type int64, which cannot hold 1180591620717411303424."),
        ({"fix_inputs": {"sr": True}}, "fix_inputs: 'sr' has the type int64, which cannot hold True."),
        ({"fix_inputs": {"x": "a"}}, "fix_inputs: 'x' has the type float32, which cannot hold 'a'."),
        ({"fix_inputs": {"x": [1e300]}}, "fix_inputs: 'x' has the type float32, which cannot hold [1e+300]."),
        ({"fix_inputs": 3}, "fix_inputs must be a dict such as {'sr': 16000}, not 3."),
        ({"freeze": ["x"]}, "freeze: the model lists no initializer 'x' as an input; it lists none."),
        ({"freeze": "w"}, "freeze must be True, False or a list of names of initializers, not 'w'."),
    ],
)
def test_what_cannot_be_built_in_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as caught:
        ortscan.optimize(rates(), **options)
    assert str(caught.value) == said


def test_a_session_takes_a_fixed_input_that_is_given_all_the_same() -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("ortscan.fix_inputs", "sr=16000")
    options.add_session_config_entry("ortscan.cache", "0")
    session = ortscan.InferenceSession(rates(), options)
    x = np.array([3], np.float32)
    assert session.ortscan.source == "optimized"
    assert [node.name for node in session.get_inputs()] == ["x"]
    for feed in ({"x": x}, {"x": x, "sr": np.array(16000)}):
        np.testing.assert_array_equal(session.run(None, feed)[0], [6])
        values = {name: ort.OrtValue.ortvalue_from_numpy(value) for name, value in feed.items()}
        np.testing.assert_array_equal(session.run_with_ort_values(None, values)[0].numpy(), [6])
    with pytest.raises(OptionError, match="fix_inputs: in this session 'sr' is 16000"):
        session.run(None, {"x": x, "sr": np.array(8000)})


def test_the_original_that_a_session_falls_back_to_gets_the_value_itself() -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("ortscan.fix_inputs", "sr=16000")
    options.add_session_config_entry("ortscan.enable", "0")
    session = ortscan.InferenceSession(rates(), options)
    np.testing.assert_array_equal(session.run(None, {"x": np.array([3], np.float32)})[0], [6])


def test_a_loop_that_reads_a_replaceable_default_says_so_and_freezing_it_helps() -> None:
    model = model_from_text(WEIGHTS)
    codes = [reason.code for loop in ortscan.explain(model).loops for reason in loop.reasons]
    assert "DEFAULT-INPUT" in codes
    frozen = [reason.code for loop in ortscan.explain(model, freeze=True).loops for reason in loop.reasons]
    assert "DEFAULT-INPUT" not in frozen


def test_the_command_line_fixes_and_freezes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    onnx.save(model_from_text(WEIGHTS), before)
    assert main(["optimize", str(before), str(after), "--fix-input", "n=3", "--freeze", "all"]) == 0
    assert inputs(onnx.load(after)) == ["x"]
    assert main(["optimize", str(before), str(after), "--fix-input", "n=many"]) == 2
    assert "--fix-input: 'n' has the type int64, which cannot hold 'many'." in capsys.readouterr().err
    assert main(["optimize", str(before), str(after), "--fix-input", "n"]) == 2


def test_options_of_a_session_carry_any_value() -> None:
    with ortscan.patched(fix_inputs={"sr": np.array(8000)}, cache=False):
        session = ort.InferenceSession(rates().SerializeToString())
        np.testing.assert_array_equal(session.run(None, {"x": np.array([3], np.float32)})[0], [-3])
