"""Loops that run as plans, as users meet them: optimize, verify, sessions, session options and the command line."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import ortscan
from ortscan.errors import OptionError
from ortscan.native import library as installed
from tests.support.native_plans import library
from tests.support.text import model_from_text

TEXT = """g (float[1,N] h, float[T,1,N] xs) => (float[1,N] hT, float[T,1,N] ys) {
  hT, ys = Scan <num_scan_inputs = 1, body = b (float[1,N] s, float[1,N] x) => (float[1,N] s1, float[1,N] y) {
    a = Mul (s, x) c = Sin_or_Tanh (a) s1 = Add (c, x) y = Identity (s1)
  }> (h, xs)
}"""


@pytest.fixture
def _with_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_built", library)


@pytest.fixture
def model() -> onnx.ModelProto:
    return model_from_text(TEXT.replace("Sin_or_Tanh", "Tanh").replace("N", "8"), 18)


FEEDS = {"h": np.float32(np.linspace(-1, 1, 8))[None], "xs": np.float32(np.sin(np.arange(40)).reshape(5, 1, 8))}


def plans_in(model: onnx.ModelProto) -> int:
    return sum(node.domain == "ai.ortscan" for node in model.graph.node)


def answers(model: onnx.ModelProto, options: ort.SessionOptions | None = None) -> list[np.ndarray]:
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, FEEDS))


@pytest.mark.usefixtures("_with_library")
def test_a_model_with_plans_gives_the_same_with_the_library_and_without(model: onnx.ModelProto) -> None:
    native = ortscan.optimize(model, native=True)
    assert plans_in(native) == 1
    wanted = answers(model)
    registered = ortscan.register(ort.SessionOptions())
    for got in (answers(native), answers(native, registered)):
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    assert ortscan.verify(model, native).ok


def test_nothing_is_planned_where_nobody_asks(model: onnx.ModelProto) -> None:
    assert plans_in(ortscan.optimize(model)) == plans_in(ortscan.optimize(model, custom_ops=True)) == 0


@pytest.mark.usefixtures("_with_library")
def test_plans_are_left_alone_where_they_run_and_loops_again_elsewhere(model: onnx.ModelProto) -> None:
    native = ortscan.optimize(model, native=True)
    for again in (ortscan.optimize(native), ortscan.optimize(native, native=True)):
        assert again.SerializeToString(deterministic=True) == native.SerializeToString(deterministic=True)
    elsewhere = ortscan.optimize(native, target="onnx")
    assert [node.op_type for node in elsewhere.graph.node if node.op_type in ("Scan", "Scan1")] == ["Scan"]


@pytest.mark.usefixtures("_with_library")
def test_a_session_runs_plans_where_it_is_asked_to(model: onnx.ModelProto, tmp_path: Path) -> None:
    onnx.save(model, tmp_path / "model.onnx")
    options = ort.SessionOptions()
    options.add_session_config_entry("ortscan.native", "1")
    options.add_session_config_entry("ortscan.cache_dir", str(tmp_path / "cache"))
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
    for _ in range(2):  # the second is out of the cache
        session = ortscan.InferenceSession(str(tmp_path / "model.onnx"), options)
        for one, other in zip(session.run(None, FEEDS), answers(model), strict=True):
            np.testing.assert_array_equal(one, other)
        assert '"op_name" : "Scan1"' in Path(session.end_profiling()).read_text()


@pytest.mark.usefixtures("_with_library")
def test_the_environment_hides_the_library_and_the_loops_run(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    native = ortscan.optimize(model, native=True)
    monkeypatch.setenv("ORTSCAN_NATIVE", "0")
    assert installed.library_path() is None
    for one, other in zip(answers(native, ortscan.register(ort.SessionOptions())), answers(model), strict=True):
        np.testing.assert_array_equal(one, other)


def test_other_targets_run_no_plans(model: onnx.ModelProto) -> None:
    with pytest.raises(OptionError, match="native loops run where the target is cpu, not cuda"):
        ortscan.optimize(model, native=True, target="cuda")


def test_a_loop_without_a_plan_says_why() -> None:
    text = TEXT.replace("Sin_or_Tanh", "Sin").replace("N", "8")
    report = ortscan.explain(model_from_text(text, 18), passes=["native-loop"])
    assert [reason.code for loop in report.loops for reason in loop.reasons if reason.code.startswith("NATIVE")] == [
        "NATIVE-OPERATOR"
    ]


@pytest.mark.parametrize(("hidden", "said"), [("0", "the environment variable ORTSCAN_NATIVE is 0"), ("", "native loop engine: ")])
def test_the_command_line_says_whether_there_is_a_library(hidden: str, said: str) -> None:
    command = [sys.executable, "-m", "ortscan", "native"]
    done = subprocess.run(
        command, env={**os.environ, "ORTSCAN_NATIVE": hidden}, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, said in done.stdout) == (0, True)
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
