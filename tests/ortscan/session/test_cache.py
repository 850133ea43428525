import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.cache import digest as digests
from ortscan.cache.digest import digest_of_bytes, digests_of_files
from ortscan.cache.key import key_of
from ortscan.cache.location import cache_folder
from ortscan.cache.notes import Notes
from ortscan.cache.store import Store
from ortscan.session.source import Source
from tests.benchmarks.session_start import model_of_20_mb
from tests.support.defects import failing
from tests.support.small_models import MAP, PLAIN, RECURRENCE, UNTOUCHED, X, expected_of_map, parsed


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


def test_what_a_key_depends_on_changes_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def key(digest: str = "d", target: str = "cpu", *more: int) -> str:
        return key_of(Notes(tmp_path), digest, {"target": target}, *more)

    first = key()
    assert key() == first
    assert len({first, key("e"), key("d", "cuda"), key("d", "cpu", 1)}) == 4
    with monkeypatch.context() as patched:
        patched.setattr("ortscan.cache.key._versions", lambda: ("another",))
        assert key() != first
    monkeypatch.setattr("ortscan.cache.key.digest_of_code", lambda _: "another")
    assert key() != first


def test_a_damaged_entry_is_made_anew(cache: Path):
    ortscan.InferenceSession(parsed(MAP))
    model = next(cache.rglob("model.onnx"))
    model.write_bytes(b"\xff" * model.stat().st_size)
    session = ortscan.InferenceSession(parsed(MAP))
    assert session.ortscan.source == "optimized"
    model.write_bytes(b"short")
    assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "optimized"
    next(cache.rglob("entry.json")).write_text("{")
    assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "optimized"
    assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "cached"


def digest_of_file(path: Path, notes: Path) -> str:
    return digests_of_files([str(path)], Notes(notes))[0]


def test_a_file_that_was_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, notes = tmp_path / "m", tmp_path / "notes"
    path.write_bytes(b"one")
    monkeypatch.setattr(digests, "TIME_STEP_NS", -1)
    first = digest_of_file(path, notes)
    assert len(list(notes.iterdir())) == 1
    assert digest_of_file(path, notes) == first == digest_of_bytes(b"one")
    path.write_bytes(b"three")
    assert digest_of_file(path, notes) == digest_of_bytes(b"three")


def test_a_file_changed_just_now_is_not_trusted_to_show_it(tmp_path: Path):
    path, notes = tmp_path / "m", tmp_path / "notes"
    path.write_bytes(b"one")
    os.utime(path, (1, 1))
    digest_of_file(path, notes)
    assert not notes.exists()


@pytest.mark.skipif(os.name == "nt", reason="only who may write to a file can have it go to disk there")
def test_a_file_is_on_disk_before_it_is_trusted_to_show_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, notes = tmp_path / "m", tmp_path / "notes"
    path.write_bytes(b"one")
    monkeypatch.setattr(digests, "TIME_STEP_NS", -1)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing(OSError))
        digest_of_file(path, notes)
    assert not notes.exists()
    monkeypatch.setattr(os, "fsync", lambda _: path.write_bytes(b"three"))
    assert digest_of_file(path, notes) == digest_of_bytes(b"three")
    assert not notes.exists()


def test_a_large_file_that_may_not_be_on_disk_yet_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, notes = tmp_path / "m", tmp_path / "notes"
    path.write_bytes(b"one")
    monkeypatch.setattr(digests, "TIME_STEP_NS", -1)
    monkeypatch.setattr(digests, "_SMALL", 2)
    digest_of_file(path, notes)
    assert not notes.exists()
    monkeypatch.setattr(digests, "_WRITTEN_BACK_NS", -1)
    digest_of_file(path, notes)
    assert notes.exists()


def test_a_file_replaced_while_it_is_optimised_is_not_kept_for_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, other = tmp_path / "m.onnx", tmp_path / "other.onnx"
    first, second = parsed(MAP), parsed(PLAIN)
    onnx.save(first, path)
    onnx.save(second, other)
    digest = Source.digest

    def replaced_after(source: Source, notes: Notes) -> str:
        found = digest(source, notes)
        other.replace(path)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Source, "digest", replaced_after)
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


def test_a_file_written_anew_with_its_old_size_and_time_is_read_again(tmp_path: Path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"a" * 64)
    os.utime(path, ns=(10**18, 10**18))
    before = digest_of_file(path, tmp_path / "notes")
    path.write_bytes(b"b" * 64)
    os.utime(path, ns=(10**18, 10**18))
    assert digest_of_file(path, tmp_path / "notes") != before


@pytest.mark.parametrize("size", [0, 1, (4 << 20) - 1, 4 << 20, (9 << 20) + 1])
def test_a_digest_depends_on_every_byte(size: int):
    content = bytearray(size)
    digest = digest_of_bytes(bytes(content))
    assert digest == digest_of_bytes(bytes(content))
    assert digest != digest_of_bytes(bytes(content) + b"\0")
    if size:
        content[-1] = 1
        assert digest != digest_of_bytes(bytes(content))


def test_the_folder_is_the_one_given_or_named_or_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert cache_folder("/a") == Path("/a").absolute()
    monkeypatch.setenv("ORTSCAN_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("ORTSCAN_CACHE_DIR")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "ortscan"


NAMES = [letter * 64 for letter in "abcd"]


def test_the_entry_not_used_for_longest_goes_when_there_is_too_much(tmp_path: Path):
    store = Store(tmp_path, 1800)
    for count, name in enumerate(NAMES[:3]):
        store.put(name, {}, bytes(500))
        for known in NAMES[: count + 1]:
            facts = tmp_path / "models" / known / "entry.json"
            if facts.exists():
                os.utime(facts, (ord(known[0]), ord(known[0])))
    assert store.get(NAMES[0]) is None
    assert store.get(NAMES[1]) is not None  # and is now the one used last
    store.put(NAMES[3], {}, bytes(500))
    assert store.get(NAMES[2]) is None
    assert store.get(NAMES[1]) is not None


def test_there_are_never_so_many_entries_or_notes_that_to_count_them_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ortscan.cache.store._MOST_ENTRIES", 2)
    monkeypatch.setattr("ortscan.cache.notes._MOST", 4)
    store = Store(tmp_path)
    for count, name in enumerate(NAMES):
        store.put(name, {})
        os.utime(tmp_path / "models" / name / "entry.json", (count, count))
    assert [name for name in NAMES if store.get(name)] == NAMES[2:]
    for number in range(20):
        store.notes.write(str(number), {"n": number})
        assert store.notes.read(str(number)) == {"n": number}
        assert len(list((tmp_path / "files").iterdir())) <= 4


def test_what_a_process_that_died_left_is_cleared_away(tmp_path: Path):
    store = Store(tmp_path)
    stray = tmp_path / "models" / "tmp-1-0123456789ab"
    stray.mkdir(parents=True)
    store.put(NAMES[0], {}, b"1")
    assert stray.exists()
    os.utime(stray, (time.time() - 7200,) * 2)
    store.put(NAMES[1], {}, b"1")
    assert not stray.exists()


def test_an_entry_is_whole_whoever_writes_and_drops_at_once(tmp_path: Path):
    store, stop, wrong = Store(tmp_path), threading.Event(), []
    name = NAMES[0]

    def read() -> None:
        while not stop.is_set():
            entry = store.find(name)
            if entry is not None and entry.facts["n"] not in (1, 2):
                wrong.append(entry)
            time.sleep(0.0005)

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        writers = [pool.submit(lambda n=n: [store.put(name, {"n": n}, bytes(10)) for _ in range(15)]) for n in (1, 2)]
        wait(writers)
        stop.set()
        for done in (*writers, *readers):
            done.result()
    assert not wrong
    assert [folder.name for folder in (tmp_path / "models").iterdir()] == [name]


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
    assert re.search(r"iB, used just now, optimised: compared 1 output on \d cases", line)
    assert [line.endswith("used just now, left as it was") for line in lines if f"{paths[1]}, " in line] == [True]
    assert sum(line.startswith("  given as bytes, ") for line in lines) == 1
    (entry,) = json.loads(said("info", str(paths[0]), "--list", "--json"))["entries"]
    assert (entry["model"], entry["verdict"]) == (str(paths[0]), "optimized")
    assert said("clear", str(paths[0]), str(tmp_path / "never seen.onnx")).startswith("removed 1 optimised model, ")
    assert len(said("info", "--list").splitlines()) == 4
    assert said("info", str(paths[0])).endswith("0 optimised models, 0 B\n")
    (kept,) = (cache / "models").glob("*/model.onnx")
    os.utime(kept.with_name("entry.json"), (time.time() - 7000,) * 2)
    assert "used 1 hour ago" in said("info", "--list")
