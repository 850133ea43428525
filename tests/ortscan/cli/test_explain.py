"""``explain --fail-on-loops`` and ``--fail-on``: gates for CI."""

import io
import json
from pathlib import Path

import onnx
import pytest

from ortscan.__main__ import main
from tests.support.small_models import MAP, RECURRENCE
from tests.support.text import parsed

RNN = """<ir_version: 8, opset_import: ["": 18]>
g (float[3, 1, 2] x, float[1, 2, 2] w, float[1, 2, 2] r) => (float[1, 1, 2] h) { , h = RNN <hidden_size = 2> (x, w, r) }"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    compiled = RECURRENCE.replace("Atan", "Sin")
    for name, text in (("gone", MAP), ("left", RECURRENCE), ("compiled", compiled), ("node", RNN)):
        onnx.save(parsed(text), tmp_path / f"{name}.onnx")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["left.onnx", "--fail-on-loops"], 6),
        (["left.onnx"], 0),
        (["gone.onnx", "--fail-on-loops", "--fail-on", "RECURRENCE"], 0),
        (["left.onnx", "--fail-on", "RECURRENCE"], 6),
        (["left.onnx", "--fail-on", "memory-budget,recurrence"], 6),
        (["left.onnx", "--fail-on", "MEMORY-BUDGET"], 0),
        (["compiled.onnx", "--native", "--fail-on-loops"], 0),
        ([".", "--fail-on-loops"], 6),
        (["nosuch.onnx", "--fail-on-loops"], 1),
        (["RECURRENCE", "--fail-on-loops"], 2),
        (["node.onnx", "--fail-on-loops"], 0),
        (["node.onnx", "--fail-on-loops", "--target", "coreml"], 0),
        (["node.onnx", "--fail-on-loops", "--target", "coreml", "--max-unroll", "0"], 6),
        (["node.onnx", "--fail-on-loops", "--target", "nnapi", "--skip", "unroll"], 6),
    ],
)
def test_a_loop_that_is_left_fails_only_if_asked(
    words: list[str], code: int, models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(models)
    assert main(["explain", "--no-advice", *words]) == code
    line = capsys.readouterr().err
    assert ("ortscan: 1 loop left" in line) == (code == 6)
    assert ("left in left.onnx: main/Scan" in line) == (words[0] == ".")


def test_a_loop_that_became_a_node_of_the_cpu_is_named_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "examples/keras_bidirectional_gru.onnx", "--no-advice", "--fail-on-loops", "--target", "coreml"]) == 6
    assert ", now a native GRU that coreml does not run (UNROLL-UNKNOWN);" in capsys.readouterr().err


def test_only_options_that_help_are_recommended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """g (float[2] s, int64 n) => (float[2] y) { y = Loop (n, , s) <body = b (int64 i, bool c, float[2] h) => (bool c1, float[2] h1) {
        c1 = Identity (c) h1 = Atan (h) }> }"""
    onnx.save(parsed(text), tmp_path / "m.onnx")
    assert main(["explain", str(tmp_path / "m.onnx"), "--target", "coreml"]) == 0
    text = capsys.readouterr().out
    assert "--fix-shape" not in text
    assert "try   --fix-input n=8: no loop is left" in text


def test_json_is_printed_even_if_a_loop_is_left(
    models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((models / "left.onnx").read_bytes())))
    assert main(["explain", "-", "--no-advice", "--json", "--fail-on-loops"]) == 6
    assert json.loads(capsys.readouterr().out)["report"]["loops"][0]["fate"] == "kept"


def test_an_unknown_code_is_refused_with_the_nearest(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(models / "left.onnx"), "--fail-on", "RECURENCE"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("ortscan: error: --fail-on: there is no reason code RECURENCE; similar codes are RECURRENCE")
