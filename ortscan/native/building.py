"""Build the native library, which runs loop plans, from its C sources.

The build backend runs this file by its path before anything is installed, so it imports only the standard library.
"""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LIBRARIES", "BuildError", "build", "compiler", "is_for_this_machine", "platform_tag", "targets"]

LIBRARIES = {"linux": "libortscan.so", "darwin": "libortscan.dylib", "win32": "ortscan.dll"}
"""The file name of the library for each ``sys.platform``. Other platforms use the name for linux."""
_SOURCES = Path(__file__).parent / "c"
_KERNELS = "kernels/kernels.c"
_FLAGS = [
    "-std=c11",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fvisibility=hidden",
    "-fno-strict-aliasing",
    "-g0",
    "-Wno-psabi",
]
_LINK_FLAGS = {
    "linux": ["-Wl,-z,nodelete", "-lm", "-s"],
    "macos": [f"-Wl,-install_name,@rpath/{LIBRARIES['darwin']}"],
    "windows": ["-s"],
}
"""``nodelete``, because sessions call the library even after they released it."""
_AT_ONCE = 2


class BuildError(Exception):
    """The library could not be built."""


@dataclass(frozen=True)
class _Target:
    """A platform to build for.

    Attributes:
        triple: the name of the platform for zig, with the oldest supported version, as in ``x86_64-linux-gnu.2.17``.
        tag: the platform tag of a wheel with this library.
        library: the file name of the native library.
        processors: the instruction sets to build for.
    """

    triple: str
    tag: str
    library: str = LIBRARIES["linux"]
    processors: tuple[str, ...] = ("x86_64", "x86_64_v3", "x86_64_v4")


_TARGETS = {
    "linux-x86_64": _Target("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64"),
    "linux-aarch64": _Target("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64", processors=("generic",)),
    "musllinux-x86_64": _Target("x86_64-linux-musl", "musllinux_1_2_x86_64"),
    "musllinux-aarch64": _Target("aarch64-linux-musl", "musllinux_1_2_aarch64", processors=("generic",)),
    "macos-x86_64": _Target("x86_64-macos.11.0", "macosx_11_0_x86_64", LIBRARIES["darwin"]),
    "macos-arm64": _Target("aarch64-macos.11.0", "macosx_11_0_arm64", LIBRARIES["darwin"], ("generic",)),
    "windows-x86_64": _Target("x86_64-windows-gnu", "win_amd64", LIBRARIES["win32"]),
    "windows-arm64": _Target("aarch64-windows-gnu", "win_arm64", LIBRARIES["win32"], ("generic",)),
}


def targets() -> tuple[str, ...]:
    """Return the names of the supported platforms."""
    return tuple(_TARGETS)


def is_for_this_machine() -> bool:
    """Return True if this platform is supported."""
    return _this_machine() in _TARGETS


def compiler() -> list[str] | None:
    """Return the command that starts zig, if the package ``ziglang`` is installed, else clang.

    Return None if both are missing.
    """
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    clang = shutil.which("clang")
    return [clang] if clang else None


def platform_tag(target: str | None = None) -> str:
    """Return the platform tag of a wheel with the library for this machine or for ``target``.

    zig builds for the oldest supported system, clang only for this system.
    """
    if "ziglang" in (compiler() or ()):
        return _TARGETS[target or _this_machine()].tag
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def build(folder: Path, target: str | None = None) -> Path:
    """Build the library for this machine or for ``target`` into ``folder``. Return its path."""
    wanted = _TARGETS.get(target or _this_machine())
    if wanted is None:
        raise BuildError(f"the library does not support {target or _this_machine()}, only {', '.join(_TARGETS)}")
    command = compiler()
    if command is None:
        raise BuildError("there is no compiler: install the package ziglang, or clang")
    zig = "ziglang" in command
    if not zig and target not in (None, _this_machine()):
        raise BuildError(f"clang builds for this machine only: install the package ziglang to build for {target}")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        built = _build_in(Path(name), command, wanted, zig)
        # replaced in one step, because another process may be reading the old file
        handle, beside = tempfile.mkstemp(dir=folder, prefix=wanted.library)
        os.close(handle)
        shutil.copy(built, beside)
        os.replace(beside, folder / wanted.library)
    return folder / wanted.library


def _this_machine() -> str:
    if sys.platform == "win32":
        # platform.machine() may name the processor where an emulated Python runs, not that of Python
        return f"windows-{sysconfig.get_platform().removeprefix('win-').replace('amd64', 'x86_64')}"
    libc = "musl" if sys.platform == "linux" and platform.libc_ver()[0] != "glibc" else ""
    return f"{libc}{'macos' if sys.platform == 'darwin' else sys.platform}-{platform.machine().lower()}"


def _build_in(folder: Path, command: list[str], target: _Target, zig: bool) -> Path:
    pic = [] if "windows" in target.triple else ["-fPIC"]
    common = [*command, *(["-target", target.triple] if zig else []), *_FLAGS, *pic]
    jobs = [
        [*common, *_processor(kind, zig), f"-DISA={kind}", "-c", str(_SOURCES / _KERNELS), "-o", str(folder / f"kernels_{kind}.o")]
        for kind in reversed(target.processors)
    ]
    for source in sorted(_SOURCES.glob("*.c")):
        jobs.append([*common, *_processor(target.processors[0], zig), "-c", str(source), "-o", str(folder / f"{source.stem}.o")])
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(_run, jobs))
    library = folder / target.library
    linked = [*command, *(["-target", target.triple] if zig else []), "-shared", "-o", str(library), *(job[-1] for job in jobs)]
    _run([*linked, *_LINK_FLAGS[target.triple.split("-")[1].partition(".")[0]]])
    return library


def _processor(kind: str, zig: bool) -> Iterable[str]:
    if kind == "generic":
        return []
    return [f"-mcpu={kind}"] if zig else [f"-march={kind.replace('_', '-')}"]


def _run(command: list[str]) -> None:
    environment = {"SOURCE_DATE_EPOCH": "0", **os.environ}  # linkers for Windows store a date
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False, env=environment
    )
    if done.returncode:
        output = " ".join(done.stderr.split())
        raise BuildError(f"the compiler failed with {done.returncode}: {output[-400:]}")
