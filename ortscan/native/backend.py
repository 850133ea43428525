"""The build backend of the package: that of setuptools, with the library of loop plans built first.

Where no compiler is to be had the package is built without the library, which ``ortscan native`` says;
``ORTSCAN_BUILD_NATIVE=0`` in the environment asks for that. It runs before anything is installed, so it imports nothing of ortscan.
"""

import os
import platform
import runpy
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path
from typing import Any

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_HERE = Path(__file__).parent
_ZIG = "ziglang>=0.16"
_WHOLE = """graft tests
graft examples
graft ortscan
graft rewrites
global-exclude __pycache__/* *.py[cod] *.so *.dylib *.dll
"""
"""What setuptools is told to pack; a file of that name would stand at the top of the repository for nothing else."""

Settings = dict[str, Any] | None


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build a wheel for this platform and any Python 3; a pure one where there is no library."""
    built = _build_library()
    name = str(_setuptools().build_wheel(wheel_directory, config_settings, metadata_directory))
    packing: dict[str, Any] = runpy.run_path(str(_HERE / "packing.py"))
    return str(packing["packed"](Path(wheel_directory, name), _platform_tag() if built else None).name)


def build_editable(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build the library into the sources, and the wheel that points at them."""
    _build_library()
    return str(_setuptools().build_editable(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Pack the sources, tests and examples with them; the library is built where they are installed."""
    manifest = Path("MANIFEST.in")
    if manifest.exists():
        return str(_setuptools().build_sdist(sdist_directory, config_settings))
    manifest.write_text(_WHOLE, encoding="utf-8")
    try:
        return str(_setuptools().build_sdist(sdist_directory, config_settings))
    finally:
        manifest.unlink()


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Ask for a compiler where there is none and one is within reach."""
    return [*_setuptools().get_requires_for_build_wheel(config_settings), *_compiler_to_ask_for()]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """Ask for a compiler where there is none and one is within reach."""
    return [*_setuptools().get_requires_for_build_editable(config_settings), *_compiler_to_ask_for()]


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    """Ask for nothing more."""
    return list(_setuptools().get_requires_for_build_sdist(config_settings))


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """Write the metadata."""
    return str(_setuptools().prepare_metadata_for_build_wheel(metadata_directory, config_settings))


def prepare_metadata_for_build_editable(metadata_directory: str, config_settings: Settings = None) -> str:
    """Write the metadata."""
    return str(_setuptools().prepare_metadata_for_build_editable(metadata_directory, config_settings))


def _setuptools() -> Any:
    from setuptools import build_meta

    return build_meta


def _compiler_to_ask_for() -> list[str]:
    """Return the package of a compiler; nothing where pip cannot reach it, so that the build goes on without.

    Other tools than pip build where there is no pip to ask. They are asked for what every platform that the library is for has.
    """
    building = _building()
    if os.environ.get("ORTSCAN_BUILD_NATIVE") == "0" or building["compiler"]() is not None:
        return []
    if not _pip("--version"):
        return [_ZIG] if building["is_for_this_machine"]() else []
    return [_ZIG] if _pip("index", "versions", "ziglang", "--only-binary", ":all:") else []


def _pip(*arguments: str) -> bool:
    """Whether pip can do that. It is asked in a process of its own: while it builds, pip hides itself from the one that builds."""
    command = [sys.executable, "-I", "-m", "pip", *arguments]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=300).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _building() -> dict[str, Any]:
    return runpy.run_path(str(_HERE / "building.py"))


def _build_library() -> bool:
    if os.environ.get("ORTSCAN_BUILD_NATIVE") == "0":
        return False
    building = _building()
    try:
        building["build"](_HERE)
    except building["BuildError"] as error:
        warnings.warn(f"ortscan is built without its native loop engine: {error}", stacklevel=2)
        return False
    return True


def _platform_tag() -> str:
    """Return what pip calls this platform: where zig built for an old glibc, any Linux that has one; else a Linux like this one.

    Where there is another C library, such as musl, pip takes no wheel for glibc.
    """
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    is_for_old_glibc = platform.libc_ver()[0] == "glibc" and "ziglang" in (_building()["compiler"]() or ())
    return tag.replace("linux_", "manylinux_2_17_", 1) if is_for_old_glibc and tag.startswith("linux_") else tag
