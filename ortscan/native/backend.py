"""The build backend of the package: setuptools, plus the native library and a modified wheel.

``building.py`` builds the library, and ``packing.py`` modifies the wheel. Without a compiler, or with ``ORTSCAN_BUILD_NATIVE=0``,
the package is built without the native library. ``pip wheel -C target=windows-arm64 .`` builds for another platform. This file runs
before anything is installed, so it imports nothing of ortscan.
"""

import os
import re
import runpy
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "description_of",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_HERE = Path(__file__).parent
_DESCRIPTION = Path("build", "description.md")
_ZIG = "ziglang>=0.16"
_WHOLE = """graft tests
graft examples
graft ortscan
graft rewrites
global-exclude __pycache__/* *.py[cod] *.so *.dylib *.dll
"""
"""The content of a temporary MANIFEST.in, which lists the files for setuptools. The repository therefore has no such file."""

Settings = dict[str, Any] | None


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build a wheel for any Python 3 and for this platform, or for ``config_settings["target"]``.

    If the native library cannot be built for this platform, build a pure wheel. For another target, raise the error.
    """
    target = (config_settings or {}).get("target")
    with tempfile.TemporaryDirectory() as folder:
        pure = Path(folder, _setuptools().build_wheel(folder, config_settings, metadata_directory))
        library = _build_library(Path(folder), target)
        platform = _building()["platform_tag"](target) if library else "any"
        return str(_packing()["repack_wheel"](pure, library, platform, Path(wheel_directory)).name)


def build_editable(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build the library into the sources, and a wheel that points at the sources."""
    _build_library(_HERE)
    return str(_setuptools().build_editable(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Pack the sources, tests and examples. The library is built at installation."""
    manifest = Path("MANIFEST.in")
    has_manifest = manifest.exists()
    if not has_manifest:
        manifest.write_text(_WHOLE, encoding="utf-8")
    try:
        name = str(_setuptools().build_sdist(sdist_directory, config_settings))
    finally:
        if not has_manifest:
            manifest.unlink()
    _packing()["repack_sdist"](Path(sdist_directory, name))
    return name


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Return setuptools' requirements, and the package ``ziglang`` if the build needs it as a compiler."""
    target = (config_settings or {}).get("target")
    return [*_setuptools().get_requires_for_build_wheel(config_settings), *([_ZIG] if target else _compiler_to_ask_for())]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """Return setuptools' requirements, and the package ``ziglang`` if the build needs it as a compiler."""
    return [*_setuptools().get_requires_for_build_editable(config_settings), *_compiler_to_ask_for()]


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    """Return only setuptools' requirements."""
    return list(_setuptools().get_requires_for_build_sdist(config_settings))


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """Write the package's metadata below ``metadata_directory`` and return the name of the new folder."""
    return str(_setuptools().prepare_metadata_for_build_wheel(metadata_directory, config_settings))


def prepare_metadata_for_build_editable(metadata_directory: str, config_settings: Settings = None) -> str:
    """Write the package's metadata below ``metadata_directory`` and return the name of the new folder."""
    return str(_setuptools().prepare_metadata_for_build_editable(metadata_directory, config_settings))


def _setuptools() -> Any:
    """Write the description that ``pyproject.toml`` names, and return the backend of setuptools."""
    from setuptools import build_meta

    _DESCRIPTION.parent.mkdir(exist_ok=True)
    _DESCRIPTION.write_text(description_of(Path("README.md").read_text(encoding="utf-8")), encoding="utf-8")
    return build_meta


def description_of(readme: str) -> str:
    """Return ``readme`` without pictures and without links to files, which are not on a package index."""
    without_pictures = re.sub(r"^!\[[^]]*\]\((?!https?:)[^)]*\)\n+", "", readme, flags=re.MULTILINE)
    return re.sub(r"\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", without_pictures).replace(
        " and draw the page below", " and draw a page"
    )


def _compiler_to_ask_for() -> list[str]:
    """Return a list with the package ``ziglang`` if the build needs it, else an empty list.

    The build needs it if no compiler is installed and pip can download the package. If pip is not available, because another tool
    runs the build, the list has the package on every platform that the library supports.
    """
    building = _building()
    if os.environ.get("ORTSCAN_BUILD_NATIVE") == "0" or building["compiler"]() is not None:
        return []
    if not _pip("--version"):
        return [_ZIG] if building["is_for_this_machine"]() else []
    return [_ZIG] if _pip("index", "versions", "ziglang", "--only-binary", ":all:") else []


def _pip(*arguments: str) -> bool:
    """Run ``pip`` with ``arguments`` and return True if it succeeds.

    Python runs isolated (``-I``). Otherwise it would not find pip, because pip hides itself from the process of a build.
    """
    command = [sys.executable, "-I", "-m", "pip", *arguments]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=300).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _building() -> dict[str, Any]:
    return runpy.run_path(str(_HERE / "building.py"))


def _packing() -> dict[str, Any]:
    return runpy.run_path(str(_HERE / "packing.py"))


def _build_library(folder: Path, target: str | None = None) -> Path | None:
    if target is None and os.environ.get("ORTSCAN_BUILD_NATIVE") == "0":
        return None
    building = _building()
    try:
        return Path(building["build"](folder, target))
    except building["BuildError"] as error:
        if target is not None:
            raise
        warnings.warn(f"ortscan is built without its native loop engine: {error}", stacklevel=2)
        return None
