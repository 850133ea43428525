"""The build backend: it builds the library if there is a compiler."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ortscan.native import backend


class _Setuptools:
    """Replaces the backend of setuptools."""

    def get_requires_for_build_wheel(self, settings: Any) -> list[str]:
        return ["wheel"]

    def build_wheel(self, folder: str, settings: Any, metadata: Any) -> str:
        with zipfile.ZipFile(Path(folder, NAME), "w") as wheel:
            for name, content in CONTENTS.items():
                wheel.writestr(name, content)
        return NAME


NAME = "ortscan-1.0-py3-none-any.whl"
CONTENTS = {
    "ortscan/__init__.py": "",
    "ortscan-1.0.dist-info/WHEEL": "Root-Is-Purelib: true\nTag: py3-none-any\n",
    "ortscan-1.0.dist-info/RECORD": "",
}


class _Failed(Exception):
    """Replaces BuildError."""


def _building(found: bool) -> dict[str, Any]:
    def build(folder: Path, target: str | None) -> Path:
        if not found:
            raise _Failed("there is no compiler")
        library = folder / "libortscan.so"
        library.write_text(f"the library for {target}")
        return library

    return {
        "compiler": lambda: ["clang"] if found else None,
        "build": build,
        "platform_tag": lambda target: target or "linux_x86_64",
        "BuildError": _Failed,
    }


@pytest.fixture(autouse=True)
def _no_setuptools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORTSCAN_BUILD_NATIVE", raising=False)
    monkeypatch.setattr(backend, "_setuptools", _Setuptools)


def _answering(*failing: str) -> Any:
    """Replace pip by a command that fails for these verbs."""
    return lambda command, **_: subprocess.CompletedProcess(command, int(any(verb in command for verb in failing)))


@pytest.mark.parametrize(("failing", "asked"), [((), ["wheel", "ziglang>=0.16"]), (("index",), ["wheel"])])
def test_compiler_is_required_if_pip_can_download_it(
    failing: Sequence[str], asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "_building", lambda: _building(False))
    monkeypatch.setattr(subprocess, "run", _answering(*failing))
    assert backend.get_requires_for_build_wheel() == asked


def test_compiler_is_not_required_if_pip_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> Any:
        if "index" in command:
            raise subprocess.TimeoutExpired(command, 300)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(backend, "_building", lambda: _building(False))
    monkeypatch.setattr(subprocess, "run", run)
    assert backend.get_requires_for_build_wheel() == ["wheel"]


@pytest.mark.parametrize(("known", "asked"), [(True, ["wheel", "ziglang>=0.16"]), (False, ["wheel"])])
def test_compiler_is_required_without_pip_on_known_platforms(
    known: bool, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "_building", lambda: {**_building(False), "is_for_this_machine": lambda: known})
    monkeypatch.setattr(subprocess, "run", _answering("pip"))
    assert backend.get_requires_for_build_wheel() == asked


def test_pip_runs_during_its_own_build(tmp_path: Path) -> None:
    """The subprocess has no pip on its path, as during a build by pip, and no network."""
    Path(tmp_path, "sitecustomize.py").write_text(
        "import sys\nsys.path[:] = [p for p in sys.path if not p.endswith('-packages')]\n"
    )
    lonely = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
    }
    code = f"import runpy; backend = runpy.run_path({backend.__file__!r}); print(backend['_compiler_to_ask_for']())"
    lonely["PATH"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", code], env=lonely, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_compiler_is_not_required_if_present_or_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_building", lambda: _building(True))
    assert backend.get_requires_for_build_wheel() == ["wheel"]
    monkeypatch.setattr(backend, "_building", lambda: _building(False))
    monkeypatch.setenv("ORTSCAN_BUILD_NATIVE", "0")
    assert backend.get_requires_for_build_wheel() == ["wheel"]


@pytest.mark.parametrize(("settings", "tag"), [(None, "linux_x86_64"), ({}, "linux_x86_64"), ({"target": "amiga"}, "amiga")])
def test_a_wheel_with_the_library_names_its_platform_and_no_python(
    settings: dict[str, str] | None, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "_building", lambda: _building(True))
    (tmp_path / NAME).write_text("a pure wheel")
    name = backend.build_wheel(str(tmp_path), settings)
    assert name == f"ortscan-1.0-py3-none-{tag}.whl"
    assert {file.name for file in tmp_path.iterdir()} == {name, NAME}
    assert (tmp_path / NAME).read_text() == "a pure wheel"
    with zipfile.ZipFile(tmp_path / name) as wheel:
        assert wheel.read("ortscan/native/libortscan.so").decode() == f"the library for {(settings or {}).get('target')}"


def test_without_a_compiler_the_wheel_is_pure_and_the_build_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_building", lambda: _building(False))
    with pytest.warns(UserWarning, match="built without its native loop engine: there is no compiler"):
        assert backend.build_wheel(str(tmp_path)) == NAME


def test_a_wheel_for_another_platform_needs_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_building", lambda: _building(False))
    monkeypatch.setenv("ORTSCAN_BUILD_NATIVE", "0")
    with pytest.raises(_Failed, match="there is no compiler"):
        backend.build_wheel(str(tmp_path), {"target": "amiga"})
    assert backend.get_requires_for_build_wheel({"target": "amiga"}) == ["wheel", "ziglang>=0.16"]
    assert backend.build_wheel(str(tmp_path)) == NAME
