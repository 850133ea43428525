"""Sessions reuse models that were optimised at an earlier start; and the command line of the cache."""

import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.cache.store import Store
from ortscan.session.source import SessionSource
from tests.campaigns.benchmarks.session_start import model_of_20_mb
from tests.support.small_models import MAP, PLAIN, RECURRENCE, UNTOUCHED, X, expected_of_map, with_weights
from tests.support.text import parsed


def test_the_second_start_takes_the_model_from_the_cache_report_and_all():
    first = ortscan.InferenceSession(parsed(MAP))
    second = ortscan.InferenceSession(parsed(MAP))
    assert (first.ortscan.source, second.ortscan.source) == ("optimized", "cached")
    assert first.ortscan.report == second.ortscan.report
    np.testing.assert_allclose(second.run(None, {"x": X})[0], expected_of_map(), rtol=1e-6)


def test_a_start_from_the_cache_imports_neither_onnx_nor_the_compiler(tmp_path: Path):
    onnx.save(parsed(MAP), tmp_path / "m.onnx")
    ortscan.InferenceSession(tmp_path / "m.onnx")
    code = (
        "import sys, ortscan; s = ortscan.InferenceSession(sys.argv[1])\n"
        "print(s.ortscan.source, sorted({'onnx', 'onnx_ir', 'rich', 'onnxruntime_extensions'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.onnx")], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "cached []"


def test_that_there_is_nothing_to_do_is_kept_too(cache: Path):
    ortscan.InferenceSession(parsed(UNTOUCHED))
    session = ortscan.InferenceSession(parsed(UNTOUCHED))
    assert session.ortscan.source == "unchanged"
    assert session.ortscan.entry is not None
    assert Store(cache).usage().models == 0


def test_another_option_or_content_is_another_model():
    def source(text: str, **entries: str) -> str:
        made = ort.SessionOptions()
        for name, value in entries.items():
            made.add_session_config_entry(f"ortscan.{name}", value)
        return str(ortscan.InferenceSession(parsed(text), made).ortscan.source)

    assert source(MAP) == "optimized"
    assert source(MAP, target="onnx") == "optimized"
    assert source(MAP.replace("Tanh", "Sin")) == "optimized"
    assert source(MAP, target="onnx") == "cached"
    assert source(MAP, cache="0") == "optimized"


def test_a_file_replaced_while_it_is_optimised_is_not_kept_for_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, other = tmp_path / "m.onnx", tmp_path / "other.onnx"
    first, second = parsed(MAP), parsed(PLAIN)
    onnx.save(first, path)
    onnx.save(second, other)
    fingerprint = SessionSource.fingerprint

    def replaced_after(source: SessionSource) -> list[str]:
        digests = fingerprint(source)
        if other.exists():
            other.replace(path)
        return digests

    with monkeypatch.context() as patched:
        patched.setattr(SessionSource, "fingerprint", replaced_after)
        ortscan.InferenceSession(path)
    again = ortscan.InferenceSession(first.SerializeToString())
    assert again.ortscan.source == "optimized"
    np.testing.assert_allclose(again.run(None, {"x": X})[0], expected_of_map(), rtol=1e-6)


def test_a_file_replaced_right_before_it_is_read_is_not_kept_for_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, other = tmp_path / "m.onnx", tmp_path / "other.onnx"
    onnx.save(parsed(MAP), path)
    onnx.save(parsed(PLAIN), other)
    read = Path.read_bytes

    def replaced_before(file: Path) -> bytes:
        if file == path and other.exists():
            other.replace(path)
        return read(file)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", replaced_before)
        assert ortscan.InferenceSession(path).ortscan.source == "unchanged"
    again = ortscan.InferenceSession(parsed(MAP))
    assert again.ortscan.source == "optimized"
    np.testing.assert_allclose(again.run(None, {"x": X})[0], expected_of_map(), rtol=1e-6)


@pytest.mark.long
def test_several_processes_start_on_one_model_at_once(tmp_path: Path, cache: Path):
    onnx.save(parsed(MAP), tmp_path / "m.onnx")
    code = "import sys, ortscan; print(ortscan.InferenceSession(sys.argv[1]).ortscan.source)"
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path / "m.onnx")]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert {process.communicate()[0].strip() for process in started} <= {"optimized", "cached"}
    assert all(process.returncode == 0 for process in started)
    assert Store(cache).usage().models == 1


def test_the_command_line_shows_and_clears_the_cache(cache: Path, capsys: pytest.CaptureFixture[str]):
    ortscan.InferenceSession(parsed(MAP))
    assert main(["cache", "info"]) == 0
    assert f"{cache}: 1 optimised model, " in capsys.readouterr().out
    assert main(["cache", "info", "--json", "--dir", str(cache)]) == 0
    assert json.loads(capsys.readouterr().out)["models"] == 1
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("removed 1 optimised model, ")
    assert main(["cache", "info"]) == 0
    assert ": 0 optimised models, 0 " in capsys.readouterr().out


def test_the_command_line_lists_what_is_in_the_cache_and_clears_one_model(
    tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
):
    def said(*args: str) -> str:
        assert main(["cache", *args]) == 0
        return capsys.readouterr().out

    paths = [tmp_path / "map.onnx", tmp_path / "untouched.onnx", tmp_path / "apart.onnx"]
    onnx.save(parsed(MAP), paths[0])
    onnx.save(parsed(UNTOUCHED), paths[1])
    onnx.save(model_of_20_mb(layers=1, width=8), paths[2], save_as_external_data=True, location="weights", size_threshold=0)
    for path in paths:
        ortscan.InferenceSession(path)
    ortscan.InferenceSession(parsed(RECURRENCE))
    lines = said("info", "--list").splitlines()
    assert len(lines) == 5
    (line,) = (line for line in lines if f"{paths[0]}, " in line)
    assert re.search(r"iB, used just now, optimised: equal on \d cases", line)
    assert [line.endswith("used just now, nothing to optimise") for line in lines if f"{paths[1]}, " in line] == [True]
    assert sum(line.startswith("  passed as bytes, ") for line in lines) == 1
    (entry,) = json.loads(said("info", str(paths[0]), "--list", "--json"))["entries"]
    assert (entry["model"], entry["verdict"]) == (str(paths[0]), "optimized")
    assert said("clear", str(paths[0]), str(tmp_path / "never seen.onnx")).startswith("removed 1 optimised model, ")
    assert len(said("info", "--list").splitlines()) == 4
    assert said("info", str(paths[0])).endswith("0 optimised models, 0 B\n")
    (kept,) = (cache / "models").glob("*/model.onnx")
    os.utime(kept.with_name("entry.json"), (time.time() - 7000,) * 2)
    assert "used 1 hour ago" in said("info", "--list")


def test_bytes_of_a_model_that_was_given_by_its_path_are_known(tmp_path: Path):
    onnx.save(with_weights(300), tmp_path / "m.onnx")
    assert ortscan.InferenceSession(tmp_path / "m.onnx").ortscan.source == "optimized"
    assert ortscan.InferenceSession((tmp_path / "m.onnx").read_bytes()).ortscan.source == "cached"


def test_threads_that_start_on_the_same_bytes_at_once_optimise_them_once():
    content = with_weights(300).SerializeToString()
    with ThreadPoolExecutor(4) as pool:
        sources = list(pool.map(lambda _: ortscan.InferenceSession(content).ortscan.source, range(12)))
    assert sorted(sources) == ["cached"] * 11 + ["optimized"]


def test_bytes_that_differ_in_one_number_are_another_model():
    model = with_weights(300)
    content = model.SerializeToString()
    at = content.index(onnx.numpy_helper.to_array(model.graph.initializer[0])[200].tobytes())
    other = content[:at] + np.float32(9).tobytes() + content[at + 4 :]
    x = np.full((1, 300), 0.01, np.float32)
    for _ in range(2):
        first, second = ortscan.InferenceSession(content), ortscan.InferenceSession(other)
        assert not np.array_equal(first.run(None, {"x": x})[0], second.run(None, {"x": x})[0])
    assert (first.ortscan.source, second.ortscan.source) == ("cached", "cached")


def test_external_data_of_known_bytes_is_still_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    onnx.save(with_weights(300), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    content = (tmp_path / "m.onnx").read_bytes()
    monkeypatch.chdir(tmp_path)
    assert ortscan.InferenceSession(content).ortscan.source == "optimized"
    assert ortscan.InferenceSession(content).ortscan.source == "cached"
    (tmp_path / "w.bin").write_bytes(bytes(300 * 300 * 4))
    session = ortscan.InferenceSession(content)
    assert session.ortscan.source == "optimized"
    assert not session.run(None, {"x": np.ones((1, 300), np.float32)})[0].any()
