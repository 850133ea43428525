"""Weights in files of their own that are written anew, with size and times as they were: no start computes with the old ones."""

import mmap
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import ortscan
from ortscan.cache.digests import digest_of_bytes
from ortscan.session.opening import FOLDER_ENTRY
from tests.support.text import parsed


def folded() -> onnx.ModelProto:
    """A model that computes with its weights as they are and with others made of them, which optimising does beforehand."""
    text = """g (float[T, 64] x) => (float[T, 64] y) {
        y = Scan <num_scan_inputs = 1, body = b (float[64] xi) => (float[64] yi) {
            a = MatMul (xi, W)  u = Transpose (W)  v = Add (u, u)  c = MatMul (xi, v)  yi = Sub (a, c) }> (x) }"""
    return parsed(text, weights={"W": np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)})


def in_place(file: Path, content: bytes) -> None:
    with file.open("r+b") as opened:
        opened.write(content)


def renamed_over(file: Path, content: bytes) -> None:
    file.with_name("new").write_bytes(content)
    file.with_name("new").replace(file)


def by_another_name(file: Path, content: bytes) -> None:
    other = file.with_name("other")
    os.link(file, other)
    in_place(other, content)
    other.unlink()


def in_a_memory_map(file: Path, content: bytes) -> None:
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        mapped[:] = content


def as_another_target(file: Path, content: bytes) -> None:
    other = file.with_name(f"target-{digest_of_bytes(content)[:8]}")
    other.write_bytes(content)
    file.unlink()
    file.symlink_to(other.name)


def one_byte(file: Path, content: bytes) -> None:
    (at,) = np.flatnonzero(np.frombuffer(file.read_bytes(), np.uint8) != np.frombuffer(content, np.uint8))[:1]
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(content[at : at + 1])


def given_as(form: str, path: Path) -> tuple[object, ort.SessionOptions | None]:
    options = ort.SessionOptions()
    if form == "bytes":
        options.add_session_config_entry(FOLDER_ENTRY, str(path.parent))
    return path.read_bytes() if form == "bytes" else path, None if form == "path" else options


@pytest.mark.long
@pytest.mark.parametrize("form", ["path", "path and options", "bytes"])
@pytest.mark.parametrize("write", [in_place, renamed_over, by_another_name, in_a_memory_map, as_another_target, one_byte])
def test_the_weights_that_are_there_now_count(write: Callable[[Path, bytes], None], form: str, tmp_path: Path):
    path, data = tmp_path / "m.onnx", tmp_path / "w.bin"
    onnx.save(folded(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    weights = np.frombuffer(data.read_bytes(), np.float32).reshape(64, 64).copy()
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    given, options = given_as(form, path)

    def starts(expected: np.ndarray, *sources: str) -> None:
        found = []
        for _ in sources:
            session = ortscan.InferenceSession(given, options)
            found.append(session.ortscan.source)
            np.testing.assert_allclose(session.run(None, {"x": x})[0], x @ (expected - 2 * expected.T), rtol=1e-3, atol=1e-3)
        assert found == list(sources)

    starts(weights, "optimized", "cached", "cached")
    times = data.stat()
    if write is one_byte:
        weights.view(np.uint8)[5, 6] ^= 0x40
    else:
        weights *= -2
    write(data, weights.tobytes())
    os.utime(data, ns=(times.st_atime_ns, times.st_mtime_ns))
    starts(weights, "optimized", "cached", "cached")
