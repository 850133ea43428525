"""What builds the package: with the library where a compiler can be had, else without it."""

import base64
import hashlib
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ortscan.native import backend


class _Setuptools:
    """In the place of setuptools' own backend."""

    def get_requires_for_build_wheel(self, settings: Any) -> list[str]:
        return ["wheel"]

    def build_wheel(self, folder: str, settings: Any, metadata: Any) -> str:
        with zipfile.ZipFile(Path(folder, NAME), "w") as wheel:
            for name, content in CONTENTS.items():
                wheel.writestr(name, content)
        return NAME


NAME = "ortscan-0.1.0-py3-none-any.whl"
ABOUT = "ortscan-0.1.0.dist-info/WHEEL"
CONTENTS = {
    "ortscan/__init__.py": "",
    ABOUT: "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "ortscan-0.1.0.dist-info/RECORD": f"ortscan/__init__.py,sha256=x,0\n{ABOUT},sha256=y,1\nortscan-0.1.0.dist-info/RECORD,,\n",
}


class _Failed(Exception):
    """In the place of BuildError."""


def _building(found: bool) -> dict[str, Any]:
    def build(folder: Path) -> Path:
        if not found:
            raise _Failed("there is no compiler")
        return folder / "libortscan.so"

    return {"compiler": lambda: ["clang"] if found else None, "build": build, "BuildError": _Failed}


@pytest.fixture(autouse=True)
def _no_setuptools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORTSCAN_BUILD_NATIVE", raising=False)
    monkeypatch.setattr(backend, "_setuptools", _Setuptools)


@pytest.mark.parametrize(("code", "asked"), [(0, ["wheel", "ziglang>=0.16"]), (1, ["wheel"])])
def test_a_compiler_is_asked_for_where_pip_can_reach_one(code: int, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_building", lambda: _building(False))
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, code))
    assert backend.get_requires_for_build_wheel() == asked


def test_nothing_is_asked_for_where_a_compiler_is_there_or_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_building", lambda: _building(True))
    assert backend.get_requires_for_build_wheel() == ["wheel"]
    monkeypatch.setattr(backend, "_building", lambda: _building(False))
    monkeypatch.setenv("ORTSCAN_BUILD_NATIVE", "0")
    assert backend.get_requires_for_build_wheel() == ["wheel"]


def test_a_wheel_with_the_library_names_its_platform_and_no_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_building", lambda: _building(True))
    monkeypatch.setattr(backend.sysconfig, "get_platform", lambda: "linux-x86_64")
    name = backend.build_wheel(str(tmp_path))
    assert name == "ortscan-0.1.0-py3-none-manylinux_2_17_x86_64.whl"
    assert [file.name for file in tmp_path.iterdir()] == [name]
    with zipfile.ZipFile(tmp_path / name) as wheel:
        about, record = wheel.read(ABOUT), wheel.read("ortscan-0.1.0.dist-info/RECORD").decode().splitlines()
    assert about.decode() == "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_17_x86_64\n"
    digest = base64.urlsafe_b64encode(hashlib.sha256(about).digest()).rstrip(b"=").decode()
    assert record == ["ortscan/__init__.py,sha256=x,0", f"{ABOUT},sha256={digest},{len(about)}", "ortscan-0.1.0.dist-info/RECORD,,"]


def test_without_a_compiler_the_wheel_is_pure_and_the_build_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_building", lambda: _building(False))
    with pytest.warns(UserWarning, match="built without its native loop engine: there is no compiler"):
        assert backend.build_wheel(str(tmp_path)) == NAME
