"""The wheel and the sdist: renamed modules, the platform, the record, and the same bytes each time."""

import base64
import gzip
import hashlib
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from ortscan.native.packing import moved, repack_sdist, repack_wheel

ABOUT, RECORD, TOPS = (f"ortscan-1.0.dist-info/{name}" for name in ("WHEEL", "RECORD", "top_level.txt"))
SOURCE = "from {0}.base import b\nimport {0}.base.c as c\nD = {{'x': '{0}.d'}}\n"
CONTENTS = {
    "ortscan/__init__.py": "",
    "rewrites/base/a.py": SOURCE.format("rewrites"),
    ABOUT: "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    TOPS: "ortscan\nrewrites\n",
    RECORD: f"ortscan/__init__.py,sha256=x,0\n{RECORD},,\n",
}


def _repacked(folder: Path, platform: str, library: Path | None = None) -> Path:
    pure = folder / "by setuptools" / "ortscan-1.0-py3-none-any.whl"
    pure.parent.mkdir(parents=True)
    with zipfile.ZipFile(pure, "w") as wheel:
        for name, content in CONTENTS.items():
            wheel.writestr(name, content)
    return repack_wheel(pure, library, platform, folder)


def test_a_wheel_names_its_platform_and_records_its_files(tmp_path: Path) -> None:
    library = tmp_path / "ortscan.dll"
    library.write_bytes(b"MZ")
    wheel = _repacked(tmp_path / "wheels", "win_arm64", library)
    assert [file.name for file in wheel.parent.glob("*.whl")] == ["ortscan-1.0-py3-none-win_arm64.whl"]
    with zipfile.ZipFile(wheel) as members:
        contents = {name: members.read(name) for name in members.namelist()}
    assert contents["ortscan/native/ortscan.dll"] == b"MZ"
    assert contents[ABOUT].decode() == "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-win_arm64\n"
    rows = contents.pop(RECORD).decode().splitlines()
    digests = {
        name: base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode() for name, content in contents.items()
    }
    assert rows == [*(f"{name},sha256={digests[name]},{len(content)}" for name, content in contents.items()), f"{RECORD},,"]


def test_a_pure_wheel_says_that_it_is_pure(tmp_path: Path) -> None:
    wheel = _repacked(tmp_path, "any")
    with zipfile.ZipFile(wheel) as members:
        assert members.read(ABOUT).decode() == CONTENTS[ABOUT]


def test_rewrites_is_installed_inside_ortscan(tmp_path: Path) -> None:
    with zipfile.ZipFile(_repacked(tmp_path, "any")) as wheel:
        assert not any(name.startswith("rewrites") for name in wheel.namelist())
        assert wheel.read("ortscan/_rewrites/base/a.py").decode() == SOURCE.format("ortscan._rewrites")
        assert wheel.read(TOPS) == b"ortscan\n"
        record = wheel.read(RECORD).decode()
    assert "\nrewrites" not in record
    assert "ortscan/_rewrites/base/a.py,sha256=" in record


@pytest.mark.parametrize("line", ["import rewrites.base", "x = f'rewrites.base.{y}'", "from  rewrites.base import b"])
def test_names_that_cannot_be_rewritten_fail_the_build(line: str) -> None:
    with pytest.raises(SyntaxError):
        moved(f"{line}\n")


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    """The second time, the files have another date, other permissions and another order."""
    assert _repacked(tmp_path / "a", "any").read_bytes() == _repacked(tmp_path / "b", "any").read_bytes()
    archives = []
    for date, names in (1_000_000_000, "xy"), (1_500_000_000, "yx"):
        archive = tmp_path / f"{names}.tar.gz"
        with gzip.GzipFile(archive, "w", mtime=date) as packed, tarfile.open(fileobj=packed, mode="w") as members:
            for name in names:
                file = tmp_path / name
                file.write_text(f"content of {name}")
                os.utime(file, (date, date))
                file.chmod(0o600 if date > 1_200_000_000 else 0o644)
                members.add(file, f"ortscan-1.0/{name}")
        repack_sdist(archive)
        archives.append(archive)
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as members:
        assert members.getnames() == ["ortscan-1.0/x", "ortscan-1.0/y"]
        file = members.extractfile("ortscan-1.0/y")
        assert file is not None
        assert file.read() == b"content of y"
