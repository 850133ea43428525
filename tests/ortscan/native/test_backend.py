"""The build backend: it builds the library if there is a compiler."""

import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from packaging.tags import sys_tags

from ortscan.native import backend
from ortscan.native.backend import moved


class _Setuptools:
    """Replaces the backend of setuptools."""

    def get_requires_for_build_wheel(self, settings: Any) -> list[str]:
        return ["wheel"]

    def build_wheel(self, folder: str, settings: Any, metadata: Any) -> str:
        with zipfile.ZipFile(Path(folder, NAME), "w") as wheel:
            for name, content in CONTENTS.items():
                wheel.writestr(name, content)
        return NAME


NAME = "ortscan-0.1.0-py3-none-any.whl"
ABOUT, RECORD = "ortscan-0.1.0.dist-info/WHEEL", "ortscan-0.1.0.dist-info/RECORD"
CONTENTS = {
    "ortscan/__init__.py": "",
    ABOUT: "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "ortscan-0.1.0.dist-info/RECORD": f"ortscan/__init__.py,sha256=x,0\n{ABOUT},sha256=y,1\nortscan-0.1.0.dist-info/RECORD,,\n",
}


class _Failed(Exception):
    """Replaces BuildError."""


ZIG = ["python", "-m", "ziglang", "cc"]


def _building(found: bool, command: Sequence[str] = ("clang",)) -> dict[str, Any]:
    def build(folder: Path) -> Path:
        if not found:
            raise _Failed("there is no compiler")
        return folder / "libortscan.so"

    return {"compiler": lambda: [*command] if found else None, "build": build, "BuildError": _Failed}


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


def test_a_wheel_with_the_library_names_its_platform_and_no_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_building", lambda: _building(True, ZIG))
    monkeypatch.setattr(backend.platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.setattr(backend.sysconfig, "get_platform", lambda: "linux-x86_64")
    name = backend.build_wheel(str(tmp_path))
    assert name == "ortscan-0.1.0-py3-none-manylinux_2_17_x86_64.whl"
    assert [file.name for file in tmp_path.iterdir()] == [name]
    with zipfile.ZipFile(tmp_path / name) as wheel:
        about, record = wheel.read(ABOUT), wheel.read("ortscan-0.1.0.dist-info/RECORD").decode().splitlines()
    assert about.decode() == "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_17_x86_64\n"
    digest = base64.urlsafe_b64encode(hashlib.sha256(about).digest()).rstrip(b"=").decode()
    empty = base64.urlsafe_b64encode(hashlib.sha256(b"").digest()).rstrip(b"=").decode()
    assert record == [f"ortscan/__init__.py,sha256={empty},0", f"{ABOUT},sha256={digest},{len(about)}", f"{RECORD},,"]


def test_rewrites_is_installed_inside_ortscan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_building", lambda: _building(False))
    monkeypatch.setitem(
        CONTENTS, "rewrites/base/a.py", "from rewrites.base import b\nimport rewrites.base.c as c\nD = {'x': 'rewrites.d'}\n"
    )
    monkeypatch.setitem(CONTENTS, "ortscan-0.1.0.dist-info/top_level.txt", "ortscan\nrewrites\n")
    with pytest.warns(UserWarning, match="without its native loop engine"):
        name = backend.build_wheel(str(tmp_path))
    with zipfile.ZipFile(tmp_path / name) as wheel:
        names = wheel.namelist()
        source = wheel.read("ortscan/_rewrites/base/a.py").decode()
        tops, record = wheel.read("ortscan-0.1.0.dist-info/top_level.txt"), wheel.read(RECORD).decode()
    assert not any(name.startswith("rewrites") for name in names)
    assert (
        source == "from ortscan._rewrites.base import b\nimport ortscan._rewrites.base.c as c\nD = {'x': 'ortscan._rewrites.d'}\n"
    )
    assert tops == b"ortscan\n"
    assert "\nrewrites" not in record
    assert "ortscan/_rewrites/base/a.py,sha256=" in record


def test_pure_wheel_skips_a_leftover_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTSCAN_BUILD_NATIVE", "0")
    monkeypatch.setitem(CONTENTS, "ortscan/native/libortscan.so", "an old one")
    name = backend.build_wheel(str(tmp_path))
    with zipfile.ZipFile(tmp_path / name) as wheel:
        assert "libortscan" not in " ".join(wheel.namelist()) + wheel.read(RECORD).decode()


@pytest.mark.parametrize("line", ["import rewrites.base", "x = f'rewrites.base.{y}'", "from  rewrites.base import b"])
def test_names_that_cannot_be_rewritten_fail_the_build(line: str) -> None:
    with pytest.raises(SyntaxError):
        moved(f"{line}\n")


@pytest.mark.parametrize(
    ("libc", "command", "machine", "tag"),
    [
        (("glibc", "2.36"), ZIG, "linux-aarch64", "manylinux_2_17_aarch64"),
        (("glibc", "2.36"), ["clang"], "linux-x86_64", "linux_x86_64"),
        (("", ""), ZIG, "linux-x86_64", "linux_x86_64"),
        (("musl", "1.2.5"), ZIG, "linux-aarch64", "linux_aarch64"),
        (("", ""), ZIG, "macosx-11.0-arm64", "macosx_11_0_arm64"),
    ],
)
def test_manylinux_needs_a_library_for_an_old_glibc(
    libc: tuple[str, str], command: list[str], machine: str, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "_building", lambda: _building(True, command))
    monkeypatch.setattr(backend.sysconfig, "get_platform", lambda: machine)
    monkeypatch.setattr(backend.platform, "libc_ver", lambda: libc)
    assert backend.build_wheel(str(tmp_path)) == f"ortscan-0.1.0-py3-none-{tag}.whl"


@pytest.mark.parametrize("command", [ZIG, ["clang"]])
def test_pip_accepts_the_platform_tag(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_building", lambda: _building(True, command))
    assert backend._platform_tag() in {tag.platform for tag in sys_tags()}


def test_without_a_compiler_the_wheel_is_pure_and_the_build_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_building", lambda: _building(False))
    with pytest.warns(UserWarning, match="built without its native loop engine: there is no compiler"):
        assert backend.build_wheel(str(tmp_path)) == NAME
