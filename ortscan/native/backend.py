"""The build backend of the package: setuptools, plus the native library and a modified wheel.

Without a compiler, or with ``ORTSCAN_BUILD_NATIVE=0``, the package is built without the native library. The name ``rewrites`` is
too common for an installed package, so a wheel contains ``rewrites`` as ``ortscan._rewrites``. Imports and strings that name its
modules are changed. This file runs before anything is installed, so it imports nothing of ortscan.
"""

import ast
import base64
import hashlib
import os
import platform
import re
import runpy
import subprocess
import sys
import sysconfig
import warnings
import zipfile
from collections.abc import Iterator
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
    "moved",
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

_OLD, _NEW = "rewrites", "ortscan._rewrites"
_MODULE = re.compile(rf"{_OLD}(\.[A-Za-z_]\w*)+")
_LIBRARY = re.compile(r"ortscan/native/[^/]+\.(so|dylib|dll)")

Settings = dict[str, Any] | None


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build a wheel for this platform and any Python 3. Without the native library, build a pure wheel."""
    built = _build_library()
    name = str(_setuptools().build_wheel(wheel_directory, config_settings, metadata_directory))
    return str(_packed(Path(wheel_directory, name), _platform_tag() if built else None).name)


def build_editable(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build the library into the sources, and a wheel that points at the sources."""
    _build_library()
    return str(_setuptools().build_editable(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Pack the sources, tests and examples. The library is built at installation."""
    manifest = Path("MANIFEST.in")
    if manifest.exists():
        return str(_setuptools().build_sdist(sdist_directory, config_settings))
    manifest.write_text(_WHOLE, encoding="utf-8")
    try:
        return str(_setuptools().build_sdist(sdist_directory, config_settings))
    finally:
        manifest.unlink()


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Return setuptools' requirements, and the package ``ziglang`` if the build needs it as a compiler."""
    return [*_setuptools().get_requires_for_build_wheel(config_settings), *_compiler_to_ask_for()]


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
    """Return the platform tag for the wheel.

    If zig built the library on Linux with glibc, the wheel also runs with an old glibc, so the tag is ``manylinux_2_17``. Otherwise
    the tag is that of this system. With another C library, such as musl, pip accepts no manylinux wheel.
    """
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    is_for_old_glibc = platform.libc_ver()[0] == "glibc" and "ziglang" in (_building()["compiler"]() or ())
    return tag.replace("linux_", "manylinux_2_17_", 1) if is_for_old_glibc and tag.startswith("linux_") else tag


def _packed(wheel: Path, platform: str | None) -> Path:
    """Replace ``wheel`` by a wheel with rewritten modules, and return the path of the new wheel.

    ``platform`` is the platform tag for the name of the new wheel. None means a pure wheel. A pure wheel excludes the native
    library, which an earlier build may have left in the sources.
    """
    renamed = wheel.with_name(wheel.name.replace("-any.whl", f"-{platform}.whl")) if platform else wheel
    with zipfile.ZipFile(wheel) as old:
        members = [info for info in old.infolist() if platform or not _LIBRARY.fullmatch(info.filename)]
        contents = {_new_path(info.filename): _content(info.filename, old.read(info), platform) for info in members}
    (record,) = (name for name in contents if name.endswith(".dist-info/RECORD"))
    rows = [_record(name, content) for name, content in contents.items() if name != record]
    contents[record] = "".join(f"{row}\n" for row in [*rows, f"{record},,"]).encode()
    wheel.unlink()
    with zipfile.ZipFile(renamed, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in contents.items():
            new.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return renamed


def moved(source: str) -> str:
    """Return the Python text ``source`` with ``ortscan._rewrites`` for ``rewrites`` in module names.

    Raise SyntaxError if a name cannot be replaced, for example in an f-string.
    """
    lines = source.encode().splitlines(keepends=True)
    for line, start, end in sorted(_names(ast.parse(source)), reverse=True):
        name = lines[line][start:end].decode()
        if not name.strip("\"'").startswith(_OLD):
            raise SyntaxError(f"line {line + 1} names a module of {_OLD} in a way that cannot be rewritten")
        lines[line] = lines[line][:start] + name.replace(_OLD, _NEW, 1).encode() + lines[line][end:]
    return b"".join(lines).decode()


def _names(tree: ast.Module) -> Iterator[tuple[int, int, int]]:
    """Yield (line, start, end) of each name of a ``rewrites`` module, the last two as byte offsets."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and _is_ours(node.module or ""):
            start = node.col_offset + len("from ")
            yield node.lineno - 1, start, start + len(node.module or "")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _is_ours(alias.name):
                    if alias.asname is None:
                        raise SyntaxError(f"import {alias.name} binds a name that differs in a wheel: use 'as'")
                    yield alias.lineno - 1, alias.col_offset, alias.col_offset + len(alias.name)
        elif isinstance(node, ast.JoinedStr):
            if any(isinstance(part, ast.Constant) and str(part.value).startswith(f"{_OLD}.") for part in node.values):
                raise SyntaxError(f"line {node.lineno} composes the name of a module of {_OLD}: begin with __package__")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _MODULE.fullmatch(node.value):
            yield node.lineno - 1, node.col_offset, node.end_col_offset or node.col_offset


def _is_ours(name: str) -> bool:
    return name == _OLD or name.startswith(f"{_OLD}.")


def _new_path(name: str) -> str:
    return f"{_NEW.replace('.', '/')}{name.removeprefix(_OLD)}" if name.startswith(f"{_OLD}/") else name


def _content(name: str, content: bytes, platform: str | None) -> bytes:
    if name.endswith(".py"):
        return moved(content.decode()).encode()
    if name.endswith(".dist-info/top_level.txt"):
        return b"".join(line for line in content.splitlines(keepends=True) if line.strip() != _OLD.encode())
    if platform and name.endswith(".dist-info/WHEEL"):
        text = content.decode().replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
        return text.replace("Tag: py3-none-any", f"Tag: py3-none-{platform}").encode()
    return content


def _record(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"
