"""The store of optimised models: damage, races and limits."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.cache.facts import Facts
from ortscan.cache.store import Store
from tests.support.small_models import MAP, with_weights
from tests.support.text import parsed

NAMES = [letter * 64 for letter in "abcd"]
WIDTH = 300  # weights of more than one block


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return with_weights(WIDTH)


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.long
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content + b"\0",
        lambda content: bytes(len(content)),
        lambda content: flipped(content, 150_000),
        lambda content: flipped(content, len(content) - 1),
        lambda content: content[:100_000] + bytes(4096) + content[104_096:],
    ],
    ids=["cut-short", "longer", "zeros", "one-bit", "last-bit", "a-page-of-zeros"],
)
@pytest.mark.parametrize("form", ["path", "bytes"])
def test_damaged_model_is_optimised_again(
    form: str, damage: Callable[[bytes], bytes], model: onnx.ModelProto, cache: Path, tmp_path: Path
):
    onnx.save(model, tmp_path / "m.onnx")
    given = tmp_path / "m.onnx" if form == "path" else model.SerializeToString()
    ortscan.InferenceSession(given)
    (kept,) = cache.rglob("model.onnx")
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    assert ortscan.InferenceSession(given).ortscan.source == "optimized"
    assert kept.read_bytes() == whole
    session = ortscan.InferenceSession(given)
    assert session.ortscan.source == "cached"
    x, weights = np.ones((2, WIDTH), np.float32), onnx.numpy_helper.to_array(model.graph.initializer[0])
    np.testing.assert_allclose(session.run(None, {"x": x})[0], np.tanh(x @ weights), rtol=1e-4, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"bytes": 0}', b'{"bytes": 9, "python_ops": false}', b"\xff\n{}"])
def test_damaged_facts_are_ignored(text: bytes, cache: Path):
    ortscan.InferenceSession(parsed(MAP))
    (facts,) = cache.rglob("entry.json")
    facts.write_bytes(text)
    assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "optimized"
    assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "cached"


def test_facts_with_a_flipped_bit_are_ignored(cache: Path):
    ortscan.InferenceSession(parsed(MAP))
    (facts,) = cache.rglob("entry.json")
    facts.write_bytes(facts.read_bytes().replace(b'"python_ops": false', b'"python_ops": falsd'))
    assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "optimized"


@pytest.mark.long
@pytest.mark.parametrize("form", ["path", "bytes"])
def test_flipped_bit_costs_at_most_one_start(form: str, model: onnx.ModelProto, cache: Path, tmp_path: Path):
    onnx.save(model, tmp_path / "m.onnx")
    given = tmp_path / "m.onnx" if form == "path" else model.SerializeToString()

    def starts(count: int) -> list[str]:
        return [ortscan.InferenceSession(given).ortscan.source for _ in range(count)]

    assert starts(4) == ["optimized", "cached", "cached", "cached"]
    files = [file for file in cache.rglob("*") if file.is_file()]
    assert len(files) == 2
    rng = np.random.default_rng(0)
    for file in files:
        content, times = file.read_bytes(), file.stat()
        for at in (0, len(content) - 1, *rng.integers(len(content), size=2)):
            with file.open("r+b") as opened:
                opened.write(flipped(content, int(at)))
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
            assert starts(3)[1:] == ["cached", "cached"]
            assert file.read_bytes() != flipped(content, int(at))
            content = file.read_bytes()


@pytest.mark.parametrize("size", [1, 4096, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 3 * (256 << 10)])
def test_checksum_depends_on_every_byte(size: int, tmp_path: Path):
    content = np.random.default_rng(0).bytes(size)
    entry = Store(tmp_path).put(NAMES[0], Facts(), content)
    assert entry.model is not None
    assert entry.is_undamaged()
    for other in (content[:-1], content + b"\0", *(flipped(content, at) for at in {0, size // 3, size - 1})):
        entry.model.write_bytes(other)
        assert not entry.is_undamaged()


def test_least_recently_used_entry_is_dropped_first(tmp_path: Path):
    store = Store(tmp_path, 1800)
    for count, name in enumerate(NAMES[:3]):
        store.put(name, Facts(), bytes(500))
        for known in NAMES[: count + 1]:
            facts = tmp_path / "models" / known / "entry.json"
            if facts.exists():
                os.utime(facts, (ord(known[0]), ord(known[0])))
    assert store.get(NAMES[0]) is None
    assert store.get(NAMES[1]) is not None  # and is now the one used last
    store.put(NAMES[3], Facts(), bytes(500))
    assert store.get(NAMES[2]) is None
    assert store.get(NAMES[1]) is not None


def test_number_of_entries_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ortscan.cache.store._MOST_ENTRIES", 2)
    store = Store(tmp_path)
    for count, name in enumerate(NAMES):
        store.put(name, Facts())
        os.utime(tmp_path / "models" / name / "entry.json", (count, count))
    assert [name for name in NAMES if store.get(name)] == NAMES[2:]


def test_leftovers_of_crashed_processes_are_removed(tmp_path: Path):
    store = Store(tmp_path)
    stray = tmp_path / "models" / "tmp-1-0123456789ab"
    stray.mkdir(parents=True)
    store.put(NAMES[0], Facts(), b"1")
    assert stray.exists()
    os.utime(stray, (time.time() - 7200,) * 2)
    store.put(NAMES[1], Facts(), b"1")
    assert not stray.exists()


def test_entry_stays_whole_under_concurrent_writes_and_drops(tmp_path: Path):
    store, stop, wrong = Store(tmp_path), threading.Event(), []
    name = NAMES[0]

    def read() -> None:
        while not stop.is_set():
            entry = store.find(name)
            if entry is not None and entry.facts.verified not in ("1", "2"):
                wrong.append(entry)
            time.sleep(0.0005)

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        writers = [pool.submit(lambda n=n: [store.put(name, Facts(verified=str(n)), bytes(10)) for _ in range(15)]) for n in (1, 2)]
        wait(writers)
        stop.set()
        for done in (*writers, *readers):
            done.result()
    assert not wrong
    assert [folder.name for folder in (tmp_path / "models").iterdir()] == [name]
