"""``ortscan.register``: one call serves plain sessions with any installed package and any options."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

import ortscan
from ortscan.native import library as installed
from ortscan.plugin import register
from ortscan.plugin import register as registering
from ortscan.plugin.register import PROVIDER
from tests.support.plugin_sessions import SCAN, feeds_of_scan
from tests.support.text import model_from_text

MODEL = model_from_text(SCAN, 18)


@pytest.fixture(autouse=True)
def _without_extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "onnxruntime_extensions" else found(name, *more)
    )


def same(options: ort.SessionOptions, *names: str) -> None:
    """Assert that a session with these options has these providers and the same results as any other."""
    options.log_severity_level = 4
    session = ort.InferenceSession(MODEL.SerializeToString(), options)
    assert session.get_providers() == list(names)
    wanted = ort.InferenceSession(MODEL.SerializeToString()).run(None, feeds_of_scan())
    for left, right in zip(session.run(None, feeds_of_scan()), wanted, strict=True):
        np.testing.assert_array_equal(left, right)


def test_plain_sessions_run_loops_natively() -> None:
    options = ort.SessionOptions()
    assert ortscan.register(options) is ortscan.register(options) is options
    same(options, PROVIDER, "CPUExecutionProvider")


def test_a_model_that_ortscan_wrote_runs_with_its_plan() -> None:
    planned = ortscan.optimize(MODEL, native=True, passes=["native-loop"], verify=False)
    assert [node.op_type for node in planned.graph.node] == ["Scan1"]
    session = ort.InferenceSession(planned.SerializeToString(), ortscan.register(ort.SessionOptions(), planned))
    wanted = ort.InferenceSession(MODEL.SerializeToString()).run(None, feeds_of_scan())
    np.testing.assert_array_equal(session.run(None, feeds_of_scan())[1], wanted[1])


def test_a_session_of_ortscans_takes_the_same_options() -> None:
    session = ortscan.InferenceSession(MODEL, ortscan.register(ort.SessionOptions()))
    wanted = ort.InferenceSession(MODEL.SerializeToString()).run(None, feeds_of_scan())
    np.testing.assert_allclose(session.run(None, feeds_of_scan())[1], wanted[1], rtol=1e-6)


def saved(options: ort.SessionOptions, folder: Path) -> None:
    options.optimized_model_filepath = str(folder / "saved.onnx")


UNFIT: dict[str, Callable[[ort.SessionOptions, Path], None]] = {
    "the model is saved": saved,
    "nothing is compiled": lambda options, folder: options.add_session_config_entry("session.disable_model_compile", "1"),
}


@pytest.mark.parametrize("what", UNFIT)
def test_options_that_allow_no_provider_get_none(what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options = ort.SessionOptions()
    UNFIT[what](options, tmp_path)
    with caplog.at_level("INFO", "ortscan"):
        ortscan.register(options)
    assert "run on onnxruntime: the options" in caplog.text
    same(options, "CPUExecutionProvider")


def test_no_library_and_an_old_onnxruntime_leave_sessions_as_they_are(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "ortscan"):
        monkeypatch.setattr(register, "_devices", lambda provider: [])
        monkeypatch.setattr(ort, "register_execution_provider_library", lambda name, path: None)
        same(ortscan.register(ort.SessionOptions()), "CPUExecutionProvider")
        assert "needs onnxruntime 1.24 or newer" in caplog.text
        monkeypatch.setattr(installed, "_built", lambda: None)
        same(ortscan.register(ort.SessionOptions()), "CPUExecutionProvider")
        assert "needs ortscan's library" in caplog.text
    monkeypatch.setenv("ORTSCAN_NATIVE", "0")
    same(ortscan.register(ort.SessionOptions()), "CPUExecutionProvider")


def test_python_is_called_for_only_where_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[object] = []
    monkeypatch.setattr(registering, "register_python_op", lambda options, model: called.append(model))
    ortscan.register(ort.SessionOptions())
    assert called == []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: object())
    ortscan.register(ort.SessionOptions())
    assert called == [None]
