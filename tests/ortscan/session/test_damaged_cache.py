import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.cache.checks import BLOCK, checks_of, is_whole
from ortscan.cache.structure import has_structure, structure_of
from ortscan.session.verdict import Verdict
from tests.support.small_models import MAP, parsed, with_weights

WIDTH = 300  # weights of more than one block, and enough for bytes to be compared


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
def test_a_damaged_model_in_the_cache_is_made_anew(
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
def test_damaged_facts_of_an_entry_are_none(text: bytes, cache: Path):
    ortscan.InferenceSession(parsed(MAP))
    (facts,) = cache.rglob("entry.json")
    facts.write_bytes(text)
    assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "optimized"
    assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "cached"


def test_facts_with_one_bit_changed_are_none(cache: Path):
    ortscan.InferenceSession(parsed(MAP))
    (facts,) = cache.rglob("entry.json")
    facts.write_bytes(facts.read_bytes().replace(b'"python_ops": false', b'"python_ops": falsd'))
    assert ortscan.InferenceSession(parsed(MAP)).ortscan.source == "optimized"


def test_damaged_notes_cost_no_more_than_a_second_look(model: onnx.ModelProto, cache: Path):
    content = model.SerializeToString()
    ortscan.InferenceSession(content)
    (note,) = cache.joinpath("files").iterdir()
    for text in (b"", b"[1]", b'{"keys": 1}', json.dumps({"keys": ["../../etc", 1, "f" * 64]}).encode()):
        note.write_bytes(text)
        assert ortscan.InferenceSession(content).ortscan.source == "cached"


@pytest.mark.parametrize("size", [1, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_every_byte_counts_in_the_checks_of_a_file(size: int, tmp_path: Path):
    file = tmp_path / "f"
    content = np.random.default_rng(0).bytes(size)
    checks = checks_of(content)
    file.write_bytes(content)
    assert is_whole(file, size, checks)
    for at in {0, size // 3, size - 1}:
        file.write_bytes(flipped(content, at))
        assert not is_whole(file, size, checks)


def test_two_changes_that_cancel_out_in_a_sum_are_seen(tmp_path: Path):
    words = np.zeros(BLOCK // 8, np.uint64)
    checks = checks_of(words.tobytes())
    words[[3, 40]] = 1 << 63
    (tmp_path / "f").write_bytes(words.tobytes())
    assert not is_whole(tmp_path / "f", BLOCK, checks)
    swapped = np.arange(BLOCK // 8, dtype=np.uint64)
    checks = checks_of(swapped.tobytes())
    swapped[[0, 1]] = swapped[[1, 0]]
    (tmp_path / "f").write_bytes(swapped.tobytes())
    assert not is_whole(tmp_path / "f", BLOCK, checks)


def test_the_structure_of_a_model_is_all_of_it_but_the_values_of_large_weights(model: onnx.ModelProto, tmp_path: Path):
    content, file = model.SerializeToString(), tmp_path / "f"
    structure = structure_of(content)
    ((start, stop),) = structure[1]
    assert content[start:stop] == model.graph.initializer[0].raw_data
    for at, kept in ((0, False), (start - 1, False), (start, True), (stop - 1, True), (stop, False), (len(content) - 1, False)):
        file.write_bytes(flipped(content, at))
        assert has_structure(file, len(content), structure) is kept
    for other in (content[:-1], content + b"\0", content[:stop], b""):
        file.write_bytes(other)
        assert not has_structure(file, len(content), structure)


@pytest.mark.parametrize("content", [b"", b"\xff" * 100, b"\x3a\xff\xff\xff\xff\x0f", b"\x3b", b"\x3a\x80"])
def test_what_is_no_model_is_all_structure(content: bytes, tmp_path: Path):
    assert structure_of(content)[1] == []
    (tmp_path / "f").write_bytes(content)
    assert has_structure(tmp_path / "f", len(content), structure_of(content))
    (tmp_path / "f").write_bytes(content + b"x")
    assert not has_structure(tmp_path / "f", len(content) + 1, structure_of(content))


def test_a_check_that_fails_finds_nothing_good(monkeypatch: pytest.MonkeyPatch):
    def broken() -> bool:
        sys.exit()

    monkeypatch.setattr("ortscan.session.verdict._cores", lambda: 2)
    assert Verdict(lambda: True).is_good()
    assert not Verdict(lambda: False).is_good()
    assert not Verdict(broken).is_good()


@pytest.mark.parametrize("good", [True, False])
def test_with_one_core_a_check_waits_until_it_is_asked_for(good: bool, monkeypatch: pytest.MonkeyPatch):
    asked = []

    def check() -> bool:
        asked.append(None)
        return good

    monkeypatch.setattr("ortscan.session.verdict._cores", lambda: 1)
    verdict = Verdict(check)
    assert not asked
    assert [verdict.is_good(), verdict.is_good()] == [good, good]
    assert len(asked) == 1


@pytest.mark.parametrize("boot", ["this one", ""])
def test_a_file_found_whole_is_read_for_it_once_while_it_is_the_same_and_the_machine_runs(
    boot: str, model: onnx.ModelProto, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
):
    reads = []

    def counted(*given: Any) -> bool:
        reads.append(None)
        return is_whole(*given)

    def source_of_start() -> str:
        reads.clear()
        return ortscan.InferenceSession(tmp_path / "m.onnx").ortscan.source

    monkeypatch.setattr("ortscan.cache.store.is_whole", counted)
    monkeypatch.setattr("ortscan.cache.checked.TIME_STEP_NS", -1)
    monkeypatch.setattr("ortscan.cache.checked._boot", lambda: boot)
    onnx.save(model, tmp_path / "m.onnx")
    assert source_of_start() == "optimized"
    for expected in (1, 0 if boot else 1):
        assert source_of_start() == "cached"
        assert len(reads) == expected
    monkeypatch.setattr("ortscan.cache.checked._boot", lambda: "another" if boot else "")
    assert source_of_start() == "cached"
    assert len(reads) == 1
    file = next(cache.rglob("model.onnx"))
    times = file.stat()
    file.write_bytes(flipped(file.read_bytes(), file.stat().st_size // 2))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert source_of_start() == "optimized"


@pytest.mark.long
@pytest.mark.parametrize("form", ["path", "bytes"])
def test_a_bit_changed_in_any_file_of_the_cache_costs_one_start_at_most(
    form: str, model: onnx.ModelProto, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for module in ("digest", "checked", "code"):
        monkeypatch.setattr(f"ortscan.cache.{module}.TIME_STEP_NS", -1)
    onnx.save(model, tmp_path / "m.onnx")
    given = tmp_path / "m.onnx" if form == "path" else model.SerializeToString()

    def starts(count: int) -> list[str]:
        monkeypatch.setattr("ortscan.cache.code._found", [])
        return [ortscan.InferenceSession(given).ortscan.source for _ in range(count)]

    assert starts(4) == ["optimized", "cached", "cached", "cached"]
    files = [file for file in cache.rglob("*") if file.is_file()]
    assert len(files) == 5
    rng = np.random.default_rng(0)
    for file in files:
        content, times = file.read_bytes(), file.stat()
        for at in (0, len(content) - 1, *rng.integers(len(content), size=4)):
            with file.open("r+b") as opened:
                opened.write(flipped(content, int(at)))
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
            assert starts(3)[1:] == ["cached", "cached"]
            assert file.read_bytes() != flipped(content, int(at))
            content = file.read_bytes()
