"""A digest of the code that makes the models, so that no two states of it share what they made.

Reading all of it takes longer than a start from the cache. So what was found is noted for the names, sizes and times of its files.
"""

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ortscan.cache.digest import TIME_STEP_NS
from ortscan.cache.notes import Notes
from rewrites import __name__ as compiler

__all__ = ["digest_of_code"]

_PACKAGES = Path(__file__).parents[2]
_NAMES = tuple(dict.fromkeys(name.partition(".")[0] for name in (__name__, compiler)))
"""In a wheel the compiler is within ortscan."""
_NOT_CODE = ("__pycache__",)
_NOTE = "the code of ortscan"
_found: list[str] = []


def digest_of_code(notes: Notes) -> str:
    """Return it, of the code as it is when this is first asked in a process. Raises OSError where the code cannot be read."""
    if not _found:
        _found.append(_digest(notes))
    return _found[0]


def _digest(notes: Notes) -> str:
    files = sorted(_files())
    state = hashlib.sha256("\n".join(state for _, state, _ in files).encode()).hexdigest()
    known = notes.read(_NOTE)
    if known.get("state") == state and isinstance(known.get("digest"), str):
        return str(known["digest"])
    started, digest = time.time_ns(), hashlib.sha256()
    for name, _, _ in files:
        content = (_PACKAGES / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    if all(started - changed > TIME_STEP_NS for _, _, changed in files):
        notes.write(_NOTE, {"state": state, "digest": digest.hexdigest()})
    return digest.hexdigest()


def _files() -> Iterator[tuple[str, str, int]]:
    """Return each file's name, what tells whether it is still the same, and when it last changed."""
    waiting = list(_NAMES)
    while waiting:
        folder = waiting.pop()
        with os.scandir(_PACKAGES / folder) as items:
            for item in items:
                name = f"{folder}/{item.name}"
                if item.name in _NOT_CODE:
                    continue
                if item.is_dir():
                    waiting.append(name)
                    continue
                status = item.stat()
                times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
                yield name, f"{name} {status.st_size} {times} {status.st_ino}", max(status.st_mtime_ns, status.st_ctime_ns)
