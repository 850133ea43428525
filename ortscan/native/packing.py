"""Makes of setuptools' wheel what is installed: with one import root, and the platform in its name.

The folder ``rewrites`` stands beside ``ortscan`` in the sources; installed so, it would be a package of a common word in
everybody's environment. In the wheel it is ``ortscan._rewrites``, and all that names its modules names them so: imports, and texts
that are such a name and nothing else. It runs before anything is installed, so it imports nothing of ortscan.
"""

import ast
import base64
import hashlib
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["moved", "packed"]

_OLD, _NEW = "rewrites", "ortscan._rewrites"
_MODULE = re.compile(rf"{_OLD}(\.[A-Za-z_]\w*)+")
_LIBRARY = re.compile(r"ortscan/native/[^/]+\.(so|dylib|dll)")


def packed(wheel: Path, platform: str | None) -> Path:
    """Rewrite ``wheel`` under its new name, which has the ``platform`` where the library is in it; return where it is then.

    A library that an earlier build has left in the sources does not get into a wheel for any platform.
    """
    renamed = wheel.with_name(wheel.name.replace("-any.whl", f"-{platform}.whl")) if platform else wheel
    with zipfile.ZipFile(wheel) as old:
        taken = [info for info in old.infolist() if platform or not _LIBRARY.fullmatch(info.filename)]
        contents = {_place(info.filename): _content(info.filename, old.read(info), platform) for info in taken}
    (record,) = (name for name in contents if name.endswith(".dist-info/RECORD"))
    rows = [_record(name, content) for name, content in contents.items() if name != record]
    contents[record] = "".join(f"{row}\n" for row in [*rows, f"{record},,"]).encode()
    wheel.unlink()
    with zipfile.ZipFile(renamed, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in contents.items():
            new.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return renamed


def moved(source: str) -> str:
    """Return the source of a module with the compiler's modules under their new names.

    Raises SyntaxError where they are named in another way, such as by a text with values in it.
    """
    lines = source.encode().splitlines(keepends=True)
    for line, start, end in sorted(_names(ast.parse(source)), reverse=True):
        name = lines[line][start:end].decode()
        if not name.strip("\"'").startswith(_OLD):
            raise SyntaxError(f"line {line + 1} names a module of {_OLD} in a way that cannot be rewritten")
        lines[line] = lines[line][:start] + name.replace(_OLD, _NEW, 1).encode() + lines[line][end:]
    return b"".join(lines).decode()


def _names(tree: ast.Module) -> Iterator[tuple[int, int, int]]:
    """Yield where the old names stand: the line, and the bytes of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and _is_ours(node.module or ""):
            start = node.col_offset + len("from ")
            yield node.lineno - 1, start, start + len(node.module or "")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _is_ours(alias.name):
                    if alias.asname is None:
                        raise SyntaxError(f"import {alias.name} binds a name that is another in a wheel: give it one with 'as'")
                    yield alias.lineno - 1, alias.col_offset, alias.col_offset + len(alias.name)
        elif isinstance(node, ast.JoinedStr):
            if any(isinstance(part, ast.Constant) and str(part.value).startswith(f"{_OLD}.") for part in node.values):
                raise SyntaxError(f"line {node.lineno} makes the name of a module of {_OLD} of parts: begin with __package__")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _MODULE.fullmatch(node.value):
            yield node.lineno - 1, node.col_offset, node.end_col_offset or node.col_offset


def _is_ours(name: str) -> bool:
    return name == _OLD or name.startswith(f"{_OLD}.")


def _place(name: str) -> str:
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
