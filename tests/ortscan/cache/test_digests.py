"""Digests of models and of the code, and the names of cache entries."""

import os
from pathlib import Path

import pytest

from ortscan.cache.digests import digest_of_bytes, digest_of_code, digest_of_file, entry_key


def test_everything_in_a_key_changes_it(monkeypatch: pytest.MonkeyPatch):
    def key(digest: str = "d", target: str = "cpu", *data: str) -> str:
        return entry_key([digest, *data], {"target": target})

    first = key()
    assert key() == first
    assert len({first, key("e"), key("d", "cuda"), key("d", "cpu", "e")}) == 4
    with monkeypatch.context() as patched:
        patched.setattr("ortscan.cache.digests._versions", lambda: ("another",))
        assert key() != first
    monkeypatch.setattr("ortscan.cache.digests.digest_of_code", lambda _: "another")
    assert key() != first


@pytest.mark.parametrize("size", [0, 1, (4 << 20) - 1, 4 << 20, (9 << 20) + 1])
def test_a_digest_depends_on_every_byte(size: int, tmp_path: Path):
    content = bytearray(size)
    digest = digest_of_bytes(bytes(content))
    (tmp_path / "f").write_bytes(content)
    assert digest == digest_of_bytes(bytes(content)) == digest_of_file(str(tmp_path / "f"))
    assert digest != digest_of_bytes(bytes(content) + b"\0")
    if size:
        content[-1] = 1
        assert digest != digest_of_bytes(bytes(content))


def test_changed_code_has_its_own_entries(tmp_path: Path):
    """Two builds with equal version numbers, file sizes and times have different digests."""
    first, second = tmp_path / "ortscan" / "a.py", tmp_path / "rewrites" / "inner" / "b.py"
    for file in (first, second):
        file.parent.mkdir(parents=True)
        file.write_text("x = 1")
        os.utime(file, ns=(10**18, 10**18))

    def digest() -> str:
        digest_of_code.cache_clear()
        return digest_of_code(tmp_path)

    digests = [digest()]

    def changed(file: Path, text: str) -> None:
        file.write_text(text)
        os.utime(file, ns=(10**18, 10**18))
        digests.append(digest())

    changed(second, "x = 2")
    changed(first, "x = 2")
    second.rename(second.with_name("c.py"))
    changed(first, "x = 2")
    changed(first.with_name("__init__.py"), "")
    assert len(set(digests)) == len(digests) == 5
    (first.parent / "__pycache__").mkdir()
    changed(first.parent / "__pycache__" / "a.pyc", "anything")
    assert digests[-1] == digests[-2]


def test_code_that_cannot_be_read_is_an_error(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        digest_of_code(tmp_path / "nowhere")
