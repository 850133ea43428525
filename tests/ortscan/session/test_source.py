"""Weights that change between starts, in data files or by ``add_initializer``: no session uses the old weights."""

import mmap
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import ortscan
from ortscan.cache.digests import digest_of_bytes
from ortscan.errors import OrtscanError, OrtscanWarning
from ortscan.session.opening import FOLDER_ENTRY
from tests.rewrites.recurrences.written_cells import written
from tests.support.text import parsed


def folded() -> onnx.ModelProto:
    """Return a model that uses its weights directly, and also values that optimisation computes from them in advance."""
    text = """g (float[T, 64] x) => (float[T, 64] y) {
        y = Scan <num_scan_inputs = 1, body = b (float[64] xi) => (float[64] yi) {
            a = MatMul (xi, W)  u = Transpose (W)  v = Add (u, u)  c = MatMul (xi, v)  yi = Sub (a, c) }> (x) }"""
    return parsed(text, weights={"W": np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)})


def in_place(file: Path, content: bytes) -> None:
    with file.open("r+b") as opened:
        opened.write(content)


def renamed_over(file: Path, content: bytes) -> None:
    file.with_name("new").write_bytes(content)
    file.with_name("new").replace(file)


def by_another_name(file: Path, content: bytes) -> None:
    other = file.with_name("other")
    os.link(file, other)
    in_place(other, content)
    other.unlink()


def in_a_memory_map(file: Path, content: bytes) -> None:
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        mapped[:] = content


def as_another_target(file: Path, content: bytes) -> None:
    other = file.with_name(f"target-{digest_of_bytes(content)[:8]}")
    other.write_bytes(content)
    file.unlink()
    file.symlink_to(other.name)


def one_byte(file: Path, content: bytes) -> None:
    (at,) = np.flatnonzero(np.frombuffer(file.read_bytes(), np.uint8) != np.frombuffer(content, np.uint8))[:1]
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(content[at : at + 1])


WRITES = (in_place, renamed_over, by_another_name, in_a_memory_map, as_another_target, one_byte)


def given_as(form: str, path: Path) -> tuple[object, ort.SessionOptions | None]:
    options = ort.SessionOptions()
    if form == "bytes":
        options.add_session_config_entry(FOLDER_ENTRY, str(path.parent))
    return path.read_bytes() if form == "bytes" else path, None if form == "path" else options


@pytest.mark.long
@pytest.mark.parametrize(
    ("write", "form"),
    [(write, form) for index, write in enumerate(WRITES) for form in ("path", ("path and options", "bytes")[index % 2])],
)
def test_the_weights_that_are_there_now_count(write: Callable[[Path, bytes], None], form: str, tmp_path: Path):
    path, data = tmp_path / "m.onnx", tmp_path / "w.bin"
    onnx.save(folded(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    weights = np.frombuffer(data.read_bytes(), np.float32).reshape(64, 64).copy()
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    given, options = given_as(form, path)

    def starts(expected: np.ndarray, *sources: str) -> None:
        results = []
        for _ in sources:
            session = ortscan.InferenceSession(given, options)
            results.append(session.ortscan.source)
            np.testing.assert_allclose(session.run(None, {"x": x})[0], x @ (expected - 2 * expected.T), rtol=1e-3, atol=1e-3)
        assert results == list(sources)

    starts(weights, "optimized", "cached", "cached")
    times = data.stat()
    if write is one_byte:
        weights.view(np.uint8)[5, 6] ^= 0x40
    else:
        weights *= -2
    write(data, weights.tobytes())
    os.utime(data, ns=(times.st_atime_ns, times.st_mtime_ns))
    starts(weights, "optimized", "cached", "cached")


OTHER = np.random.default_rng(7)


def model() -> onnx.ModelProto:
    """Return an RNN whose weights optimisation converts to the node's layout in advance."""
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
