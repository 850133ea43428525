"""What a library needs and offers must agree with the platform tag of its wheel."""

import ctypes
import dataclasses
import gzip
import platform
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.release.native_libraries import EXPORTS, NativeLibrary, library_faults, read_library
from tests.support.native_plans import library

LIBRARIES = Path(__file__).parents[2] / "data" / "libraries"
UCRT = "api-ms-win-crt-heap-l1-1-0.dll"
GOOD = {
    "manylinux_2_17_x86_64": NativeLibrary("ELF", "x86_64", frozenset({"libc.so.6", "libm.so.6"}), frozenset(EXPORTS), (2, 17)),
    "musllinux_1_2_aarch64": NativeLibrary("ELF", "arm64", frozenset({"libc.so"}), frozenset(EXPORTS)),
    "macosx_11_0_arm64": NativeLibrary(
        "Mach-O", "arm64", frozenset({"/usr/lib/libSystem.B.dylib"}), frozenset(EXPORTS), (11, 0), "@rpath/libortscan.dylib", True
    ),
    "win_amd64": NativeLibrary("PE", "x86_64", frozenset({"KERNEL32.dll", UCRT}), frozenset(EXPORTS)),
}
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("manylinux_2_17_x86_64", {"file_format": "PE"}, "is of the format PE instead of ELF"),
    ("win_amd64", {"processor": "arm64"}, "is for arm64 instead of x86_64"),
    ("manylinux_2_17_x86_64", {"needs": frozenset({"libgomp.so.1"})}, "needs libgomp.so.1, which manylinux systems may not have"),
    ("win_amd64", {"needs": frozenset({"libwinpthread-1.dll"})}, "needs libwinpthread-1.dll, which win systems may not have"),
    ("manylinux_2_17_x86_64", {"system_version": (2, 28)}, "needs version 2.28 of the system instead of 2.17"),
    ("macosx_11_0_arm64", {"system_version": (13, 0)}, "needs version 13.0 of the system instead of 11.0"),
    ("musllinux_1_2_aarch64", {"system_version": (2, 2)}, "needs glibc"),
    ("win_amd64", {"exports": frozenset(EXPORTS | {"isa"})}, "exports functions that it should not: isa"),
    ("win_amd64", {"exports": frozenset(EXPORTS - {"CreateEpFactories"})}, "does not export CreateEpFactories"),
    ("macosx_11_0_arm64", {"install_name": "/tmp/a"}, "has the install name /tmp/a instead of @rpath/libortscan.dylib"),
    ("macosx_11_0_arm64", {"is_signed": False}, "has no signature, which macOS needs on arm64"),
]


@pytest.mark.parametrize("tag", GOOD)
def test_a_library_that_keeps_its_promises_has_no_faults(tag: str) -> None:
    assert list(library_faults(GOOD[tag], tag)) == []


@pytest.mark.parametrize(("tag", "changes", "fault"), BAD, ids=[fault[:40] for _, _, fault in BAD])
def test_a_broken_promise_is_a_fault(tag: str, changes: dict[str, Any], fault: str) -> None:
    assert list(library_faults(dataclasses.replace(GOOD[tag], **changes), tag)) == [fault]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the library of this machine")
def test_the_library_of_this_machine_is_read() -> None:
    found = read_library(library().read_bytes())
    assert found.file_format == "ELF"
    assert found.processor == {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    assert found.exports == EXPORTS
    assert all(hasattr(ctypes.CDLL(str(library())), name) for name in EXPORTS)
    assert "libc.so" in {name[:7] for name in found.needs}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("macos-arm64.dylib.gz", GOOD["macosx_11_0_arm64"]),
        ("windows-arm64.dll.gz", NativeLibrary("PE", "arm64", frozenset(), frozenset(EXPORTS))),
    ],
)
def test_libraries_of_other_systems_are_read(file: str, expected: NativeLibrary) -> None:
    assert read_library(gzip.decompress((LIBRARIES / file).read_bytes())) == expected


def test_other_content_is_no_library() -> None:
    with pytest.raises(ValueError, match="is no ELF, Mach-O or PE file"):
        read_library(b"text")
