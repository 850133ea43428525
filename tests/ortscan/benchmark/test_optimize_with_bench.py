"""``optimize --bench``: its messages and what it refuses to write, with invented timings."""

import json
import re

import onnx
import pytest

from ortscan.__main__ import main
from ortscan.benchmark import measure
from ortscan.benchmark.result import Bench, BenchedModel, SizeResult, Timing
from tests.support.small_models import MAP, PLAIN
from tests.support.text import parsed


def bench_of(gain):
    timings = [Timing(gain / each, 1, [gain / each] * 9, [each] * 9) for each in (1.0, gain)]
    models = [BenchedModel(name, 1, 1.0, [1.0]) for name in ("the original", "the result")]
    return Bench(models, [SizeResult({"T": 64}, timings)], 1, 9, "1")


@pytest.fixture
def source(tmp_path):
    onnx.save(parsed(MAP), tmp_path / "in.onnx")
    return str(tmp_path / "in.onnx")


@pytest.fixture
def gaining(monkeypatch):
    """Report this gain for a result without a Scan."""

    def set_gain(gain):
        def made_up(models, **options):
            nodes = models["the result"].proto.graph.node
            return bench_of(1.0 if any(node.op_type == "Scan" for node in nodes) else gain)

        monkeypatch.setattr(measure, "measure", made_up)

    return set_gain


def test_first_line_has_the_gain(source, tmp_path, gaining, capsys):
    gaining(3.1)
    assert main(["optimize", source, str(tmp_path / "out.onnx"), "--bench"]) == 0
    (line, *_) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"3.1 x faster \(1.00 s instead of 3.10 s, T=64\) · 1 of 1 loop gone · equal on \d+ cases", line)
    assert (tmp_path / "out.onnx").exists()


def test_slower_result_is_not_written_and_the_patch_is_named(source, tmp_path, gaining, capsys):
    gaining(0.5)
    assert main(["optimize", source, str(tmp_path / "out.onnx"), "--bench"]) == 5
    assert not (tmp_path / "out.onnx").exists()
    printed = capsys.readouterr()
    assert printed.out.startswith("2.0 x slower (1.00 s instead of 500 ms, T=64) · ")
    assert "nothing written" in printed.out
    (line,) = printed.err.splitlines()
    assert "so nothing was written; patch " in line
    assert "makes it slower (" in line


def test_slower_result_is_written_with_force(source, tmp_path, gaining):
    gaining(0.5)
    assert main(["optimize", source, str(tmp_path / "out.onnx"), "--bench", "--force", "-q"]) == 0
    assert (tmp_path / "out.onnx").exists()


def test_unchanged_model_is_not_timed(tmp_path, capsys):
    onnx.save(parsed(PLAIN), tmp_path / "in.onnx")
    assert main(["optimize", str(tmp_path / "in.onnx"), "--dry-run", "--bench", "--json"]) == 0
    assert "bench" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("words", [["--force"], ["--bench", "--target", "tensorrt"]])
def test_contradictory_options_are_refused(source, words, capsys):
    assert main(["optimize", source, "--dry-run", *words]) == 2
    assert capsys.readouterr().err.startswith("ortscan: error: --")
