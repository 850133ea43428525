"""Check the files of a wheel: its tag, its record, its library, and the same Python files as the pure wheel."""

import base64
import csv
import hashlib
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.campaigns.release.native_libraries import library_faults, read_library

__all__ = ["difference", "platform_of", "wheel_faults"]

_LIBRARY = re.compile(r"ortscan/native/[^/]+\.(so|dylib|dll)")
_OWN = re.compile(rf"{_LIBRARY.pattern}|[^/]+\.dist-info/(RECORD|WHEEL)")
"""The files that differ between the wheels of a release."""


def platform_of(wheel: Path) -> str:
    """Return the platform tag in the name of ``wheel``."""
    return wheel.stem.rpartition("-")[2]


def wheel_faults(wheel: Path, pure: Path) -> Iterator[str]:
    """Yield a sentence for each fault of ``wheel``. ``pure`` is the pure wheel of the same release."""
    contents, platform = _contents(wheel), platform_of(wheel)
    about = next(content.decode() for name, content in contents.items() if name.endswith(".dist-info/WHEEL"))
    is_pure = "false" if platform != "any" else "true"
    for line in f"Tag: py3-none-{platform}", f"Root-Is-Purelib: {is_pure}":
        if line not in about.splitlines():
            yield f'{wheel.name}: its file WHEEL lacks the line "{line}".'
    yield from (f"{wheel.name}: {fault}." for fault in _record_faults(contents))
    shared, reference = (
        {name: content for name, content in files.items() if not _OWN.fullmatch(name)} for files in (contents, _contents(pure))
    )
    if other := sorted(name for name in shared.keys() | reference.keys() if shared.get(name) != reference.get(name)):
        yield f"{wheel.name}: other files than in {pure.name}: {_listed(other)}."
    libraries = [name for name in contents if _LIBRARY.fullmatch(name)]
    if len(libraries) != (platform != "any"):
        yield f"{wheel.name}: contains {len(libraries)} native libraries."
    for name in libraries:
        try:
            faults = list(library_faults(read_library(contents[name]), platform))
        except ValueError as error:
            faults = [str(error)]
        yield from (f"{wheel.name}: {name} {fault}." for fault in faults)


def difference(first: Path, second: Path) -> str | None:
    """Return the sentence that two builds of a file differ, or None if they are equal."""
    if first.read_bytes() == second.read_bytes():
        return None
    if first.suffix != ".whl":
        return f"{first.name}: two builds gave different bytes."
    contents, again = _contents(first), _contents(second)
    names = sorted(name for name in contents.keys() | again.keys() if contents.get(name) != again.get(name))
    return f"{first.name}: two builds gave different bytes, in {_listed(names) or 'the zip file itself'}."


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as members:
        return {name: members.read(name) for name in members.namelist()}


def _record_faults(contents: dict[str, bytes]) -> Iterator[str]:
    """Yield a clause for each file that RECORD describes wrongly, lacks or invents."""
    record = next(name for name in contents if name.endswith(".dist-info/RECORD"))
    rows = {name: (digest, size) for name, digest, size in csv.reader(contents[record].decode().splitlines())}
    for name in sorted(rows.keys() ^ contents.keys()):
        yield f"RECORD {'lacks' if name in contents else 'invents'} {name}"
    for name in sorted((rows.keys() & contents.keys()) - {record}):
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents[name]).digest()).rstrip(b"=").decode()
        if rows[name] != (f"sha256={digest}", str(len(contents[name]))):
            yield f"RECORD has another digest or size for {name}"
