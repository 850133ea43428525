"""Faults of a wheel: its tag, its record, its files and its library."""

import sys
import zipfile
from pathlib import Path

import pytest

from ortscan.native.packing import repack_wheel
from tests.campaigns.release.wheel_checks import difference, platform_of, wheel_faults
from tests.support.native_plans import library

ABOUT = "ortscan-1.0.dist-info/WHEEL"
CONTENTS = {
    "ortscan/__init__.py": "A = 1\n",
    ABOUT: "Root-Is-Purelib: true\nTag: py3-none-any\n",
    "ortscan-1.0.dist-info/RECORD": "",
}


def wheel(folder: Path, platform: str = "any", native: Path | None = None, **files: str) -> Path:
    pure = folder / "by setuptools" / "ortscan-1.0-py3-none-any.whl"
    pure.parent.mkdir(parents=True)
    with zipfile.ZipFile(pure, "w") as members:
        for name, content in {**CONTENTS, **files}.items():
            members.writestr(name, content)
    return repack_wheel(pure, native, platform, folder)


def changed(path: Path, name: str, content: str) -> Path:
    """Replace a file in a wheel and leave its record as it is."""
    with zipfile.ZipFile(path) as members:
        contents = {each: members.read(each) for each in members.namelist()}
    with zipfile.ZipFile(path, "w") as members:
        for each, old in {**contents, name: content.encode()}.items():
            members.writestr(each, old)
    return path


@pytest.fixture
def pure(tmp_path: Path) -> Path:
    return wheel(tmp_path / "pure")


def test_a_pure_wheel_has_no_faults(pure: Path) -> None:
    assert platform_of(pure) == "any"
    assert list(wheel_faults(pure, pure)) == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads an ELF file")
def test_the_library_must_suit_the_platform(pure: Path, tmp_path: Path) -> None:
    made = wheel(tmp_path / "windows", "win_amd64", library())
    name = f"ortscan/native/{library().name}"
    assert list(wheel_faults(made, pure)) == [f"{made.name}: {name} is of the format ELF instead of PE."]


def test_a_file_that_is_no_library_is_a_fault(pure: Path, tmp_path: Path) -> None:
    text = tmp_path / "ortscan.dll"
    text.write_text("text")
    made = wheel(tmp_path / "windows", "win_amd64", text)
    assert list(wheel_faults(made, pure)) == [f"{made.name}: ortscan/native/ortscan.dll is no ELF, Mach-O or PE file."]


def test_the_record_must_be_right(pure: Path, tmp_path: Path) -> None:
    made = changed(wheel(tmp_path / "a"), "ortscan/__init__.py", "A = 2\n")
    assert list(wheel_faults(made, made)) == [f"{made.name}: RECORD has another digest or size for ortscan/__init__.py."]
    made = changed(wheel(tmp_path / "b"), "ortscan/new.py", "")
    assert list(wheel_faults(made, made)) == [f"{made.name}: RECORD lacks ortscan/new.py."]


def test_the_tag_and_the_number_of_libraries_must_be_right(pure: Path) -> None:
    other = pure.rename(pure.with_name("ortscan-1.0-py3-none-win_arm64.whl"))
    assert list(wheel_faults(other, other)) == [
        f'{other.name}: its file WHEEL lacks the line "Tag: py3-none-win_arm64".',
        f'{other.name}: its file WHEEL lacks the line "Root-Is-Purelib: false".',
        f"{other.name}: contains 0 native libraries.",
    ]


def test_all_wheels_have_the_same_python_files(pure: Path, tmp_path: Path) -> None:
    made = wheel(tmp_path / "other", **{"ortscan/__init__.py": "A = 2\n"})
    assert list(wheel_faults(made, pure)) == [f"{made.name}: other files than in {pure.name}: ortscan/__init__.py."]


def test_two_builds_must_give_the_same_bytes(pure: Path, tmp_path: Path) -> None:
    assert difference(pure, wheel(tmp_path / "second")) is None
    other = wheel(tmp_path / "third", **{"ortscan/__init__.py": "A = 2\n"})
    sentence = difference(pure, other)
    assert sentence is not None
    assert sentence.startswith(
        f"{pure.name}: two builds gave different bytes, in ortscan-1.0.dist-info/RECORD, ortscan/__init__.py"
    )
