"""Typical uses of onnxruntime's Python API have the same outcome with its own class and with ortscan's."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import ortscan
from tests.support.small_models import MAP, RECURRENCE, X
from tests.support.text import parsed

OVERRIDABLE = """
<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] x, float[4] w) => (float[T, 4] y) <float[4] w = {1, 2, 3, 4}> {
  y = Scan <num_scan_inputs = 1, body = b (float[4] xi) => (float[4] yi) { t = Tanh (xi) yi = Mul (t, w) }> (x)
}
"""
STRINGS = """
<ir_version: 8, opset_import: ["": 18]>
g (string[T, 2] x) => (string[T, 2] y) {
  y = Scan <num_scan_inputs = 1, body = b (string[2] xi) => (string[2] yi) { yi = Identity (xi) }> (x)
}
"""
SEQUENCES = """
<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] x) => (seq(float[4]) y) {
  s = Scan <num_scan_inputs = 1, body = b (float[4] xi) => (float[4] yi) { yi = Tanh (xi) }> (x)
  y = SplitToSequence <axis = 0, keepdims = 0> (s)
}
"""
CLASSES = [ort.InferenceSession, ortscan.InferenceSession]


def quiet(**properties: Any) -> ort.SessionOptions:
    made = ort.SessionOptions()
    made.log_severity_level = 4
    for name, value in properties.items():
        setattr(made, name, value)
    return made


def both(use: Callable[[Any], Any]) -> list[Any]:
    return [use(session) for session in CLASSES]


def test_outputs_are_chosen_and_ordered_by_name():
    def use(session: Any) -> list[Any]:
        made = session(parsed(RECURRENCE).SerializeToString(), quiet())
        feed = {"x": X, "h": np.zeros(4, np.float32)}
        return [*made.run(["y", "last"], feed), *made.run([], feed), *made.run(None, feed, ort.RunOptions())]

    for there, here in zip(*both(use), strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-6)


@pytest.mark.parametrize(
    "feed", [{}, {"x": X, "z": X}, {"x": X.astype(np.int64)}, {"x": X[0]}], ids=["none", "more", "type", "rank"]
)
def test_wrong_inputs_are_the_same_errors(feed: dict[str, np.ndarray]):
    def use(session: Any) -> tuple[str, str]:
        with pytest.raises(Exception, match=r".") as caught:
            session(parsed(MAP).SerializeToString(), quiet()).run(None, feed)
        return type(caught.value).__name__, str(caught.value)

    there, here = both(use)
    assert here == there


def test_initializers_that_can_be_fed_can_be_fed():
    def use(session: Any) -> list[Any]:
        made = session(parsed(OVERRIDABLE).SerializeToString(), quiet())
        names = [value.name for value in made.get_overridable_initializers()]
        assert names == ["w"]
        return [*made.run(None, {"x": X}), *made.run(None, {"x": X, "w": np.zeros(4, np.float32)})]

    for there, here in zip(*both(use), strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-6)


def test_strings_and_sequences_come_and_go():
    words = np.array([["a", "bé"], ["", "c"]], object)

    def use(session: Any) -> list[Any]:
        (text,) = session(parsed(STRINGS).SerializeToString(), quiet()).run(None, {"x": words})
        (parts,) = session(parsed(SEQUENCES).SerializeToString(), quiet()).run(None, {"x": X})
        return [text.tolist(), len(parts), np.array(parts)]

    there, here = both(use)
    assert here[:2] == there[:2]
    np.testing.assert_allclose(here[2], there[2], rtol=1e-6)


def test_values_bound_to_outputs_are_written_in_place():
    def use(session: Any) -> np.ndarray:
        made = session(parsed(MAP).SerializeToString(), quiet())
        binding, target = made.io_binding(), ort.OrtValue.ortvalue_from_numpy(np.zeros_like(X))
        binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(X))
        binding.bind_ortvalue_output("y", target)
        binding.synchronize_inputs()
        made.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return np.array(target.numpy())

    there, here = both(use)
    np.testing.assert_allclose(here, there, rtol=1e-6)


def test_what_can_be_asked_of_a_session_is_answered_the_same():
    def use(session: Any) -> list[Any]:
        made = session(
            parsed(MAP).SerializeToString(), quiet(), providers=[("CPUExecutionProvider", {})], disabled_optimizers=["X"]
        )
        made.disable_fallback()
        made.enable_fallback()
        return [
            made.get_providers(),
            made.get_provider_options(),
            made.get_modelmeta().graph_name,
            made.get_session_options().log_severity_level,
            [(value.name, value.type, value.shape) for value in (*made.get_inputs(), *made.get_outputs())],
            made.get_profiling_start_time_ns() > 0,
        ]

    there, here = both(use)
    assert here == there


def test_free_sizes_can_be_fixed_on_the_session_options():
    def use(session: Any) -> list[Any]:
        fixed = quiet()
        fixed.add_free_dimension_override_by_name("T", 3)
        made = session(parsed(MAP).SerializeToString(), fixed)
        return [made.get_inputs()[0].shape, made.run(None, {"x": X})[0].shape]

    there, here = both(use)
    assert here == there


def test_options_in_the_model_itself_are_read():
    model = parsed(MAP)
    model.metadata_props.add(key="ort_config", value='{"session_options": {"intra_op_num_threads": 1}}')
    made = ortscan.InferenceSession(model, quiet(), read_config_from_model=1)
    assert made.ortscan.source == "optimized"
    assert made.run(None, {"x": X})[0].shape == X.shape


def test_the_session_still_knows_the_path_it_was_given(tmp_path: Path):
    onnx.save(parsed(MAP), tmp_path / "m.onnx")
    made = ortscan.InferenceSession(tmp_path / "m.onnx", quiet())
    assert made._model_path == str(tmp_path / "m.onnx")
    made.set_providers(["CPUExecutionProvider"])
    assert made._model_path == str(tmp_path / "m.onnx")


def test_a_provider_that_is_not_there_is_the_same_error():
    def use(session: Any) -> str:
        with pytest.raises(ValueError, match="provider") as caught:
            session(parsed(MAP).SerializeToString(), quiet(), providers=[3.0], enable_fallback=0)
        return str(caught.value)

    there, here = both(use)
    assert here == there


@pytest.mark.parametrize("given", [{"a": 1}, 3, {}, 0, "x"], ids=repr)
def test_options_that_are_none_are_taken_or_refused_in_the_same_way(given: Any):
    def use(session: Any) -> str:
        try:
            made = session(parsed(MAP).SerializeToString(), given)
        except Exception as error:
            return f"{type(error).__name__} {error}".partition("Invoked with")[0]
        np.testing.assert_allclose(made.run(None, {"x": X})[0], np.tanh(X) ** 2, rtol=1e-6)
        return "made"

    there, here = both(use)
    assert here == there


@pytest.mark.parametrize("providers", [["Nobody's"], "CPU", [3]], ids=str)
def test_an_unknown_provider_is_said_once_and_takes_nothing_from_the_cache(providers: Any, tmp_path: Path):
    path = tmp_path / "m.onnx"
    onnx.save(parsed(MAP), path)
    ortscan.InferenceSession(path, quiet())

    def use(session: Any) -> tuple[str, list[str]]:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                session(path, quiet(), providers)
                said = "made"
            except Exception as error:
                said = f"{type(error).__name__} {error}"
        return said, [str(warning.message) for warning in told]

    entries = {folder: folder.stat().st_ino for folder in (tmp_path / "cache" / "models").iterdir()}
    for _ in range(2):
        there, here = both(use)
        assert here == there
    kept = {folder: folder.stat().st_ino for folder in (tmp_path / "cache" / "models").iterdir()}
    assert kept.items() >= entries.items()


def test_a_change_to_unknown_providers_is_the_same_error_once():
    def use(session: Any) -> tuple[str, int]:
        made = session(parsed(MAP).SerializeToString(), quiet())
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with pytest.raises(RuntimeError, match=r".") as caught:
                made.set_providers(["Nobody's"])
        return str(caught.value), len(told)

    there, here = both(use)
    assert here == there == ("Unknown Provider Type: Nobody's", 1)


def test_the_warning_is_to_be_had_where_the_errors_are():
    assert issubclass(ortscan.OrtscanWarning, UserWarning)
    assert "OrtscanWarning" in dir(ortscan)


def test_a_run_without_arguments_is_refused_in_the_words_of_onnxruntime() -> None:
    content = parsed(RECURRENCE).SerializeToString()
    messages = []
    for session in (ort.InferenceSession, ortscan.InferenceSession):
        with pytest.raises(TypeError) as caught:
            session(content).run()  # type: ignore[call-arg]
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
