"""If a result differs, the command line of optimize names the change, and writes a folder that reproduces the difference."""

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import ortscan
from ortscan.__main__ import main
from rewrites.fission import loop_fission
from tests.support.spoilt_rules import put_after, spoil
from tests.support.text import parsed

MAP = """<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] x) => (float[T, 4] y) {
  y = Scan <num_scan_inputs = 1, body = b (float[4] xi) => (float[4] yi) { s = Tanh (xi) yi = Mul (s, xi) }> (x)
}"""


@pytest.fixture
def spoilt(monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(model: ir.Model) -> None:
        put_after(model, "y", ("Neg",))

    spoil(monkeypatch, loop_fission, defect)


@pytest.fixture
def source(tmp_path: Any) -> str:
    path = tmp_path / "m.onnx"
    onnx.save(parsed(MAP), path)
    return str(path)


@pytest.mark.usefixtures("spoilt")
def test_the_change_is_named_with_the_option_that_does_without_it(source: str, tmp_path: Any, capsys: Any) -> None:
    folder = tmp_path / "shown"
    words = ["optimize", source, str(tmp_path / "o.onnx"), "--verify", "quick", "-q"]
    assert main([*words, "--reproducer", str(folder)]) == 3
    output = capsys.readouterr().err
    assert "change 1, loop-fission on main/Scan producing 'y', is the first that differs (" in output
    assert "; to skip it: --skip loop-fission; " in output
    assert f"{folder} shows it" in output
    assert not (tmp_path / "o.onnx").exists()
    assert main([*words, "--skip", "loop-fission"]) == 0
    found = ortscan.verify(str(folder / "original.onnx"), str(folder / "result.onnx"), inputs=folder / "inputs.npz")
    assert found.outcome == "different"
    text = (folder / "README.txt").read_text()
    assert "to reproduce: ortscan verify original.onnx result.onnx --inputs inputs.npz" in text
    assert "created by: ortscan optimize" in text


def test_a_folder_that_holds_something_is_not_written_to(source: str, tmp_path: Any, capsys: Any) -> None:
    assert main(["optimize", source, str(tmp_path / "o.onnx"), "--reproducer", str(tmp_path)]) == 2
    assert "exists and is not empty; name a new" in capsys.readouterr().err
    assert main(["optimize", source, str(tmp_path / "o.onnx"), "--reproducer", str(tmp_path / "a" / "b")]) == 1
    assert not (tmp_path / "o.onnx").exists()


def test_where_nothing_differs_nothing_is_written(source: str, tmp_path: Any) -> None:
    words = ["optimize", source, str(tmp_path / "o.onnx"), "--verify", "quick", "-q"]
    assert main([*words, "--reproducer", str(tmp_path / "shown")]) == 0
    assert not (tmp_path / "shown").exists()


@pytest.mark.usefixtures("spoilt")
def test_recorded_inputs_are_never_blamed_for_a_result_that_is_wrong(source: str, tmp_path: Any, capsys: Any) -> None:
    x = np.full((3, 4), 0.5, np.float32)
    np.savez(tmp_path / "d.npz", x=x, **{"out:y": np.tanh(x) * x})
    assert main(["optimize", source, str(tmp_path / "o.onnx"), "--inputs", str(tmp_path / "d.npz"), "-q"]) == 3
    output = capsys.readouterr().err
    assert "is the first that differs" in output
    assert "pass inputs" not in output
