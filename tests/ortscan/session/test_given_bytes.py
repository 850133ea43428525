from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.cache.checks import BLOCK, checks_of
from ortscan.cache.given import is_made_from, rest_of, runs_between, sample_of
from tests.support.small_models import with_weights

WIDTH = 300


def no_digest(*_: object) -> str:
    raise AssertionError("a digest was made")


def test_bytes_that_were_given_before_are_known_without_a_digest(monkeypatch: pytest.MonkeyPatch):
    content = with_weights(WIDTH).SerializeToString()
    ortscan.InferenceSession(content)
    monkeypatch.setattr("ortscan.session.source.digest_of_bytes", no_digest)
    assert ortscan.InferenceSession(content).ortscan.source == "cached"


def test_bytes_of_a_model_that_was_given_by_its_path_are_known_from_the_second_time_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    onnx.save(with_weights(WIDTH), tmp_path / "m.onnx")
    assert ortscan.InferenceSession(tmp_path / "m.onnx").ortscan.source == "optimized"
    content = (tmp_path / "m.onnx").read_bytes()
    assert ortscan.InferenceSession(content).ortscan.source == "cached"
    monkeypatch.setattr("ortscan.session.source.digest_of_bytes", no_digest)
    assert ortscan.InferenceSession(content).ortscan.source == "cached"


def test_what_is_damaged_of_the_given_bytes_is_kept_anew(cache: Path, monkeypatch: pytest.MonkeyPatch):
    content = with_weights(WIDTH).SerializeToString()
    ortscan.InferenceSession(content)
    (rest,) = cache.rglob("given.bin")
    rest.write_bytes(bytes(rest.stat().st_size))
    assert ortscan.InferenceSession(content).ortscan.source == "cached"
    monkeypatch.setattr("ortscan.session.source.digest_of_bytes", no_digest)
    assert ortscan.InferenceSession(content).ortscan.source == "cached"


def test_threads_that_start_on_the_same_bytes_at_once_optimise_them_once():
    content = with_weights(WIDTH).SerializeToString()
    with ThreadPoolExecutor(4) as pool:
        sources = list(pool.map(lambda _: ortscan.InferenceSession(content).ortscan.source, range(12)))
    assert sorted(sources) == ["cached"] * 11 + ["optimized"]


def test_bytes_that_differ_where_no_sample_is_taken_are_another_model():
    model = with_weights(WIDTH)
    content = bytearray(model.SerializeToString())
    x = np.full((1, WIDTH), 0.01, np.float32)
    one = bytes(content)
    at = content.index(onnx.numpy_helper.to_array(model.graph.initializer[0])[200].tobytes())
    at += next(step for step in range(0, 400, 4) if sample_of(one) == sample_of(changed(one, at + step)))
    other = changed(one, at)
    for _ in range(2):
        first, second = ortscan.InferenceSession(one), ortscan.InferenceSession(other)
        assert not np.array_equal(first.run(None, {"x": x})[0], second.run(None, {"x": x})[0])
    assert (first.ortscan.source, second.ortscan.source) == ("cached", "cached")


def changed(content: bytes, at: int) -> bytes:
    return content[:at] + np.float32(9).tobytes() + content[at + 4 :]


def test_external_data_of_known_bytes_is_still_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    model = with_weights(WIDTH)
    model.doc_string = "long " * 100_000
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    content = (tmp_path / "m.onnx").read_bytes()
    monkeypatch.chdir(tmp_path)
    assert ortscan.InferenceSession(content).ortscan.source == "optimized"
    assert ortscan.InferenceSession(content).ortscan.source == "cached"
    (tmp_path / "w.bin").write_bytes(bytes(WIDTH * WIDTH * 4))
    session = ortscan.InferenceSession(content)
    assert session.ortscan.source == "optimized"
    assert not session.run(None, {"x": np.ones((1, WIDTH), np.float32)})[0].any()


def random_bytes(size: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).bytes(size)


PART, OTHER = random_bytes(700_000), random_bytes(500_000, 1)


@pytest.mark.parametrize(
    ("content", "given"),
    [
        (b"new head" + PART + OTHER, b"head" + PART + b"between" + OTHER + b"tail"),
        (OTHER + b"x" + PART, PART + b"y" + OTHER),
        (PART, PART + PART),
        (random_bytes(300_000, 2), PART),
        (b"", PART),
        (bytes(1_000_000) + PART, bytes(600_000) + PART),
    ],
    ids=["moved", "other-order", "twice", "nothing-the-same", "no-model", "zeros"],
)
def test_only_the_very_bytes_and_a_whole_model_are_what_an_entry_was_made_from(content: bytes, given: bytes, tmp_path: Path):
    runs, rest, model = runs_between(content, given), tmp_path / "rest", tmp_path / "model"
    rest.write_bytes(rest_of(given, runs))
    model.write_bytes(content)
    checks = checks_of(content)

    def known(bytes_given: bytes) -> bool:
        return is_made_from(bytes_given, len(given), runs, rest, model if content else None, checks)

    assert known(given)
    for at in (0, 5, BLOCK, len(given) // 2, len(given) - 1):
        assert not known(given[:at] + bytes([given[at] ^ 1]) + given[at + 1 :])
    assert not known(given[:-1])
    assert not known(given + b"x")
    for file in (rest, model) if content else (rest,):
        whole = file.read_bytes()
        for at in (0, len(whole) // 2, len(whole) - 1) if whole else ():
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            assert not known(given)
            file.write_bytes(whole[:at])
            assert not known(given)
        file.write_bytes(whole + b"x")
        assert not known(given)
        file.write_bytes(whole)


def test_weights_that_both_models_hold_are_kept_once():
    given = b"head" + PART + b"between" + OTHER
    content = OTHER + b"other words" + PART
    runs = runs_between(content, given)
    assert len(rest_of(given, runs)) < 200_000
    for at, start, length in runs:
        assert content[at : at + length] == given[start : start + length]
