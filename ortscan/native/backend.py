"""The build backend of the package: that of setuptools, with the library of loop plans built first.

Where no compiler is to be had the package is built without the library, which ``ortscan native`` says;
``ORTSCAN_BUILD_NATIVE=0`` in the environment asks for that. It runs before anything is installed, so it imports nothing of ortscan.
"""

import base64
import hashlib
import os
import runpy
import subprocess
import sys
import sysconfig
import warnings
import zipfile
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

Settings = dict[str, Any] | None


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build a wheel for this platform and any Python 3; a pure one where there is no library."""
    built = _build_library()
    name = str(_setuptools().build_wheel(wheel_directory, config_settings, metadata_directory))
    return _for_platform(Path(wheel_directory, name)).name if built else name


def build_editable(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build the library into the sources, and the wheel that points at them."""
    _build_library()
    return str(_setuptools().build_editable(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Pack the sources; the library is built where they are installed."""
    return str(_setuptools().build_sdist(sdist_directory, config_settings))


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
    """Return the package of a compiler; nothing where pip cannot reach it, so that the build goes on without."""
    if os.environ.get("ORTSCAN_BUILD_NATIVE") == "0" or _building()["compiler"]() is not None:
        return []
    asked = [sys.executable, "-I", "-m", "pip", "index", "versions", "ziglang", "--only-binary", ":all:"]
    found = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=300)
    return [_ZIG] if found.returncode == 0 else []


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


def _for_platform(wheel: Path) -> Path:
    """Say in a pure wheel, and in its name, which platform it is for."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    platform = platform.replace("linux_", "manylinux_2_17_", 1) if platform.startswith("linux_") else platform
    renamed = wheel.with_name(wheel.name.replace("-any.whl", f"-{platform}.whl"))
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(renamed, "w", zipfile.ZIP_DEFLATED) as new:
        contents = {info: old.read(info) for info in old.infolist()}
        (record,) = (info for info in contents if info.filename.endswith(".dist-info/RECORD"))
        (about,) = (info for info in contents if info.filename.endswith(".dist-info/WHEEL"))
        text = contents[about].decode().replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
        contents[about] = text.replace("Tag: py3-none-any", f"Tag: py3-none-{platform}").encode()
        lines = contents[record].decode().splitlines()
        lines = [_record(about.filename, contents[about]) if line.startswith(f"{about.filename},") else line for line in lines]
        contents[record] = "".join(f"{line}\n" for line in lines).encode()
        for info, content in contents.items():
            new.writestr(info, content)
    wheel.unlink()
    return renamed


def _record(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"
