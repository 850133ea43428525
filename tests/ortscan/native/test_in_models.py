"""Loop plans in optimize, verify, sessions, session options and the command line."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.errors import OptionError
from ortscan.native import library as installed
from tests.support.native_plans import library
from tests.support.text import model_from_text

TEXT = """g (float[1,N] h, float[T,1,N] xs) => (float[1,N] hT, float[T,1,N] ys) {
  hT, ys = Scan <num_scan_inputs = 1, body = b (float[1,N] s, float[1,N] x) => (float[1,N] s1, float[1,N] y) {
    a = Mul (s, x) c = Asinh_or_Tanh (a) s1 = Add (c, x) y = Identity (s1)
  }> (h, xs)
}"""


@pytest.fixture
def _with_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_built", library)


@pytest.fixture
def model() -> onnx.ModelProto:
    return model_from_text(TEXT.replace("Asinh_or_Tanh", "Tanh").replace("N", "8"), 18)


FEEDS = {"h": np.float32(np.linspace(-1, 1, 8))[None], "xs": np.float32(np.sin(np.arange(40)).reshape(5, 1, 8))}


def plans_in(model: onnx.ModelProto) -> int:
    return sum(node.domain == "ai.ortscan" for node in model.graph.node)


def answers(model: onnx.ModelProto, options: ort.SessionOptions | None = None) -> list[np.ndarray]:
    session = ort.InferenceSession(model.SerializeToString(), options)
    return list(session.run(None, FEEDS))


@pytest.mark.usefixtures("_with_library")
def test_planned_model_equals_its_run_without_the_library(model: onnx.ModelProto) -> None:
    native = ortscan.optimize(model, native=True)
    assert plans_in(native) == 1
    wanted = answers(model)
    registered = ortscan.register(ort.SessionOptions())
    for got in (answers(native), answers(native, registered)):
        for left, right in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(left, right)
    assert ortscan.verify(model, native).ok


@pytest.mark.usefixtures("_with_library")
def test_optimize_says_the_gain_with_and_without_the_library(
    model: onnx.ModelProto, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(model, path)
    assert main(["optimize", str(path), str(out), "--native"]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r".* if ortscan's library is registered \(.*\), .* x if not · 1 of 1 loop compiled · equal on \d+ cases", first
    )
    assert " ".join(others).endswith(f"onnxruntime.InferenceSession('{out}', ortscan.register(onnxruntime.SessionOptions()))")


def iterations(width: int) -> onnx.ModelProto:
    """Return a loop of few steps without scanned inputs and with a single result."""
    shape = f"float[1,{width}]"
    return model_from_text(
        f"""g ({shape} h, float[{width},{width}] w) => ({shape} z) <int64 m = {{12}}, bool c = {{1}}> {{
            z = Loop <body = b (int64 i, bool c0, {shape} s) => (bool c1, {shape} s1) {{
                p = MatMul (s, w) q = Tanh (p) r = ReduceMax <keepdims = 1> (q) s1 = Sub (q, r) c1 = Identity (c0) }}> (m, c, h) }}""",
        18,
    )


@pytest.mark.usefixtures("_with_library")
def test_few_steps_run_as_a_plan_and_are_not_unrolled() -> None:
    model = iterations(16)
    native = ortscan.optimize(model, native=True)
    assert plans_in(native) == 1
    assert ortscan.verify(model, native).ok
    assert plans_in(ortscan.optimize(model)) == 0
    assert not any(node.op_type in ("Scan", "Loop") for node in ortscan.optimize(model).graph.node)


@pytest.mark.usefixtures("_with_library")
@pytest.mark.parametrize("options", [{"max_unroll": 12}, {"max_unroll": 64}])
def test_few_steps_are_unrolled_on_demand(options: dict[str, int]) -> None:
    native = ortscan.optimize(iterations(16), native=True, **options)
    assert plans_in(native) == 0
    assert not any(node.op_type in ("Scan", "Loop") for node in native.graph.node)


@pytest.mark.usefixtures("_with_library")
def test_few_steps_with_wide_weights_are_unrolled() -> None:
    native = ortscan.optimize(iterations(256), native=True)
    assert plans_in(native) == 0
    assert not any(node.op_type in ("Scan", "Loop") for node in native.graph.node)


BESIDE = """g (float[1,N] h, float[T,1,N] xs) => (float[1,N] hT, float[T,1,N] r, float[T,1,1,N] q) <int64[1] axis = {1}, float one = {1}> {
  a = Mul (xs, one) b = Sub (one, a) c = Max (b, xs)
  hT, ys, ms = Scan <num_scan_inputs = 2, DIRECTIONS body = b (float[1,N] s, float[1,N] x, float[1,N] x2)
    => (float[1,N] s1, float[1,N] y, float[1,N] m) { u = Mul (s, x) v = Tanh (u) s1 = Add (v, x2) y = Identity (s1) m = Mul (s, y) }> (h, c, b)
  d = Div (ys, ms) e = Relu (d) r = Min (e, xs) q = Unsqueeze (ys, axis)
}"""


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sizes", [("5", "8"), ("T", "N")])
@pytest.mark.usefixtures("_with_library")
def test_nodes_beside_a_loop_have_equal_bits_in_its_plan(reverse: bool, sizes: tuple[str, str]) -> None:
    directions = "scan_input_directions = [1, 1], scan_output_directions = [1, 1]," if reverse else ""
    text = BESIDE.replace("DIRECTIONS", directions).replace("T,", f"{sizes[0]},").replace("N]", f"{sizes[1]}]")
    model = model_from_text(text, 18)
    native = ortscan.optimize(model, passes=["native-loop"])
    assert [node.op_type for node in native.graph.node] == ["Scan1"]
    for got in (answers(native), answers(native, ortscan.register(ort.SessionOptions()))):
        for left, right in zip(got, answers(model), strict=True):
            np.testing.assert_array_equal(left, right)


def test_loops_are_not_planned_by_default(model: onnx.ModelProto) -> None:
    assert plans_in(ortscan.optimize(model)) == plans_in(ortscan.optimize(model, custom_ops=True)) == 0


@pytest.mark.usefixtures("_with_library")
def test_plans_stay_if_supported_and_become_loops_elsewhere(model: onnx.ModelProto) -> None:
    native = ortscan.optimize(model, native=True)
    for again in (ortscan.optimize(native), ortscan.optimize(native, native=True)):
        assert again.SerializeToString(deterministic=True) == native.SerializeToString(deterministic=True)
    elsewhere = ortscan.optimize(native, target="onnx")
    assert ortscan.explain(native, target="onnx").changed
    assert [node.op_type for node in elsewhere.graph.node if node.op_type in ("Scan", "Scan1")] == ["Scan"]


def names_run(model: onnx.ModelProto, folder: Path, **entries: str) -> str:
    """Run an ortscan session twice, the second time from the cache, and return its last profile."""
    onnx.save(model, folder / "model.onnx")
    for _ in range(2):
        options = ort.SessionOptions()
        options.enable_profiling, options.profile_file_prefix = True, str(folder / "profile")
        for name, text in {"cache_dir": str(folder / "cache"), **entries}.items():
            options.add_session_config_entry(f"ortscan.{name}", text)
        session = ortscan.InferenceSession(str(folder / "model.onnx"), options)
        for left, right in zip(session.run(None, FEEDS), answers(model), strict=True):
            np.testing.assert_array_equal(left, right)
        profile = Path(session.end_profiling()).read_text()
    return profile


@pytest.mark.usefixtures("_with_library")
def test_session_runs_plans_by_default(model: onnx.ModelProto, tmp_path: Path) -> None:
    assert '"op_name" : "Scan1"' in names_run(model, tmp_path)
    assert '"op_name" : "Scan1"' not in names_run(model, tmp_path, native="0")


@pytest.mark.usefixtures("_with_library")
def test_a_session_for_another_target_runs_no_plans(model: onnx.ModelProto, tmp_path: Path) -> None:
    assert '"op_name" : "Scan1"' not in names_run(model, tmp_path, target="onnx")


def test_a_session_without_the_library_runs_no_plans(
    model: onnx.ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORTSCAN_NATIVE", "0")
    assert '"op_name" : "Scan1"' not in names_run(model, tmp_path)


@pytest.mark.usefixtures("_with_library")
def test_a_model_that_a_session_saves_runs_without_the_library(model: onnx.ModelProto, tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    options.add_session_config_entry("ortscan.cache", "0")
    ortscan.InferenceSession(model.SerializeToString(), options)
    np.testing.assert_array_equal(answers(onnx.load(tmp_path / "saved.onnx"))[1], answers(model)[1])


@pytest.mark.usefixtures("_with_library")
def test_the_environment_hides_the_library_and_the_loops_run(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    native = ortscan.optimize(model, native=True)
    monkeypatch.setenv("ORTSCAN_NATIVE", "0")
    assert installed.library_path() is None
    for left, right in zip(answers(native, ortscan.register(ort.SessionOptions())), answers(model), strict=True):
        np.testing.assert_array_equal(left, right)


OUTER_PRODUCTS = """g (float[2,3] s, float[T,2] ks, float[T,3] vs) => (float[2,3] z, float[K,3] ys) {
  axis = Constant <value_ints = [0]> () n0 = Shape <start = 0, end = 1> (ks) n = Squeeze (n0, axis) yes = Constant <value = bool {1}> ()
  z, ys = Loop (n, yes, s) <body = b (int64 i, bool c, float[2,3] h) => (bool on, float[2,3] h1, float[3] y) {
    on = Identity (c) k = Gather (ks, i) at = Unsqueeze (i, axis) v0 = Gather (vs, at) v = Squeeze (v0, axis)
    one = Constant <value_ints = [1]> () col = Unsqueeze (k, one) row = Unsqueeze (v, axis) kv = Mul (col, row) h1 = Add (h, kv)
    q = Unsqueeze (k, one) w = Mul (q, h1) two = Constant <value_ints = [-2]> () y = ReduceSum <keepdims = 0> (w, two) }> }"""


def test_false_errors_of_onnx_in_functions_and_branches_are_ignored() -> None:
    others = ["loop-fission", "recurrent-cell", "state-fission", "unroll"]
    native = ortscan.optimize(model_from_text(OUTER_PRODUCTS, 18), native=True, verify=False, skip=others)
    (guard,) = [node for node in native.graph.node if node.op_type == "If"]
    assert sorted(attribute.g.node[0].op_type for attribute in guard.attribute) == ["Identity", "Scan1"]


def test_other_targets_run_no_plans(model: onnx.ModelProto) -> None:
    with pytest.raises(OptionError, match="native: compiled loops run only on the target cpu, not on cuda"):
        ortscan.optimize(model, native=True, target="cuda")


def test_loop_without_a_plan_has_a_reason() -> None:
    text = TEXT.replace("Asinh_or_Tanh", "Asinh").replace("N", "8")
    report = ortscan.explain(model_from_text(text, 18), passes=["native-loop"])
    assert [reason.code for loop in report.loops for reason in loop.reasons if reason.code.startswith("NATIVE")] == [
        "NATIVE-OPERATOR"
    ]


@pytest.mark.parametrize(
    ("hidden", "message"), [("0", "the environment variable ORTSCAN_NATIVE is 0"), ("", "native loop engine: ")]
)
def test_command_line_reports_the_library(hidden: str, message: str) -> None:
    command = [sys.executable, "-m", "ortscan", "native"]
    done = subprocess.run(
        command, env={**os.environ, "ORTSCAN_NATIVE": hidden}, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, message in done.stdout) == (0, True)
    path = subprocess.run(
        [*command, "--library-path"],
        env={**os.environ, "ORTSCAN_NATIVE": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (path.returncode, path.stdout) == (1, "")
    assert path.stderr.count("\n") == 1
