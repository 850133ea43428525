"""The command line on folders and on standard input and output, and its suggestions for misspelled words."""

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import onnx
import pytest

from ortscan.__main__ import main
from tests.support.small_models import MAP
from tests.support.text import parsed


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("in/one.onnx", "in/deeper/two.onnx"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        onnx.save(parsed(MAP), name)
    return tmp_path


def from_stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


def test_each_model_of_a_folder_is_rewritten_and_compared(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", "in", "out", "--no-verify"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.endswith(".onnx:")] == ["deeper/two.onnx:", "one.onnx:"]
    for name in ("one.onnx", "deeper/two.onnx"):
        assert not any(node.op_type == "Scan" for node in onnx.load(models / "out" / name).graph.node)
    assert main(["verify", "in", "out"]) == 0
    assert capsys.readouterr().out.count("verified on onnxruntime") == 2


def test_one_bad_model_of_a_folder_does_not_stop_the_others(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (models / "in" / "a.onnx").write_bytes(b"no model")
    assert main(["optimize", "in", "-o", "out", "--no-verify"]) == 1
    assert (models / "out" / "one.onnx").exists()
    assert "in/a.onnx" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["optimize", "in", "out", "--report", "x.html"], "--report works with one model, not with a folder."),
        (["optimize", "in", "-"], "in is a folder, so the output must be a folder too, not standard output."),
        (["explain", "empty"], "empty contains no .onnx file."),
        (["verify", "in", "in/one.onnx"], "in and in/one.onnx must both be folders, or both be files."),
        (["optimize", "in", "in/one.onnx"], "in and in/one.onnx must both be folders, or both be files."),
        (["optimize", "in", "out.onnx"], "in is a folder, so the output must be a folder too, not out.onnx."),
        (["optimize", "in/one.onnx", "out.onnx", "--target", "CPU"], ", perhaps 'cpu' was meant."),
        (["verify", "-", "-"], "only one model can come from standard input."),
        (["optimze", "in", "out"], ", perhaps 'optimize' was meant."),
        (["optimize", "in", "out", "--targt", "cpu"], "unrecognized arguments: --targt cpu, perhaps '--target' was meant."),
        (["cache", "inf"], ", perhaps 'info' was meant."),
    ],
)
def test_what_does_not_fit_is_said(command: list[str], said: str, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    assert main(command) != 0
    assert said.rstrip(".") in capsys.readouterr().err


def test_a_model_comes_from_standard_input_and_goes_to_standard_output(
    models: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    from_stdin(monkeypatch, parsed(MAP).SerializeToString())
    assert main(["optimize", "-", "-", "--no-verify"]) == 0
    made = capfdbinary.readouterr().out
    assert not any(node.op_type == "Scan" for node in onnx.load_from_string(made).graph.node)
    from_stdin(monkeypatch, made)
    assert main(["verify", "in/one.onnx", "-"]) == 0
    assert b"verified on onnxruntime" in capfdbinary.readouterr().out


def test_messages_and_json_name_the_streams(
    models: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from_stdin(monkeypatch, parsed(MAP).SerializeToString())
    assert main(["optimize", "-", "-", "--no-verify", "--json"]) == 0
    printed = json.loads(capfd.readouterr().err)
    assert (printed["input"], printed["output"]["path"]) == ("standard input", "standard output")
    from_stdin(monkeypatch, b"no model")
    assert main(["optimize", "-", "out.onnx"]) == 1
    assert capfd.readouterr().err.startswith("ortscan: error: standard input is not an ONNX model")


@pytest.mark.parametrize(("words", "key"), [(["explain", "--no-advice", "in"], "report"), (["verify", "in", "in"], "verification")])
def test_the_json_of_a_folder_is_one_array(words: list[str], key: str, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--json"]) == 0
    assert [list(entry).count(key) for entry in json.loads(capsys.readouterr().out)] == [1, 1]


@pytest.mark.parametrize("words", [["explain", "--no-advice"], ["verify", "in"], ["optimize", "out"], ["migrate", "out"]])
def test_a_model_that_fails_has_its_error_in_the_array(words: list[str], models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (models / "in" / "a.onnx").write_bytes(b"no model")
    assert main([words[0], "in", *words[1:], "--json"]) == 1
    first, *others = json.loads(capsys.readouterr().out)
    assert first.keys() == {"ortscan", "input", "error"}
    assert (first["input"], first["error"].startswith("in/a.onnx is not an ONNX model")) == ("in/a.onnx", True)
    assert [entry.keys() & {"error"} for entry in others] == [set(), set()]


def test_the_last_line_counts_the_models_that_fail(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (models / "in" / "a.onnx").write_bytes(b"no model")
    assert main(["explain", "--no-advice", "in"]) == 1
    assert capsys.readouterr().out.endswith("\n3 models: 2 done, 1 failed\n")


def test_a_wrong_option_of_a_folder_is_reported_once(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "in", "--fail-on", "BOGUS"]) == 2
    assert capsys.readouterr().err == "ortscan: error: --fail-on: there is no reason code BOGUS.\n"


def test_an_empty_standard_input_is_named_as_such(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from_stdin(monkeypatch, b"")
    assert main(["explain", "-"]) == 1
    assert "ortscan: error: standard input is empty." in capsys.readouterr().err


def test_what_is_not_made_does_not_go_to_standard_output(
    models: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    model = parsed('<ir_version: 8, opset_import: ["": 18]> g (float[2] x) => (float[2] y) { y = Tanh (x) }')
    from_stdin(monkeypatch, model.SerializeToString())
    assert main(["optimize", "-", "-", "--strict"]) == 4
    assert capfdbinary.readouterr().out == b""
