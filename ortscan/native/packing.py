"""Change the wheel and the sdist that setuptools packed. The same sources then give the same bytes.

The name ``rewrites`` is too common for an installed package, so a wheel contains ``rewrites`` as ``ortscan._rewrites``. Imports and
strings that name its modules are changed. The build backend runs this file by its path before anything is installed, so it imports
only the standard library.
"""

import ast
import base64
import calendar
import gzip
import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["moved", "repack_sdist", "repack_wheel"]

_OLD, _NEW = "rewrites", "ortscan._rewrites"
_MODULE = re.compile(rf"{_OLD}(\.[A-Za-z_]\w*)+")
_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of every file in a wheel or sdist: the oldest that a zip file can store."""


def repack_wheel(pure: Path, library: Path | None, platform: str, folder: Path) -> Path:
    """Write a wheel with renamed modules.

    Args:
        pure: the path of a wheel that setuptools built.
        library: the native library that the new wheel contains, or None.
        platform: the platform tag of the new wheel.
        folder: where the new wheel is written; not the folder of ``pure``.

    Returns:
        The path of the new wheel.
    """
    with zipfile.ZipFile(pure) as old:
        contents = {_new_path(name): _content(name, old.read(name), platform) for name in old.namelist()}
    if library is not None:
        contents[f"ortscan/native/{library.name}"] = library.read_bytes()
    (record,) = (name for name in contents if name.endswith(".dist-info/RECORD"))
    del contents[record]
    rows = [*(_record(name, content) for name, content in contents.items()), f"{record},,"]
    contents[record] = "".join(f"{row}\n" for row in rows).encode()
    wheel = folder / pure.name.replace("-any.whl", f"-{platform}.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in contents.items():
            new.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)
    return wheel


def repack_sdist(sdist: Path) -> None:
    """Replace dates, owners and permissions in ``sdist`` by fixed values, and sort its files."""
    date = calendar.timegm(_DATE)
    with tarfile.open(sdist) as old:
        files = {info.name: old.extractfile(info) for info in old.getmembers() if info.isfile()}
        contents = {name: file.read() for name, file in files.items() if file is not None}
    unpacked = io.BytesIO()
    with tarfile.open(fileobj=unpacked, mode="w", format=tarfile.PAX_FORMAT) as new:
        for name in sorted(contents):
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(contents[name]), date
            new.addfile(info, io.BytesIO(contents[name]))
    sdist.write_bytes(gzip.compress(unpacked.getvalue(), mtime=date))


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


def _content(name: str, content: bytes, platform: str) -> bytes:
    if name.endswith(".py"):
        return moved(content.decode()).encode()
    if name.endswith(".dist-info/top_level.txt"):
        return b"".join(line for line in content.splitlines(keepends=True) if line.strip() != _OLD.encode())
    if platform != "any" and name.endswith(".dist-info/WHEEL"):
        text = content.decode().replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
        return text.replace("Tag: py3-none-any", f"Tag: py3-none-{platform}").encode()
    return content


def _record(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"
