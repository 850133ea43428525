"""The build of the library: its exported symbols and its errors; and the same sources under sanitizers."""

import ctypes
import importlib.util
import os
import runpy
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.tags import sys_tags

from ortscan.native import building
from ortscan.native.building import BuildError, build, compiler, is_for_this_machine, platform_tag, targets
from rewrites.native.encoding import encode
from tests.support.finding_plans import finding_plans, meeting_plans
from tests.support.native_plans import library
from tests.support.sample_plans import sample_plans

ZIG = ["python", "-m", "ziglang", "cc"]
FUZZ = [Path(__file__).parents[2] / "campaigns" / "native" / name for name in ("fuzz.c", "cells.c")]
SOURCES = Path(building.__file__).parent / "c"
FLAGS = ["-std=c11", "-O0", "-g", "-w", "-fno-strict-aliasing", "-ffp-contract=off", "-DONE_ISA", "-DISA=generic", f"-I{SOURCES}"]


def test_build_imports_only_the_standard_library() -> None:
    code = f"import runpy, sys; runpy.run_path({building.__file__!r}); print(sorted({{'numpy', 'ortscan', 'rewrites'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert {"BuildError", "build", "compiler"} <= runpy.run_path(building.__file__).keys()


@pytest.mark.skipif(sys.platform != "linux", reason="symbols of an ELF file")
def test_library_exports_only_its_entry_points() -> None:
    loaded = ctypes.CDLL(str(library()))
    assert loaded.RegisterCustomOps
    for hidden in ("plan_read", "loop_new", "choose_isa", "frame_run", "isa_x86_64"):
        assert not hasattr(loaded, hidden)


def test_unknown_platform_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="the library does not support amiga, only linux-x86_64"):
        build(tmp_path, "amiga")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [ZIG, ["clang"]])
def test_pip_accepts_the_platform_tag(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "compiler", lambda: command)
    assert platform_tag() in {tag.platform for tag in sys_tags()}


def test_every_platform_has_its_own_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "compiler", lambda: ZIG)
    assert len({platform_tag(target) for target in targets()}) == len(targets())


@pytest.mark.parametrize(
    ("system", "machine", "libc", "of_python", "with_zig", "with_clang"),
    [
        ("linux", "x86_64", "glibc", "linux-x86_64", "manylinux_2_17_x86_64", "linux_x86_64"),
        ("linux", "aarch64", "", "linux-aarch64", "musllinux_1_2_aarch64", "linux_aarch64"),
        ("darwin", "arm64", "", "macosx-14.0-arm64", "macosx_11_0_arm64", "macosx_14_0_arm64"),
        ("win32", "AMD64", "", "win-amd64", "win_amd64", "win_amd64"),
        ("win32", "ARM64", "", "win-amd64", "win_amd64", "win_amd64"),
        ("win32", "ARM64", "", "win-arm64", "win_arm64", "win_arm64"),
    ],
)
def test_zig_builds_for_old_systems_and_clang_for_this_one(
    system: str, machine: str, libc: str, of_python: str, with_zig: str, with_clang: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building.sys, "platform", system)
    monkeypatch.setattr(building.platform, "machine", lambda: machine)
    monkeypatch.setattr(building.platform, "libc_ver", lambda: (libc, "2.36" if libc else ""))
    monkeypatch.setattr(building.sysconfig, "get_platform", lambda: of_python)
    assert is_for_this_machine()
    for command, tag in (ZIG, with_zig), (["clang"], with_clang):
        monkeypatch.setattr(building, "compiler", lambda command=command: command)
        assert platform_tag() == tag


def test_build_without_a_compiler_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert compiler() is None
    with pytest.raises(BuildError, match="there is no compiler: install the package ziglang, or clang"):
        build(tmp_path)


def test_compiler_error_is_quoted_and_keeps_the_old_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / library().name).write_text("old")
    monkeypatch.setattr(building, "compiler", lambda: [sys.executable, "-c", "import sys; sys.exit('no such flag')", "ziglang"])
    with pytest.raises(BuildError, match="the compiler failed with 1: no such flag"):
        build(tmp_path)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(library().name, "old")]


def sanitized(folder: Path) -> Path:
    """Build all sources except the operators with a fuzzer of plans, and with the sanitizers of this machine's compiler.

    Nothing is inlined: a compiler adds checks to each copy of a kernel's helper, which takes six times as long.
    """
    program = folder / "program"
    sources = [
        str(SOURCES / "kernels" / "kernels.c"),
        *(
            str(file)
            for file in SOURCES.glob("*.c")
            if file.name not in ("operator.c", "cell_operator.c", "registration.c") and not file.name.startswith("provider")
        ),
        *map(str, FUZZ),
    ]
    tried = [
        ["gcc", "-fsanitize=address,undefined"],
        ["clang", "-fsanitize=address,undefined"],
        [*(compiler() or []), "-fsanitize=undefined"],
    ]
    for command in tried:
        if shutil.which(command[0]) is None:
            continue
        done = subprocess.run(
            [*command, "-fno-sanitize-recover=undefined", "-Dalways_inline=unused", *FLAGS, *sources, "-lm", "-o", str(program)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return program
    raise AssertionError(done.stderr)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="a program for the command line of others")
def test_damaged_plans_stay_within_bounds_under_sanitizers(tmp_path: Path) -> None:
    plans = [encode(plan) for plan in (*sample_plans(), *finding_plans(), *meeting_plans())]
    (tmp_path / "plans").write_bytes(b"".join(struct.pack("<I", len(plan)) + plan for plan in plans))
    program = sanitized(tmp_path)
    environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1:max_allocation_size_mb=256"}
    done = subprocess.run(
        [str(program), str(tmp_path / "plans"), "3", "20000"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    whole, damaged = ([int(word) for word in part.split()] for part in done.stdout.removeprefix("whole").split("damaged"))
    assert whole == [0, 0, len(plans)]
    assert min(damaged[0], damaged[2]) > 3000
    done = subprocess.run([str(program), "cells", "1", "400"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert min(map(int, done.stdout.split())) > 40
