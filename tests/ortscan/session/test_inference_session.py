import contextlib
import gc
import os
import pickle
import shutil
import stat
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import Fail

import ortscan
from ortscan.base.proto_graphs import with_large_weights_as_inputs
from ortscan.errors import ModelFileError, OptionError, OrtscanError, OrtscanWarning
from ortscan.ort.installed import newest_ir_version, newest_opset
from ortscan.session import opening, optimizing
from ortscan.session.applied import in_words
from ortscan.session.optimizing import known_outputs
from ortscan.session.weights_in_options import hold_weights
from tests.support.small_models import MAP, PLAIN, RECURRENCE, X, expected_of_map, with_weights
from tests.support.spoilt_rules import failing
from tests.support.text import parsed

SUMS = """
<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] x, float[4] h) => (float[4] last, float[T, 4] y) {
  last, y = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] xi) => (float[4] n, float[4] yi) {
    p = Mul(s, s) t = Tanh(xi) q = Add(p, t) n = Atan(q) yi = Identity(n)
  }> (h, x)
}
"""


def options(**entries: str) -> ort.SessionOptions:
    made = ort.SessionOptions()
    for name, text in entries.items():
        made.add_session_config_entry(f"ortscan.{name}", text)
    return made


def operators(session: ort.InferenceSession) -> set[str]:
    return set(session.ortscan.report.operators_after)


def test_a_session_runs_the_optimised_model():
    session = ortscan.InferenceSession(parsed(MAP).SerializeToString())
    assert session.ortscan.source == "optimized"
    assert operators(session) == {"Tanh", "Mul"}
    np.testing.assert_allclose(session.run(None, {"x": X})[0], expected_of_map(), rtol=1e-6)


def test_options_may_be_keywords_and_entries_take_precedence():
    def kept(*entries: ort.SessionOptions, **keywords: Any) -> bool:
        return "Scan" in operators(ortscan.InferenceSession(parsed(MAP).SerializeToString(), *entries, **keywords))

    assert not kept(cache=False)
    assert kept(cache=False, native=False, passes=["identities"])
    assert not kept(options(passes="loop-fission"), cache=False, native=False, passes=["identities"])
    with pytest.raises(OptionError, match="perhaps 'cuda' was meant"):
        ortscan.InferenceSession(parsed(MAP).SerializeToString(), target="gpu")
    with pytest.raises(OptionError, match=r"no session option 'traget'.*perhaps 'target' was meant"):
        ortscan.InferenceSession(parsed(MAP).SerializeToString(), traget="cpu")
    assert not kept(cache=False, enable_fallback=0, bogus=1)  # onnxruntime's class ignores unknown keywords


@pytest.mark.parametrize("form", ["bytes", "path", "pathlike", "proto", "ir"])
def test_a_model_may_be_anything_onnxruntime_takes_and_a_model_in_memory(form: str, tmp_path: Path):
    model = parsed(MAP)
    onnx.save(model, tmp_path / "m.onnx")
    given = {
        "bytes": model.SerializeToString(),
        "path": str(tmp_path / "m.onnx"),
        "pathlike": tmp_path / "m.onnx",
        "proto": model,
        "ir": ir.from_proto(model),
    }[form]
    session = ortscan.InferenceSession(given, providers=["CPUExecutionProvider"])
    assert session.ortscan.source == "optimized"
    assert isinstance(session, ort.InferenceSession)
    np.testing.assert_allclose(session.run(["y"], {"x": X})[0], expected_of_map(), rtol=1e-6)


def test_what_onnxruntime_refuses_as_a_model_is_refused_the_same_way():
    with pytest.raises(TypeError, match="Unable to load from type"):
        ortscan.InferenceSession(bytearray(b"x"))
    with pytest.raises(Exception, match="File doesn't exist"):
        ortscan.InferenceSession("nowhere.onnx")
    with pytest.raises(Exception, match="INVALID_PROTOBUF"):
        ortscan.InferenceSession(b"no model at all")


def test_a_model_without_a_loop_is_left_alone_without_being_read_twice():
    session = ortscan.InferenceSession(parsed(PLAIN))
    assert (session.ortscan.source, session.ortscan.report) == ("unchanged", None)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], np.maximum(X, 0))


def test_options_are_read_from_the_session_options():
    session = ortscan.InferenceSession(parsed(MAP), options(skip="loop-fission,native-loop"))
    assert "Scan" in operators(session)
    assert ortscan.InferenceSession(parsed(MAP), options(target="cuda")).ortscan.target == "cuda"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"fast_math": "perhaps"}, "ortscan.fast_math cannot be 'perhaps'"),
        ({"memory_budget": "a lot"}, "ortscan.memory_budget cannot be 'a lot'"),
        ({"target": "abacus"}, "target: 'abacus' is not known"),
        ({"passes": "no-such"}, "there is no pass 'no-such'"),
    ],
)
def test_an_option_that_cannot_be_read_is_an_error_not_a_warning(entries: dict[str, str], message: str):
    with pytest.raises(OptionError, match=message):
        ortscan.InferenceSession(parsed(MAP), options(**entries))


def test_without_graph_optimisation_the_model_is_left_alone_unless_asked_for():
    off = options()
    off.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    left = ortscan.InferenceSession(parsed(MAP), off).ortscan
    assert left.source == "original"
    assert "ORT_DISABLE_ALL" in str(left.why)
    off.add_session_config_entry("ortscan.enable", "1")
    assert ortscan.InferenceSession(parsed(MAP), off).ortscan.source == "optimized"
    assert ortscan.InferenceSession(parsed(MAP), options(enable="0")).ortscan.why == "ortscan.enable is 0"


def test_the_optimised_model_is_what_onnxruntime_writes_to_optimized_model_filepath(tmp_path: Path):
    wanted = options()
    wanted.optimized_model_filepath = str(tmp_path / "out.onnx")
    ortscan.InferenceSession(parsed(MAP), wanted)
    assert "Scan" not in {node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node}


@pytest.mark.parametrize("other", [RECURRENCE, PLAIN], ids=["another loop", "no loop"])
@pytest.mark.parametrize("verify", ["quick", "full"])
def test_a_model_file_that_is_rewritten_while_a_session_starts_is_an_error_about_the_file(
    other: str, verify: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "model.onnx"
    path.write_bytes(parsed(MAP).SerializeToString())
    rewrite = optimizing.rewritten

    def rewrite_and_overwrite(*arguments: Any) -> Any:
        found = rewrite(*arguments)
        path.write_bytes(parsed(other).SerializeToString())
        found.refuted = "the two differ"
        return found

    monkeypatch.setattr(optimizing, "rewritten", rewrite_and_overwrite)
    with pytest.raises(ModelFileError, match=r"model\.onnx was changed while the session was being created"):
        ortscan.InferenceSession(path, options(strict="1", verify=verify))


def test_a_session_that_ortscan_cannot_make_runs_the_original_and_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ortscan.pipeline.stages.rewrite", failing(ZeroDivisionError("a defect")))
    with pytest.warns(OrtscanWarning, match="runs unchanged, because ortscan could not optimise it: .*a defect"):
        session = ortscan.InferenceSession(parsed(MAP))
    assert session.ortscan.source == "original"
    said = "ortscan could not optimise it: rewritten failed, which is a defect of ortscan; please report it: ZeroDivisionError: a defect"
    assert session.ortscan.why == said
    np.testing.assert_allclose(session.run(None, {"x": X})[0], expected_of_map(), rtol=1e-6)


DEFECTS = [
    *(ZeroDivisionError("a defect"), ValueError("a defect"), RuntimeError("a defect"), RecursionError("a defect")),
    *(MemoryError("a defect"), OSError("a defect"), PermissionError(13, "a defect", "some/file")),
]


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: type(defect).__name__)
@pytest.mark.parametrize("providers", [None, ["CPUExecutionProvider"]], ids=["any", "cpu"])
def test_where_strict_is_set_whatever_goes_wrong_is_one_error_with_its_cause(
    defect: Exception, providers: list[str] | None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("ortscan.pipeline.stages.rewrite", failing(defect))
    with pytest.raises(OrtscanError, match=r"a defect|is nested deeper than rewritten supports") as found:
        ortscan.InferenceSession(parsed(MAP), options(strict="1"), providers)
    assert found.value.__cause__ is defect
    assert "EP Error" not in capfd.readouterr().out


def test_where_strict_is_set_a_model_that_cannot_be_opened_is_an_error_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ortscan.session.inference_session.model_to_open", failing(RuntimeError("a defect")))
    with pytest.raises(OrtscanError, match="the given model could not be optimised: a defect"):
        ortscan.InferenceSession(parsed(MAP), options(strict="1"), ["CPUExecutionProvider"])


def test_where_strict_is_set_an_error_of_ours_comes_as_it_is_and_an_unreadable_model_is_onnxruntimes():
    with pytest.raises(Exception, match="File doesn't exist") as found:
        ortscan.InferenceSession("nowhere.onnx", options(strict="1"))
    assert not isinstance(found.value, OrtscanError)
    with pytest.raises(ortscan.OrtscanError, match="is not an ONNX model"):
        ortscan.InferenceSession(parsed(MAP).SerializeToString()[:-20], options(strict="1"))


def with_opset(model: onnx.ModelProto) -> None:
    model.opset_import[0].version, model.ir_version = newest_opset() + 1, newest_ir_version()


def with_unnamed_state(model: onnx.ModelProto) -> None:
    model.graph.node[0].output[0] = ""
    del model.graph.output[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_opset, rf"has opset {newest_opset() + 1}; onnx .* supports at most {newest_opset()}\."),
        (
            with_unnamed_state,
            "the given model could not be optimised: onnxruntime needs a name for the last value of each state of a Scan or Loop, but one has no name",
        ),
    ],
)
def test_where_strict_is_set_what_onnxruntime_refuses_is_said_in_words(change: Callable[[onnx.ModelProto], None], message: str):
    model = parsed(SUMS)
    change(model)
    with pytest.raises(OrtscanError, match=f"{message}$"):
        ortscan.InferenceSession(model, options(strict="1"))
    with pytest.raises(Fail):
        ortscan.InferenceSession(model, options())


def test_other_words_of_onnxruntime_are_kept_without_places_in_its_code():
    said = "[ONNXRuntimeError] : 1 : FAIL : /onnxruntime_src/onnxruntime/core/graph/model.cc:256 onnxruntime::Model::Model(int) It is odd."
    assert in_words(Fail(said)) == "onnxruntime says: It is odd."
    assert in_words(ValueError()) == "ValueError"
    said = "[ONNXRuntimeError] : 1 : FAIL : Unsupported model IR version: 19, max supported IR version: 18"
    assert in_words(Fail(said)) == "its IR version is 19, but onnxruntime reads at most 18"


def test_names_types_shapes_and_metadata_are_those_of_the_original():
    model = parsed(RECURRENCE)
    model.metadata_props.add(key="author", value="nobody")
    model.producer_name, model.graph.doc_string = "maker", "words"
    plain = ort.InferenceSession(model.SerializeToString())
    session = ortscan.InferenceSession(model)
    for described in ("get_inputs", "get_outputs"):
        there, here = getattr(plain, described)(), getattr(session, described)()
        assert [(v.name, v.type, v.shape) for v in here] == [(v.name, v.type, v.shape) for v in there]
    there, here = plain.get_modelmeta(), session.get_modelmeta()
    for fact in ("custom_metadata_map", "producer_name", "graph_name", "graph_description", "version"):
        assert getattr(here, fact) == getattr(there, fact)


def test_profiling_io_binding_ort_values_and_async_runs_work(tmp_path: Path):
    wanted = options()
    wanted.enable_profiling = True
    wanted.profile_file_prefix = str(tmp_path / "profile")
    wanted.intra_op_num_threads = 2
    session = ortscan.InferenceSession(parsed(MAP), wanted, ["CPUExecutionProvider"], [{}])
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], expected_of_map(), rtol=1e-6)
    values = session.run_with_ort_values(["y"], {"x": ort.OrtValue.ortvalue_from_numpy(X)}, ort.RunOptions())
    np.testing.assert_allclose(values[0].numpy(), expected_of_map(), rtol=1e-6)
    done, got = threading.Event(), []
    session.run_async(["y"], {"x": X}, lambda results, _, error: (got.extend([results, error]), done.set()), None)
    assert done.wait(30)
    np.testing.assert_allclose(got[0][0], expected_of_map(), rtol=1e-6)
    assert Path(session.end_profiling()).exists()


def test_what_was_done_can_be_pickled_and_a_session_no_more_than_onnxruntimes():
    for _ in range(2):
        session = ortscan.InferenceSession(parsed(MAP))
        copied = pickle.loads(pickle.dumps(session.ortscan))
        assert (copied.source, copied.report) == (session.ortscan.source, session.ortscan.report)
        with pytest.raises(TypeError, match=r"cannot pickle .*InferenceSession"):
            pickle.dumps(session)


def test_session_options_serve_many_sessions_and_providers_can_change():
    shared = options()
    first = ortscan.InferenceSession(parsed(MAP), shared)
    second = ortscan.InferenceSession(parsed(RECURRENCE), shared)
    first.set_providers(["CPUExecutionProvider"], [{}])
    assert first.ortscan.source == "cached"
    assert first.get_providers() == second.get_providers() == ["CPUExecutionProvider"]
    np.testing.assert_allclose(first.run(None, {"x": X})[0], expected_of_map(), rtol=1e-6)
    third = ortscan.InferenceSession(parsed(MAP), second.get_session_options())
    np.testing.assert_allclose(third.run(None, {"x": X})[0], expected_of_map(), rtol=1e-6)


def external(folder: Path) -> tuple[Path, np.ndarray]:
    folder.mkdir()
    model = with_weights()
    weights = onnx.numpy_helper.to_array(model.graph.initializer[0])
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    return folder / "m.onnx", weights


@pytest.mark.parametrize("given", [False, True], ids=["no-options", "options"])
def test_external_data_is_found_beside_the_original(given: bool, tmp_path: Path):
    path, weights = external(tmp_path / "model")
    x = np.ones((3, 64), np.float32)
    for source in ("optimized", "cached"):
        session = ortscan.InferenceSession(path, options() if given else None)
        assert session.ortscan.source == source
        np.testing.assert_allclose(session.run(None, {"x": x})[0], np.tanh(x @ weights), rtol=1e-4, atol=1e-5)
    assert sorted(file.name for file in path.parent.iterdir()) == ["m.onnx", "w.bin"]


def test_external_data_is_found_where_nothing_can_be_written_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, weights = external(tmp_path / "model")
    x = np.ones((3, 64), np.float32)
    real = opening._write
    monkeypatch.setattr(
        opening, "_write", lambda file, content: (no_link if Path(file).parent == path.parent else real)(file, content)
    )
    session = ortscan.InferenceSession(path, options())
    assert session.ortscan.source == "optimized"
    np.testing.assert_allclose(session.run(None, {"x": x})[0], np.tanh(x @ weights), rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(os, "link", no_link)
    session = ortscan.InferenceSession(path, options())
    assert session.ortscan.source == "cached"
    np.testing.assert_allclose(session.run(None, {"x": x})[0], np.tanh(x @ weights), rtol=1e-4, atol=1e-5)
    assert sorted(file.name for file in path.parent.iterdir()) == ["m.onnx", "w.bin"]


def test_a_downloaded_model_whose_files_are_links_into_a_folder_of_blobs_is_optimised(tmp_path: Path):
    _, weights = external(tmp_path / "blobs")
    view = tmp_path / "snapshots" / "1"
    view.mkdir(parents=True)
    (view / "m.onnx").symlink_to("../../blobs/m.onnx")
    (tmp_path / "blobs" / "w.bin").rename(tmp_path / "blobs" / "0815")
    (view / "w.bin").symlink_to("../../blobs/0815")
    x = np.ones((3, 64), np.float32)
    for given in (None, options(), None, options()):
        session = ortscan.InferenceSession(view / "m.onnx", given)
        assert session.ortscan.source in ("optimized", "cached")
        np.testing.assert_allclose(session.run(None, {"x": x})[0], np.tanh(x @ weights), rtol=1e-4, atol=1e-5)
    assert sorted(file.name for file in (tmp_path / "blobs").iterdir()) == ["0815", "m.onnx"]


def no_link(*_: object, **__: object) -> None:
    raise PermissionError(1, "not here")


def test_one_model_with_two_files_of_weights_is_two_models(tmp_path: Path):
    path, _ = external(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    other = tmp_path / "two" / "w.bin"
    other.write_bytes(np.zeros(64 * 64, np.float32).tobytes())
    x = np.ones((2, 64), np.float32)
    assert np.any(ortscan.InferenceSession(path).run(None, {"x": x})[0])
    for _ in range(2):
        assert not np.any(ortscan.InferenceSession(tmp_path / "two" / "m.onnx").run(None, {"x": x})[0])
    other.write_bytes(np.full(64 * 64, 1, np.float32).tobytes())
    assert np.all(ortscan.InferenceSession(tmp_path / "two" / "m.onnx").run(None, {"x": x})[0] > 0.99)


def test_bytes_find_external_data_where_the_session_options_say(tmp_path: Path):
    path, weights = external(tmp_path / "model")
    told = options()
    told.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
    x = np.ones((3, 64), np.float32)
    for _ in range(2):
        session = ortscan.InferenceSession(path.read_bytes(), told)
        assert session.ortscan.source != "original"
        np.testing.assert_allclose(session.run(None, {"x": x})[0], np.tanh(x @ weights), rtol=1e-4, atol=1e-5)


def test_the_folder_that_the_session_options_name_comes_before_that_of_the_model(tmp_path: Path):
    path, _ = external(tmp_path / "model")
    other = tmp_path / "other"
    other.mkdir()
    (other / "w.bin").write_bytes(np.full(64 * 64, 0.01, np.float32).tobytes())
    x = np.ones((3, 64), np.float32)
    ortscan.InferenceSession(path)
    for made in (ort.InferenceSession, ortscan.InferenceSession, ortscan.InferenceSession):
        told = options()
        told.add_session_config_entry("session.model_external_initializers_file_folder_path", str(other))
        np.testing.assert_allclose(made(path, told).run(None, {"x": x})[0], np.tanh(np.full((3, 64), 0.64)), rtol=1e-4)


def test_data_in_memory_is_the_same_model_whether_it_is_on_disk_or_not(tmp_path: Path):
    path, weights = external(tmp_path / "model")
    kept = (path.parent / "w.bin").rename(tmp_path / "elsewhere")
    told = options()
    told.add_external_initializers_from_files_in_memory(["w.bin"], [data := kept.read_bytes()], [len(data)])
    x = np.ones((3, 64), np.float32)
    for place, source in ((None, "optimized"), (None, "cached"), (path.parent / "w.bin", "cached"), (kept, "cached")):
        if place is not None:
            next(tmp_path.rglob(kept.name if place != kept else "w.bin")).rename(place)
        session = ortscan.InferenceSession(path, told)
        assert session.ortscan.source == source
        np.testing.assert_allclose(session.run(None, {"x": x})[0], np.tanh(x @ weights), rtol=1e-4, atol=1e-5)


def test_data_that_comes_later_is_another_model(tmp_path: Path):
    path, _ = external(tmp_path / "model")
    kept = (path.parent / "w.bin").rename(tmp_path / "elsewhere")
    with pytest.raises(Fail, match="does not exist"):
        ortscan.InferenceSession(path)
    kept.rename(path.parent / "w.bin")
    assert ortscan.InferenceSession(path).ortscan.source == "optimized"


@pytest.mark.long
@pytest.mark.parametrize("given_as", ["path", "bytes"])
@pytest.mark.parametrize("held_by", ["name", "file", "profiled file"])
def test_weights_in_memory_come_before_those_of_a_file(
    held_by: str, given_as: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    text = MAP.replace("t = Tanh(xi)", "d = Mul(W, W) p = MatMul(xi, d) t = Tanh(p)")
    model, weights = parsed(text, weights={"W": np.eye(4, dtype=np.float32)}), np.full((4, 4), 0.5, np.float32)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    monkeypatch.chdir(tmp_path)
    given = "m.onnx" if given_as == "path" else Path("m.onnx").read_bytes()
    ortscan.InferenceSession(given)
    for _ in range(2):
        told = options()
        if held_by == "name":
            told.add_external_initializers(["W"], [held := ort.OrtValue.ortvalue_from_numpy(weights)])
        else:
            told.add_external_initializers_from_files_in_memory(["w.bin"], [held := weights.tobytes()], [64])
        told.enable_profiling = held_by == "profiled file"
        wanted = ort.InferenceSession(given, told).run(None, {"x": X})[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            session = ortscan.InferenceSession(given, told)
        assert "ortscan cannot look at" in (session.ortscan.why or "ortscan cannot look at")
        np.testing.assert_allclose(session.run(None, {"x": X})[0], wanted, rtol=1e-6)
        assert held is not None
    np.testing.assert_allclose(ortscan.InferenceSession(given).run(None, {"x": X})[0], expected_of_map(), rtol=1e-6)


def test_options_are_asked_for_weights_without_a_trace(tmp_path: Path):
    told = options()
    told.optimized_model_filepath = str(tmp_path / "never.onnx")
    told.profile_file_prefix, told.enable_profiling = str(tmp_path / "never"), True
    assert not hold_weights(told)
    assert told.enable_profiling
    assert not list(tmp_path.iterdir())
    value = ort.OrtValue.ortvalue_from_numpy(X)
    told.add_initializer("W", value)
    assert not hold_weights(told)
    told.add_external_initializers(["W"], [value])
    assert hold_weights(told)


def test_data_changed_in_place_within_its_old_time_is_another_model(tmp_path: Path):
    path, _ = external(tmp_path / "model")
    x = np.ones((3, 64), np.float32)
    for value in (0.01, 0.02):
        with (path.parent / "w.bin").open("r+b") as file:
            file.write(np.full(64 * 64, value, np.float32).tobytes())
        os.utime(path.parent / "w.bin", (1e9, 1e9))
        session = ortscan.InferenceSession(path)
        assert session.ortscan.source == "optimized"
        np.testing.assert_allclose(session.run(None, {"x": x})[0], np.tanh(np.full((3, 64), 64 * value)), rtol=1e-4)


def test_initializers_given_in_memory_reach_the_optimised_model(tmp_path: Path):
    path, weights = external(tmp_path / "model")
    x = np.ones((3, 64), np.float32)
    held = ort.OrtValue.ortvalue_from_numpy(weights)
    by_name = options()
    by_name.add_external_initializers(["W"], [held])
    as_file = options()
    as_file.add_external_initializers_from_files_in_memory(["w.bin"], [data := weights.tobytes()], [len(data)])
    (path.parent / "w.bin").unlink()
    for given in (by_name, as_file):
        for model in (path, path.read_bytes()):
            session = ortscan.InferenceSession(model, given)
            assert session.ortscan.source != "original"
            np.testing.assert_allclose(session.run(None, {"x": x})[0], np.tanh(x @ weights), rtol=1e-4, atol=1e-5)


def test_a_model_in_onnxruntimes_own_format_is_opened_as_it_is(tmp_path: Path):
    wanted = ort.SessionOptions()
    wanted.optimized_model_filepath = str(tmp_path / "m.ort")
    wanted.add_session_config_entry("session.save_model_format", "ORT")
    ort.InferenceSession(parsed(MAP).SerializeToString(), wanted)
    for given in (tmp_path / "m.ort", (tmp_path / "m.ort").read_bytes()):
        session = ortscan.InferenceSession(given)
        assert session.ortscan.source == "original"
        np.testing.assert_allclose(session.run(None, {"x": X})[0], expected_of_map(), rtol=1e-6)


def test_a_folder_that_cannot_be_written_keeps_nothing_but_works(cache: Path):
    cache.mkdir()
    (cache / "models").write_text("a file where a folder should be")
    with pytest.warns(OrtscanWarning, match=r"nothing is cached in .*'.*/models' is not a folder that only this user can write to"):
        session = ortscan.InferenceSession(parsed(MAP))
    assert session.ortscan.source == "optimized"
    assert str(session.ortscan.why).startswith(f"the model was not cached in {cache}")


def test_the_cache_is_for_this_user_alone(cache: Path):
    ortscan.InferenceSession(parsed(MAP))
    assert stat.S_IMODE(cache.joinpath("models").stat().st_mode) == 0o700


def open_lstm() -> onnx.ModelProto:
    """Return an LSTM written as a Scan, whose outputs have no declared shapes."""
    model = parsed("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[T, B, I] x, float[B, H] h, float[B, H] c) => (float[] last, float[] memory, y) {
          last, memory, y = Scan <num_scan_inputs = 1,
            body = b (s, m, xi) => (n, m1, yi) {
              a = MatMul(xi, W) d = MatMul(s, R) p = Add(a, d)
              i, o, f, g = Split <axis = 1, num_outputs = 4> (p)
              i1 = Sigmoid(i) o1 = Sigmoid(o) f1 = Sigmoid(f) g1 = Tanh(g)
              kept = Mul(f1, m) new = Mul(i1, g1) m1 = Add(kept, new) t = Tanh(m1) n = Mul(o1, t) yi = Identity(n)
            }> (h, c, x)
        }
    """)
    for name, rows in (("W", 5), ("R", 7)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((rows, 28), np.float32), name))
    for output in model.graph.output[:2]:
        output.type.tensor_type.ClearField("shape")
    return model


def test_outputs_whose_shape_only_onnxruntime_knows_keep_it():
    model = open_lstm()
    plain = [(v.name, v.type, v.shape) for v in ort.InferenceSession(model.SerializeToString()).get_outputs()]
    assert [shape for _, _, shape in plain] == [["B", 7], ["B", 7], ["T", "B", 7]]
    for source in ("optimized", "cached"):
        session = ortscan.InferenceSession(model)
        assert session.ortscan.source == source
        assert [(v.name, v.type, v.shape) for v in session.get_outputs()] == plain


def test_a_model_that_would_end_the_process_is_not_asked_for_its_outputs():
    proto = parsed("""<ir_version: 9, opset_import: ["": 18]> g (float[3] x) => (float[3] z) <int64 m = {3}> {
        z, q = Loop <body = b (int64 i, bool c, float[3] s) => (bool c1, float[3] s1, float[3] q1) {
            c1 = Identity (c) s1 = Sin (s) q1 = Exp (s) }> (m, , x) }""")
    proto.graph.node[0].output[1] = ""
    assert known_outputs(with_large_weights_as_inputs(proto)) == {}
    made = ortscan.InferenceSession(proto.SerializeToString(), options(cache="0"))
    assert made.ortscan.source == "optimized"
    np.testing.assert_allclose(made.run(None, {"x": X[0, :3]})[0], np.sin(np.sin(np.sin(X[0, :3]))), rtol=1e-5)


def test_outputs_of_a_model_that_onnxruntime_does_not_open_are_as_declared():
    model = open_lstm()
    assert known_outputs(with_large_weights_as_inputs(model))["last"] == (onnx.TensorProto.FLOAT, ["B", 7])
    model.graph.node[0].op_type = "NoSuchOperator"
    assert known_outputs(with_large_weights_as_inputs(model)) == {}


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_a_session_leaves_no_weights_behind_for_the_garbage_collector():
    for model in (with_weights(), with_weights().SerializeToString()):
        for cached in ("0", "1"):
            ortscan.InferenceSession(model, options(cache=cached))
    tensor = ir.Tensor.__mro__[1]
    assert not [found for found in gc.get_objects() if issubclass(type(found), tensor) and found.size > 1000]


@pytest.mark.usefixtures("no_collector")
@pytest.mark.filterwarnings("ignore::ortscan.errors.OrtscanWarning")
@pytest.mark.parametrize("strict", ["0", "1"])
def test_a_session_that_fails_leaves_no_exception_behind(strict: str, monkeypatch: pytest.MonkeyPatch):
    def errors() -> list[BaseException]:
        return [found for found in gc.get_objects() if isinstance(found, ZeroDivisionError | OrtscanError)]

    before = errors()
    monkeypatch.setattr("ortscan.pipeline.stages.rewrite", failing(ZeroDivisionError))
    with contextlib.suppress(OrtscanError):
        ortscan.InferenceSession(parsed(MAP), options(strict=strict))
    with contextlib.suppress(Exception):
        ortscan.InferenceSession(parsed(MAP).SerializeToString()[:-9], options(strict=strict))
    assert [error for error in errors() if not any(error is known for known in before)] == []
