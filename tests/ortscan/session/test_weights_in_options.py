"""Weights that SessionOptions replace by ``add_initializer``: what was computed with the model's own is not run with others."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import ortscan
from ortscan.errors import OrtscanError, OrtscanWarning
from tests.rewrites.recurrences.written_cells import written

OTHER = np.random.default_rng(7)


def model() -> onnx.ModelProto:
    """An RNN whose weights are brought into the node's layout beforehand."""
    return written("RNN", "one product for all gates").model(rows=1, steps="T")


def told(values: dict[str, np.ndarray], **entries: str) -> tuple[ort.SessionOptions, list[ort.OrtValue]]:
    options, held = ort.SessionOptions(), []
    for name, value in values.items():
        held.append(ort.OrtValue.ortvalue_from_numpy(value))
        options.add_initializer(name, held[-1])
    for name, text in entries.items():
        options.add_session_config_entry(f"ortscan.{name}", text)
    return options, held


def weights() -> dict[str, np.ndarray]:
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model().graph.initializer}


def feeds() -> dict[str, np.ndarray]:
    return written("RNN", "one product for all gates").feeds(rows=1, steps=4)


@pytest.mark.long
@pytest.mark.parametrize("form", ["path", "bytes", "external"])
@pytest.mark.parametrize("cached", [False, True])
def test_another_value_is_honoured(cached: bool, form: str, tmp_path: Path):
    onnx.save(model(), tmp_path / "m.onnx", save_as_external_data=form == "external", size_threshold=0, location="w.bin")
    given = model().SerializeToString() if form == "bytes" else tmp_path / "m.onnx"
    if cached:
        ortscan.InferenceSession(given)
    for name, value in weights().items():
        if value.ndim < 2:
            continue
        options, held = told({name: OTHER.standard_normal(value.shape).astype(np.float32)})
        expected = ort.InferenceSession(given, options).run(None, feeds())
        with pytest.warns(OrtscanWarning, match=f"hold another value for the weight '{name}'"):
            session = ortscan.InferenceSession(given, options)
        assert session.ortscan.source == "original"
        for mine, its in zip(session.run(None, feeds()), expected, strict=True):
            np.testing.assert_array_equal(mine, its)
        assert held


def test_where_strict_is_set_it_is_refused():
    (name, value), *_ = [each for each in weights().items() if each[1].ndim == 2]
    options, held = told({name: value + 1}, strict="1")
    with pytest.raises(OrtscanError, match=f"hold another value for the weight '{name}'"):
        ortscan.InferenceSession(model(), options)
    assert held


def test_the_models_own_values_and_weights_of_other_models_do_no_harm(tmp_path: Path):
    options, held = told({**weights(), "of another model": np.ones(3, np.float32)}, strict="1")
    options.optimized_model_filepath, options.enable_profiling = str(tmp_path / "out.onnx"), False
    for source in ("optimized", "cached"):
        session = ortscan.InferenceSession(model(), options)
        assert session.ortscan.source == source
        assert "RNN" in session.ortscan.report.operators_after
        session.run(None, feeds())
    assert options.optimized_model_filepath == str(tmp_path / "out.onnx")
    assert {node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node} == {"Size", "Greater", "If"}
    assert held


def test_a_value_of_another_type_is_not_taken_for_the_same():
    (name, value), *_ = [each for each in weights().items() if each[1].ndim == 2]
    options, held = told({name: value.astype(np.float64)}, strict="1")
    with pytest.raises(OrtscanError, match="hold another value"):
        ortscan.InferenceSession(model(), options)
    assert held
