"""The identity of a model's content, and of the files its external data is in.

The content of a file is read once: what was found is noted under the file's path, size and times, and holds as long as those do.
A file changed so shortly before it was read that its times could not tell a later change is read again, as git does.
"""

import contextlib
import hashlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ortscan.cache.writing import replace_file

__all__ = ["digest_of_bytes", "digest_of_file", "identity_of_file", "identity_of_model"]

_CHUNK = 4 << 20
_THREADS = 4
_TIME_STEP_NS = 2_000_000_000


def digest_of_bytes(content: bytes | memoryview) -> str:
    """Give a digest of all of ``content``: of the digests of its chunks, which several threads make."""
    view = memoryview(content)
    chunks = [view[start : start + _CHUNK] for start in range(0, len(view), _CHUNK)]
    workers = min(_THREADS, os.cpu_count() or 1, len(chunks))
    if workers > 1:
        with ThreadPoolExecutor(workers) as pool:
            parts = list(pool.map(_sha, chunks))
    else:
        parts = [_sha(chunk) for chunk in chunks]
    return hashlib.sha256(b"".join(parts) + str(len(view)).encode()).hexdigest()


def _sha(chunk: memoryview) -> bytes:
    return hashlib.sha256(chunk).digest()


def identity_of_file(path: str) -> list[int | str]:
    """Give what tells whether the file at ``path`` is still the same without reading it. Raises OSError.

    Not the time of its last change of any kind: a session may link to external data, which is one.
    """
    status = os.stat(path)
    return [os.path.realpath(path), status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev]


def identity_of_model(path: str) -> list[int | str]:
    """Give the same for a model's own file, to which nothing links: one written anew may be given its old time of modification."""
    return [*identity_of_file(path), os.stat(path).st_ctime_ns]


def digest_of_file(path: str, notes: Path) -> str:
    """Give the digest of the file at ``path``; ``notes`` is the folder of what is known of files. Raises OSError."""
    identity = identity_of_model(path)
    note = notes / f"{hashlib.sha256(str(identity[0]).encode('utf-8', 'surrogatepass')).hexdigest()}.json"
    known = _read_note(note)
    if known is not None and known.get("identity") == identity:
        return str(known["digest"])
    read_at = time.time_ns()
    with open(path, "rb") as file:
        digest = digest_of_bytes(file.read())
    modified = identity[2]
    assert isinstance(modified, int)
    if read_at - modified > _TIME_STEP_NS and identity_of_model(path) == identity:
        with contextlib.suppress(OSError):
            replace_file(note, json.dumps({"identity": identity, "digest": digest}).encode())
    return digest


def _read_note(note: Path) -> dict[str, object] | None:
    try:
        found = json.loads(note.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("digest"), str) else None
