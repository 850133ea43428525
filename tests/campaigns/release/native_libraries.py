"""Read the native library of a wheel, and compare it with the wheel's platform tag."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import lief

__all__ = ["EXPORTS", "NativeLibrary", "library_faults", "read_library"]

EXPORTS = {"CreateEpFactories", "RegisterCustomOps", "ReleaseEpFactory", "ortscan_answer", "ortscan_set_planner"}
"""The functions that onnxruntime looks for, and those that ``ortscan.plugin`` calls."""
_SYSTEM_LIBRARIES = {
    "manylinux": r"lib[cm]\.so\.6|ld-linux-x86-64\.so\.2|ld-linux-aarch64\.so\.1",
    "musllinux": r"libc\.so",
    "macosx": r"/usr/lib/libSystem\.B\.dylib",
    "win": r"(?i:kernel32|api-ms-win-crt-[a-z]+-l1-1-0)\.dll",
}
_PROCESSORS = {"X86_64": "x86_64", "AMD64": "x86_64", "AARCH64": "arm64", "ARM64": "arm64"}
_INSTALL_NAME = "@rpath/libortscan.dylib"

lief.logging.disable()


@dataclass(frozen=True)
class NativeLibrary:
    """What a native library needs and offers.

    Attributes:
        file_format: ELF, Mach-O or PE.
        processor: x86_64 or arm64.
        needs: the names of the libraries that it loads.
        exports: the names of its functions for others.
        system_version: the newest glibc that an ELF file needs, or the oldest macOS that a Mach-O file supports, else ().
        install_name: the name by which other libraries load a Mach-O file, else "".
        is_signed: True if a Mach-O file has a signature.
    """

    file_format: str
    processor: str
    needs: frozenset[str]
    exports: frozenset[str]
    system_version: tuple[int, ...] = ()
    install_name: str = ""
    is_signed: bool = False


def read_library(content: bytes) -> NativeLibrary:
    """Return what the library with this content needs and offers. Raise ValueError if ``content`` is no library."""
    library: Any = lief.parse(content)
    if library is None:
        raise ValueError("is no ELF, Mach-O or PE file")
    if library.format == lief.Binary.FORMATS.ELF:
        versions = [version.name for needed in library.symbols_version_requirement for version in needed.get_auxiliary_symbols()]
        return NativeLibrary(
            "ELF",
            _processor(library.header.machine_type),
            frozenset(library.libraries),
            frozenset(symbol.name for symbol in library.exported_symbols),
            max((_version(name) for name in versions), default=()),
        )
    if library.format == lief.Binary.FORMATS.MACHO:
        # the linker itself exports _mh_dylib_header and __dso_handle
        exports = [export.symbol.name.removeprefix("_") for export in library.dyld_info.exports]
        identity = next(command for command in library.libraries if command.command == lief.MachO.LoadCommand.TYPE.ID_DYLIB)
        return NativeLibrary(
            "Mach-O",
            _processor(library.header.cpu_type),
            frozenset(command.name for command in library.libraries if command is not identity),
            frozenset(name for name in exports if not name.startswith("_")),
            tuple(library.build_version.minos[:2]),
            identity.name,
            library.has_code_signature,
        )
    return NativeLibrary(
        "PE",
        _processor(library.header.machine),
        frozenset(imported.name for imported in library.imports),
        frozenset(entry.name for entry in library.get_export().entries),
    )


def library_faults(library: NativeLibrary, tag: str) -> Iterator[str]:
    """Yield a clause for each promise of the platform ``tag`` that ``library`` breaks."""
    system, promised, processor = _parts(tag)
    file_format = {"macosx": "Mach-O", "win": "PE"}.get(system, "ELF")
    if library.file_format != file_format:
        yield f"is of the format {library.file_format} instead of {file_format}"
        return
    if library.processor != processor:
        yield f"is for {library.processor} instead of {processor}"
    if foreign := sorted(name for name in library.needs if not re.fullmatch(_SYSTEM_LIBRARIES[system], name)):
        yield f"needs {', '.join(foreign)}, which {system} systems may not have"
    if missing := sorted(EXPORTS - library.exports):
        yield f"does not export {', '.join(missing)}"
    if extra := sorted(library.exports - EXPORTS):
        yield f"exports functions that it should not: {', '.join(extra)}"
    if system == "musllinux" and library.system_version:
        yield "needs glibc"
    elif library.system_version > promised:
        yield f"needs version {'.'.join(map(str, library.system_version))} of the system instead of {'.'.join(map(str, promised))}"
    if system == "macosx" and library.install_name != _INSTALL_NAME:
        yield f"has the install name {library.install_name} instead of {_INSTALL_NAME}"
    if system == "macosx" and processor == "arm64" and not library.is_signed:
        yield "has no signature, which macOS needs on arm64"


def _parts(tag: str) -> tuple[str, tuple[int, ...], str]:
    """Return the system, its oldest version and the processor that ``tag`` names."""
    system, version, processor = re.fullmatch(r"([a-z]+)((?:_\d+)*)_(x86_64|aarch64|arm64|amd64)", tag).groups()  # type: ignore[union-attr]
    return system, tuple(map(int, version.split("_")[1:])), _PROCESSORS[processor.upper()]


def _processor(value: Any) -> str:
    name = value.name
    return _PROCESSORS.get(name, name)


def _version(name: str) -> tuple[int, ...]:
    """Return the numbers of a version such as GLIBC_2.17. Any other name, such as GLIBC_PRIVATE, is newer than all versions."""
    numbers = re.fullmatch(r"GLIBC_([\d.]+)", name)
    return tuple(map(int, numbers[1].split("."))) if numbers else (10**6,)
