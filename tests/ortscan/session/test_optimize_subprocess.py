"""Large models are optimised in a subprocess, which then ends. In these tests all models count as large."""

import logging
import multiprocessing.spawn
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import ortscan
from ortscan.base import child_process
from ortscan.errors import OrtscanWarning
from ortscan.session import optimize_subprocess, preparing
from ortscan.session.source import SessionSource
from tests.campaigns.benchmarks.session_memory import peak
from tests.campaigns.benchmarks.session_start import model_of_20_mb
from tests.support.small_models import MAP
from tests.support.text import parsed

ROOT = Path(__file__).parents[3]
SPOILT = """
import time, os, logging
import ortscan.session.optimizing as optimizing, ortscan.session.optimize_subprocess as serving
made = optimizing.optimized
def spoilt(*given):
    {}
    return made(*given)
optimizing.optimized = spoilt
serving.serve()
"""
HELLO = "import os, time; print(os.getpid(), file=open('at work', 'w')); os.write(1, b'ortscan\\n')"
linux = pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Treat all models as large. Return a new folder for temporary files. The working folder is another new folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preparing, "_LARGE", 0)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list["subprocess.Popen[bytes]"]:
    """Return the list of the processes that were started."""
    results: list[subprocess.Popen[bytes]] = []
    start = child_process.start

    def noting(*given: Any, **options: Any) -> "subprocess.Popen[bytes]":
        results.append(start(*given, **options))
        return results[-1]

    monkeypatch.setattr(child_process, "start", noting)
    return results


def spoil(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr(optimize_subprocess, "_CHILD", SPOILT.format(what))


def in_both_ways(monkeypatch: pytest.MonkeyPatch, model: Any, **options: str) -> list[Any]:
    def session(large: int) -> Any:
        settings = ort.SessionOptions()
        for name, value in {"cache": "0", **options}.items():
            settings.add_session_config_entry(f"ortscan.{name}", value)
        monkeypatch.setattr(preparing, "_LARGE", large)
        return ortscan.InferenceSession(model, settings)

    return [session(0), session(1 << 40)]


@pytest.mark.long
@linux
def test_the_first_start_takes_little_more_memory_than_onnxruntime_itself(tmp_path: Path) -> None:
    onnx.save(model_of_20_mb(layers=8), tmp_path / "m.onnx")
    for how in ("path", "bytes"):
        (plain, _), (own, has_onnx) = (peak(each, tmp_path / "m.onnx", how) for each in ("onnxruntime", "ortscan"))
        assert own <= 1.5 * plain
        assert not has_onnx


def test_the_model_is_kept_in_the_cache(started: list[Any], temporary: Path) -> None:
    model = parsed(MAP).SerializeToString()
    results = [ortscan.InferenceSession(model).ortscan for _ in range(2)]
    assert [each.source for each in results] == ["optimized", "cached"]
    assert results[0].report.loops == results[1].report.loops
    assert results[0].verified == results[1].verified != ""
    assert results[0].entry == results[1].entry is not None
    assert len(started) == 1
    assert started[0].poll() is not None


@pytest.mark.parametrize("options", [{"skip": "loop-fission"}, {"target": "onnx", "fix_shapes": "x:3,4"}])
def test_options_reach_the_process(options: dict[str, str], monkeypatch: pytest.MonkeyPatch, temporary: Path) -> None:
    one, other = in_both_ways(monkeypatch, parsed(MAP).SerializeToString(), **options)
    assert one.ortscan.entry is None
    assert not list(temporary.iterdir())
    assert one.ortscan.report.to_dict() == other.ortscan.report.to_dict()
    assert (one.ortscan.source, one.ortscan.verified) == (other.ortscan.source, other.ortscan.verified)
    feed = {
        node.name: np.ones([size if isinstance(size, int) else 3 for size in node.shape], np.float32) for node in one.get_inputs()
    }
    np.testing.assert_array_equal(one.run(None, feed)[0], other.run(None, feed)[0])


def test_a_model_too_large_for_bytes_comes_as_a_folder(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, started: list[Any]
) -> None:
    spoil(monkeypatch, "optimizing.PROTOBUF_LIMIT = 0")
    assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "optimized"
    assert len(started) == 1
    assert not list(temporary.iterdir())


def test_external_data_stays_where_it_is_and_counts(tmp_path: Path, started: list[Any]) -> None:
    model, path = model_of_20_mb(layers=1, width=64), tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights", size_threshold=0)
    assert SessionSource(str(path), None).size == os.path.getsize(path) + os.path.getsize(tmp_path / "weights")
    session = ortscan.InferenceSession(path)
    assert (session.ortscan.source, len(started)) == ("optimized", 1)
    x = np.ones((3, 64), np.float32)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], ort.InferenceSession(path).run(None, {"x": x})[0], rtol=1e-5)


def test_a_model_without_loops_starts_no_process(started: list[Any]) -> None:
    model = parsed('<ir_version: 8, opset_import: ["": 18]> g (float[2] x) => (float[2] y) { y = Tanh (x) }')
    assert ortscan.InferenceSession(model).ortscan.source == "unchanged"
    assert not started


def test_what_it_raises_warns_of_and_logs_arrives(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    said = "from ortscan.base.messages import warn; warn('be careful'); logging.getLogger('ortscan.rewriting').info('at it')"
    spoil(monkeypatch, said)
    with caplog.at_level(logging.INFO, "ortscan"), pytest.warns(OrtscanWarning, match="be careful"):
        ortscan.InferenceSession(parsed(MAP))
    assert "at it" in caplog.messages
    spoil(monkeypatch, "from ortscan.errors import MalformedLoop; raise MalformedLoop('a loop is odd')")
    with pytest.raises(ortscan.OrtscanError, match="a loop is odd") as error, ortscan.patched(strict=True, cache=False) as sessions:
        sessions(parsed(MAP))
    assert type(error.value).__name__ == "MalformedLoop"


def test_where_the_process_dies_the_original_runs(monkeypatch: pytest.MonkeyPatch, started: list[Any], temporary: Path) -> None:
    monkeypatch.setattr(optimize_subprocess, "_CHILD", f"{HELLO}; os.kill(os.getpid(), 9)")
    with pytest.warns(OrtscanWarning, match=r"the process that optimises it ended early \(SIGKILL\)"):
        assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "original"
    assert not list(temporary.iterdir())


def test_a_process_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimize_subprocess, "_CHILD", f"{HELLO}; time.sleep(60)")
    monkeypatch.setattr(optimize_subprocess, "_LONGEST", 0.5)
    with pytest.warns(OrtscanWarning, match=r"ended early \(SIGKILL\)"):
        assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "original"


@pytest.mark.parametrize("executable", ["/nonexistent/python", "/bin/true", "/bin/cat"])
def test_where_no_process_can_be_started_the_work_is_done_here(executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimize_subprocess, "_LONGEST_START", 0.5)
    before = multiprocessing.spawn.get_executable()
    multiprocessing.spawn.set_executable(executable)
    try:
        assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "optimized"
    finally:
        multiprocessing.spawn.set_executable(before)


def test_a_program_with_python_inside_is_not_started_again(monkeypatch: pytest.MonkeyPatch, started: list[Any]) -> None:
    monkeypatch.setattr(multiprocessing.spawn, "_python_exe", os.fsencode("/usr/bin/uwsgi"))
    monkeypatch.setattr(sys, "executable", "/usr/bin/uwsgi")
    assert not child_process.can_start()
    assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "optimized"
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not child_process.can_start()
    assert not started


def test_an_interrupt_arrives_and_ends_the_process(monkeypatch: pytest.MonkeyPatch, started: list[Any], temporary: Path) -> None:
    class Alarm(Exception):
        pass

    def ring(*_: object) -> None:
        raise Alarm

    monkeypatch.setattr(optimize_subprocess, "_CHILD", f"{HELLO}; time.sleep(60)")
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.8)
    try:
        with pytest.raises(Alarm):
            ortscan.InferenceSession(parsed(MAP))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert started[0].poll() is not None
    assert not list(temporary.iterdir())


@linux
def test_the_process_ends_with_the_one_it_works_for(tmp_path: Path) -> None:
    code = f"""
import ortscan, onnx
from ortscan.session import optimize_subprocess, preparing
preparing._LARGE, optimize_subprocess._CHILD = 0, {f"from ortscan.base import child_process; child_process.end_with_parent(); {HELLO}; time.sleep(60)"!r}
ortscan.InferenceSession("m.onnx")
"""
    onnx.save(parsed(MAP), tmp_path / "m.onnx")
    holder = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    note = tmp_path / "at work"
    while not (note.exists() and note.read_text().strip()):
        assert holder.poll() is None
        time.sleep(0.02)
    holder.kill()
    holder.wait()
    worker = Path("/proc", note.read_text().strip(), "cmdline")
    until = time.monotonic() + 10
    while worker.exists() and worker.read_bytes() and time.monotonic() < until:
        time.sleep(0.02)
    assert not (worker.exists() and worker.read_bytes())
    assert ortscan.InferenceSession(str(tmp_path / "m.onnx")).ortscan.source == "optimized"
