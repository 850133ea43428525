"""When several processes open a new model at once, one of them optimises it."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import onnx
import pytest

import ortscan
from ortscan.cache import lock
from ortscan.cache.lock import entry_lock
from tests.support.small_models import MAP
from tests.support.text import parsed

ROOT = Path(__file__).parents[3]
KEY = "a" * 64
START = """
import pathlib, sys, time, ortscan, ortscan.session.optimizing as optimizing
made, ready = optimizing.optimized, pathlib.Path(sys.argv[2])
def slowly(*given):
    time.sleep(0.5)
    return made(*given)
optimizing.optimized = slowly
ready.with_name(sys.argv[3]).touch()
while not ready.exists():
    time.sleep(0.005)
print(ortscan.InferenceSession(sys.argv[1]).ortscan.source)
"""
HOLD = """
import pathlib, sys, time
from ortscan.cache.lock import entry_lock
with entry_lock(pathlib.Path(sys.argv[1]), sys.argv[2]) as waited:
    print(waited, flush=True)
    time.sleep(60)
"""
posix = pytest.mark.skipif(os.name == "nt", reason="files are not locked there")


def process(code: str, *given: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", code, *map(str, given)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.mark.long
@posix
def test_processes_that_start_together_wait_for_one(tmp_path: Path, cache: Path):
    onnx.save(parsed(MAP), tmp_path / "m.onnx")
    started = [process(START, tmp_path / "m.onnx", tmp_path / "go", f"ready-{number}") for number in range(3)]
    while len(list(tmp_path.glob("ready-*"))) < len(started):
        assert all(each.poll() is None for each in started)
        time.sleep(0.01)
    (tmp_path / "go").touch()
    assert sorted(each.communicate()[0].strip() for each in started) == ["cached", "cached", "optimized"]
    assert not list((cache / "locks").iterdir())


@posix
def test_lock_ends_with_its_process(tmp_path: Path):
    holder = process(HOLD, tmp_path, KEY)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "False\n"
    threading.Timer(0.2, holder.kill).start()
    began = time.monotonic()
    with entry_lock(tmp_path, KEY) as waited:
        assert waited
    assert time.monotonic() - began < 30
    holder.communicate()


@posix
def test_wait_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lock, "_LONGEST_WAIT", 0.05)
    with entry_lock(tmp_path, KEY) as first, entry_lock(tmp_path, KEY) as second, entry_lock(tmp_path, "b" * 64) as other:
        assert (first, second, other) == (False, True, False)
    with entry_lock(tmp_path, KEY) as again:
        assert not again


@posix
def test_threads_wait_too_and_a_forked_child_holds_no_lock(tmp_path: Path):
    order: list[str] = []

    def second() -> None:
        with entry_lock(tmp_path, KEY):
            order.append("second")

    with entry_lock(tmp_path, KEY):
        child = os.fork()
        if not child:
            time.sleep(20)
            os._exit(0)
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.1)
        order.append("first")
    thread.join(4)
    assert order == ["first", "second"]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_without_file_locks_each_process_optimises(tmp_path: Path):
    (tmp_path / "locks").write_text("")
    with entry_lock(tmp_path, KEY) as waited:
        assert not waited


def test_waiter_without_an_entry_optimises(monkeypatch: pytest.MonkeyPatch):
    """The process that held the lock could not store its entry."""
    monkeypatch.setattr(lock, "_locked", lambda *_: (None, True))
    assert [ortscan.InferenceSession(parsed(MAP)).ortscan.source for _ in range(2)] == ["optimized", "cached"]
